/* What must be true: the content of every snapshot against the union of what committed, row ids,
 * totals, objects, epochs, and that outcomes are told as they were decided. */
#include "tests/sim/world.h"

#include <inttypes.h>

#include "proto/rpc/msg.h"

struct o_file {
	struct strv path;
	int64_t records, first_row_id;
	bool live;
	bool old; /* position delete files delete from it */
	struct bitmap64 *deleted, *moved;
};

struct o_table {
	struct table_id table;
	struct o_file *files; /* every one that was ever committed */
	size_t n, cap;
	int64_t head; /* snapshot of main */
	int64_t forgotten; /* deleted rows of files whose path came again */
	bool upgraded;
	int64_t touched; /* sequence number of the last snapshot with position delete files */
	int64_t last_seq, next_row_id, epoch, version, incarnation, batch_no;
	struct snapshot_ref *refs; /* but main, as they were published last; nobody removes one */
	size_t n_refs, cap_refs;
};

struct oracle {
	struct o_table *tables;
	size_t n, cap;
	struct intent **intents;
	size_t n_intents, cap_intents;
};

void oracle_init(struct world *w)
{
	w->oracle = world_alloc(w, sizeof *w->oracle);
}

static void free_deletes(struct intent *i)
{
	for (size_t k = 0; k < i->n_deletes; k++) {
		bitmap64_free(i->deletes[k].positions);
		bitmap64_free(i->deletes[k].at_read);
	}
}

void oracle_fini(struct world *w)
{
	struct oracle *o = w->oracle;
	if (!o)
		return;
	for (size_t i = 0; i < o->n_intents; i++)
		free_deletes(o->intents[i]);
	for (size_t t = 0; t < o->n; t++)
		for (size_t i = 0; i < o->tables[t].n; i++) {
			bitmap64_free(o->tables[t].files[i].deleted);
			bitmap64_free(o->tables[t].files[i].moved);
		}
}

void oracle_intend(struct world *w, struct intent *i)
{
	struct oracle *o = w->oracle;
	o->intents =
		world_grow(w, o->intents, &o->cap_intents, o->n_intents + 1, sizeof *o->intents);
	o->intents[o->n_intents++] = i;
}

void oracle_check_groups(struct world *w)
{
	for (size_t i = 0; i < w->oracle->n_intents; i++) {
		const struct intent *in = w->oracle->intents[i];
		if (in->mate && in->done != in->mate->done)
			world_fail(w, "a request over several tables is published by half");
	}
}

static struct intent *intent_of_txn(struct world *w, struct txn_id id)
{
	for (size_t i = w->oracle->n_intents; i-- > 0;)
		if (uuid_eq(w->oracle->intents[i]->txn.u, id.u))
			return w->oracle->intents[i];
	return NULL;
}

static struct intent *intent_of_snapshot(struct world *w, int64_t id)
{
	for (size_t i = w->oracle->n_intents; i-- > 0;)
		if (w->oracle->intents[i]->snapshot_id == id)
			return w->oracle->intents[i];
	return NULL;
}

static struct o_table *table_of(struct world *w, struct table_id id)
{
	struct oracle *o = w->oracle;
	for (size_t i = 0; i < o->n; i++)
		if (uuid_eq(o->tables[i].table.u, id.u))
			return &o->tables[i];
	o->tables = world_grow(w, o->tables, &o->cap, o->n + 1, sizeof *o->tables);
	o->tables[o->n] = (struct o_table){.table = id, .head = SNAPSHOT_NONE};
	return &o->tables[o->n++];
}

static struct o_file *file_of(struct o_table *t, struct strv path)
{
	for (size_t i = 0; i < t->n; i++)
		if (strv_eq(t->files[i].path, path))
			return &t->files[i];
	return NULL;
}

/* ------------------------------------------------------------------ the model of a table */

