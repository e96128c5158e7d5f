/* Position delete files of format version 2: what a fragment may name, what conflicts with what, and
 * what a snapshot with them looks like. Rules of reading: Iceberg spec, "Scan Planning". */
#include "daemon/commit/posdel.h"

#include "daemon/commit/algebra.h"
#include "tests/unit/core_table.h"

static struct core_table *t;

static void up(void)
{
	static struct core_table table;
	t = &table;
	ct_open(t, 2, "");
	(void)ct_append(t, CT_MAIN, "a", 100);
	(void)ct_append(t, CT_MAIN, "b", 100);
	ct_commit(t);
	ct_batch(t);
}

static void down(void)
{
	ct_close(t);
}

/* A transaction with one delete file; a row delta brings a data file as well. */
static struct plan_txn *txn(int32_t kind, const char *file, const char *names)
{
	struct plan_txn *x = ct_txn(t, CT_MAIN, kind);
	(void)ct_del_file(t, x, file, names);
	if (kind == RPC_KIND_ROW_DELTA)
		ct_add(t, x, ct_data(t, ct_text(t, "%s-rows", file).p, 5));
	return x;
}

static const struct manifest_entry *entry(const struct ct_state *s, const char *file)
{
	for (size_t i = 0; i < s->list->l.n; i++)
		for (size_t k = 0; k < s->views[i]->m->n; k++)
			if (strv_eq(s->views[i]->m->entries[k].file.path, ct_path(t, file)))
				return &s->views[i]->m->entries[k];
	return NULL;
}

START_TEST(written)
{
	struct plan_txn *x = txn(RPC_KIND_DELETE, "p", "a");
	(void)ct_del_file(t, x, "q", "a b");
	((struct plan_delete_file *)(uintptr_t)x->delete_files)->file.referenced_data_file =
		ct_path(t, "a");
	ct_commit(t);
	CT_COMMITTED(x);
	const struct snapshot *sn = ct_snapshot(t, CT_MAIN);
	ck_assert(strv_eq(sn->operation, STRV("delete")));
	ct_summary(sn, "added-delete-files", "2");
	ct_summary(sn, "added-position-delete-files", "2");
	ct_summary(sn, "added-position-deletes", "6");
	ct_summary(sn, "added-files-size", "200");
	ct_summary(sn, "added-dvs", NULL);
	ct_summary(sn, "added-data-files", NULL);
	ct_summary(sn, "total-delete-files", "2");
	ct_summary(sn, "total-position-deletes", "6");
	ct_summary(sn, "total-data-files", "2");
	ct_summary(sn, "total-records", "200");
	ct_summary(sn, "frazil.rows-moved", NULL);
	ck_assert_int_eq(sn->first_row_id, ROW_ID_NONE);
	ck_assert_int_eq(sn->added_rows, ROW_ID_NONE);
	const struct ct_state *s = ct_look_ref(t, CT_MAIN);
	ck_assert_uint_eq(s->list->l.n, 2);
	const struct manifest_file *row = &s->list->l.rows[1];
	ck_assert_int_eq(row->content, MANIFEST_DELETES);
	ck_assert_int_eq(row->first_row_id, ROW_ID_NONE);
	ck_assert_int_eq(row->seq, 2);
	ck_assert_int_eq(row->min_seq, 2);
	ck_assert_int_eq(s->views[1]->m->format_version, 2);
	ck_assert_int_eq(row->added_files, 2);
	for (int i = 0; i < 2; i++) {
		const struct manifest_entry *e = entry(s, i ? "q" : "p");
		ck_assert(e && e->status == ENTRY_ADDED && e->seq == 2 && e->file_seq == 2);
		ck_assert_int_eq(e->file.content, CONTENT_POSITION_DELETES);
		ck_assert_int_eq(e->file.record_count, 3);
		ck_assert(strv_eq(e->file.referenced_data_file,
				  i ? (struct strv){NULL, 0} : ct_path(t, "a")));
	}
	/* The kept manifest goes along with the next one. */
	ct_batch(t);
	x = txn(RPC_KIND_DELETE, "r", "b");
	ct_commit(t);
	CT_COMMITTED(x);
	ct_summary(ct_snapshot(t, CT_MAIN), "total-delete-files", "3");
	ct_summary(ct_snapshot(t, CT_MAIN), "total-position-deletes", "9");
	s = ct_look_ref(t, CT_MAIN);
	ck_assert_int_eq(entry(s, "p")->seq, 2);
	ck_assert_int_eq(entry(s, "r")->seq, 3);
}
END_TEST

