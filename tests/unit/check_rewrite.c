/* What becomes of manifests: small ones merged, those with a replaced or dropped entry copied, vectors
 * in new ones. */
#include "daemon/commit/rewrite.h"

#include "tests/unit/core_batch.h"

/* ------------------------------------------------------------------ small manifests */

/* Reference figures for compaction of manifests with a (0) and b (125) when c comes: next is
 * 225 + 90 + 100 + 125, and after an upgrade 90 + 100 + 125; ids of a and b stay. */
START_TEST(merged)
{
	ct_close(t);
	ct_open(t, _i ? 2 : 3, "\"commit.manifest.min-count-to-merge\":\"2\"");
	(void)append("a", A_ROWS);
	(void)append("b", B_ROWS);
	ck_assert_uint_eq(ct_look_ref(t, CT_MAIN)->list->l.n, 2);
	if (_i)
		ct_upgrade(t);
	const struct snapshot *snap = append("c", C_ROWS);
	row_ids_are(snap, _i ? 0 : A_ROWS + B_ROWS, C_ROWS + B_ROWS + A_ROWS);
	const struct ct_state *s = ct_look_ref(t, CT_MAIN);
	ck_assert_uint_eq(s->list->l.n, 2);
	const struct manifest_entry *a = ct_find(t, s, MANIFEST_DATA, "a", ENTRY_EXISTING);
	const struct manifest_entry *b = ct_find(t, s, MANIFEST_DATA, "b", ENTRY_EXISTING);
	ck_assert(a && b);
	if (!_i) {
		ck_assert_int_eq(a->file.first_row_id, 0);
		ck_assert_int_eq(b->file.first_row_id, A_ROWS);
	}
	ck_assert_int_eq(a->seq, 1);
	ck_assert_int_eq(b->seq, 2);
	ck_assert_int_eq(b->file_seq, 2);
	ck_assert_int_eq(a->snapshot_id, 1001);
	ck_assert_int_eq(b->snapshot_id, 1002);
	for (size_t i = 0; i < 2; i++) {
		bool old = mview_find(s->views[i], ct_path(t, "a")) != NULL;
		ck_assert_int_eq(s->list->l.rows[i].seq, 3);
		ck_assert_int_eq(s->list->l.rows[i].min_seq, old ? 1 : 3);
	}
	ct_summary(snap, "manifests-created", "2");
	ct_summary(snap, "manifests-replaced", "2");
	ct_summary(snap, "manifests-kept", NULL);
	ct_summary(snap, "added-data-files", "1");
	ct_summary(snap, "total-data-files", "3");
}
END_TEST

/* The default is one hundred. */
START_TEST(merged_at_100)
{
	char name[16];
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof name, "f%d", i);
		(void)append(name, 10);
	}
	/* Ninety-nine old ones were left alone. */
	ck_assert_uint_eq(ct_look_ref(t, CT_MAIN)->list->l.n, 100);
	const struct snapshot *snap = append("last", 10);
	const struct ct_state *s = ct_look_ref(t, CT_MAIN);
	ck_assert_uint_eq(s->list->l.n, 2);
	ct_summary(snap, "manifests-replaced", "100");
	ct_summary(snap, "total-records", "1010");
	row_ids_are(snap, 1000, 1010);
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof name, "f%d", i);
		ck_assert_int_eq(ct_row_id(t, s, name), 10 * i);
	}
}
END_TEST

START_TEST(merging_switched_off)
{
	ct_close(t);
	ct_open(t, 3,
		"\"commit.manifest.min-count-to-merge\":\"2\","
		"\"commit.manifest-merge.enabled\":\"false\"");
	(void)append("a", A_ROWS);
	(void)append("b", B_ROWS);
	(void)append("c", C_ROWS);
	ck_assert_uint_eq(ct_look_ref(t, CT_MAIN)->list->l.n, 3);
}
END_TEST