static void apply_delete(struct world *w, struct o_table *t, const struct intent *in,
			 const struct intent_delete *d)
{
	struct o_file *f = file_of(t, d->path);
	struct err err;
	if (bitmap64_empty(d->positions))
		return;
	if (!f)
		world_fail(w, "rows were deleted from a file that never was: %.*s",
			   STRV_ARG(d->path));
	struct bitmap64 *common = bitmap64_clone(d->positions);
	bitmap64_intersect(common, f->deleted);
	if (!bitmap64_empty(common)) {
		/* Harmless only when both sides say that the rows are gone for good. */
		if (!in->dead)
			world_fail(w, "an update took a row that was gone already in %.*s",
				   STRV_ARG(d->path));
		if (f->moved && bitmap64_common(common, f->moved) > 0)
			world_fail(w,
				   "a deletion committed although the row had moved on from %.*s",
				   STRV_ARG(d->path));
	} else if (!f->live) {
		world_fail(w, "rows of a file that is gone were deleted: %.*s", STRV_ARG(d->path));
	}
	struct bitmap64 *fresh = bitmap64_clone(d->positions);
	bitmap64_subtract(fresh, f->deleted);
	if (!in->dead) {
		if (!f->moved)
			f->moved = bitmap64_new();
		ASSERT(bitmap64_union(f->moved, (const struct bitmap64 *const *)&fresh, 1, &err) ==
		       ST_OK);
	}
	ASSERT(bitmap64_union(f->deleted, (const struct bitmap64 *const *)&fresh, 1, &err) ==
	       ST_OK);
	f->old |= in->by_files;
	/* Nobody reads files of position deletes: what they empty stays. */
	if ((int64_t)bitmap64_cardinality(f->deleted) == f->records && !f->old)
		f->live = false;
	bitmap64_free(common);
	bitmap64_free(fresh);
}

static void apply(struct world *w, struct o_table *t, struct intent *in)
{
	for (size_t i = 0; i < in->n_files; i++) {
		struct o_file *old = file_of(t, in->files[i]);
		if (old && old->live)
			world_fail(w, "a path was committed twice: %.*s", STRV_ARG(in->files[i]));
		if (old) {
			/* All its rows had been deleted, and somebody brings the file anew. */
			t->forgotten += (int64_t)bitmap64_cardinality(old->deleted);
			bitmap64_free(old->deleted);
			bitmap64_free(old->moved);
			*old = t->files[--t->n];
		}
		t->files = world_grow(w, t->files, &t->cap, t->n + 1, sizeof *t->files);
		t->files[t->n++] = (struct o_file){.path = in->files[i],
						   .records = in->records[i],
						   .first_row_id = ROW_ID_NONE,
						   .live = true,
						   .deleted = bitmap64_new()};
	}
	for (size_t i = 0; i < in->n_deletes; i++)
		apply_delete(w, t, in, &in->deletes[i]);
}

/* next_row_id: ROW_ID_NONE for a snapshot of before row ids. */
static void compare(struct world *w, struct o_table *t, const struct scan *s, int64_t next_row_id)
{
	size_t live = 0;
	for (size_t i = 0; i < t->n; i++)
		live += t->files[i].live;
	if (live != s->n)
		world_fail(w, "snapshot %" PRId64 " has %zu data files, %zu are committed",
			   s->snapshot_id, s->n, live);
	for (size_t i = 0; i < s->n; i++) {
		const struct scan_file *f = &s->files[i];
		struct o_file *m = file_of(t, f->path);
		if (!m || !m->live)
			world_fail(w, "a data file that nobody committed: %.*s", STRV_ARG(f->path));
		if (m->records != f->records)
			world_fail(w, "record counts differ: %.*s", STRV_ARG(f->path));
		const struct bitmap64 *gone = scan_gone(f);
		bool same = gone ? bitmap64_equal(gone, m->deleted) : bitmap64_empty(m->deleted);
		if (!same)
			world_fail(w,
				   "deleted rows of %.*s in snapshot %" PRId64
				   ": the table has %llu, committed are %llu",
				   STRV_ARG(f->path), s->snapshot_id,
				   (unsigned long long)(gone ? bitmap64_cardinality(gone) : 0),
				   (unsigned long long)bitmap64_cardinality(m->deleted));
		if (f->dv && f->old)
			world_fail(w, "a vector hides old deletes of %.*s", STRV_ARG(f->path));
		if (next_row_id == ROW_ID_NONE && f->first_row_id != ROW_ID_NONE)
			world_fail(w, "row ids before version 3 in %.*s", STRV_ARG(f->path));
		if (next_row_id == ROW_ID_NONE)
			continue;
		if (f->first_row_id == ROW_ID_NONE || f->first_row_id < 0 ||
		    f->first_row_id + f->records > next_row_id)
			world_fail(w, "row ids of %.*s are not below next-row-id",
				   STRV_ARG(f->path));
		if (m->first_row_id == f->first_row_id)
			continue;
		if (m->first_row_id != ROW_ID_NONE)
			world_fail(w, "row ids of %.*s changed", STRV_ARG(f->path));
		m->first_row_id = f->first_row_id;
		for (size_t k = 0; k < t->n; k++) {
			const struct o_file *o = &t->files[k];
			if (o != m && o->first_row_id != ROW_ID_NONE &&
			    o->first_row_id < m->first_row_id + m->records &&
			    m->first_row_id < o->first_row_id + o->records)
				world_fail(w, "row ids of %.*s and %.*s overlap", STRV_ARG(o->path),
					   STRV_ARG(m->path));
		}
	}
}