static bool applies(const struct metadata *m, const struct manifest_entry *del,
		    const struct manifest_entry *data)
{
	struct algebra_data d = {data->file.path, data->seq, data->file.spec_id,
				 &data->file.partition};
	return algebra_may_apply(m, del, &d);
}

/* Deletions, then row deltas, then appends. A delete file applies to data of its own sequence number
 * and below: of the batch only to what the row deltas bring, whose paths no position names. */
START_TEST(lanes)
{
	struct plan_txn *append = ct_append(t, CT_MAIN, "n", 10);
	struct plan_txn *delta = txn(RPC_KIND_ROW_DELTA, "q", "b");
	struct plan_txn *delete = txn(RPC_KIND_DELETE, "p", "a");
	ct_commit(t);
	CT_COMMITTED(append);
	CT_COMMITTED(delta);
	CT_COMMITTED(delete);
	ck_assert_int_eq(delete->lane, 0);
	ck_assert_int_eq(delta->lane, 1);
	ck_assert_int_eq(append->lane, 2);
	const struct ct_state *s = ct_look_ref(t, CT_MAIN);
	const struct manifest_entry *p = entry(s, "p"), *q = entry(s, "q");
	ck_assert_int_eq(p->seq, 2);
	ck_assert_int_eq(q->seq, 3);
	ck_assert_int_eq(entry(s, "q-rows")->seq, 3);
	ck_assert_int_eq(entry(s, "n")->seq, 4);
	ck_assert(applies(t->meta, p, entry(s, "a")));
	ck_assert(!applies(t->meta, p, entry(s, "q-rows")));
	ck_assert(!applies(t->meta, q, entry(s, "n")));
	ct_summary(metadata_snapshot(t->meta, t->plan->lanes[0].snapshot_id), "frazil.rows-moved",
		   NULL);
	ct_summary(metadata_snapshot(t->meta, t->plan->lanes[1].snapshot_id), "frazil.rows-moved",
		   "true");
	ck_assert(strv_eq(metadata_snapshot(t->meta, t->plan->lanes[1].snapshot_id)->operation,
			  STRV("overwrite")));
}
END_TEST

enum { DELETE = RPC_KIND_DELETE, DELTA = RPC_KIND_ROW_DELTA };

/* Two transactions that read the same snapshot. */
static const struct {
	int32_t first, second;
	const char *one, *two; /* data files */
	enum status st;
} races[] = {
	{DELETE, DELETE, "a", "a", ST_OK},
	{DELETE, DELTA, "a", "a", ST_WRITE_WRITE},
	{DELTA, DELETE, "a", "a", ST_WRITE_WRITE},
	{DELTA, DELTA, "a", "a", ST_WRITE_WRITE},
	{DELTA, DELTA, "a", "b", ST_OK},
	{DELETE, DELTA, "a b", "b", ST_WRITE_WRITE},
	{DELTA, DELTA, "b", "a b", ST_WRITE_WRITE},
};

/* One after the other: the second one meets what the first one published. */
START_TEST(race_published)
{
	struct plan_txn *x = txn(races[_i].first, "p", races[_i].one);
	struct plan_delete_file *d = (struct plan_delete_file *)(uintptr_t)x->delete_files;
	if (d->n_names == 1)
		d->file.referenced_data_file = d->names[0];
	int64_t read = x->read_snapshot;
	ct_commit(t);
	CT_COMMITTED(x);
	ct_batch(t);
	struct plan_txn *y = txn(races[_i].second, "q", races[_i].two);
	y->read_snapshot = read;
	struct plan_txn *late = txn(races[_i].second, "r", "a");
	ct_commit(t);
	ct_is_state(y, races[_i].st == ST_OK ? TXN_DB_COMMITTED : TXN_DB_REJECTED, races[_i].st);
	/* Who has read the first one conflicts with nobody but, in the batch, with the second. */
	bool meet = races[_i].st == ST_OK && races[_i].second == DELTA &&
		    strstr(races[_i].two, "a") != NULL;
	ct_is_state(late, meet ? TXN_DB_REJECTED : TXN_DB_COMMITTED, meet ? ST_WRITE_WRITE : ST_OK);
}
END_TEST

