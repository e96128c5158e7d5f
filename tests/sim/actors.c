/* Requests on their way, and who creates, drops and resumes tables. */
#include "tests/sim/actors.h"

#include <inttypes.h>

#include "proto/base/json.h"
#include "proto/iceberg/partition.h"
#include "proto/iceberg/schema.h"

uint64_t actors_send(struct world *w, enum req_use use, struct job *job, void *arg,
		     struct event *ev)
{
	struct actors *a = w->actors;
	a->reqs = world_grow(w, a->reqs, &a->cap_reqs, a->n_reqs + 1, sizeof *a->reqs);
	uint64_t id = a->n_reqs++;
	a->reqs[id] = (struct req){use, ev->kind, job, arg};
	ev->u.req.req = id;
	if (!ev->u.req.principal.p)
		ev->u.req.principal = STRV("somebody");
	if (world_chance(w, 300))
		ev->u.req.deadline_us = w->now + 1000 + world_below(w, 2000000);
	world_trace(w, "request %" PRIu64 " kind %d use %d", id, (int)ev->kind, (int)use);
	world_step(w, ev);
	return id;
}

bool actors_table(struct world *w, int slot, struct table_id *ret_id, int64_t *ret_incarnation)
{
	struct strv name = w->actors->tables[slot].name;
	for (size_t i = 0; i < w->pg.n_tabs; i++)
		if (strv_eq(w->pg.tabs[i].name, name)) {
			const struct head_row *h = pg_head(w, w->pg.tabs[i].table);
			*ret_id = h->table;
			*ret_incarnation = h->incarnation;
			return true;
		}
	return false;
}

struct strv actors_data_file(struct world *w, struct strv location, int64_t size)
{
	struct strv path =
		world_printf(w, "%.*s/data/f-%06d.parquet", STRV_ARG(location), w->actors->files++);
	if (size >= 0)
		store_put(w, path, (struct bytes){NULL, 0}, size);
	return path;
}

/* ------------------------------------------------------------------ tables */

struct metadata *actors_metadata(struct world *w, struct strv location)
{
	struct err err = {0};
	struct jdoc *d = NULL, *e = NULL;
	struct schema *s = world_alloc(w, sizeof *s);
	struct partition_spec *p = world_alloc(w, sizeof *p);
	const char *schema = "{\"type\":\"struct\",\"fields\":["
			     "{\"id\":1,\"name\":\"id\",\"required\":true,\"type\":\"long\"},"
			     "{\"id\":2,\"name\":\"p\",\"required\":false,\"type\":\"int\"}]}";
	const char *spec = "{\"spec-id\":0,\"fields\":[{\"source-id\":2,\"field-id\":1000,"
			   "\"name\":\"p\",\"transform\":\"identity\"}]}";
	ASSERT(jdoc_parse(strv_bytes(strv_of(schema)), ST_CORRUPT, &d, &err) == ST_OK);
	ASSERT(schema_parse(jdoc_root(d), ST_CORRUPT, &w->mem, s, &err) == ST_OK);
	ASSERT(jdoc_parse(strv_bytes(strv_of(spec)), ST_CORRUPT, &e, &err) == ST_OK);
	ASSERT(partition_parse(jdoc_root(e), ST_CORRUPT, &w->mem, p, &err) == ST_OK);
	jdoc_free(d);
	jdoc_free(e);
	struct strv_pair *props = world_alloc(w, 4 * sizeof *props);
	props[0] = (struct strv_pair){STRV("format-version"), w->conf.v2 ? STRV("2") : STRV("3")};
	props[1] = (struct strv_pair){STRV("write.metadata.previous-versions-max"), STRV("3")};
	props[2] = (struct strv_pair){STRV("write.metadata.delete-after-commit.enabled"),
				      STRV("true")};
	props[3] = (struct strv_pair){STRV("write.metadata.compression-codec"), STRV("gzip")};
	uint8_t r[16];
	world_bytes(w, r, sizeof r);
	struct metadata_create c = {.uuid = uuid_v4(r),
				    .now_ms = world_pg_ms(w),
				    .location = location,
				    .schema = s,
				    .spec = w->conf.partitioned ? p : NULL,
				    .properties = props,
				    .n_properties = w->seed % 3 == 0 ? 4 : 1};
	struct metadata *m = NULL;
	if (metadata_new(&c, &m, &err) != ST_OK)
		world_fail(w, "no table: %s: %s", err.field, err.msg);
	return m;
}