/* ------------------------------------------------------------------ decisions */

static const struct rpc_outcome *decode_outcome(struct world *w, struct bytes b)
{
	const void *msg;
	struct err err;
	if (msg_decode(&rpc_record_outcome, b, &w->mem, &msg, &err) != ST_OK)
		world_fail(w, "an outcome does not decode: %s: %s", err.field, err.msg);
	return msg;
}

/* The i-th outcome of a batch row: version byte, then length-prefixed records in txn order. */
static const struct rpc_outcome *outcome_at(struct world *w, const struct batch_row *row, size_t i)
{
	size_t at = 1;
	for (size_t k = 0; at + 4 <= row->outcomes.n; k++) {
		size_t n = get_u32le(row->outcomes.p + at);
		if (k == i)
			return decode_outcome(w, (struct bytes){row->outcomes.p + at + 4, n});
		at += 4 + n;
	}
	world_fail(w, "a batch row has too few outcomes");
}

static enum rpc_state state_of(uint8_t s)
{
	switch ((enum txn_db_state)s) {
	case TXN_DB_OPEN:
		return RPC_STATE_OPEN;
	case TXN_DB_SEALED:
		return RPC_STATE_SEALED;
	case TXN_DB_COMMITTED:
		return RPC_STATE_COMMITTED;
	case TXN_DB_REJECTED:
		return RPC_STATE_REJECTED;
	case TXN_DB_ABORTED:
		return RPC_STATE_ABORTED;
	case TXN_DB_EXPIRED:
		return RPC_STATE_EXPIRED;
	case TXN_DB_LOST:
		break;
	}
	return RPC_STATE_LOST;
}

static void check_rejection(struct world *w, struct o_table *t, const struct intent *in,
			    const struct rpc_outcome *o)
{
	if (in->sabotaged)
		return;
	struct strv name = o->reject ? o->reject->name : STRV("(none)");
	world_trace(w, "rejected: %.*s", STRV_ARG(name));
	/* What it had read was expired. */
	if (w->conf.expirer && (strv_eq(name, STRV("SNAPSHOT_TOO_OLD")) ||
				strv_eq(name, STRV("SNAPSHOT_NOT_ANCESTOR"))))
		return;
	/* What was made for version 2 alone. */
	if ((in->by_files || in->listed) && t->upgraded && strv_eq(name, STRV("FORMAT_CHANGED")))
		return;
	if (in->n_deletes == 0)
		world_fail(w, "a plain append was rejected: %.*s: %.*s", STRV_ARG(name),
			   STRV_ARG(o->reject ? o->reject->message : name));
	bool overlap = false, gone = false;
	for (size_t i = 0; i < in->n_deletes; i++) {
		const struct o_file *f = file_of(t, in->deletes[i].path);
		gone |= !f || !f->live;
		overlap |= f && bitmap64_common(f->deleted, in->deletes[i].positions) > 0;
	}
	/* Files of position deletes meet by data file, or by partition where they name several. */
	bool met = in->by_files && t->touched > in->read_seq;
	bool old = false;
	for (size_t i = 0; i < t->n; i++)
		old |= t->files[i].old;
	bool ok = (met && strv_eq(name, STRV("WRITE_WRITE"))) ||
		  (!in->by_files && old && strv_eq(name, STRV("LEGACY_DELETES"))) ||
		  (overlap &&
		   (strv_eq(name, STRV("WRITE_WRITE")) || strv_eq(name, STRV("ROW_MOVED")))) ||
		  (gone && strv_eq(name, STRV("FILE_GONE")));
	if (!ok)
		world_fail(w, "a deletion was rejected without reason: %.*s: %.*s", STRV_ARG(name),
			   STRV_ARG(o->reject ? o->reject->message : name));
}