/* In one batch, where deletions go first. */
START_TEST(race_in_batch)
{
	struct plan_txn *x = txn(races[_i].first, "p", races[_i].one);
	struct plan_txn *y = txn(races[_i].second, "q", races[_i].two);
	ct_commit(t);
	struct plan_txn *winner = races[_i].second == DELETE ? y : x;
	struct plan_txn *other = winner == x ? y : x;
	CT_COMMITTED(winner);
	ct_is_state(other, races[_i].st == ST_OK ? TXN_DB_COMMITTED : TXN_DB_REJECTED,
		    races[_i].st);
}
END_TEST

/* A daemon that has not seen the first one cannot know that nothing was moved. */
START_TEST(race_unseen)
{
	int64_t read = ct_head(t, CT_MAIN);
	struct plan_txn *x = txn(RPC_KIND_DELETE, "p", "a");
	ct_commit(t);
	CT_COMMITTED(x);
	for (size_t i = 0; i < t->n_logs; i++)
		reflog_free(t->logs[i]);
	t->n_logs = 0;
	ct_batch(t);
	struct plan_txn *y = txn(RPC_KIND_DELETE, "q", "a");
	y->read_snapshot = read;
	ct_commit(t);
	CT_REJECTED(y, ST_WRITE_WRITE);
}
END_TEST

static void foreign_deletes(struct content_file f, bool dead)
{
	const struct ct_state *s = ct_look_ref(t, CT_MAIN);
	struct manifest_entry e = ct_entry(ENTRY_ADDED, f, SNAPSHOT_NONE, SEQ_NONE);
	struct manifest_file rows[2] = {s->list->l.rows[0],
					ct_manifest(t, 2, 0, MANIFEST_DELETES, &e, 1)};
	(void)ct_foreign(t, CT_MAIN, rows, 2, dead);
}

/* Somebody else added deletes since the read snapshot: to this file, to another, to all. */
START_TEST(foreign_added)
{
	static const struct {
		bool equality, dead;
		const char *names;
		enum status delete, delta;
	} cases[] = {
		{false, true, "a", ST_OK, ST_WRITE_WRITE},
		{false, false, "a", ST_WRITE_WRITE, ST_WRITE_WRITE},
		{false, false, "b", ST_OK, ST_OK},
		{false, false, NULL, ST_WRITE_WRITE, ST_WRITE_WRITE},
		{true, false, NULL, ST_WRITE_WRITE, ST_WRITE_WRITE},
	};
	int32_t id = 1;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		for (int k = 0; k < 2; k++) {
			enum status want = k ? cases[i].delta : cases[i].delete;
			down();
			up();
			int64_t read = ct_head(t, CT_MAIN);
			struct content_file f = ct_legacy(t, "theirs");
			if (cases[i].names)
				f.referenced_data_file = ct_path(t, cases[i].names);
			if (cases[i].equality) {
				f.content = CONTENT_EQUALITY_DELETES;
				f.equality_ids = &id;
				f.n_equality_ids = 1;
			}
			foreign_deletes(f, cases[i].dead);
			struct plan_txn *x = txn(k ? DELTA : DELETE, "p", "a");
			x->read_snapshot = read;
			ct_commit(t);
			ct_is_state(x, want == ST_OK ? TXN_DB_COMMITTED : TXN_DB_REJECTED, want);
			/* Who has read them goes on. */
			ct_batch(t);
			x = txn(k ? DELTA : DELETE, "q", want == ST_OK ? "b" : "a");
			ct_commit(t);
			CT_COMMITTED(x);
		}
	}
}
END_TEST

/* Publishes that "a" is gone, and perhaps another one of that name there. */
static void foreign_removes(bool dead, bool again)
{
	const struct ct_state *s = ct_look_ref(t, CT_MAIN);
	struct manifest_entry e[2];
	for (int i = 0; i < 2; i++) {
		e[i] = *entry(s, i ? "b" : "a");
		e[i].status = i ? ENTRY_EXISTING : ENTRY_DELETED;
	}
	struct manifest_file row = ct_manifest(t, 2, 0, MANIFEST_DATA, e, 2);
	(void)ct_foreign(t, CT_MAIN, &row, 1, dead);
	if (!again)
		return;
	struct manifest_entry n =
		ct_entry(ENTRY_ADDED, ct_data(t, "a", 100), SNAPSHOT_NONE, SEQ_NONE);
	struct manifest_file rows[2] = {ct_look_ref(t, CT_MAIN)->list->l.rows[0],
					ct_manifest(t, 2, 0, MANIFEST_DATA, &n, 1)};
	(void)ct_foreign(t, CT_MAIN, rows, 2, true);
}

/* The data file left: harmless between deletions. A path that came back is another file, whose rows
 * nobody meant, whatever the kinds are. */
