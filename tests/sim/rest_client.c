/* REST clients: load the table, write a snapshot of their own, commit it, start over on a conflict.
 */
#include "daemon/commit/lineage.h"
#include "daemon/commit/rewrite.h"
#include "daemon/commit/tally.h"
#include "proto/dv/dv_blob.h"
#include "proto/dv/puffin.h"
#include "proto/iceberg/requirement.h"
#include "proto/iceberg/update.h"
#include "tests/sim/actors.h"

#define MAX_BYTES ((size_t)64 << 20)

struct client {
	int number;
};

struct attempt {
	struct intent *in; /* NULL: a property change; of several tables: linked by mate */
	bool repeated;	   /* sent more than once: what one copy is told says nothing of the other */
	struct event ev;   /* to be sent again */
	bool over;	   /* with a key: the answer is final */
	struct strv tag;   /* that it sets; p NULL: none */
};

struct draft {
	struct world *w;
	struct metadata *m;
	struct intent *in;
	struct encode_in ein;
	struct encode_out *out;
	struct rewrite rw;
	struct tally tally;
	struct manifest_file row;
};

static void again(struct world *w, void *arg);

static bool draft_append(struct draft *d)
{
	struct world *w = d->w;
	struct intent *in = d->in;
	struct err err = {0};
	struct content_file f = content_file_empty();
	struct tuple none = {NULL, 0};
	in->files = world_alloc(w, sizeof *in->files);
	in->records = world_alloc(w, sizeof *in->records);
	f.path = actors_data_file(w, metadata_location(d->m), 333);
	f.format = STRV("PARQUET");
	f.file_size = 333;
	f.record_count = 1 + world_below(w, 30);
	f.partition = none;
	if (w->conf.partitioned) {
		f.partition.v = world_alloc(w, sizeof *f.partition.v);
		f.partition.v[0] = VALUE_NULL;
		f.partition.n = 1;
	}
	in->files[0] = f.path;
	in->records[0] = f.record_count;
	in->n_files = 1;
	struct manifest_entry e = {.status = ENTRY_ADDED,
				   .snapshot_id = in->snapshot_id,
				   .seq = SEQ_NONE,
				   .file_seq = SEQ_NONE,
				   .file = f};
	const struct manifest_entry *v[] = {&e};
	struct bytes file;
	return tally_add(&d->tally, &e.file) && rewrite_manifest(&d->rw, MANIFEST_DATA, 0, NULL, v,
								 1, &d->row, &file, &err) == ST_OK;
}

/* The same before version 3, by a file of position deletes. */
static bool draft_delete_file(struct draft *d, const struct scan_file *f, uint64_t row)
{
	struct world *w = d->w;
	struct intent *in = d->in;
	struct err err = {0};
	struct bitmap64 *set = bitmap64_new();
	ASSERT(bitmap64_add(set, row, &err) == ST_OK);
	in->deletes = world_alloc(w, sizeof *in->deletes);
	in->deletes[0] = (struct intent_delete){.path = f->path, .positions = set};
	in->n_deletes = 1;
	in->dead = in->by_files = true;
	struct manifest_entry *e = world_alloc(w, sizeof *e);
	*e = (struct manifest_entry){.status = ENTRY_ADDED,
				     .snapshot_id = in->snapshot_id,
				     .seq = SEQ_NONE,
				     .file_seq = SEQ_NONE,
				     .file = content_file_empty()};
	e->file.content = CONTENT_POSITION_DELETES;
	e->file.path = actors_data_file(w, metadata_location(d->m), 99);
	e->file.format = STRV("PARQUET");
	e->file.spec_id = f->spec_id;
	e->file.partition = f->partition;
	e->file.record_count = 1;
	e->file.file_size = 99;
	if (row % 2)
		e->file.referenced_data_file = f->path;
	scans_delete_file(w, e->file.path, f->path, set);
	const struct manifest_entry *v[] = {e};
	struct bytes bytes;
	return tally_add(&d->tally, &e->file) &&
	       rewrite_manifest(&d->rw, MANIFEST_DELETES, f->spec_id, NULL, v, 1, &d->row, &bytes,
				&err) == ST_OK;
}