/* Content and spec are never mixed. */
START_TEST(merged_by_kind)
{
	ct_close(t);
	ct_open(t, 3, "\"commit.manifest.min-count-to-merge\":\"2\"");
	(void)append("a", A_ROWS);
	struct plan_txn *x = ct_txn(t, CT_MAIN, RPC_KIND_APPEND);
	ct_add(t, x, ct_in(t, ct_data(t, "p", 10), 7));
	(void)commit();
	(void)ct_delete(t, CT_MAIN, "a", "1");
	(void)commit();
	(void)ct_delete(t, CT_MAIN, "p", "1");
	(void)commit();
	const struct ct_state *s = ct_look_ref(t, CT_MAIN);
	ck_assert_uint_eq(s->list->l.n, 4);
	(void)append("b", 10);
	s = ct_look_ref(t, CT_MAIN);
	ck_assert_uint_eq(s->list->l.n, 5);
	(void)append("c", 10);
	/* a and b are of one kind now. */
	s = ct_look_ref(t, CT_MAIN);
	ck_assert_uint_eq(s->list->l.n, 5);
	ck_assert(ct_find(t, s, MANIFEST_DATA, "a", ENTRY_EXISTING) != NULL);
	ck_assert(ct_find(t, s, MANIFEST_DATA, "p", ENTRY_ADDED) != NULL);
	for (size_t i = 0; i < s->list->l.n; i++)
		for (size_t k = 0; k < s->views[i]->m->n; k++)
			ck_assert_int_eq(s->views[i]->m->entries[k].file.spec_id,
					 s->list->l.rows[i].spec_id);
}
END_TEST

/* ------------------------------------------------------------------ vectors */

START_TEST(replaced_vector)
{
	(void)append_ab();
	(void)ct_delete(t, CT_MAIN, "a", "3 5 7");
	(void)ct_delete(t, CT_MAIN, "b", "1");
	const struct snapshot *before = commit();
	const struct ct_state *s = ct_look_ref(t, CT_MAIN);
	const struct manifest_entry *old = ct_find(t, s, MANIFEST_DELETES, "a", ENTRY_ADDED);
	const struct manifest_entry *other = ct_find(t, s, MANIFEST_DELETES, "b", ENTRY_ADDED);
	ck_assert(old && other);
	(void)ct_delete(t, CT_MAIN, "a", "11 13");
	const struct snapshot *snap = commit();
	s = ct_look_ref(t, CT_MAIN);
	const struct manifest_entry *gone = ct_find(t, s, MANIFEST_DELETES, "a", ENTRY_DELETED);
	const struct manifest_entry *new = ct_find(t, s, MANIFEST_DELETES, "a", ENTRY_ADDED);
	const struct manifest_entry *kept = ct_find(t, s, MANIFEST_DELETES, "b", ENTRY_EXISTING);
	ck_assert(gone && new &&kept);
	ck_assert(!ct_find(t, s, MANIFEST_DELETES, "b", ENTRY_ADDED));
	ck_assert_int_eq(gone->snapshot_id, snap->snapshot_id);
	ck_assert_int_eq(gone->seq, 2);
	ck_assert_int_eq(gone->file_seq, 2);
	ck_assert(strv_eq(gone->file.path, old->file.path));
	ck_assert_int_eq(gone->file.content_offset, old->file.content_offset);
	ck_assert_int_eq(kept->snapshot_id, before->snapshot_id);
	ck_assert_int_eq(kept->seq, 2);
	ck_assert_int_eq(kept->file_seq, 2);
	ck_assert(strv_eq(kept->file.path, other->file.path));
	ck_assert_int_eq(new->snapshot_id, snap->snapshot_id);
	ck_assert_int_eq(new->seq, 3);
	ck_assert_int_eq(new->file.record_count, 5);
	ck_assert_int_eq(new->file.spec_id, 0);
	ck_assert_int_eq(new->file.sort_order_id, SORT_ORDER_NONE);
	ck_assert_int_eq(new->file.first_row_id, ROW_ID_NONE);
	ck_assert(strv_ieq(new->file.format, STRV("PUFFIN")));
	/* The whole vector, at its place in its file. */
	const struct ct_object *o = ct_object(t, new->file.path);
	ck_assert(o != NULL);
	ck_assert_int_eq(new->file.file_size, (int64_t)o->data.n);
	struct bitmap64 *set = NULL;
	struct err err = {0};
	UNIT_OK(dv_blob_decode((struct bytes){o->data.p + new->file.content_offset,
					      (size_t) new->file.content_size},
			       &set, &err),
		&err);
	ck_assert(bitmap64_equal(set, ct_set(t, "3 5 7 11 13")));
	bitmap64_free(set);
	ck_assert(strv_eq(snap->operation, STRV("delete")));
	ct_summary(snap, "added-dvs", "1");
	ct_summary(snap, "removed-dvs", "1");
	ct_summary(snap, "added-delete-files", "1");
	ct_summary(snap, "removed-delete-files", "1");
	ct_summary(snap, "added-position-delete-files", NULL);
	ct_summary(snap, "added-position-deletes", "5");
	ct_summary(snap, "removed-position-deletes", "3");
	ct_summary(snap, "added-files-size", number(new->file.content_size));
	ct_summary(snap, "removed-files-size", number(old->file.content_size));
	ct_summary(before, "total-position-deletes", "4");
	ct_summary(snap, "total-position-deletes", "6");
	ct_summary(snap, "total-delete-files", "2");
	ct_summary(snap, "total-records", number(A_ROWS + B_ROWS));
	ct_summary(snap, "changed-partition-count", "1");
	ct_summary(snap, "manifests-created", "2");
	ct_summary(snap, "manifests-replaced", "1");
	ct_summary(snap, "manifests-kept", "1");
}
END_TEST

