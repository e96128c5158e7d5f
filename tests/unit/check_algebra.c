/* Deletions of concurrent transactions, position by position: what is gone for good may be deleted
 * again, what was moved may not, and what is not known counts as moved. */
#include "daemon/commit/algebra.h"

#include "tests/unit/core_table.h"

static struct core_table *t;

static void up(void)
{
	static struct core_table table;
	t = &table;
	ct_open(t, 3, "");
	(void)ct_append(t, CT_MAIN, "a", 100);
	ct_commit(t);
	ct_batch(t);
}

static void down(void)
{
	ct_close(t);
}

/* Positions in the live vector of a file on main, -1 without one. */
static int64_t live(const char *name)
{
	const struct ct_state *s = ct_look_ref(t, CT_MAIN);
	const struct manifest_entry *e = ct_find(t, s, MANIFEST_DELETES, name, ENTRY_ADDED);
	if (!e)
		e = ct_find(t, s, MANIFEST_DELETES, name, ENTRY_EXISTING);
	return e ? e->file.record_count : -1;
}

static void counts(const struct plan_txn *x, int64_t deleted, int64_t overlap)
{
	ck_assert_int_eq(x->deletes[0].deleted, deleted);
	ck_assert_int_eq(x->deletes[0].overlap, overlap);
}

START_TEST(dead_dead)
{
	/* _i: 0 in two batches, 1 in one. */
	int64_t read = ct_head(t, CT_MAIN);
	struct plan_txn *x = ct_delete(t, CT_MAIN, "a", "1-5");
	if (_i == 0) {
		ct_commit(t);
		CT_COMMITTED(x);
		counts(x, 5, 0);
		ct_batch(t);
	}
	struct plan_txn *y = ct_delete(t, CT_MAIN, "a", "4-8");
	y->read_snapshot = read;
	ct_commit(t);
	CT_COMMITTED(y);
	counts(y, 3, 2);
	ck_assert_int_eq(live("a"), 8);
	/* All of it again: nothing to write. */
	int64_t head = ct_head(t, CT_MAIN);
	ct_batch(t);
	x = ct_delete(t, CT_MAIN, "a", "1-8");
	x->read_snapshot = read;
	ct_commit(t);
	CT_COMMITTED(x);
	counts(x, 0, 8);
	ck_assert_int_eq(x->lane, -1);
	ck_assert(!t->out->changed);
	ck_assert_uint_eq(t->out->n_objects, 0);
	ck_assert_int_eq(ct_head(t, CT_MAIN), head);
}
END_TEST

START_TEST(dead_moved)
{
	int64_t read = ct_head(t, CT_MAIN);
	struct plan_txn *x = ct_update(t, CT_MAIN, "a", "1-3", "b");
	ct_commit(t);
	CT_COMMITTED(x);
	ct_batch(t);
	x = ct_delete(t, CT_MAIN, "a", "3 4");
	x->read_snapshot = read;
	struct plan_txn *y = ct_delete(t, CT_MAIN, "a", "4 5");
	y->read_snapshot = read;
	ct_commit(t);
	CT_REJECTED(x, ST_ROW_MOVED);
	CT_COMMITTED(y);
	counts(y, 2, 0);
	ck_assert_int_eq(live("a"), 5);
}
END_TEST

/* A DELETE that says that its rows were written elsewhere, before and after one that does not. */
START_TEST(dead_moved_in_one_batch)
{
	struct plan_txn *x = ct_txn(t, CT_MAIN, RPC_KIND_DELETE);
	ct_del(t, x, "a", "1-3", _i == 1);
	struct plan_txn *y = ct_txn(t, CT_MAIN, RPC_KIND_DELETE);
	ct_del(t, y, "a", "3 4", _i == 0);
	ct_commit(t);
	CT_COMMITTED(x);
	CT_REJECTED(y, _i ? ST_WRITE_WRITE : ST_ROW_MOVED);
	ck_assert_int_eq(live("a"), 3);
}
END_TEST