/* Deletes rows of a file that has no vector yet. */
static bool draft_delete(struct draft *d, const struct scan *s)
{
	struct world *w = d->w;
	struct intent *in = d->in;
	const struct scan_file *f = &s->files[world_below(w, (int)s->n)];
	struct err err = {0};
	if (f->records < 2)
		return false;
	if (d->rw.version < 3) {
		uint64_t row = (uint64_t)world_below(w, (int)f->records);
		return !(f->old && bitmap64_contains(f->old, row)) && draft_delete_file(d, f, row);
	}
	/* One that old deletes apply to would have to take them over. */
	if (f->dv || f->old)
		return false;
	struct bitmap64 *set = bitmap64_new();
	ASSERT(bitmap64_add(set, (uint64_t)world_below(w, (int)f->records), &err) == ST_OK);
	in->deletes = world_alloc(w, sizeof *in->deletes);
	in->deletes[0] = (struct intent_delete){.path = f->path, .positions = set};
	in->n_deletes = 1;
	in->dead = true;
	struct buf blob, file;
	buf_init(&blob, MAX_BYTES);
	buf_init(&file, MAX_BYTES);
	int64_t offset = 0;
	struct puffin_writer pw;
	ASSERT(dv_blob_encode(set, &blob, &err) == ST_OK);
	puffin_begin(&pw, &file);
	ASSERT(puffin_add_vector(&pw, buf_bytes(&blob), f->path, 1, &offset, &err) == ST_OK);
	ASSERT(puffin_finish(&pw, STRV("somebody"), &err) == ST_OK);
	puffin_writer_fini(&pw);
	struct manifest_entry *e = world_alloc(w, sizeof *e);
	*e = (struct manifest_entry){.status = ENTRY_ADDED,
				     .snapshot_id = in->snapshot_id,
				     .seq = SEQ_NONE,
				     .file_seq = SEQ_NONE,
				     .file = content_file_empty()};
	e->file.content = CONTENT_POSITION_DELETES;
	e->file.path = world_printf(w, "%.*s/data/dv-%06d.puffin",
				    STRV_ARG(metadata_location(d->m)), w->actors->files++);
	e->file.format = STRV("PUFFIN");
	e->file.spec_id = f->spec_id;
	e->file.partition = f->partition;
	e->file.record_count = 1;
	e->file.file_size = (int64_t)file.n;
	e->file.referenced_data_file = f->path;
	e->file.content_offset = offset;
	e->file.content_size = (int64_t)blob.n;
	store_put(w, e->file.path, buf_bytes(&file), 0);
	buf_fini(&blob);
	buf_fini(&file);
	const struct manifest_entry *v[] = {e};
	struct bytes bytes;
	return tally_add(&d->tally, &e->file) &&
	       rewrite_manifest(&d->rw, MANIFEST_DELETES, f->spec_id, NULL, v, 1, &d->row, &bytes,
				&err) == ST_OK;
}

/* Writes list and manifests; the snapshot lives until the end of the run. */
static struct snapshot *draft_snapshot(struct draft *d)
{
	struct world *w = d->w;
	struct metadata *m = d->m;
	const struct snapshot *head = metadata_current_snapshot(m);
	struct err err = {0};
	struct snapshot *s = world_alloc(w, sizeof *s);
	struct mlist *old = head ? store_list(w, head->manifest_list) : NULL;
	size_t n = old ? old->l.n : 0;
	struct manifest_file *rows = world_alloc(w, (n + 1) * sizeof *rows);
	struct mview **views = world_alloc(w, (n + 1) * sizeof(struct mview *));
	for (size_t i = 0; i < n; i++)
		rows[i] = old->l.rows[i];
	rows[n++] = d->row;
	int64_t first = metadata_next_row_id(m), next = first;
	int version = metadata_format_version(m);
	if (version >= 3)
		ASSERT(lineage_assign(rows, views, n, &next, &err) == ST_OK);
	struct manifest_list_params p = {.format_version = version,
					 .snapshot_id = d->in->snapshot_id,
					 .parent_snapshot_id =
						 head ? head->snapshot_id : SNAPSHOT_NONE,
					 .seq = d->rw.seq,
					 .first_row_id = version >= 3 ? first : ROW_ID_NONE,
					 .codec = CODEC_DEFLATE};
	struct buf b;
	buf_init(&b, MAX_BYTES);
	ASSERT(manifest_list_write(&p, rows, n, &b, &err) == ST_OK);
	struct strv path = world_printf(w, "%.*s/metadata/snap-c%06d.avro",
					STRV_ARG(metadata_location(m)), w->actors->files++);
	store_put(w, path, buf_bytes(&b), 0);
	buf_fini(&b);
	mlist_unref(old);
	for (size_t i = 0; i < d->out->n_objects; i++)
		store_put(w, d->out->objects[i].path, d->out->objects[i].data, 0);
	*s = (struct snapshot){.snapshot_id = d->in->snapshot_id,
			       .parent_id = head ? head->snapshot_id : SNAPSHOT_NONE,
			       .sequence_number = d->rw.seq,
			       .timestamp_ms = world_pg_ms(w),
			       .schema_id = metadata_current_schema_id(m),
			       .first_row_id = version >= 3 ? first : ROW_ID_NONE,
			       .added_rows = version >= 3 ? next - first : ROW_ID_NONE,
			       .manifest_list = path,
			       .operation = tally_operation(&d->tally)};
	if (head && s->timestamp_ms < head->timestamp_ms)
		s->timestamp_ms = head->timestamp_ms;
	ASSERT(tally_summary(&d->tally, head, NULL, 0, &s->summary, &s->n_summary));
	return s;
}