/* A file without rows goes, with its vector; the manifests go when nothing in them lives. */
START_TEST(emptied)
{
	(void)append("a", A_ROWS);
	(void)append("b", B_ROWS);
	(void)ct_delete(t, CT_MAIN, "a", "0-9");
	(void)commit();
	(void)ct_delete(t, CT_MAIN, "a", "5-124");
	const struct snapshot *snap = commit();
	const struct ct_state *s = ct_look_ref(t, CT_MAIN);
	ck_assert(!ct_find(t, s, MANIFEST_DATA, "a", ENTRY_EXISTING));
	ck_assert(!ct_find(t, s, MANIFEST_DELETES, "a", ENTRY_ADDED));
	ck_assert(!ct_find(t, s, MANIFEST_DELETES, "a", ENTRY_EXISTING));
	const struct manifest_entry *data = ct_find(t, s, MANIFEST_DATA, "a", ENTRY_DELETED);
	const struct manifest_entry *dv = ct_find(t, s, MANIFEST_DELETES, "a", ENTRY_DELETED);
	ck_assert(data && dv);
	ck_assert_int_eq(data->snapshot_id, snap->snapshot_id);
	ck_assert_int_eq(data->seq, 1);
	ck_assert_int_eq(dv->snapshot_id, snap->snapshot_id);
	ck_assert_int_eq(dv->seq, 3);
	ck_assert(strv_eq(snap->operation, STRV("delete")));
	ct_summary(snap, "deleted-data-files", "1");
	ct_summary(snap, "deleted-records", number(A_ROWS));
	ct_summary(snap, "removed-dvs", "1");
	ct_summary(snap, "removed-position-deletes", "10");
	ct_summary(snap, "added-dvs", NULL);
	ct_summary(snap, "added-position-deletes", NULL);
	ct_summary(snap, "total-data-files", "1");
	ct_summary(snap, "total-records", number(B_ROWS));
	ct_summary(snap, "total-delete-files", "0");
	ct_summary(snap, "total-position-deletes", "0");
	ct_summary(snap, "total-files-size", number(B_ROWS * 10));
	ck_assert_uint_eq(s->list->l.n, 3);
	(void)append("c", C_ROWS);
	s = ct_look_ref(t, CT_MAIN);
	ck_assert_uint_eq(s->list->l.n, 2);
}
END_TEST