/* Deletions of a batch go before updates, in whatever order they came. */
START_TEST(moved_dead)
{
	int64_t read = ct_head(t, CT_MAIN);
	struct plan_txn *y = ct_update(t, CT_MAIN, "a", "3 4", "b");
	struct plan_txn *x = ct_delete(t, CT_MAIN, "a", "1-3");
	ct_commit(t);
	CT_COMMITTED(x);
	CT_REJECTED(y, ST_WRITE_WRITE);
	ct_batch(t);
	y = ct_update(t, CT_MAIN, "a", "3 4", "b");
	y->read_snapshot = read;
	ct_commit(t);
	CT_REJECTED(y, ST_WRITE_WRITE);
	ck_assert_int_eq(live("a"), 3);
}
END_TEST

START_TEST(moved_moved)
{
	int64_t read = ct_head(t, CT_MAIN);
	struct plan_txn *x = ct_update(t, CT_MAIN, "a", "1-3", "b");
	struct plan_txn *y = ct_update(t, CT_MAIN, "a", "3 4", "c");
	struct plan_txn *z = ct_update(t, CT_MAIN, "a", "4 5", "d");
	ct_commit(t);
	CT_COMMITTED(x);
	CT_REJECTED(y, ST_WRITE_WRITE);
	CT_COMMITTED(z); /* what was refused is not in the way */
	ct_batch(t);
	y = ct_update(t, CT_MAIN, "a", "5 6", "e");
	y->read_snapshot = read;
	ct_commit(t);
	CT_REJECTED(y, ST_WRITE_WRITE);
	ck_assert_int_eq(live("a"), 5);
}
END_TEST

/* Somebody else's commit replaced the vector: whether rows were moved shows in nothing. */
START_TEST(foreign)
{
	int64_t read = ct_head(t, CT_MAIN);
	const struct ct_state *s = ct_look(t, read);
	struct plan_txn *x = ct_delete(t, CT_MAIN, "a", "50");
	ct_commit(t);
	ct_batch(t);
	struct manifest_entry e =
		ct_entry(ENTRY_ADDED, ct_vector(t, "a", "1-3 50"), SNAPSHOT_NONE, SEQ_NONE);
	struct manifest_file rows[2] = {s->list->l.rows[0],
					ct_manifest(t, 3, 0, MANIFEST_DELETES, &e, 1)};
	(void)ct_foreign(t, CT_MAIN, rows, 2, _i == 1);
	x = ct_delete(t, CT_MAIN, "a", "3 4");
	x->read_snapshot = read;
	struct plan_txn *y = ct_delete(t, CT_MAIN, "a", "10");
	y->read_snapshot = read;
	ct_commit(t);
	CT_COMMITTED(y);
	counts(y, 1, 0);
	if (_i == 0) {
		CT_REJECTED(x, ST_ROW_MOVED);
		ck_assert_int_eq(live("a"), 5);
	} else {
		CT_COMMITTED(x);
		counts(x, 1, 1);
		ck_assert_int_eq(live("a"), 6);
	}
}
END_TEST

START_TEST(file_gone)
{
	int64_t read = ct_head(t, CT_MAIN);
	struct plan_txn *x = ct_delete(t, CT_MAIN, "nowhere", "1");
	struct plan_txn *y = ct_delete(t, CT_MAIN, "a", "0-97");
	ct_commit(t);
	CT_REJECTED(x, ST_FILE_GONE);
	CT_COMMITTED(y);
	ct_batch(t);
	/* Row 98 moves, 99 dies: the file goes. */
	x = ct_update(t, CT_MAIN, "a", "98", "b");
	ct_commit(t);
	CT_COMMITTED(x);
	ct_batch(t);
	x = ct_delete(t, CT_MAIN, "a", "99");
	ct_commit(t);
	CT_COMMITTED(x);
	const struct ct_state *s = ct_look_ref(t, CT_MAIN);
	ck_assert(!ct_find(t, s, MANIFEST_DATA, "a", ENTRY_EXISTING));
	ck_assert(ct_find(t, s, MANIFEST_DATA, "a", ENTRY_DELETED) != NULL);
	ct_batch(t);
	x = ct_delete(t, CT_MAIN, "a", "5 6");
	struct plan_txn *moved = ct_delete(t, CT_MAIN, "a", "98");
	y = ct_update(t, CT_MAIN, "a", "5", "c");
	x->read_snapshot = y->read_snapshot = moved->read_snapshot = read;
	ct_commit(t);
	CT_COMMITTED(x);
	counts(x, 0, 2);
	ck_assert_int_eq(x->lane, -1);
	CT_REJECTED(moved, ST_FILE_GONE);
	CT_REJECTED(y, ST_FILE_GONE);
}
END_TEST

