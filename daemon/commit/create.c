/* Tables coming and going: create, register, drop with and without purge. A create has no head row
 * to guard by; the uniqueness of the name decides, and the same statement may be sent again until
 * it is answered, because it knows its own batch row. */
#include <stdio.h>
#include <stdlib.h>

#include "daemon/commit/state.h"
#include "daemon/commit/mutant.h"
#include "daemon/commit/lineage.h"
#include "daemon/commit/used.h"
#include "daemon/commit/walk.h"
#include "proto/iceberg/metadata.h"
#include "proto/iceberg/place.h"

#define DOCUMENT_MAX METADATA_MAX_BYTES
/* How long a table that comes back waits for the cleaner, which is done soon or after very long. */
#define CONDEMNED_WAIT_US INT64_C(2000000)

struct creation {
	struct request *r; /* held; NULL: a part of several */
	struct part *part;
	struct arena arena;
	struct metadata *metadata;
	struct strv path;
	struct encode_in in;
	struct encode_out *out;
	struct sql_ledger ledger;
	struct sql_table_create create;
	struct batch_id id;
	bool registered;
	bool ledgered;
	bool lost; /* an answer was lost: it may have been created */
	bool asked;	/* the statement was sent, then or before */
	int64_t older;	/* incarnation of the same uuid that was in memory before; 0: none */
	bool busy; /* an effect of its object is under way */
	bool unwanted; /* let go of when that has ended */
	int64_t since_us;
	struct gather gather; /* of the manifest lists that it brings */
	struct needs needs;
	struct timer timer;
};

int64_t create_oldest_us(const struct core *c)
{
	int64_t oldest = INT64_MAX;
	LIST_FOR (n, tmp, &c->requests) {
		const struct creation *k = LIST_ITEM(n, struct request, node)->creation;
		const struct multi *m = LIST_ITEM(n, struct request, node)->multi;
		if (k && k->since_us < oldest)
			oldest = k->since_us;
		if (m && multi_oldest_us(m) < oldest)
			oldest = multi_oldest_us(m);
	}
	return oldest;
}

static void creation_fini(void *p)
{
	struct creation *k = p;
	metadata_unref(k->metadata);
	encode_out_free(k->out);
	needs_fini(&k->needs);
	arena_fini(&k->arena);
}

static void creation_over(struct creation *k)
{
	struct request *r = k->r;
	core_timer_stop(&k->timer);
	core_unkeep(k);
	if (!r)
		return;
	r->creation = NULL;
	request_let(r);
}

static void creation_refuse(struct core *c, struct creation *k, enum status st,
			    const struct err *err)
{
	if (k->part) {
		/* Its owner lets go of it. */
		struct err told = *err;
		told.st = st;
		multi_fail(c, k->part, &told);
		return;
	}
	request_status(c, k->r, st, err->field, err->msg);
	if (k->ledgered)
		publish_unledger(c, k->create.table, k->id, -1);
	creation_over(k);
}

static void creation_fail(struct core *c, struct creation *k, enum status st, const char *msg)
{
	struct err err = {0};
	snprintf(err.msg, sizeof err.msg, "%s", msg);
	creation_refuse(c, k, st, &err);
}

static bool dotted(struct arena *a, const struct creation *k, bool with_name, struct strv *ret_s)
{
	struct buf b;
	buf_init(&b, 65536);
	for (size_t i = 0; i < k->create.n_levels; i++) {
		if (i)
			buf_putc(&b, '.');
		buf_putv(&b, k->create.levels[i]);
	}
	if (with_name) {
		buf_putc(&b, '.');
		buf_putv(&b, k->create.name);
	}
	bool ok = buf_ok(&b) && arena_strv(a, buf_strv(&b), ret_s);
	buf_fini(&b);
	return ok;
}