static struct ask_commit ask_for(struct world *w, const struct metadata *m, struct snapshot *s)
{
	struct requirement *req = world_alloc(w, 2 * sizeof *req);
	struct update *up = world_alloc(w, 2 * sizeof *up);
	size_t n = 0;
	ASSERT(metadata_uuid(m, &req[0].uuid));
	req[0].kind = REQUIREMENT_TABLE_UUID;
	if (s) {
		req[1] = (struct requirement){.kind = REQUIREMENT_REF_SNAPSHOT_ID,
					      .ref = STRV("main"),
					      .snapshot_id = s->parent_id};
		up[n++] = (struct update){.kind = UPDATE_ADD_SNAPSHOT, .u.snapshot = s};
		up[n++] = (struct update){
			.kind = UPDATE_SET_SNAPSHOT_REF,
			.u.ref = {.name = STRV("main"), .snapshot_id = s->snapshot_id}};
	} else if (w->conf.v2 && world_chance(w, 300)) {
		up[n++] = (struct update){.kind = UPDATE_UPGRADE_FORMAT_VERSION,
					  .u.format_version = 3};
	} else {
		struct strv_pair *pair = world_alloc(w, sizeof *pair);
		*pair = (struct strv_pair){STRV("comment"),
					   world_printf(w, "c%d", world_below(w, 1000))};
		up[n].kind = UPDATE_SET_PROPERTIES;
		up[n].u.properties.v = pair;
		up[n++].u.properties.n = 1;
	}
	return (struct ask_commit){req, s ? 2 : 1, up, n};
}

/* The answer that is kept for a key, as whoever serves the client finds it. */
static bool told(struct world *w, struct attempt *a)
{
	const struct m_idem *row = world_kept(w, a->ev.u.req.idem.key);
	if (!row)
		return false;
	for (const struct intent *in = a->in; in && row->http < 300; in = in->mate)
		if (!in->done)
			world_fail(w, "a client was told of a commit that is not published");
	a->over = true;
	return true;
}

/* Whoever serves a creation names a file for it, each time another one. */
static struct strv metadata_file(struct world *w, const struct metadata *m)
{
	uint8_t r[16];
	char file[METADATA_FILE_NAME_MAX];
	world_bytes(w, r, sizeof r);
	metadata_file_name((struct strv){NULL, 0}, uuid_v4(r), metadata_wants_gzip(m), file);
	return world_printf(w, "%.*s/metadata/%s", STRV_ARG(metadata_location(m)), file);
}

static void name_files(struct world *w, struct event *ev)
{
	size_t n = ev->kind == EV_TABLES_COMMIT ? ev->u.req.u.commit_tables.n : 0;
	struct ask_part *v = world_alloc(w, (n + 1) * sizeof *v);
	for (size_t i = 0; i < n; i++) {
		v[i] = ev->u.req.u.commit_tables.v[i];
		if (v[i].creates)
			v[i].create.location = metadata_file(w, v[i].create.metadata);
	}
	if (n)
		ev->u.req.u.commit_tables.v = v;
}