/* Two files of one manifest in one snapshot: one goes, the other only gets a vector. */
START_TEST(emptied_beside_changed)
{
	(void)append_ab();
	struct plan_txn *x = ct_delete(t, CT_MAIN, "a", "0-124");
	ct_del(t, x, "b", "1 2", true);
	const struct snapshot *snap = commit();
	const struct ct_state *s = ct_look_ref(t, CT_MAIN);
	ck_assert(ct_find(t, s, MANIFEST_DATA, "a", ENTRY_DELETED) != NULL);
	ck_assert(ct_find(t, s, MANIFEST_DATA, "b", ENTRY_EXISTING) != NULL);
	ck_assert(ct_find(t, s, MANIFEST_DELETES, "b", ENTRY_ADDED) != NULL);
	ck_assert(!ct_find(t, s, MANIFEST_DELETES, "a", ENTRY_ADDED));
	ct_summary(snap, "deleted-data-files", "1");
	ct_summary(snap, "deleted-records", number(A_ROWS));
	ct_summary(snap, "added-position-deletes", "2");
	ct_summary(snap, "total-data-files", "1");
}
END_TEST

/* Spec and tuple of a vector are the data file's; one manifest for each spec. */
START_TEST(vectors_by_spec)
{
	struct plan_txn *x = ct_append(t, CT_MAIN, "a", 10);
	ct_add(t, x, ct_in(t, ct_data(t, "p", 10), 7));
	ct_add(t, x, ct_in(t, ct_data(t, "q", 10), 8));
	(void)commit();
	x = ct_delete(t, CT_MAIN, "a", "1");
	ct_del(t, x, "q", "2", true);
	ct_del(t, x, "p", "3 4", true);
	const struct snapshot *snap = commit();
	const struct ct_state *s = ct_look_ref(t, CT_MAIN);
	const struct tuple seven = ct_tuple(t, 7), eight = ct_tuple(t, 8);
	const struct manifest_entry *e = ct_find(t, s, MANIFEST_DELETES, "p", ENTRY_ADDED);
	ck_assert(e && e->file.spec_id == 1 && tuple_eq(&e->file.partition, &seven));
	e = ct_find(t, s, MANIFEST_DELETES, "q", ENTRY_ADDED);
	ck_assert(e && e->file.spec_id == 1 && tuple_eq(&e->file.partition, &eight));
	e = ct_find(t, s, MANIFEST_DELETES, "a", ENTRY_ADDED);
	ck_assert(e && e->file.spec_id == 0 && e->file.partition.n == 0);
	size_t deletes = 0;
	for (size_t i = 0; i < s->list->l.n; i++)
		deletes += s->list->l.rows[i].content == MANIFEST_DELETES;
	ck_assert_uint_eq(deletes, 2);
	ct_summary(snap, "changed-partition-count", "3");
	ct_summary(snap, "added-dvs", "3");
}
END_TEST

/* Some writers leave a number on delete manifests, under which readers must not look. */
START_TEST(number_on_deletes)
{
	(void)append("a", A_ROWS);
	(void)ct_delete(t, CT_MAIN, "a", "1");
	(void)commit();
	(void)ct_append(t, CT_MAIN, "b", B_ROWS);
	(void)ct_plan(t, NULL);
	struct mlist *l = t->plan->refs[0].list;
	for (size_t i = 0; i < l->l.n; i++)
		if (l->l.rows[i].content == MANIFEST_DELETES)
			l->l.rows[i].first_row_id = INT64_C(7936040924389585713);
	UNIT_OK(ct_encode(t, CT_MAX), &t->out->err);
	ct_publish(t);
	row_ids_are(ct_snapshot(t, CT_MAIN), A_ROWS, B_ROWS);
	const struct ct_state *s = ct_look_ref(t, CT_MAIN);
	ck_assert_uint_eq(s->list->l.n, 3);
	for (size_t i = 0; i < 3; i++)
		if (s->list->l.rows[i].content == MANIFEST_DELETES)
			ck_assert_int_eq(s->list->l.rows[i].first_row_id, ROW_ID_NONE);
}
END_TEST