void create_verdict(struct creation *k, enum sql_create_verdict v, struct err *err)
{
	struct strv ns = {"", 0}, full = {"", 0};
	if (!dotted(&k->arena, k, false, &ns) || !dotted(&k->arena, k, true, &full))
		ns = full = STRV("(long name)");
	switch (v) {
	case SQL_CREATED:
	case SQL_CREATE_EXISTS:
		break;
	case SQL_CREATE_NAME_TABLE:
		err_set(err, ST_ALREADY_EXISTS, "", "Table already exists: %.*s", STRV_ARG(full));
		return;
	case SQL_CREATE_NAME_VIEW:
		err_set(err, ST_ALREADY_EXISTS, "", "View with same name already exists: %.*s",
			STRV_ARG(full));
		return;
	case SQL_CREATE_NO_NAMESPACE:
		err_set(err, ST_NO_SUCH_NAMESPACE, "", "Namespace does not exist: %.*s",
			STRV_ARG(ns));
		return;
	case SQL_CREATE_UUID_LIVE:
		if (!k->registered) {
			/* Nobody but who commits this creation brings its uuid again. */
			err_set(err, ST_COMMIT_UNKNOWN, "",
				"a table with this uuid is live under another name: whether it was "
				"created by this request is not known");
			return;
		}
		err_set(err, ST_ALREADY_EXISTS, "",
			"a table with this uuid is live under another name");
		return;
	case SQL_CREATE_LOCATION_LIVE:
		err_set(err, ST_ALREADY_EXISTS, "",
			"a table with this metadata location is live under another name");
		return;
	case SQL_CREATE_CONDEMNED:
		err_set(err, ST_OVERLOADED, "",
			"files of this table are being deleted, as it was here before; try again later");
		return;
	}
	ASSERT_NEVER("unknown verdict");
}

/* What memory has of this uuid before the statement is sent is history once it is done; but a table that
 * was loaded while its answer was on the way may be the very one that was created. */
static void in_memory(struct core *c, struct creation *k)
{
	const struct table *t = table_find(c, k->create.table);
	if (!k->asked && t)
		k->older = t->incarnation;
	k->asked = true;
}

/* The table is there. begun: its incarnation, 0 when the answer did not tell. */
static void in_use(struct core *c, struct creation *k, int64_t begun)
{
	if (!MUTANT("replacement-unheard"))
		table_replaced(c, k->create.table, begun > k->older ? begun - 1 : k->older,
			       "the table was replaced");
	table_note(c, k->create.table, k->path, k->metadata);
}

static void create_send(struct core *c, struct creation *k);

static void create_again(struct core *c, struct timer *timer)
{
	create_send(c, CONTAINER_OF(timer, struct creation, timer));
}

static void created(struct core *c, void *ctx, const struct event *ev)
{
	struct creation *k = ctx;
	const struct sql_result *q = ev->u.done.sql;
	k->lost |= q->lost;
	if (!q->lost && q->err.st == ST_PLACE_TAKEN) {
		/* Judged after whether this very batch is there: nothing came of an earlier one. */
		creation_refuse(c, k, q->err.st, &q->err);
		return;
	}
	if (core_sql_clean_failure(q) && !q->lost && !k->lost) {
		/* Nothing happened, for certain. */
		creation_fail(c, k, ST_OVERLOADED, "PostgreSQL cannot be reached");
		return;
	}
	if (q->lost || core_sql_clean_failure(q)) {
		/* A server that keeps refusing, its cleaner having taken the ledger rows, must not be
		 * asked for ever. Whether the lost statement comes through is open, and was said. */
		if (q->sent && !q->lost && k->r->answered)
			creation_fail(c, k, ST_COMMIT_UNKNOWN, "");
		else
			core_timer(c, &k->timer, c->now_us + c->conf.retry_us, create_again);
		return;
	}
	if (q->verdict == SQL_KEY_TAKEN) {
		creation_fail(c, k, ST_KEY_DECIDED, "");
		return;
	}
	if (q->created == SQL_CREATE_CONDEMNED && !k->r->answered &&
	    c->now_us - k->since_us < CONDEMNED_WAIT_US) {
		core_timer(c, &k->timer, c->now_us + c->conf.retry_us, create_again);
		return;
	}
	if (q->created != SQL_CREATED && q->created != SQL_CREATE_EXISTS) {
		struct err err = {0};
		create_verdict(k, q->created, &err);
		creation_refuse(c, k, err.st, &err);
		return;
	}
	in_use(c, k, q->created == SQL_CREATED ? q->head.incarnation : 0);
	request_committed(c, k->r, k->path, k->metadata, k->create.idem.set);
	creation_over(k);
}

static void create_send(struct core *c, struct creation *k)
{
	in_memory(c, k);
	k->r->sent = true;
	struct effect *e = core_emit(c, FX_SQL, created, k);
	e->u.sql.kind = SQL_TABLE_CREATE;
	e->u.sql.u.create = &k->create;
}