/* The same request under the same key, by a client that knows nothing of the first one. */
static void repeat_key(struct world *w, void *arg)
{
	struct attempt *a = arg;
	if (a->over || told(w, a))
		return;
	if (w->core) {
		struct event ev = a->ev;
		name_files(w, &ev);
		actors_send(w, REQ_REST, NULL, a, &ev);
	}
	world_at(w, w->conf.client_timeout_us, repeat_key, a);
}

static void keyed_reply(struct world *w, struct attempt *a, const struct reply *reply)
{
	const struct sql_idem *k = &a->ev.u.req.idem;
	if (reply->kind != REPLY_ERR) {
		/* The planted error is to be found by what a crash makes of it. */
		if (reply->remembered && !world_kept(w, k->key) &&
		    !MUTANT("key-in-second-statement"))
			world_fail(w, "an answer is said to be kept and is not");
		if (!told(w, a) && !reply->remembered)
			world_keep(w, k->key, k->http);
		a->over = true;
		return;
	}
	enum status_retry retry = status_info(reply->err.st)->retry;
	if (reply->err.st == ST_KEY_DECIDED) {
		if (!told(w, a))
			world_fail(w, "a key is said to be decided and has no answer");
		return;
	}
	/* Another attempt may be on its way: only a final refusal that could be kept is one. */
	if (retry == RETRY_SAME || retry == RETRY_LATER || told(w, a))
		return;
	world_keep(w, k->key, 409);
	a->over = true;
	for (struct intent *in = a->in; in; in = in->mate) {
		if (in->done)
			world_fail(w, "a client was told that a published commit had failed: %s",
				   status_info(reply->err.st)->name);
		in->refused = true;
	}
}

static void send_keyed(struct world *w, struct attempt *a)
{
	struct event ev = a->ev;
	a->repeated = false;
	actors_send(w, REQ_REST, NULL, a, &ev);
	world_at(w, w->conf.client_timeout_us, repeat_key, a);
}

/* NULL: a property change, or nothing came to mind. */
static struct snapshot *draft(struct world *w, struct table_id table, struct metadata *m,
			      struct intent **ret_in)
{
	const struct snapshot *head = metadata_current_snapshot(m);
	struct snapshot *sn = NULL;
	struct err err = {0};
	struct draft d = {.w = w, .m = m};
	d.in = world_alloc(w, sizeof *d.in);
	d.in->snapshot_id = (int64_t)(world_random(w) >> 2) + 1;
	uint8_t r[16];
	world_bytes(w, r, sizeof r);
	d.ein = (struct encode_in){.commit_uuid = uuid_v4(r), .max_bytes = MAX_BYTES};
	d.out = encode_out_new(MAX_BYTES);
	tally_init(&d.tally, &w->mem);
	ASSERT(rewrite_init(&d.rw, &d.ein, d.out, m, &err) == ST_OK);
	d.rw.snapshot_id = d.in->snapshot_id;
	d.rw.seq = metadata_last_sequence_number(m) + 1;
	const struct scan *s = head ? scans_of(w, table, m, head) : NULL;
	bool deletes = w->conf.deletes && s && s->n && world_chance(w, 400);
	if (deletes ? draft_delete(&d, s) : draft_append(&d)) {
		sn = draft_snapshot(&d);
		oracle_intend(w, d.in);
		*ret_in = d.in;
	}
	encode_out_free(d.out);
	return sn;
}

static void commit_once(struct world *w, struct table_id table, int64_t incarnation)
{
	struct metadata *m = store_metadata(w, pg_head(w, table)->metadata_location);
	struct event ev = {.kind = EV_TABLE_COMMIT};
	struct attempt *a = world_alloc(w, sizeof *a);
	struct snapshot *s = NULL;
	bool properties = world_chance(w, 200);
	if (!properties)
		s = draft(w, table, m, &a->in);
	ev.u.req.table = table;
	ev.u.req.incarnation = incarnation;
	if (s || properties) {
		ev.u.req.u.commit_table = ask_for(w, m, s);
		a->ev = ev;
		if (world_chance(w, 500)) {
			a->ev.u.req.idem = world_idem(w, 200);
			send_keyed(w, a);
		} else {
			actors_send(w, REQ_REST, NULL, a, &ev);
		}
	}
	metadata_unref(m);
}

/* ------------------------------------------------------------------ several tables at once */

static void link_up(struct attempt *a, struct intent *in)
{
	if (in) {
		in->mate = a->in;
		a->in = in;
	}
}