/* The file that a batch itself empties. */
START_TEST(emptied_in_this_batch)
{
	struct plan_txn *x = ct_delete(t, CT_MAIN, "a", "0-99");
	struct plan_txn *y = ct_delete(t, CT_MAIN, "a", "7 8");
	struct plan_txn *z = ct_update(t, CT_MAIN, "a", "9", "b");
	ct_commit(t);
	CT_COMMITTED(x);
	CT_COMMITTED(y);
	counts(y, 0, 2);
	CT_REJECTED(z, ST_WRITE_WRITE);
}
END_TEST

/* Positions of another file of the same name mean other rows. */
START_TEST(path_written_again)
{
	int64_t read = ct_head(t, CT_MAIN);
	struct manifest_entry e =
		ct_entry(ENTRY_ADDED, ct_data(t, "a", 100), SNAPSHOT_NONE, SEQ_NONE);
	struct manifest_file row = ct_manifest(t, 3, 0, MANIFEST_DATA, &e, 1);
	(void)ct_foreign(t, CT_MAIN, &row, 1, true);
	struct plan_txn *x = ct_delete(t, CT_MAIN, "a", "1");
	x->read_snapshot = read;
	struct plan_txn *y = ct_delete(t, CT_MAIN, "a", "2");
	ct_commit(t);
	CT_REJECTED(x, ST_FILE_GONE);
	CT_COMMITTED(y);
}
END_TEST

/* The same when the read snapshot has been expired, so that its sequence number is not known. */
START_TEST(path_written_again_unseen)
{
	int64_t gone[2] = {ct_head(t, CT_MAIN)};
	(void)ct_delete(t, CT_MAIN, "a", "0-99");
	ct_commit(t);
	gone[1] = ct_head(t, CT_MAIN);
	ct_batch(t);
	(void)ct_append(t, CT_MAIN, "a", 100);
	ct_commit(t);
	/* First its child still tells, then only the record of what this daemon saw. */
	static const enum status want[] = {ST_FILE_GONE, ST_SNAPSHOT_TOO_OLD};
	for (int i = 0; i < 2; i++) {
		struct update u = {.kind = UPDATE_REMOVE_SNAPSHOTS,
				   .u.snapshot_ids = {&gone[i], 1}};
		ct_apply(t, &u, 1);
		ck_assert_ptr_null(metadata_snapshot(t->meta, gone[i]));
		ct_batch(t);
		struct plan_txn *x = ct_delete(t, CT_MAIN, "a", "1");
		x->read_snapshot = gone[0];
		struct plan_txn *y = ct_delete(t, CT_MAIN, "a", i ? "2" : "3");
		ct_commit(t);
		CT_REJECTED(x, want[i]);
		CT_COMMITTED(y);
	}
}
END_TEST

START_TEST(inconsistent)
{
	const struct ct_state *s = ct_look_ref(t, CT_MAIN);
	struct manifest_entry e =
		ct_entry(ENTRY_ADDED, ct_vector(t, "a", "1"), SNAPSHOT_NONE, SEQ_NONE);
	struct manifest_file rows[3] = {s->list->l.rows[0],
					ct_manifest(t, 3, 0, MANIFEST_DELETES, &e, 1)};
	int64_t good = ct_foreign(t, CT_MAIN, rows, 2, true);
	s = ct_look(t, good);
	e.file = ct_vector(t, "a", "2");
	rows[1] = s->list->l.rows[1];
	rows[2] = ct_manifest(t, 3, 0, MANIFEST_DELETES, &e, 1);
	(void)ct_foreign(t, CT_MAIN, rows, 3, true);
	struct plan_txn *x = ct_delete(t, CT_MAIN, "a", "5");
	x->read_snapshot = good;
	(void)ct_append(t, CT_MAIN, "b", 10);
	ct_commit(t);
	CT_REJECTED(x, ST_TABLE_INCONSISTENT);
	/* Another file of the same table takes deletions. */
	ct_batch(t);
	struct plan_txn *y = ct_delete(t, CT_MAIN, "b", "5");
	ct_commit(t);
	CT_COMMITTED(y);
	ct_batch(t);
	reflog_spoil(t->logs[0], ct_path(t, "b"));
	y = ct_delete(t, CT_MAIN, "b", "6");
	ct_commit(t);
	CT_REJECTED(y, ST_TABLE_INCONSISTENT);
}
END_TEST