static void create_put(struct core *c, void *ctx, const struct event *ev)
{
	struct creation *k = ctx;
	const struct err *err = ev->u.done.err;
	k->busy = false;
	if (k->unwanted) {
		create_forget(c, k);
		return;
	}
	if (err->st != ST_OK) {
		/* The location may lie outside every root: that is the client's fault. */
		creation_fail(c, k,
			      err->st == ST_PATH_OUTSIDE || err->st == ST_FORBIDDEN ? err->st
										    : ST_OVERLOADED,
			      err->msg);
		return;
	}
	if (k->part)
		multi_create_ready(c, k->part);
	else if (k->r->answered)
		creation_fail(c, k, ST_OVERLOADED, "");
	else
		create_send(c, k);
}

static void create_ledgered(struct core *c, void *ctx, const struct event *ev)
{
	struct creation *k = ctx;
	const struct sql_result *q = ev->u.done.sql;
	k->ledgered = q->lost || !core_sql_clean_failure(q);
	k->busy = false;
	if (k->unwanted) {
		create_forget(c, k);
		return;
	}
	if (q->lost || core_sql_clean_failure(q) || q->verdict != SQL_APPLIED) {
		creation_fail(c, k, ST_OVERLOADED, "PostgreSQL cannot be reached");
		return;
	}
	k->busy = true;
	struct effect *e = core_emit(c, FX_PUT, create_put, k);
	e->u.put.path = k->path;
	e->u.put.content = k->out->objects[0].content;
}

static void create_encoded(struct core *c, void *ctx, const struct event *ev)
{
	struct creation *k = ctx;
	(void)ev;
	k->busy = false;
	if (k->unwanted) {
		create_forget(c, k);
		return;
	}
	if (k->out->err.st != ST_OK) {
		creation_fail(c, k, k->out->err.st == ST_LIMIT ? ST_TOO_LARGE : k->out->err.st,
			      k->out->err.msg);
		return;
	}
	if (k->r && k->r->answered) {
		creation_fail(c, k, ST_OVERLOADED, "");
		return;
	}
	k->ledger = (struct sql_ledger){.table = k->create.table,
					.epoch = -1,
					.batch = k->id,
					.holder = c->conf.daemon,
					.paths = &k->path,
					.n_paths = 1};
	k->busy = true;
	struct effect *e = core_emit(c, FX_SQL, create_ledgered, k);
	e->u.sql.kind = SQL_LEDGER;
	e->u.sql.u.ledger = k->ledger;
}

/* The snapshots that a creation brings, judged as those of a later commit are. */
static enum cache_answer look_at(struct core *c, struct creation *k, struct err *err)
{
	const struct metadata *m = k->metadata;
	size_t n = metadata_snapshot_count(m), n_known = 0;
	bool waiting = false;
	enum status st = ST_OK;
	for (size_t i = 0; i < n; i++)
		if (c->pg_ms > 0 && metadata_snapshot_at(m, i)->timestamp_ms >
					    c->pg_ms + SNAPSHOT_AHEAD_MAX_MS) {
			err_set(err, ST_VALIDATION, "snapshot.timestamp-ms",
				"more than a minute ahead of the server's clock");
			return CACHE_FAIL;
		}
	if (metadata_format_version(m) < 3 && c->conf.verify_snapshots == 0)
		return CACHE_HAVE;
	const struct manifest_list **known =
		arena_calloc(&k->arena, n + 1, sizeof(struct manifest_list *));
	if (!known) {
		err_set(err, ST_TOO_LARGE, "updates", "too many snapshots");
		return CACHE_FAIL;
	}
	for (size_t i = 0; i < n; i++) {
		const struct snapshot *s = metadata_snapshot_at(m, i);
		struct mlist *list = NULL;
		if (!s->manifest_list.p)
			continue;
		enum cache_answer ans =
			cache_list(c->cache, s->manifest_list, &k->needs, &list, err);
		if (ans == CACHE_FAIL) {
			err_prefix(err, "snapshot.manifest-list");
			return ans;
		}
		waiting |= ans == CACHE_WAIT;
		if (waiting)
			continue;
		st = used_list_check(list, m, err);
		/* One that came before the upgrade in its request keeps no row ids. */
		if (st == ST_OK && s->first_row_id != ROW_ID_NONE)
			st = lineage_check(&list->l, known, n_known, 0,
					   s->first_row_id + s->added_rows, err);
		if (st != ST_OK)
			return CACHE_FAIL;
		known[n_known++] = &list->l;
	}
	return waiting ? CACHE_WAIT : CACHE_HAVE;
}