static void ask_created(struct world *w, struct attempt *a, struct ask_part *p)
{
	struct strv name = world_printf(w, "m%d", w->actors->files++);
	struct strv location = world_printf(w, "file:///wh/%.*s", STRV_ARG(name));
	struct strv *levels = world_alloc(w, sizeof *levels);
	struct intent *in = world_alloc(w, sizeof *in);
	levels[0] = STRV("ns");
	struct metadata *m = actors_metadata(w, location);
	*p = (struct ask_part){.name = name, .creates = true};
	p->create = (struct ask_create){
		.warehouse = STRV("wh"),
		.levels = levels,
		.n_levels = 1,
		.name = name,
		.metadata = m,
		.location = metadata_file(w, m)};
	in->creates = true;
	ASSERT(metadata_uuid(p->create.metadata, &in->created.u));
	oracle_intend(w, in);
	link_up(a, in);
}

static void repeat(struct world *w, void *arg)
{
	struct attempt *a = arg;
	struct event ev = a->ev;
	actors_send(w, REQ_REST, NULL, a, &ev);
}

/* Changes of several tables, in no order; some only require, some come. */
static void commit_many(struct world *w)
{
	struct ask_part *v = world_alloc(w, (TABLES_MAX + 1) * sizeof *v);
	struct attempt *a = world_alloc(w, sizeof *a);
	int from = world_below(w, w->conf.tables);
	size_t n = 0;
	for (int i = 0; i < w->conf.tables; i++) {
		struct ask_part *p = &v[n];
		struct intent *in = NULL;
		if (world_chance(w, 250) ||
		    !actors_table(w, (from + i) % w->conf.tables, &p->table, &p->incarnation))
			continue;
		struct metadata *m = store_metadata(w, pg_head(w, p->table)->metadata_location);
		int dice = world_below(w, 10);
		struct snapshot *s = dice < 7 ? draft(w, p->table, m, &in) : NULL;
		p->name = STRV("a table");
		p->commit = ask_for(w, m, s);
		if (dice == 9)
			p->commit.n_updates = 0;
		link_up(a, in);
		metadata_unref(m);
		n++;
	}
	if (world_chance(w, 150))
		ask_created(w, a, &v[n++]);
	if (n == 0)
		return;
	a->ev = (struct event){.kind = EV_TABLES_COMMIT};
	a->ev.u.req.u.commit_tables.v = v;
	a->ev.u.req.u.commit_tables.n = n;
	if (world_chance(w, 400)) {
		a->ev.u.req.idem = world_idem(w, 204);
		send_keyed(w, a);
		return;
	}
	/* Creations are known again by the catalog, before the core. */
	a->repeated = !w->conf.dropper && !w->conf.expirer && !(a->in && a->in->creates) && world_chance(w, 300);
	struct event ev = a->ev;
	actors_send(w, REQ_REST, NULL, a, &ev);
	if (a->repeated)
		world_at(w, world_below(w, 2000000), repeat, a);
}

/* ------------------------------------------------------------------ tags and expiry */

static void send_one(struct world *w, struct attempt *a, struct update *u, size_t n_requirements,
		     struct requirement *requirements)
{
	struct event ev = a->ev;
	ev.u.req.u.commit_table = (struct ask_commit){requirements, n_requirements, u, 1};
	a->ev = ev;
	actors_send(w, REQ_REST, NULL, a, &ev);
}

/* Names some snapshot that it saw, wherever it stands. */
static void tag_one(struct world *w, struct attempt *a, const struct metadata *m)
{
	size_t n = metadata_snapshot_count(m);
	struct requirement *req = world_alloc(w, 2 * sizeof *req);
	struct update *u = world_alloc(w, sizeof *u);
	a->tag = world_printf(w, "tag-%d", w->actors->files++);
	ASSERT(metadata_uuid(m, &req[0].uuid));
	req[0].kind = REQUIREMENT_TABLE_UUID;
	req[1] = (struct requirement){.kind = REQUIREMENT_REF_SNAPSHOT_ID,
				      .ref = a->tag,
				      .snapshot_id = SNAPSHOT_NONE};
	*u = (struct update){
		.kind = UPDATE_SET_SNAPSHOT_REF,
		.u.ref = {.name = a->tag,
			  .snapshot_id =
				  metadata_snapshot_at(m, (size_t)world_below(w, (int)n))->snapshot_id,
			  .tag = true}};
	send_one(w, a, u, 2, req);
}