START_TEST(position_range)
{
	struct plan_txn *x = ct_delete(t, CT_MAIN, "a", "100");
	struct plan_txn *y = ct_delete(t, CT_MAIN, "a", "99");
	ct_commit(t);
	CT_REJECTED(x, ST_POSITION_RANGE);
	CT_COMMITTED(y);
}
END_TEST

/* A refused transaction leaves nothing behind, not even what it could have done. */
START_TEST(all_or_nothing)
{
	(void)ct_append(t, CT_MAIN, "b", 10);
	ct_commit(t);
	ct_batch(t);
	struct plan_txn *x = ct_txn(t, CT_MAIN, RPC_KIND_DELETE);
	ct_del(t, x, "b", "1", true);
	ct_del(t, x, "a", "100", true);
	struct plan_txn *y = ct_txn(t, CT_MAIN, RPC_KIND_ROW_DELTA);
	ct_del(t, y, "b", "1", false);
	ct_commit(t);
	CT_REJECTED(x, ST_POSITION_RANGE);
	CT_COMMITTED(y);
	counts(y, 1, 0);
	ck_assert_int_eq(live("b"), 1);
	ck_assert_int_eq(live("a"), -1);
}
END_TEST

/* ------------------------------------------------------------------ position deletes of version 2
 */

static struct bound *path_bound(const char *name)
{
	struct bound *b = arena_calloc(&t->arena, 1, sizeof *b);
	ck_assert(b != NULL);
	*b = (struct bound){FIELD_ID_DELETE_FILE_PATH, strv_bytes(ct_path(t, name))};
	return b;
}

enum { SEQ_DATA = 5 };

/* Iceberg spec, "Scan Planning": a position delete file applies when the sequence numbers allow it
 * and its scope holds the data file. The data file is "d" in spec 1 with p = 7. */
static const struct {
	const char *what, *reference, *lower, *upper;
	int32_t spec, p;
	int64_t seq;
	enum entry_status status;
	enum content content;
	bool applies;
} legacy_cases[] = {
	{"names the file", "d", NULL, NULL, 0, -1, 5, ENTRY_ADDED, CONTENT_POSITION_DELETES, true},
	{"names another", "x", NULL, NULL, 1, 7, 5, ENTRY_ADDED, CONTENT_POSITION_DELETES, false},
	{"bounds are the file", NULL, "d", "d", 0, -1, 5, ENTRY_ADDED, CONTENT_POSITION_DELETES,
	 true},
	{"bounds are another", NULL, "x", "x", 1, 7, 5, ENTRY_ADDED, CONTENT_POSITION_DELETES,
	 false},
	{"bounds differ", NULL, "c", "e", 1, 7, 5, ENTRY_ADDED, CONTENT_POSITION_DELETES, true},
	{"half a bound", NULL, NULL, "x", 1, 7, 5, ENTRY_ADDED, CONTENT_POSITION_DELETES, true},
	{"same partition", NULL, NULL, NULL, 1, 7, 5, ENTRY_ADDED, CONTENT_POSITION_DELETES, true},
	{"another partition", NULL, NULL, NULL, 1, 8, 5, ENTRY_ADDED, CONTENT_POSITION_DELETES,
	 false},
	{"another spec", NULL, NULL, NULL, 2, 7, 5, ENTRY_ADDED, CONTENT_POSITION_DELETES, false},
	{"unpartitioned", NULL, NULL, NULL, 0, -1, 5, ENTRY_ADDED, CONTENT_POSITION_DELETES, false},
	{"later", NULL, NULL, NULL, 1, 7, 6, ENTRY_EXISTING, CONTENT_POSITION_DELETES, true},
	{"earlier", "d", NULL, NULL, 1, 7, 4, ENTRY_ADDED, CONTENT_POSITION_DELETES, false},
	{"deleted", "d", NULL, NULL, 1, 7, 5, ENTRY_DELETED, CONTENT_POSITION_DELETES, false},
	{"equality", NULL, NULL, NULL, 1, 7, 5, ENTRY_ADDED, CONTENT_EQUALITY_DELETES, false},
	{"later equality", NULL, NULL, NULL, 1, 7, 6, ENTRY_ADDED, CONTENT_EQUALITY_DELETES, true},
	{"of another partition", NULL, NULL, NULL, 1, 8, 6, ENTRY_ADDED, CONTENT_EQUALITY_DELETES,
	 false},
	{"equality everywhere", NULL, NULL, NULL, 0, -1, 6, ENTRY_ADDED, CONTENT_EQUALITY_DELETES,
	 true},
	{"equality of its time", NULL, NULL, NULL, 0, -1, 5, ENTRY_ADDED, CONTENT_EQUALITY_DELETES,
	 false},
};