static int64_t deleted_rows(const struct o_table *t)
{
	int64_t n = t->forgotten;
	for (size_t i = 0; i < t->n; i++)
		n += (int64_t)bitmap64_cardinality(t->files[i].deleted);
	return n;
}

static void one_snapshot(struct world *w, struct o_table *t, const struct batch_row *row,
			 const struct rpc_outcome *const *out, const struct metadata *m,
			 const struct snapshot *s)
{
	bool any = false, files = false;
	if (s->parent_id != t->head)
		world_fail(w, "snapshot %" PRId64 " has another parent than the head",
			   s->snapshot_id);
	int64_t before = deleted_rows(t), told = 0;
	for (size_t i = 0; i < row->n_txns; i++) {
		if (!out[i]->has_snapshot_id || out[i]->snapshot_id != s->snapshot_id)
			continue;
		any = true;
		struct intent *in = intent_of_txn(w, row->txns[i]);
		apply(w, t, in);
		if (in->by_files)
			t->touched = s->sequence_number;
		files |= in->by_files;
		if (in->summary.p && (!strv_eq(snapshot_summary(s, "offset"), in->summary) ||
				      !strv_eq(snapshot_summary(s, "frazil.transactions"), STRV("1"))))
			world_fail(w, "a transaction's summary is not its snapshot's alone");
		if (out[i]->sequence_number != s->sequence_number)
			world_fail(w, "an outcome names another sequence number");
		for (size_t k = 0; k < out[i]->n_deletes; k++) {
			const struct rpc_delete_outcome *d = &out[i]->deletes[k];
			told += d->deleted;
			for (size_t j = 0; j < in->n_deletes; j++)
				if (strv_eq(in->deletes[j].path, d->data_file) &&
				    (int64_t)bitmap64_cardinality(in->deletes[j].positions) !=
					    d->deleted + d->overlap)
					world_fail(w, "deleted + overlap is not what was asked");
		}
	}
	/* Of files it tells what their workers said, which may be gone already. */
	if (any && !files && told != deleted_rows(t) - before)
		world_fail(w, "outcomes tell %" PRId64 " deleted rows, %" PRId64 " are", told,
			   deleted_rows(t) - before);
	if (!any) {
		struct intent *in = intent_of_snapshot(w, s->snapshot_id);
		if (!in)
			world_fail(w, "snapshot %" PRId64 " that nobody asked for", s->snapshot_id);
		if (in->done)
			world_fail(w, "a client's snapshot was published twice");
		if (in->refused)
			world_fail(w, "a snapshot was published after its client was told no");
		in->done = true;
		in->done_at = w->now;
		w->stats.rest++;
		apply(w, t, in);
		if (in->by_files)
			t->touched = s->sequence_number;
	}
	bool ids = s->first_row_id != ROW_ID_NONE;
	if (ids != (metadata_format_version(m) >= 3))
		world_fail(w, "a snapshot's row ids do not go with the format version");
	compare(w, t, scans_of(w, t->table, m, s), ids ? metadata_next_row_id(m) : ROW_ID_NONE);
	t->head = s->snapshot_id;
}

static void told_row_ids(struct world *w, struct o_table *t, const struct rpc_outcome *o)
{
	for (size_t i = 0; i < o->n_files; i++) {
		const struct o_file *f = file_of(t, o->files[i].path);
		if (!t->upgraded && w->conf.v2 && f && !o->files[i].has_first_row_id)
			continue;
		if (!f || !o->files[i].has_first_row_id ||
		    f->first_row_id != o->files[i].first_row_id)
			world_fail(w, "the outcome's row id of %.*s is not the table's",
				   STRV_ARG(o->files[i].path));
	}
}