static void create_look(struct core *c, struct gather *g)
{
	struct creation *k = CONTAINER_OF(g, struct creation, gather);
	struct err err = {0};
	k->busy = false;
	if (k->unwanted) {
		create_forget(c, k);
		return;
	}
	if (k->r && k->r->answered) {
		creation_fail(c, k, ST_OVERLOADED, "");
		return;
	}
	enum cache_answer ans = look_at(c, k, &err);
	if (ans == CACHE_WAIT) {
		k->busy = true;
		core_gather(c, g, &k->needs);
		return;
	}
	needs_release(&k->needs);
	if (ans == CACHE_FAIL) {
		bool passing = err.st == ST_IO || err.st == ST_UNAVAILABLE ||
			       err.st == ST_OVERLOADED;
		creation_refuse(c, k, passing ? ST_OVERLOADED : ST_VALIDATION, &err);
		return;
	}
	k->in = (struct encode_in){
		.metadata = k->metadata, .metadata_path = k->path, .max_bytes = DOCUMENT_MAX};
	k->out = encode_out_new(DOCUMENT_MAX);
	k->busy = true;
	struct effect *e = core_emit(c, FX_ENCODE, create_encoded, k);
	e->u.encode.in = &k->in;
	e->u.encode.out = k->out;
}

static void begin(struct core *c, struct creation *k, const struct ask_create *in)
{
	struct metadata *m = in->metadata;
	k->since_us = c->now_us;
	k->registered = in->registered;
	arena_init(&k->arena, (size_t)1 << 20);
	k->metadata = metadata_ref(m);
	k->id.u = core_uuid7(c);
	struct uuid table;
	struct strv *levels =
		arena_calloc(&k->arena, in->n_levels ? in->n_levels : 1,
			     sizeof *levels);
	bool ok = levels && arena_strv(&k->arena, in->location, &k->path) &&
		  arena_strv(&k->arena, in->name, &k->create.name) &&
		  arena_strv(&k->arena, in->warehouse, &k->create.warehouse) &&
		  arena_strv(&k->arena, metadata_location(m), &k->create.location);
	for (size_t i = 0; ok && i < in->n_levels; i++)
		ok = arena_strv(&k->arena, in->levels[i], &levels[i]);
	struct strv *paths = arena_calloc(&k->arena, 1, sizeof *paths);
	if (!ok || !paths) {
		creation_fail(c, k, ST_TOO_LARGE, "the names are too long");
		return;
	}
	if (!metadata_uuid(m, &table)) {
		creation_fail(c, k, ST_VALIDATION, "the table has no uuid");
		return;
	}
	paths[0] = k->path;
	struct strv places[PLACE_MAX];
	k->create.n_places = place_list(m, places);
	if (!place_copy(&k->arena, places, k->create.n_places, &k->create.places)) {
		creation_fail(c, k, ST_TOO_LARGE, "the names are too long");
		return;
	}
	k->create.levels = levels;
	k->create.n_levels = in->n_levels;
	k->create.table = (struct table_id){table};
	k->create.overwrite = in->overwrite;
	k->create.holder = c->conf.daemon;
	k->create.row = (struct batch_row){.table = k->create.table,
					   .batch_no = 1,
					   .batch = k->id,
					   .epoch = 1,
					   .metadata_location = k->path};
	k->create.last_seq = metadata_last_sequence_number(m);
	k->create.next_row_id = metadata_next_row_id(m);
	k->create.objects = paths;
	k->create.n_objects = k->registered ? 0 : 1;
	if (!k->part)
		k->create.idem = k->r->in.idem;
	if (k->registered) {
		create_send(c, k);
		return;
	}
	k->gather.run = create_look;
	k->needs.tolerant = true;
	create_look(c, &k->gather);
}

void create_table(struct core *c, struct request *r)
{
	struct creation *k = core_keep(c, sizeof *k, creation_fini);
	k->r = r;
	request_hold(r);
	r->creation = k;
	begin(c, k, &r->in.u.create);
}