static struct mview *view_of(enum manifest_content content, const struct manifest_entry *e,
			     size_t n)
{
	struct manifest *m = base_calloc(1, sizeof *m);
	m->refs = 1;
	arena_init(&m->arena, 65536);
	m->content = content;
	m->spec_id = e->file.spec_id;
	m->entries = arena_calloc(&m->arena, n, sizeof *e);
	ck_assert(m->entries != NULL);
	memcpy(m->entries, e, n * sizeof *e);
	m->n = n;
	return mview_new(m);
}

START_TEST(legacy)
{
	struct manifest_entry data =
		ct_entry(ENTRY_ADDED, ct_in(t, ct_data(t, "d", 10), 7), 1, SEQ_DATA);
	struct content_file f = ct_legacy(t, "delete");
	f.content = legacy_cases[_i].content;
	f.spec_id = legacy_cases[_i].spec;
	if (legacy_cases[_i].p >= 0)
		f.partition = ct_tuple(t, (uint32_t)legacy_cases[_i].p);
	if (legacy_cases[_i].reference)
		f.referenced_data_file = ct_path(t, legacy_cases[_i].reference);
	if (legacy_cases[_i].lower) {
		f.lower = path_bound(legacy_cases[_i].lower);
		f.n_lower = 1;
	}
	if (legacy_cases[_i].upper) {
		f.upper = path_bound(legacy_cases[_i].upper);
		f.n_upper = 1;
	}
	/* Beside one that never applies, so that the manifest is looked into, and a vector. */
	struct content_file other = ct_legacy(t, "other");
	other.referenced_data_file = ct_path(t, "x");
	struct manifest_entry e[3] = {
		ct_entry(ENTRY_ADDED, other, 1, 9),
		ct_entry(ENTRY_ADDED, ct_vector(t, "d", "1"), 1, 9),
		ct_entry(legacy_cases[_i].status, f, 1, legacy_cases[_i].seq)};
	struct mview *v[2] = {view_of(MANIFEST_DATA, &data, 1), view_of(MANIFEST_DELETES, e, 3)};
	struct err err = {0};
	struct algebra_data of =
		algebra_data_of(v[0], mview_look(v[0], mview_key(data.file.path)), data.file.path);
	for (int vector = 0; vector < 2; vector++) {
		/* A vector takes the place of position deletes alone. */
		bool applies = legacy_cases[_i].applies &&
			       (!vector || f.content == CONTENT_EQUALITY_DELETES);
		enum status st = algebra_legacy(t->meta, v, 2, &of, vector, &err);
		ck_assert_msg(st == (applies ? ST_LEGACY_DELETES : ST_OK), "%s",
			      legacy_cases[_i].what);
		if (applies)
			ck_assert_str_eq(err.msg, "deletes in file:///t/data/delete.parquet may "
						  "apply to file:///t/data/d.parquet");
	}
	mview_unref(v[0]);
	mview_unref(v[1]);
}
END_TEST