/* A new incarnation begins with what its metadata says. */
static void begin_anew(struct world *w, struct o_table *t, const struct metadata *m)
{
	const struct snapshot *head = metadata_current_snapshot(m);
	for (size_t i = 0; i < t->n; i++) {
		bitmap64_free(t->files[i].deleted);
		bitmap64_free(t->files[i].moved);
	}
	t->n = t->n_refs = 0;
	t->forgotten = 0;
	t->head = head ? head->snapshot_id : SNAPSHOT_NONE;
	const struct scan *s = head ? scans_of(w, t->table, m, head) : NULL;
	for (size_t i = 0; s && i < s->n; i++) {
		const struct scan_file *f = &s->files[i];
		const struct bitmap64 *gone = scan_gone(f);
		t->files = world_grow(w, t->files, &t->cap, t->n + 1, sizeof *t->files);
		t->files[t->n++] = (struct o_file){.path = f->path,
						   .records = f->records,
						   .first_row_id = f->first_row_id,
						   .live = true,
						   .old = f->old != NULL,
						   .deleted = gone ? bitmap64_clone(gone)
								   : bitmap64_new()};
	}
}

/* What a ref names stays, whoever expires what else; and nobody takes a ref away. */
static void check_refs(struct world *w, struct o_table *t, const struct metadata *m)
{
	size_t n;
	const struct snapshot_ref *refs = metadata_refs(m, &n);
	for (size_t i = 0; i < t->n_refs; i++) {
		const struct snapshot_ref *r = metadata_ref_by_name(m, t->refs[i].name);
		if (!r || r->snapshot_id != t->refs[i].snapshot_id)
			world_fail(w, "a tag vanished or moved: %.*s", STRV_ARG(t->refs[i].name));
	}
	t->n_refs = 0;
	for (size_t i = 0; i < n; i++) {
		if (!metadata_snapshot(m, refs[i].snapshot_id))
			world_fail(w, "a ref names a snapshot that is gone: %.*s",
				   STRV_ARG(refs[i].name));
		if (strv_eq(refs[i].name, STRV("main")))
			continue;
		t->refs = world_grow(w, t->refs, &t->cap_refs, t->n_refs + 1, sizeof *t->refs);
		t->refs[t->n_refs] = refs[i];
		t->refs[t->n_refs++].name = world_strv(w, refs[i].name);
	}
}

void oracle_tagged(struct world *w, struct table_id table, int64_t incarnation, struct strv name)
{
	const struct o_table *t = table_of(w, table);
	bool there = t->incarnation != incarnation;
	for (size_t i = 0; i < t->n_refs; i++)
		there |= strv_eq(t->refs[i].name, name);
	if (!there)
		world_fail(w, "a client was told of a tag that is not there: %.*s", STRV_ARG(name));
}

static void check_head(struct world *w, struct o_table *t, const struct batch_row *row,
		       const struct metadata *m)
{
	const struct head_row *h = pg_head(w, row->table);
	if (row->incarnation != t->incarnation) {
		/* A new incarnation: whatever its metadata says. */
		t->incarnation = row->incarnation;
		t->epoch = row->epoch;
		t->version = row->base_version;
		t->batch_no = 0;
		t->last_seq = metadata_last_sequence_number(m);
		t->next_row_id = 0;
		begin_anew(w, t, m);
	}
	check_refs(w, t, m);
	if (row->epoch < t->epoch)
		world_fail(w, "epoch went back from %" PRId64 " to %" PRId64, t->epoch, row->epoch);
	if (row->epoch != h->epoch)
		world_fail(w, "published under epoch %" PRId64 ", the head has %" PRId64,
			   row->epoch, h->epoch);
	if (row->base_version != t->version || h->version != t->version + 1)
		world_fail(w, "version %" PRId64 " follows %" PRId64, h->version, t->version);
	if (row->batch_no != t->batch_no + 1)
		world_fail(w, "batch %" PRId64 " follows %" PRId64, row->batch_no, t->batch_no);
	if (h->last_seq != metadata_last_sequence_number(m) ||
	    h->next_row_id != metadata_next_row_id(m) || h->next_row_id < t->next_row_id)
		world_fail(w, "the head's counters are not the metadata's");
	t->epoch = row->epoch;
	t->version++;
	t->batch_no++;
	t->next_row_id = h->next_row_id;
	t->upgraded = w->conf.v2 && metadata_format_version(m) >= 3;
}