START_TEST(removed)
{
	bool dead = _i & 1, again = _i & 2;
	int32_t kind = _i & 4 ? DELTA : DELETE;
	int64_t read = ct_head(t, CT_MAIN);
	foreign_removes(dead, again);
	struct plan_txn *x = txn(kind, "p", "a");
	x->read_snapshot = read;
	struct plan_txn *y = txn(DELTA, "q", "b");
	y->read_snapshot = read;
	ct_commit(t);
	if (kind == DELETE && dead && !again)
		CT_COMMITTED(x);
	else
		CT_REJECTED(x, ST_WRITE_WRITE);
	CT_COMMITTED(y);
}
END_TEST

/* The path comes back in the very batch: the append has the higher sequence number. */
START_TEST(comes_back)
{
	int64_t read = ct_head(t, CT_MAIN);
	foreign_removes(true, false);
	struct plan_txn *again = ct_append(t, CT_MAIN, "a", 50);
	struct plan_txn *x = txn(DELETE, "p", "a");
	x->read_snapshot = read;
	ct_commit(t);
	CT_COMMITTED(x);
	CT_COMMITTED(again);
	const struct ct_state *s = ct_look_ref(t, CT_MAIN);
	for (size_t i = 0; i < s->list->l.n; i++) {
		const struct manifest_entry *a = mview_find(s->views[i], ct_path(t, "a"));
		if (a && a->file.content == CONTENT_DATA)
			ck_assert(!applies(t->meta, entry(s, "p"), a));
	}
}
END_TEST

START_TEST(read_snapshot)
{
	struct plan_txn *unread = txn(DELETE, "p", "a");
	unread->has_read = false;
	struct plan_txn *strange = txn(DELETE, "q", "a");
	strange->read_snapshot = 4711;
	struct plan_txn *good = txn(DELETE, "r", "a");
	ct_commit(t);
	CT_REJECTED(unread, ST_SNAPSHOT_NOT_ANCESTOR);
	CT_REJECTED(strange, ST_SNAPSHOT_NOT_ANCESTOR);
	CT_COMMITTED(good);
}
END_TEST

START_TEST(paths)
{
	struct plan_txn *x = txn(DELETE, "p", "a");
	struct plan_txn *twice = txn(DELETE, "p", "b");
	struct plan_txn *data = txn(DELETE, "a", "a");
	ct_commit(t);
	CT_COMMITTED(x);
	CT_REJECTED(twice, ST_DUPLICATE_PATH);
	CT_REJECTED(data, ST_DUPLICATE_PATH);
	ct_batch(t);
	struct plan_txn *there = txn(DELETE, "p", "a");
	struct plan_txn *append = ct_append(t, CT_MAIN, "p", 10);
	ct_commit(t);
	CT_REJECTED(there, ST_DUPLICATE_PATH);
	CT_REJECTED(append, ST_DUPLICATE_PATH);
}
END_TEST

/* The table was upgraded meanwhile: no new position delete files; data files get their row ids. */
START_TEST(upgraded)
{
	struct plan_txn *x = txn(DELETE, "p", "a");
	struct plan_txn *y = txn(DELTA, "q", "b");
	struct plan_txn *z = ct_append(t, CT_MAIN, "n", 10);
	struct plan_txn *data_only = ct_txn(t, CT_MAIN, DELTA);
	ct_add(t, data_only, ct_data(t, "m", 10));
	ct_upgrade(t);
	ct_commit(t);
	CT_REJECTED(x, ST_FORMAT_CHANGED);
	CT_REJECTED(y, ST_FORMAT_CHANGED);
	CT_COMMITTED(z);
	CT_COMMITTED(data_only);
	/* Old data first, in list order, then the lanes. */
	ck_assert_int_eq(t->out->txns[3].first_row_ids[0], 200);
	ck_assert_int_eq(t->out->txns[2].first_row_ids[0], 210);
	ck_assert_int_eq(metadata_next_row_id(t->meta), 220);
}
END_TEST

/* A deletion of the upgraded table reaches a file that an old delete file may reach: refused by name;
 * every other one goes on, and so do appends. */