/* Under its name, with the uuid that its metadata has. */
static void send_register(struct world *w, struct slot_table *s, struct strv file, bool overwrite)
{
	struct strv *levels = world_alloc(w, sizeof *levels);
	struct event ev = {.kind = EV_TABLE_CREATE};
	levels[0] = STRV("ns");
	ev.u.req.u.create = (struct ask_create){.warehouse = STRV("wh"),
						.levels = levels,
						.n_levels = 1,
						.name = s->name,
						.metadata = store_metadata(w, file),
						.location = file,
						.registered = true,
						.overwrite = overwrite};
	actors_send(w, REQ_TABLE, NULL, s, &ev);
}

/* What is there is registered over itself: a new incarnation, and perhaps a step back. */
static void register_again(struct world *w, void *arg)
{
	struct slot_table *s = arg;
	struct table_id id;
	int64_t incarnation;
	if (w->calm)
		return;
	world_at(w, 300000 + world_below(w, 1500000), register_again, s);
	/* An older file may be gone by the time where they are deleted. */
	if (w->seed % 3 && actors_table(w, (int)(s - w->actors->tables), &id, &incarnation))
		send_register(w, s, pg_head(w, id)->metadata_location, true);
}

static void send_create(struct world *w, void *arg)
{
	struct slot_table *s = arg;
	if (s->busy || s->made)
		return;
	if (w->conf.comeback && s->last.p && world_chance(w, 700)) {
		send_register(w, s, s->last, false);
		s->last = (struct strv){NULL, 0};
		world_at(w, 3000000, send_create, s);
		return;
	}
	struct strv location =
		world_printf(w, "file:///wh/%.*s-%d", STRV_ARG(s->name), s->generation++);
	uint8_t r[16];
	char file[METADATA_FILE_NAME_MAX];
	world_bytes(w, r, sizeof r);
	metadata_unref(s->metadata);
	s->metadata = actors_metadata(w, location);
	metadata_file_name((struct strv){NULL, 0}, uuid_v4(r), metadata_wants_gzip(s->metadata),
			   file);
	struct strv *levels = world_alloc(w, sizeof *levels);
	levels[0] = STRV("ns");
	struct event ev = {.kind = EV_TABLE_CREATE};
	ev.u.req.u.create.warehouse = STRV("wh");
	ev.u.req.u.create.levels = levels;
	ev.u.req.u.create.n_levels = 1;
	ev.u.req.u.create.name = s->name;
	ev.u.req.u.create.metadata = s->metadata;
	if (world_chance(w, 300))
		ev.u.req.idem = world_idem(w, 200);
	ev.u.req.u.create.location = world_printf(w, "%.*s/metadata/%s", STRV_ARG(location), file);
	actors_send(w, REQ_TABLE, NULL, s, &ev);
	/* Until it is there by whichever attempt. */
	world_at(w, 3000000, send_create, s);
}

static void send_drop(struct world *w, void *arg)
{
	struct slot_table *s = arg;
	int slot = (int)(s - w->actors->tables);
	struct event ev = {.kind = EV_TABLE_DROP};
	if (w->calm)
		return;
	world_at(w, 500000 + world_below(w, 4000000), send_drop, s);
	if (!actors_table(w, slot, &ev.u.req.table, &ev.u.req.incarnation))
		return;
	/* What a purge has deleted by then would be missing. */
	ev.u.req.u.drop.purge = world_chance(w, 300) && !w->conf.comeback;
	s->made = false;
	s->last = (struct strv){NULL, 0};
	if (world_chance(w, 300))
		ev.u.req.idem = world_idem(w, 204);
	actors_send(w, REQ_TABLE, NULL, s, &ev);
	world_at(w, 100000, send_create, s);
}