void oracle_published(struct world *w, const struct batch_row *row)
{
	struct o_table *t = table_of(w, row->table);
	struct metadata *m = store_metadata(w, row->metadata_location);
	const struct rpc_outcome **out = world_alloc(w, (row->n_txns + 1) * sizeof(void *));
	scans_check_object(w, row->metadata_location, -1);
	w->stats.publishes++;
	world_trace(w, "publish batch %" PRId64 " epoch %" PRId64 " txns %zu snapshots %zu",
		    row->batch_no, row->epoch, row->n_txns, row->n_snapshots);
	for (size_t i = 0; i < row->n_txns; i++) {
		struct intent *in = intent_of_txn(w, row->txns[i]);
		out[i] = outcome_at(w, row, i);
		if (!in)
			world_fail(w, "a transaction that nobody began was decided");
		if (in->decided++)
			world_fail(w, "a transaction was decided twice");
		/* What was taken from it is stored: nobody needs the file, and somebody removes it. */
		const struct m_obj *spent = in->spent.p ? pg_obj(w, in->spent) : NULL;
		if (in->spent.p && (!spent || spent->state != OBJ_QUEUED))
			world_fail(w, "a spent file is not queued: %.*s", STRV_ARG(in->spent));
		if (in->hopeless)
			world_fail(w, "a transaction without its vectors was decided");
		if (out[i]->state != state_of(row->txn_states[i]) ||
		    !uuid_eq(out[i]->txn_id, row->txns[i].u))
			world_fail(w, "outcome and state of a batch row differ");
		if (out[i]->state == RPC_STATE_COMMITTED && in->ended)
			world_fail(w, "a transaction committed after its worker was told that its "
				      "table is gone");
		if (out[i]->state == RPC_STATE_COMMITTED)
			w->stats.committed++;
		else if (out[i]->state == RPC_STATE_REJECTED)
			w->stats.rejected++;
		else
			w->stats.aborted++;
	}
	check_head(w, t, row, m);
	for (size_t i = 0; i < w->oracle->n_intents; i++) {
		struct intent *in = w->oracle->intents[i];
		if (!in->creates || !uuid_eq(in->created.u, row->table.u) || in->done)
			continue;
		if (in->refused)
			world_fail(w, "a table came after its client was told no");
		in->done = true;
		in->done_at = w->now;
	}
	/* New snapshots in the order of their sequence numbers. */
	for (;;) {
		const struct snapshot *next = NULL;
		for (size_t i = 0; i < metadata_snapshot_count(m); i++) {
			const struct snapshot *s = metadata_snapshot_at(m, i);
			if (s->sequence_number > t->last_seq &&
			    (!next || s->sequence_number < next->sequence_number))
				next = s;
		}
		if (!next)
			break;
		t->last_seq = next->sequence_number;
		one_snapshot(w, t, row, out, m, next);
	}
	if (metadata_current_snapshot_id(m) != t->head)
		world_fail(w, "main is not the newest snapshot");
	for (size_t i = 0; i < row->n_txns; i++) {
		const struct intent *in = intent_of_txn(w, row->txns[i]);
		if (out[i]->state == RPC_STATE_REJECTED)
			check_rejection(w, t, in, out[i]);
		if (out[i]->state != RPC_STATE_COMMITTED)
			continue;
		told_row_ids(w, t, out[i]);
		/* Without a snapshot nothing may be missing. */
		for (size_t k = 0; !out[i]->has_snapshot_id && k < in->n_deletes; k++) {
			const struct o_file *f = file_of(t, in->deletes[k].path);
			if (!f || bitmap64_common(f->deleted, in->deletes[k].positions) !=
					  bitmap64_cardinality(in->deletes[k].positions))
				world_fail(w, "a commit without snapshot left rows undeleted");
		}
		if (!out[i]->has_snapshot_id && in->n_files)
			world_fail(w, "a commit without snapshot had files");
	}
	metadata_unref(m);
}

void oracle_stolen(struct world *w, struct strv path)
{
	for (size_t i = 0; i < w->oracle->n_intents; i++)
		for (size_t k = 0; k < w->oracle->intents[i]->n_files; k++)
			if (strv_eq(w->oracle->intents[i]->files[k], path))
				w->oracle->intents[i]->sabotaged = true;
}

void oracle_ended(struct world *w, struct txn_id txn)
{
	intent_of_txn(w, txn)->decided++;
}

void oracle_moved(struct world *w, struct table_id table)
{
	table_of(w, table)->version++;
}

/* ------------------------------------------------------------------ what clients hear */