START_TEST(leftovers)
{
	struct plan_txn *x = txn(DELETE, "p", "a");
	struct plan_delete_file *d = (struct plan_delete_file *)(uintptr_t)x->delete_files;
	if (_i)
		d->file.referenced_data_file = d->names[0];
	ct_commit(t);
	CT_COMMITTED(x);
	ct_upgrade(t);
	ct_batch(t);
	x = ct_delete(t, CT_MAIN, "a", "1");
	struct plan_txn *y = ct_delete(t, CT_MAIN, "b", "1");
	struct plan_txn *z = ct_append(t, CT_MAIN, "n", 10);
	ct_commit(t);
	CT_REJECTED(x, ST_LEGACY_DELETES);
	ck_assert_str_eq(x->reject.msg, "deletes in file:///t/data/p.parquet may apply to "
					"file:///t/data/a.parquet");
	if (_i)
		CT_COMMITTED(y);
	else
		CT_REJECTED(y, ST_LEGACY_DELETES);
	CT_COMMITTED(z);
	/* Data of after the upgrade is out of its reach. */
	ct_batch(t);
	x = ct_delete(t, CT_MAIN, "n", "1");
	ct_commit(t);
	CT_COMMITTED(x);
}
END_TEST

/* ------------------------------------------------------------------ names */

static struct bound *bounds(int32_t field, struct bytes b)
{
	struct bound *v = arena_calloc(&t->arena, 1, sizeof *v);
	ck_assert(v != NULL);
	*v = (struct bound){field, b};
	return v;
}

static enum status names(struct plan_delete_file *d, struct err *err)
{
	const struct ct_state *s = ct_look_ref(t, CT_MAIN);
	*err = (struct err){0};
	for (size_t i = 0; !d->told && i < s->list->l.n; i++) {
		if (i == 0)
			d->n_names = d->cap_names = 0;
		if (s->views[i]->content == MANIFEST_DATA && s->views[i]->spec_id == d->file.spec_id)
			UNIT_OK(posdel_gather(s->views[i], &t->arena, d, err), err);
	}
	return posdel_names(s->views, s->list->l.n, d, err);
}

START_TEST(told)
{
	struct err err;
	struct plan_txn *x = ct_txn(t, CT_MAIN, DELETE);
	struct plan_delete_file *d = ct_del_file(t, x, "p", "a b");
	UNIT_OK(names(d, &err), &err);
	ck_assert_uint_eq(d->n_names, 2);
	d = ct_del_file(t, x, "p", "a nowhere");
	UNIT_STATUS(names(d, &err), ST_FILE_GONE);
	d = ct_del_file(t, x, "p", "a");
	d->file = ct_in(t, d->file, 7);
	UNIT_STATUS(names(d, &err), ST_TUPLE_MISMATCH);
	/* Readers skip the file for what lies outside of its bounds. */
	d = ct_del_file(t, x, "p", "a b");
	d->file.upper = bounds(FIELD_ID_DELETE_FILE_PATH, strv_bytes(ct_path(t, "a")));
	d->file.n_upper = 1;
	UNIT_STATUS(names(d, &err), ST_METRICS_INVALID);
	d->file.upper = bounds(FIELD_ID_DELETE_FILE_PATH, strv_bytes(ct_path(t, "b")));
	UNIT_OK(names(d, &err), &err);
	d->file.lower = d->file.upper;
	d->file.n_lower = 1;
	UNIT_STATUS(names(d, &err), ST_METRICS_INVALID);
	/* One name: the bounds hold it alone, perhaps cut. */
	static const struct {
		const char *low, *high;
		bool fine;
	} one[] = {
		{"file:///t/data/a.parquet", "file:///t/data/a.parquet", true},
		{"file:///t/data/a.parquet", NULL, true},
		{"file:///t/data/a", "file:///t/data/b", true},
		{"file:///t/dat", "file:///t/dau", true},
		{NULL, "g", true},
		{"", "file:///t/data/a.parquet", true},
		{"file:///t/data/0.parquet", "file:///t/data/a.parquet", false},
		{"file:///t/data/a.parquet", "file:///t/data/b.parquet", false},
		{"file:///t/data/a.parquet", "file:///t/data/a.parquet2", false},
		{"file:///t/data/a", "file:///u/x", false},
		{"file:///t/data/a", "file:///t/data/\xc3\xa9", true}, /* raised by much, still one */
	};
	for (size_t i = 0; i < ARRAY_SIZE(one); i++) {
		d = ct_del_file(t, x, "p", "a");
		d->file.lower = bounds(FIELD_ID_DELETE_FILE_PATH, strv_bytes(strv_of(one[i].low)));
		d->file.upper = bounds(FIELD_ID_DELETE_FILE_PATH, strv_bytes(strv_of(one[i].high)));
		d->file.n_lower = one[i].low != NULL;
		d->file.n_upper = one[i].high != NULL;
		ck_assert_msg(names(d, &err) == (one[i].fine ? ST_OK : ST_METRICS_INVALID), "%zu: %s",
			      i, err.msg);
	}
	/* Several: a path before the first or behind the last was not told, and nobody would look
	 * whether it was changed. */
	d = ct_del_file(t, x, "p", "a b");
	d->file.lower = bounds(FIELD_ID_DELETE_FILE_PATH, strv_bytes(ct_path(t, "0")));
	d->file.n_lower = 1;
	UNIT_STATUS(names(d, &err), ST_METRICS_INVALID);
	d->file.lower = bounds(FIELD_ID_DELETE_FILE_PATH, strv_bytes(STRV("file:///t/da")));
	d->file.upper = bounds(FIELD_ID_DELETE_FILE_PATH, strv_bytes(ct_path(t, "c")));
	d->file.n_upper = 1;
	UNIT_STATUS(names(d, &err), ST_METRICS_INVALID);
	d->file.upper = bounds(FIELD_ID_DELETE_FILE_PATH, strv_bytes(STRV("file:///t/db")));
	UNIT_OK(names(d, &err), &err);
	/* Positions 0 to 99. */
	uint8_t last[8];
	for (uint64_t pos = 99; pos < 101; pos++) {
		put_u64le(last, pos);
		d = ct_del_file(t, x, "p", "a b");
		d->file.upper = bounds(FIELD_ID_DELETE_POS, (struct bytes){last, 8});
		d->file.n_upper = 1;
		ck_assert_int_eq(names(d, &err), pos < 100 ? ST_OK : ST_POSITION_RANGE);
	}
}
END_TEST