/* ------------------------------------------------------------------ one of several */

struct creation *create_part(struct core *c, struct part *p, const struct ask_create *in)
{
	struct creation *k = core_keep(c, sizeof *k, creation_fini);
	k->part = p;
	begin(c, k, in);
	return k;
}

void create_asked(struct core *c, struct creation *k)
{
	in_memory(c, k);
}

const struct sql_table_create *create_row(const struct creation *k)
{
	return &k->create;
}

int64_t create_since_us(const struct creation *k)
{
	return k->since_us;
}

bool create_busy(const struct creation *k)
{
	return k->busy;
}

void create_told(struct core *c, struct creation *own_k)
{
	in_use(c, own_k, 0);
	creation_over(own_k);
}

void create_forget(struct core *c, struct creation *own_k)
{
	if (own_k->busy) {
		own_k->unwanted = true;
		return;
	}
	if (own_k->ledgered)
		publish_unledger(c, own_k->create.table, own_k->id, -1);
	creation_over(own_k);
}

/* ------------------------------------------------------------------ drop */

struct pathset {
	struct strv *v;
	size_t n, cap;
	struct arena *a;
	const struct strv *places;
	size_t n_places;
	size_t outside; /* named, but not the table's to delete */
	bool ok;
};

/* A path may come twice; the statement takes each once. */
static void path_add(struct pathset *s, struct strv path)
{
	void *items = s->v;
	bool own = false;
	for (size_t i = 0; i < s->n_places; i++)
		own |= place_beneath(s->places[i], path);
	if (!own) {
		s->outside++;
		return;
	}
	struct strv copy;
	if (!arena_grow(s->a, &items, &s->cap, s->n + 1, sizeof *s->v) ||
	    !arena_strv(s->a, path, &copy)) {
		s->ok = false;
		return;
	}
	s->v = items;
	s->v[s->n++] = copy;
}

struct purge {
	struct request *r; /* held */
	struct timer timer;
	int64_t version; /* that has been walked */
	struct walk walk;
	struct pathset paths;
	bool files; /* data files go too */
	size_t spared; /* data files that gc.enabled = false keeps, each time that one is named */
};

/* What stays of a purged table, and why: nobody else will tell. */
static void tell_kept(struct core *c, struct request *r, const struct table *t, size_t shared)
{
	const struct purge *p = r->purging;
	struct err err = {0};
	size_t all = p->paths.outside + p->spared + shared + r->needs.n_failed;
	c->counters.purge_kept += (int64_t)all;
	if (all == 0)
		return;
	err_set(&err, ST_OK, "",
		"kept: %zu outside of its folders, %zu in folders of others, %zu by gc.enabled, "
		"%zu unreadable files and what they name",
		p->paths.outside, shared, p->spared, r->needs.n_failed);
	core_log(c, 4, "purge.kept", t, NULL, &err);
}

static void purge_run(struct core *c, struct gather *g);

static void purge_again(struct core *c, struct timer *timer)
{
	struct purge *p = CONTAINER_OF(timer, struct purge, timer);
	purge_run(c, &p->r->gather);
}

static void dropped(struct core *c, void *ctx, const struct event *ev)
{
	struct request *r = ctx;
	const struct sql_result *q = ev->u.done.sql;
	struct table *t = table_find(c, r->in.table);
	bool applied = !q->lost && !core_sql_clean_failure(q) && q->verdict == SQL_APPLIED;
	if (!q->lost && !core_sql_clean_failure(q) && q->verdict == SQL_REFUSED && q->found &&
	    r->purging) {
		/* Committed to since the walk: what is new goes, too. Its answer is on its way. */
		r->sent = false;
		core_timer(c, &r->purging->timer, c->now_us + c->conf.retry_us, purge_again);
		return;
	}
	if (applied && r->purging)
		tell_kept(c, r, t, q->n_paths);
	if (applied && t) {
		r->table = NULL; /* it is answered here */
		table_replaced(c, t->id, r->in.incarnation, "the table was dropped");
	}
	if (applied)
		request_dropped(c, r, q->head.metadata_location);
	else if (q->lost)
		request_status(c, r, ST_TIMEOUT, "", "PostgreSQL's answer was lost; repeat");
	else if (core_sql_clean_failure(q))
		request_status(c, r, ST_UNAVAILABLE, "", "PostgreSQL cannot be reached");
	else if (q->verdict == SQL_KEY_TAKEN)
		request_status(c, r, ST_KEY_DECIDED, "", "");
	else
		request_status(c, r, ST_NO_SUCH_TABLE, "", "Table does not exist");
	request_let(r);
}