void oracle_told(struct world *w, struct txn_id id, const struct rpc_outcome *o)
{
	struct intent *in = intent_of_txn(w, id);
	const struct m_txn *t = pg_txn(w, id);
	if (o->state == RPC_STATE_OPEN || o->state == RPC_STATE_SEALED) {
		/* Replies overtake each other: one that was given before may come after. */
		if (in->final && w->reply_since > in->final_at && !w->conf.outside)
			world_fail(w, "a final transaction became open again");
		return;
	}
	if (!t || state_of((uint8_t)t->r.state) != o->state)
		world_fail(w, "a client was told state %d, the row says %d", (int)o->state,
			   t ? (int)t->r.state : -1);
	if ((t->r.batch_no == TXN_BATCH_GONE) !=
	    (o->state == RPC_STATE_ABORTED && o->reject &&
	     strv_eq(o->reject->name, STRV("TABLE_GONE"))))
		world_fail(w, "an outcome and its row disagree on whether the table is gone");
	if (t->r.batch_no > 0) {
		const struct batch_row *b =
			pg_batch(w, t->r.table, t->batch_incarnation, t->r.batch_no);
		if (!b || !o->has_batch_no || o->batch_no != b->batch_no ||
		    !uuid_eq(o->batch_id, b->batch.u))
			world_fail(w, "an outcome names another batch than the rows");
	}
	struct buf b;
	buf_init(&b, (size_t)1 << 20);
	/* The note tells of the present; all else stays for good. */
	struct rpc_outcome lasting = *o;
	lasting.note = (struct strv){"", 0};
	msg_encode(&rpc_record_outcome, &lasting, &b);
	ASSERT(buf_ok(&b));
	if (in->final && !bytes_eq(in->outcome, buf_bytes(&b)))
		world_fail(w, "an outcome changed");
	if (!in->final)
		in->outcome = world_copy(w, buf_bytes(&b));
	buf_fini(&b);
	if (!in->final)
		in->final_at = w->now;
	in->final = true;
	in->state = o->state;
}

/* ------------------------------------------------------------------ the end */

static void check_objects_of(struct world *w, const struct head_row *h)
{
	struct metadata *m = store_metadata(w, h->metadata_location);
	scans_check_object(w, h->metadata_location, -1);
	for (size_t i = 0; i < metadata_snapshot_count(m); i++) {
		const struct snapshot *s = metadata_snapshot_at(m, i);
		struct mlist *l = store_list(w, s->manifest_list);
		scans_check_object(w, s->manifest_list, -1);
		for (size_t k = 0; k < l->l.n; k++) {
			const struct mview *v = store_view(w, &l->l.rows[k], m);
			scans_check_object(w, l->l.rows[k].path, l->l.rows[k].length);
			for (size_t e = 0; e < v->m->n; e++)
				if (v->m->entries[e].status != ENTRY_DELETED)
					scans_check_object(w, v->m->entries[e].file.path,
						     v->m->entries[e].file.file_size);
		}
		mlist_unref(l);
	}
	metadata_unref(m);
}

void oracle_end(struct world *w)
{
	struct pg *p = &w->pg;
	for (size_t i = 0; i < p->n_heads; i++)
		check_objects_of(w, &p->heads[i]);
	for (size_t i = 0; i < p->n_txns; i++) {
		const struct m_txn *t = p->txns[i];
		if (t->r.state <= TXN_DB_SEALED)
			world_fail(w, "a transaction never became final: state %d, requested %d",
				   (int)t->r.state, t->r.commit_requested);
	}
	for (size_t i = 0; i < p->n_objs; i++) {
		const struct m_obj *o = &p->objs[i];
		const struct head_row *h = pg_head(w, o->table);
		/* What is left on the ledger belongs to an epoch that is over, or will be at the
		 * next take-over: a sweep may take it. */
		if (o->state == OBJ_LEDGER && o->epoch >= 0 && h && h->epoch <= o->epoch &&
		    !o->late && uuid_eq(h->holder.u, w->last_daemon.u))
			world_fail(w, "an object stays on the ledger for ever: %.*s",
				   STRV_ARG(o->path));
		if (o->state == OBJ_STAGED)
			world_fail(w, "an object of a final transaction is still staged: %.*s",
				   STRV_ARG(o->path));
	}
}