/* Without names: all of the partition. */
START_TEST(untold)
{
	struct err err;
	struct plan_txn *x = ct_txn(t, CT_MAIN, RPC_KIND_APPEND);
	ct_add(t, x, ct_in(t, ct_data(t, "c", 10), 7));
	ct_add(t, x, ct_in(t, ct_data(t, "d", 10), 8));
	ct_add(t, x, ct_in(t, ct_data(t, "e", 10), 7));
	ct_commit(t);
	ct_batch(t);
	x = ct_txn(t, CT_MAIN, DELETE);
	struct plan_delete_file *d = ct_del_file(t, x, "p", "");
	d->told = false;
	UNIT_OK(names(d, &err), &err);
	ck_assert_uint_eq(d->n_names, 2);
	d->file = ct_in(t, d->file, 7);
	UNIT_OK(names(d, &err), &err);
	ck_assert_uint_eq(d->n_names, 2);
	ck_assert(strv_eq(d->names[0], ct_path(t, "c")) && strv_eq(d->names[1], ct_path(t, "e")));
	d->file = ct_in(t, d->file, 9);
	UNIT_STATUS(names(d, &err), ST_FILE_GONE);
	/* Every delete in the partition meets it. */
	d->file = ct_in(t, d->file, 7);
	UNIT_OK(names(d, &err), &err);
	struct plan_txn *y = ct_txn(t, CT_MAIN, DELTA);
	d = ct_del_file(t, y, "q", "e");
	d->file = ct_in(t, d->file, 7);
	struct plan_txn *z = ct_txn(t, CT_MAIN, DELTA);
	d = ct_del_file(t, z, "r", "d");
	d->file = ct_in(t, d->file, 8);
	ct_commit(t);
	CT_COMMITTED(x);
	CT_REJECTED(y, ST_WRITE_WRITE);
	CT_COMMITTED(z);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("posdel");
	TCase *c = tcase_create("posdel");
	tcase_add_checked_fixture(c, up, down);
	tcase_add_test(c, written);
	tcase_add_test(c, lanes);
	tcase_add_loop_test(c, race_published, 0, (int)ARRAY_SIZE(races));
	tcase_add_loop_test(c, race_in_batch, 0, (int)ARRAY_SIZE(races));
	tcase_add_test(c, race_unseen);
	tcase_add_test(c, foreign_added);
	tcase_add_loop_test(c, removed, 0, 8);
	tcase_add_test(c, comes_back);
	tcase_add_test(c, read_snapshot);
	tcase_add_test(c, paths);
	tcase_add_test(c, upgraded);
	tcase_add_loop_test(c, leftovers, 0, 2);
	tcase_add_test(c, told);
	tcase_add_test(c, untold);
	suite_add_tcase(s, c);
	return s;
}

UNIT_MAIN(suite)