static void table_reply(struct world *w, struct req *r, const struct reply *reply)
{
	struct slot_table *s = r->arg;
	struct table_id id;
	int64_t incarnation;
	if (r->kind == EV_TABLE_DROP) {
		if (reply->kind == REPLY_DROPPED && w->conf.comeback)
			s->last = world_strv(w, reply->metadata_location);
		return;
	}
	bool there = actors_table(w, (int)(s - w->actors->tables), &id, &incarnation);
	if (reply->kind == REPLY_COMMITTED) {
		if (!there && !w->conf.dropper)
			world_fail(w, "a create was confirmed and the table is not there");
		s->made = true;
	} else if (reply->err.st == ST_ALREADY_EXISTS) {
		s->made = there;
	}
}

/* ------------------------------------------------------------------ the operator */

static void resume(struct world *w, void *arg)
{
	struct event ev = {.kind = EV_RESUME};
	ev.u.req.table = *(struct table_id *)arg;
	struct m_halt *h = pg_halt(w, ev.u.req.table);
	if (h)
		h->confirmed = false;
	actors_send(w, REQ_RESUME, NULL, NULL, &ev);
}

static void halted(void *ctx, const struct core_table_info *info)
{
	struct world *w = ctx;
	if (!info->halted)
		return;
	world_trace(w, "halted: %.*s", STRV_ARG(info->halt_cause));
	if (!w->conf.outside && !info->halt->by_operator)
		world_fail(w, "a table halted: %.*s", STRV_ARG(info->halt_cause));
	struct table_id *id = world_alloc(w, sizeof *id);
	*id = info->table;
	bool human = info->halt->by_operator && !w->calm;
	world_at(w, human ? world_below(w, 2000000) : 1000, resume, id);
}

static void send_halt(struct world *w, void *arg)
{
	struct event ev = {.kind = EV_HALT};
	struct table_id *id = world_alloc(w, sizeof *id);
	int64_t incarnation;
	if (w->calm)
		return;
	world_at(w, 300000 + world_below(w, 1500000), send_halt, arg);
	if (!actors_table(w, world_below(w, w->conf.tables), id, &incarnation))
		return;
	ev.u.req.table = *id;
	ev.u.req.u.halt.cause = STRV("a simulated word");
	actors_send(w, REQ_HALT, NULL, id, &ev);
}

/* From now on nothing is published, not by a daemon of later either, until the resume is sent. */
static void halt_reply(struct world *w, const struct req *r, const struct reply *reply)
{
	struct m_halt *h = pg_halt(w, *(const struct table_id *)r->arg);
	if (reply->kind != REPLY_ERR && h)
		h->confirmed = true;
}

static void watch(struct world *w, void *arg)
{
	(void)arg;
	if (w->core)
		core_each_table(w->core, halted, w);
	world_at(w, 1000000, watch, NULL);
}

/* ------------------------------------------------------------------ all of them */

void actors_reply(struct world *w, struct effect *e)
{
	uint64_t id = e->u.reply.req;
	struct req *r = &w->actors->reqs[id];
	const struct reply *reply = &e->u.reply.reply;
	world_trace(w, "reply %" PRIu64 " kind %d st %d %s %s", id, (int)reply->kind,
		    (int)reply->err.st, reply->err.field, reply->err.msg);
	switch (r->use) {
	case REQ_STEP:
	case REQ_ECHO:
	case REQ_PROBE:
	case REQ_BEAT:
		workers_reply(w, r, id, reply);
		return;
	case REQ_REST:
		rest_reply(w, r, reply);
		return;
	case REQ_TABLE:
		table_reply(w, r, reply);
		return;
	case REQ_RESUME:
		return;
	case REQ_HALT:
		halt_reply(w, r, reply);
		return;
	}
}

void actors_start(struct world *w)
{
	struct actors *a = world_alloc(w, sizeof *a);
	w->actors = a;
	for (int i = 0; i < w->conf.tables; i++) {
		a->tables[i].name = world_printf(w, "t%d", i);
		send_create(w, &a->tables[i]);
	}
	if (w->conf.operator)
		world_at(w, 200000, send_halt, NULL);
	if (w->conf.dropper)
		world_at(w, w->conf.run_us / 3, send_drop, &a->tables[0]);
	if (w->conf.comeback)
		world_at(w, w->conf.run_us / 4, register_again, &a->tables[0]);
	workers_start(w);
	rest_start(w);
	watch(w, NULL);
}