/* The same through a table that was upgraded. */
START_TEST(legacy_rejects)
{
	ct_close(t);
	ct_open(t, 2, "");
	struct manifest_entry e[2] = {
		ct_entry(ENTRY_ADDED, ct_in(t, ct_data(t, "d", 10), 7), SNAPSHOT_NONE, SEQ_NONE),
		ct_entry(ENTRY_ADDED, ct_in(t, ct_data(t, "e", 10), 8), SNAPSHOT_NONE, SEQ_NONE)};
	struct manifest_entry l =
		ct_entry(ENTRY_ADDED, ct_in(t, ct_legacy(t, "del"), 7), SNAPSHOT_NONE, SEQ_NONE);
	struct manifest_file rows[2] = {ct_manifest(t, 2, 1, MANIFEST_DATA, e, 2),
					ct_manifest(t, 2, 1, MANIFEST_DELETES, &l, 1)};
	(void)ct_foreign(t, CT_MAIN, rows, 2, false);
	ct_upgrade(t);
	struct plan_txn *x = ct_delete(t, CT_MAIN, "d", "1");
	struct plan_txn *y = ct_delete(t, CT_MAIN, "e", "1");
	ct_commit(t);
	CT_REJECTED(x, ST_LEGACY_DELETES);
	CT_COMMITTED(y);
}
END_TEST

START_TEST(locating)
{
	(void)ct_delete(t, CT_MAIN, "a", "1");
	ct_commit(t);
	const struct ct_state *s = ct_look_ref(t, CT_MAIN);
	struct located l = algebra_locate(s->views, s->list->l.n, mview_key(ct_path(t, "a")));
	ck_assert(l.data && l.dv && l.n_dvs == 1);
	ck_assert_ptr_eq(&s->views[l.data_row]->m->entries[l.data->entry],
			 ct_find(t, s, MANIFEST_DATA, "a", ENTRY_ADDED));
	ck_assert_ptr_eq(&s->views[l.dv_row]->m->entries[l.dv->entry],
			 ct_find(t, s, MANIFEST_DELETES, "a", ENTRY_ADDED));
	l = algebra_locate(s->views, s->list->l.n, mview_key(ct_path(t, "b")));
	ck_assert(!l.data && !l.dv && l.n_dvs == 0);
	/* A vector's own path is no data file. */
	const struct manifest_entry *e = ct_find(t, s, MANIFEST_DELETES, "a", ENTRY_ADDED);
	ck_assert(!algebra_locate(s->views, s->list->l.n, mview_key(e->file.path)).data);
	/* Nor is a delete file a vector. */
	struct manifest_entry d = ct_entry(ENTRY_ADDED, ct_legacy(t, "p"), 1, 1);
	struct mview *v = view_of(MANIFEST_DELETES, &d, 1);
	l = algebra_locate(&v, 1, mview_key(ct_path(t, "p")));
	ck_assert(!l.data && !l.dv && l.n_dvs == 0);
	mview_unref(v);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("algebra");
	TCase *c = tcase_create("algebra");
	tcase_add_checked_fixture(c, up, down);
	tcase_add_loop_test(c, dead_dead, 0, 2);
	tcase_add_test(c, dead_moved);
	tcase_add_loop_test(c, dead_moved_in_one_batch, 0, 2);
	tcase_add_test(c, moved_dead);
	tcase_add_test(c, moved_moved);
	tcase_add_loop_test(c, foreign, 0, 2);
	tcase_add_test(c, file_gone);
	tcase_add_test(c, emptied_in_this_batch);
	tcase_add_test(c, path_written_again);
	tcase_add_test(c, path_written_again_unseen);
	tcase_add_test(c, inconsistent);
	tcase_add_test(c, position_range);
	tcase_add_test(c, all_or_nothing);
	tcase_add_loop_test(c, legacy, 0, (int)ARRAY_SIZE(legacy_cases));
	tcase_add_test(c, legacy_rejects);
	tcase_add_test(c, locating);
	suite_add_tcase(s, c);
	return s;
}

UNIT_MAIN(suite)