static void purge_object(void *ctx, struct strv path)
{
	struct purge *p = ctx;
	path_add(&p->paths, path);
}

static void purge_entry(void *ctx, const struct manifest_entry *e)
{
	struct purge *p = ctx;
	if (p->files)
		path_add(&p->paths, e->file.path);
	else
		p->spared++;
}

static void drop_send(struct core *c, struct request *r);

/* Every object that any snapshot reaches. A file that cannot be read is skipped: what it names
 * stays. */
static void purge_run(struct core *c, struct gather *g)
{
	struct request *r = CONTAINER_OF(g, struct request, gather);
	struct table *t = r->table;
	struct err err = {0};
	if (r->answered || !t) {
		request_let(r);
		return;
	}
	struct purge *p = r->purging;
	struct metadata *m = p->walk.meta;
	const struct walk_told told = {p, purge_object, purge_entry};
	enum cache_answer ans = walk_run(&p->walk, c->cache, &r->needs, &told, &err);
	while (ans == CACHE_HAVE && t->meta && t->meta != m) {
		/* It was committed to meanwhile: what is new in it. */
		metadata_unref(r->replied);
		r->replied = m = metadata_ref(t->meta);
		p->walk.meta = m;
		p->walk.snapshot = 0;
		ans = walk_run(&p->walk, c->cache, &r->needs, &told, &err);
	}
	if (ans == CACHE_WAIT) {
		core_gather(c, g, &r->needs);
		return;
	}
	struct pathset s = p->paths;
	s.ok &= ans == CACHE_HAVE;
	size_t n_log;
	const struct metadata_log_entry *log = metadata_log(m, &n_log);
	for (size_t i = 0; i < n_log; i++)
		path_add(&s, log[i].file);
	path_add(&s, t->location);
	if (!s.ok) {
		request_status(c, r, ST_TOO_LARGE, "", "the table has too many files to purge");
		request_let(r);
		return;
	}
	/* The log's files come anew with each version. */
	p->paths = s;
	p->version = t->version;
	r->purge = s.v;
	r->n_purge = s.n;
	drop_send(c, r);
}

static void drop_send(struct core *c, struct request *r)
{
	r->sent = true;
	struct effect *e = core_emit(c, FX_SQL, dropped, r);
	e->u.sql.kind = SQL_TABLE_DROP;
	e->u.sql.u.drop = (struct sql_table_drop){.table = r->in.table,
						  .incarnation = r->in.incarnation,
						  .version = r->purging ? r->purging->version : -1,
						  .purge = r->in.u.drop.purge,
						  .purge_all = r->purging && r->purging->files,
						  .purge_paths = r->purge,
						  .n_purge_paths = r->n_purge,
						  .idem = r->in.idem};
}

void create_drop(struct core *c, struct request *r)
{
	if (!r->in.u.drop.purge) {
		request_hold(r);
		drop_send(c, r);
		return;
	}
	struct table *t = table_open(c, r->in.table);
	if (t->state == TABLE_LOADING) {
		list_push_back(&t->waiting, &r->wait);
		return;
	}
	r->table = t;
	request_hold(r);
	if (!t->meta) {
		/* Halted before its metadata could be read: nothing is known to delete. */
		drop_send(c, r);
		return;
	}
	struct purge *p = arena_calloc(&r->arena, 1, sizeof *p);
	ASSERT(p != NULL);
	p->r = r;
	p->walk = (struct walk){.meta = t->meta, .arena = &r->arena};
	p->paths = (struct pathset){.a = &r->arena};
	struct strv places[PLACE_MAX];
	p->paths.n_places = place_list(t->meta, places);
	p->paths.ok = place_copy(&r->arena, places, p->paths.n_places, &p->paths.places);
	p->files = !strv_ieq(metadata_property(t->meta, "gc.enabled"), STRV("false"));
	r->replied = metadata_ref(t->meta); /* for the walk */
	r->purging = p;
	r->gather.run = purge_run;
	r->needs.tolerant = true;
	purge_run(c, &r->gather);
}