/* What no ref named when it looked: the oldest ones. It requires nothing, as expiry jobs do. */
struct expiry {
	struct attempt a;
	int64_t ids[3];
	size_t n;
};

static void expire_now(struct world *w, void *arg)
{
	struct expiry *x = arg;
	struct update *u = world_alloc(w, sizeof *u);
	u->kind = UPDATE_REMOVE_SNAPSHOTS;
	u->u.snapshot_ids.v = x->ids;
	u->u.snapshot_ids.n = x->n;
	send_one(w, &x->a, u, 0, NULL);
}

static void look_for_old(struct world *w, struct attempt *a, const struct metadata *m)
{
	struct expiry *x = world_alloc(w, sizeof *x);
	size_t n_refs;
	const struct snapshot_ref *refs = metadata_refs(m, &n_refs);
	x->a = *a;
	for (size_t i = 0; i < metadata_snapshot_count(m) && x->n < ARRAY_SIZE(x->ids); i++) {
		int64_t id = metadata_snapshot_at(m, i)->snapshot_id;
		bool named = false;
		for (size_t k = 0; k < n_refs; k++)
			named |= refs[k].snapshot_id == id;
		if (!named)
			x->ids[x->n++] = id;
	}
	if (x->n)
		world_at(w, world_below(w, 60000), expire_now, x);
}

static void tags_and_expiry(struct world *w, void *arg)
{
	struct attempt *a = world_alloc(w, sizeof *a);
	a->ev.kind = EV_TABLE_COMMIT;
	if (w->calm)
		return;
	world_at(w, 5000 + world_below(w, 60000), tags_and_expiry, arg);
	if (!actors_table(w, world_below(w, w->conf.tables), &a->ev.u.req.table,
			  &a->ev.u.req.incarnation))
		return;
	struct metadata *m =
		store_metadata(w, pg_head(w, a->ev.u.req.table)->metadata_location);
	if (metadata_snapshot_count(m) == 0)
		;
	else if (world_chance(w, 500))
		tag_one(w, a, m);
	else
		look_for_old(w, a, m);
	metadata_unref(m);
}

void rest_reply(struct world *w, struct req *r, const struct reply *reply)
{
	struct attempt *a = r->arg;
	if (a->tag.p && reply->kind != REPLY_ERR)
		oracle_tagged(w, a->ev.u.req.table, a->ev.u.req.incarnation, a->tag);
	if (a->ev.u.req.idem.set && !a->over)
		keyed_reply(w, a, reply);
	if (reply->kind != REPLY_ERR) {
		for (const struct intent *in = a->in; in; in = in->mate)
			if (!in->done)
				world_fail(w, "a client was told of a commit that is not published");
		return;
	}
	if (status_info(reply->err.st)->http == 503)
		world_fail(w, "a commit route answered 503");
	if (a->ev.u.req.idem.set)
		return;
	if (status_info(reply->err.st)->effect != EFFECT_CLEAN)
		return;
	for (struct intent *in = a->in; in; in = in->mate) {
		/* Of two copies the other may be published between the answer and now; and a table that
		 * stands still answers neither. */
		bool sure = a->repeated ? reply->err.st == ST_COMMIT_FAILED &&
						  in->done_at < w->reply_since
					: true;
		if (in->done && sure)
			world_fail(w, "a client was told that a published commit had failed: %s",
				   status_info(reply->err.st)->name);
		in->refused |= !a->repeated;
	}
}

static void again(struct world *w, void *arg)
{
	struct table_id table;
	int64_t incarnation;
	if (w->calm)
		return;
	if (w->conf.several && world_chance(w, 600))
		commit_many(w);
	else if (actors_table(w, world_below(w, w->conf.tables), &table, &incarnation))
		commit_once(w, table, incarnation);
	world_at(w, 20000 + world_below(w, 600000), again, arg);
}

void rest_start(struct world *w)
{
	for (int i = 0; i < w->conf.rest_clients; i++) {
		struct client *c = world_alloc(w, sizeof *c);
		c->number = i;
		world_at(w, 100000 + world_below(w, 500000), again, c);
	}
	if (w->conf.expirer)
		world_at(w, 100000, tags_and_expiry, NULL);
}