/* The column that a spec was made from has left the schema; its tuples stay what they were. */
START_TEST(dropped_source_column)
{
	struct plan_txn *x = ct_txn(t, CT_MAIN, RPC_KIND_APPEND);
	ct_add(t, x, ct_in(t, ct_data(t, "p", 10), 7));
	ct_add(t, x, ct_in(t, ct_data(t, "q", 10), 8));
	(void)commit();
	struct update u = {.kind = UPDATE_SET_CURRENT_SCHEMA, .u.id = 1};
	ct_apply(t, &u, 1);
	const struct tuple seven = ct_tuple(t, 7), eight = ct_tuple(t, 8);
	/* One vector, then another in its place, then the file goes. */
	const char *positions[3] = {"1", "2 3", "0-9"};
	for (int i = 0; i < 3; i++) {
		(void)ct_delete(t, CT_MAIN, "p", positions[i]);
		const struct snapshot *snap = commit();
		ck_assert_int_eq(snap->schema_id, 1);
		const struct ct_state *s = ct_look_ref(t, CT_MAIN);
		const struct manifest_entry *e =
			ct_find(t, s, MANIFEST_DELETES, "p", i < 2 ? ENTRY_ADDED : ENTRY_DELETED);
		ck_assert(e && tuple_eq(&e->file.partition, &seven));
		e = ct_find(t, s, MANIFEST_DATA, "q", i < 2 ? ENTRY_ADDED : ENTRY_EXISTING);
		ck_assert(e && tuple_eq(&e->file.partition, &eight));
		e = ct_find(t, s, MANIFEST_DATA, "p", i < 2 ? ENTRY_ADDED : ENTRY_DELETED);
		ck_assert(e && tuple_eq(&e->file.partition, &seven));
	}
}
END_TEST

/* Before it left, the column was promoted: tuples of two lengths cannot stand in one manifest. */
START_TEST(promoted_and_dropped)
{
	ct_close(t);
	ct_open(t, 3, "\"commit.manifest.min-count-to-merge\":\"2\"");
	struct plan_txn *x = ct_txn(t, CT_MAIN, RPC_KIND_APPEND);
	ct_add(t, x, ct_in(t, ct_data(t, "p", 10), 7));
	(void)commit();
	ct_edit(t, "\"required\":false,\"type\":\"int\"", "\"required\":false,\"type\":\"long\"");
	x = ct_txn(t, CT_MAIN, RPC_KIND_APPEND);
	struct content_file q = ct_in(t, ct_data(t, "q", 10), 8);
	static const uint8_t eight[8] = {8};
	q.partition.v[0].b = (struct bytes){eight, 8};
	ct_add(t, x, q);
	(void)commit();
	struct update u = {.kind = UPDATE_SET_CURRENT_SCHEMA, .u.id = 1};
	ct_apply(t, &u, 1);
	cache_free(t->cache);
	t->cache = cache_new(CT_MAX);
	x = ct_delete(t, CT_MAIN, "p", "1");
	ct_del(t, x, "q", "2", true);
	(void)commit();
	const struct tuple seven = ct_tuple(t, 7);
	for (int i = 0; i < 2; i++) {
		const struct ct_state *s = ct_look_ref(t, CT_MAIN);
		ck_assert_uint_eq(s->list->l.n, 4u + (size_t)i);
		const struct manifest_entry *e = ct_find(t, s, MANIFEST_DELETES, "p", ENTRY_ADDED);
		ck_assert(e && tuple_eq(&e->file.partition, &seven));
		e = ct_find(t, s, MANIFEST_DELETES, "q", ENTRY_ADDED);
		ck_assert(e && tuple_eq(&e->file.partition, &q.partition));
		(void)append(i ? "y" : "x", 10);
	}
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("rewrite");
	TCase *c = tcase_create("rewrite");
	tcase_set_timeout(c, 120);
	tcase_add_checked_fixture(c, up, down);
	tcase_add_loop_test(c, merged, 0, 2);
	tcase_add_test(c, merged_at_100);
	tcase_add_test(c, merging_switched_off);
	tcase_add_test(c, merged_by_kind);
	tcase_add_test(c, replaced_vector);
	tcase_add_test(c, emptied);
	tcase_add_test(c, emptied_beside_changed);
	tcase_add_test(c, vectors_by_spec);
	tcase_add_test(c, number_on_deletes);
	tcase_add_test(c, dropped_source_column);
	tcase_add_test(c, promoted_and_dropped);
	suite_add_tcase(s, c);
	return s;
}

UNIT_MAIN(suite)
