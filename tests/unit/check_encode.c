/* What a batch writes: numbers, entries, lists and summaries. Row id figures are those of the
 * spec's example and of the reference implementation's own test of row lineage: files of 125, 100
 * and 90 rows. */
#include "daemon/commit/encode.h"

#include "proto/base/gzip.h"

#include "tests/unit/core_batch.h"

/* ------------------------------------------------------------------ row ids */

START_TEST(appends)
{
	row_ids_are(append_ab(), 0, A_ROWS + B_ROWS);
	const struct ct_state *s = ct_look_ref(t, CT_MAIN);
	ck_assert_uint_eq(s->list->l.n, 1);
	ck_assert_int_eq(s->list->l.rows[0].first_row_id, 0);
	ck_assert_int_eq(ct_row_id(t, s, "a"), 0);
	ck_assert_int_eq(ct_row_id(t, s, "b"), A_ROWS);
	ck_assert_int_eq(t->out->txns[0].first_row_ids[0], 0);
	ck_assert_int_eq(t->out->txns[0].first_row_ids[1], A_ROWS);
	/* Added files state none themselves: they follow the list. */
	struct manifest_file row = s->list->l.rows[0];
	row.first_row_id = 5000;
	struct mview *v = NULL;
	struct err err = {0};
	UNIT_OK(mview_read(ct_object(t, row.path)->data, &row, t->meta, CT_MAX, &v, &err), &err);
	ck_assert_int_eq(mview_find(v, ct_path(t, "a"))->file.first_row_id, 5000);
	mview_unref(v);
	row_ids_are(append("c", C_ROWS), A_ROWS + B_ROWS, C_ROWS);
	s = ct_look_ref(t, CT_MAIN);
	ck_assert_int_eq(ct_row_id(t, s, "a"), 0);
	ck_assert_int_eq(ct_row_id(t, s, "c"), A_ROWS + B_ROWS);
	ck_assert_int_eq(t->out->first_row_id, A_ROWS + B_ROWS);
	ck_assert_int_eq(t->out->added_rows, C_ROWS);
	ck_assert_int_eq(t->out->next_row_id, A_ROWS + B_ROWS + C_ROWS);
}
END_TEST

/* Vectors take no row ids. */
START_TEST(delete_only)
{
	(void)append("a", A_ROWS);
	(void)ct_delete(t, CT_MAIN, "a", "0-14");
	row_ids_are(commit(), A_ROWS, 0);
	const struct ct_state *s = ct_look_ref(t, CT_MAIN);
	ck_assert_int_eq(ct_row_id(t, s, "a"), 0);
	for (size_t i = 0; i < s->list->l.n; i++)
		ck_assert_int_eq(s->list->l.rows[i].first_row_id,
				 s->list->l.rows[i].content == MANIFEST_DATA ? 0 : ROW_ID_NONE);
	/* With rows: those only. */
	struct plan_txn *x = ct_update(t, CT_MAIN, "a", "20-29", "x");
	ct_add(t, x, ct_data(t, "b", B_ROWS - 10));
	row_ids_are(commit(), A_ROWS, B_ROWS);
	s = ct_look_ref(t, CT_MAIN);
	ck_assert_int_eq(ct_row_id(t, s, "a"), 0);
	ck_assert_int_eq(ct_row_id(t, s, "x"), A_ROWS);
	ck_assert_int_eq(ct_row_id(t, s, "b"), A_ROWS + 10);
}
END_TEST

/* A manifest in which nothing lives any more takes a number, but no space. */
START_TEST(overwritten)
{
	(void)append("a", A_ROWS);
	struct plan_txn *x = ct_txn(t, CT_MAIN, RPC_KIND_ROW_DELTA);
	ct_del(t, x, "a", "0-124", false);
	ct_add(t, x, ct_data(t, "b", B_ROWS));
	row_ids_are(commit(), A_ROWS, B_ROWS);
	const struct ct_state *s = ct_look_ref(t, CT_MAIN);
	ck_assert_int_eq(ct_row_id(t, s, "b"), A_ROWS);
	/* Deleted entries state the number that the rows had. */
	const struct manifest_entry *e = ct_find(t, s, MANIFEST_DATA, "a", ENTRY_DELETED);
	ck_assert(e != NULL);
	ck_assert_int_eq(e->file.first_row_id, 0);
}
END_TEST

/* Rows of a rewritten manifest use up numbers and keep their own. */
START_TEST(overwritten_in_part)
{
	(void)append_ab();
	struct plan_txn *x = ct_txn(t, CT_MAIN, RPC_KIND_ROW_DELTA);
	ct_del(t, x, "a", "0-124", false);
	ct_add(t, x, ct_data(t, "c", C_ROWS));
	row_ids_are(commit(), A_ROWS + B_ROWS, B_ROWS + C_ROWS);
	const struct ct_state *s = ct_look_ref(t, CT_MAIN);
	ck_assert_int_eq(ct_row_id(t, s, "b"), A_ROWS);
	int64_t c = ct_row_id(t, s, "c");
	ck_assert(c >= A_ROWS + B_ROWS && c + C_ROWS <= metadata_next_row_id(t->meta));
	const struct manifest_entry *b = ct_find(t, s, MANIFEST_DATA, "b", ENTRY_EXISTING);
	const struct manifest_entry *a = ct_find(t, s, MANIFEST_DATA, "a", ENTRY_DELETED);
	ck_assert(a && b);
	ck_assert_int_eq(b->snapshot_id, 1001);
	ck_assert_int_eq(b->seq, 1);
	ck_assert_int_eq(b->file_seq, 1);
	ck_assert_int_eq(a->snapshot_id, 1002);
	ck_assert_int_eq(a->seq, 1);
	ck_assert_int_eq(a->file_seq, 1);
	/* Explicit in the file: another number in the list changes nothing. */
	for (size_t i = 0; i < s->list->l.n; i++) {
		struct manifest_file row = s->list->l.rows[i];
		if (!mview_find(s->views[i], ct_path(t, "b")))
			continue;
		ck_assert_int_eq(row.existing_rows, B_ROWS);
		ck_assert_int_eq(row.deleted_rows, A_ROWS);
		ck_assert_int_eq(row.seq, 2);
		ck_assert_int_eq(row.min_seq, 1);
		ck_assert_int_eq(row.added_snapshot_id, 1002);
		row.first_row_id = 7000;
		struct mview *v = NULL;
		struct err err = {0};
		UNIT_OK(mview_read(ct_object(t, row.path)->data, &row, t->meta, CT_MAX, &v, &err),
			&err);
		ck_assert_int_eq(mview_find(v, ct_path(t, "b"))->file.first_row_id, A_ROWS);
		mview_unref(v);
	}
}
END_TEST

/* Version 2 with data manifests [added c], [existing a, deleted b] and a position delete file. */
static void upgraded(void)
{
	ct_close(t);
	ct_open(t, 2, "");
	struct manifest_entry e[2] = {
		ct_entry(ENTRY_ADDED, ct_data(t, "a", A_ROWS), SNAPSHOT_NONE, SEQ_NONE),
		ct_entry(ENTRY_ADDED, ct_data(t, "b", B_ROWS), SNAPSHOT_NONE, SEQ_NONE)};
	struct manifest_file first = ct_manifest(t, 2, 0, MANIFEST_DATA, e, 2);
	(void)ct_foreign(t, CT_MAIN, &first, 1, false);
	struct manifest_entry c =
		ct_entry(ENTRY_ADDED, ct_data(t, "c", C_ROWS), SNAPSHOT_NONE, SEQ_NONE);
	struct manifest_entry old[2] = {ct_entry(ENTRY_EXISTING, ct_data(t, "a", A_ROWS), 501, 1),
					ct_entry(ENTRY_DELETED, ct_data(t, "b", B_ROWS), 502, 1)};
	struct content_file l = ct_legacy(t, "x");
	l.referenced_data_file = ct_path(t, "a");
	struct manifest_entry d = ct_entry(ENTRY_ADDED, l, SNAPSHOT_NONE, SEQ_NONE);
	struct manifest_file rows[3] = {ct_manifest(t, 2, 0, MANIFEST_DATA, &c, 1),
					ct_manifest(t, 2, 0, MANIFEST_DATA, old, 2),
					ct_manifest(t, 2, 0, MANIFEST_DELETES, &d, 1)};
	(void)ct_foreign(t, CT_MAIN, rows, 3, false);
	ct_upgrade(t);
	ck_assert_int_eq(metadata_next_row_id(t->meta), 0);
}

/* The first snapshot after an upgrade gives every manifest of its list a number; the files stay. */
START_TEST(after_upgrade)
{
	upgraded();
	struct strv ref = _i ? STRV("branch") : CT_MAIN;
	if (_i)
		ct_branch(t, ref, false);
	int64_t before = ct_head(t, CT_MAIN);
	const struct ct_state *old = ct_look(t, before);
	(void)ct_append(t, ref, "d", 10);
	(void)commit();
	row_ids_are(ct_snapshot(t, ref), 0, C_ROWS + A_ROWS + 10);
	const struct ct_state *s = ct_look_ref(t, ref);
	ck_assert_int_eq(ct_row_id(t, s, "c"), 0);
	ck_assert_int_eq(ct_row_id(t, s, "a"), C_ROWS);
	ck_assert_int_eq(ct_row_id(t, s, "d"), C_ROWS + A_ROWS);
	ck_assert_uint_eq(s->list->l.n, 4);
	for (size_t i = 0; i < 3; i++) {
		ck_assert(strv_eq(s->list->l.rows[i].path, old->list->l.rows[i].path));
		ck_assert_int_eq(s->list->l.rows[i].seq, 2);
		ck_assert_int_eq(s->list->l.rows[i].min_seq, i == 1 ? 1 : 2);
		ck_assert_int_eq(s->list->l.rows[i].added_snapshot_id, 502);
	}
	/* Old snapshots have no row ids, main neither while only the branch moved. */
	ck_assert_int_eq(metadata_snapshot(t->meta, before)->first_row_id, ROW_ID_NONE);
	old = ct_look(t, before);
	ck_assert_int_eq(old->list->l.rows[0].first_row_id, ROW_ID_NONE);
	ck_assert_int_eq(ct_row_id(t, old, "c"), ROW_ID_NONE);
}
END_TEST

/* The first snapshot of a batch gives the numbers, the second copies the manifest: what a reader
 * of the first has seen stays. */
START_TEST(copied_after_upgrade)
{
	ct_close(t);
	ct_open(t, 2, _i ? "\"commit.manifest.min-count-to-merge\":\"2\"" : "");
	(void)append_ab();
	ct_upgrade(t);
	struct strv_pair pair = {STRV("owner"), STRV("me")};
	(void)ct_delete(t, CT_MAIN, "b", "1");
	struct plan_txn *x =
		_i ? ct_append(t, CT_MAIN, "c", C_ROWS) : ct_delete(t, CT_MAIN, "a", "0-124");
	x->summary = &pair;
	x->n_summary = 1;
	if (_i)
		(void)ct_update(t, CT_MAIN, "b", "2", "d");
	(void)commit();
	const struct ct_state *s = ct_look(t, t->plan->lanes[0].snapshot_id);
	ck_assert_int_eq(ct_row_id(t, s, "a"), 0);
	ck_assert_int_eq(ct_row_id(t, s, "b"), A_ROWS);
	s = ct_look_ref(t, CT_MAIN);
	ck_assert_int_eq(ct_row_id(t, s, "b"), A_ROWS);
	if (_i == 0)
		ck_assert_int_eq(
			ct_find(t, s, MANIFEST_DATA, "a", ENTRY_DELETED)->file.first_row_id, 0);
	else
		ck_assert_int_eq(ct_row_id(t, s, "a"), 0);
	/* Copied or, by the next snapshot, merged, as meant. */
	if (_i) {
		ct_batch(t);
		(void)ct_append(t, CT_MAIN, "e", 1);
		(void)commit();
		s = ct_look_ref(t, CT_MAIN);
		ck_assert_int_eq(ct_row_id(t, s, "b"), A_ROWS);
	}
	ck_assert(ct_find(t, s, MANIFEST_DATA, "b", ENTRY_EXISTING) != NULL);
}
END_TEST

/* A vector there: the manifest with the dropped file takes a number and no space. */
START_TEST(overwrite_after_upgrade)
{
	upgraded();
	struct plan_txn *x = ct_txn(t, CT_MAIN, RPC_KIND_ROW_DELTA);
	ct_del(t, x, "c", "0-89", false);
	ct_add(t, x, ct_data(t, "b", B_ROWS));
	row_ids_are(commit(), 0, B_ROWS + A_ROWS);
	const struct ct_state *s = ct_look_ref(t, CT_MAIN);
	ck_assert(ct_find(t, s, MANIFEST_DATA, "c", ENTRY_DELETED) != NULL);
	int64_t a = ct_row_id(t, s, "a"), b = ct_row_id(t, s, "b");
	ck_assert((a == 0 && b == A_ROWS) || (b == 0 && a == B_ROWS));
}
END_TEST

/* Other writers do not look whether a file is in the table already: two manifests may list it. When its
 * last row goes, it goes from both. */
START_TEST(listed_twice)
{
	struct manifest_entry e[2] = {
		ct_entry(ENTRY_ADDED, ct_data(t, "a", A_ROWS), SNAPSHOT_NONE, SEQ_NONE),
		ct_entry(ENTRY_ADDED, ct_data(t, "b", B_ROWS), SNAPSHOT_NONE, SEQ_NONE)};
	struct manifest_file rows[3] = {ct_manifest(t, 3, 0, MANIFEST_DATA, e, 2),
					ct_manifest(t, 3, 0, MANIFEST_DATA, e, 1),
					ct_manifest(t, 3, 0, MANIFEST_DATA, e + 1, 1)};
	(void)ct_foreign(t, CT_MAIN, rows, 3, false);
	(void)ct_delete(t, CT_MAIN, "a", "0-124");
	(void)commit();
	const struct ct_state *s = ct_look_ref(t, CT_MAIN);
	for (size_t i = 0; i < s->list->l.n; i++)
		ck_assert(mview_find(s->views[i], ct_path(t, "a")) == NULL);
	ck_assert(ct_find(t, s, MANIFEST_DATA, "b", ENTRY_EXISTING) != NULL);
}
END_TEST

/* One manifest may be listed anew with another sequence number: on two branches, or after it had left.
 * Below version 3 its row has no other mark; what older deletes reach depends on it. */
START_TEST(listed_anew)
{
	ct_close(t);
	ct_open(t, 2, "\"commit.manifest.min-count-to-merge\":\"2\"");
	struct manifest_entry a =
		ct_entry(ENTRY_ADDED, ct_data(t, "a", A_ROWS), SNAPSHOT_NONE, SEQ_NONE);
	struct manifest_entry b =
		ct_entry(ENTRY_ADDED, ct_data(t, "b", B_ROWS), SNAPSHOT_NONE, SEQ_NONE);
	struct manifest_file rows[2] = {ct_manifest(t, 2, 0, MANIFEST_DATA, &a, 1),
					ct_manifest(t, 2, 0, MANIFEST_DATA, &b, 1)};
	(void)ct_foreign(t, CT_MAIN, rows, 1, false);
	/* Somebody reads it, as the cleaner does. */
	const struct ct_state *s = ct_look_ref(t, CT_MAIN);
	struct needs needs = {0};
	struct err err = {0};
	struct mview *v = NULL;
	while (cache_view(t->cache, s->list, &s->list->l.rows[0], t->meta, &needs, &v, &err) ==
	       CACHE_WAIT)
		ct_serve(t, &needs);
	needs_fini(&needs);
	(void)ct_foreign(t, CT_MAIN, NULL, 0, false);
	rows[0].added_snapshot_id = rows[1].added_snapshot_id = t->last_foreign + 1;
	(void)ct_foreign(t, CT_MAIN, rows, 2, false);
	(void)ct_append(t, CT_MAIN, "c", C_ROWS);
	ct_commit(t);
	CT_COMMITTED(&t->txns[0]);
	s = ct_look_ref(t, CT_MAIN);
	const struct manifest_entry *e = ct_find(t, s, MANIFEST_DATA, "a", ENTRY_EXISTING);
	ck_assert(e != NULL);
	ck_assert_int_eq(e->seq, 3);
	ck_assert_int_eq(e->file_seq, 3);
}
END_TEST

/* The spec's example: next-row-id 1000, manifests of 25 + 100, 100 + 0 and 25 + 125 rows without
 * numbers get 1000, 1125 and 1225; 1375 is next. */
START_TEST(worked_example)
{
	ct_close(t);
	ct_open(t, 2, "");
	struct manifest_entry z =
		ct_entry(ENTRY_ADDED, ct_data(t, "z", 1), SNAPSHOT_NONE, SEQ_NONE);
	struct manifest_file row = ct_manifest(t, 2, 0, MANIFEST_DATA, &z, 1);
	(void)ct_foreign(t, CT_MAIN, &row, 1, false);
	struct manifest_entry one[2] = {
		ct_entry(ENTRY_EXISTING, ct_data(t, "e1", 25), 501, 1),
		ct_entry(ENTRY_ADDED, ct_data(t, "a1", 100), SNAPSHOT_NONE, SEQ_NONE)};
	struct manifest_entry two[2] = {ct_entry(ENTRY_EXISTING, ct_data(t, "e2", 100), 501, 1),
					ct_entry(ENTRY_DELETED, ct_data(t, "g2", 70), 502, 1)};
	struct manifest_entry three[2] = {
		ct_entry(ENTRY_EXISTING, ct_data(t, "e3", 25), 501, 1),
		ct_entry(ENTRY_ADDED, ct_data(t, "a3", 125), SNAPSHOT_NONE, SEQ_NONE)};
	struct manifest_file rows[3] = {ct_manifest(t, 2, 0, MANIFEST_DATA, one, 2),
					ct_manifest(t, 2, 0, MANIFEST_DATA, two, 2),
					ct_manifest(t, 2, 0, MANIFEST_DATA, three, 2)};
	(void)ct_foreign(t, CT_MAIN, rows, 3, false);
	ct_upgrade(t);
	ct_edit(t, "\"next-row-id\":0", "\"next-row-id\":1000");
	(void)ct_delete(t, CT_MAIN, "a3", "1");
	row_ids_are(commit(), 1000, 375);
	const struct ct_state *s = ct_look_ref(t, CT_MAIN);
	ck_assert_int_eq(s->list->l.rows[0].first_row_id, 1000);
	ck_assert_int_eq(s->list->l.rows[1].first_row_id, 1125);
	ck_assert_int_eq(s->list->l.rows[2].first_row_id, 1225);
	ck_assert_int_eq(ct_row_id(t, s, "a1"), 1025);
	ck_assert_int_eq(ct_row_id(t, s, "a3"), 1250);
	/* A kept manifest does not take part again. */
	row_ids_are(append("n", 10), 1375, 10);
	s = ct_look_ref(t, CT_MAIN);
	ck_assert_int_eq(s->list->l.rows[0].first_row_id, 1000);
}
END_TEST

START_TEST(row_ids_run_out)
{
	ct_edit(t, "\"next-row-id\":0", "\"next-row-id\":9223372036854775800");
	(void)ct_append(t, CT_MAIN, "a", 8);
	(void)ct_plan(t, NULL);
	UNIT_STATUS(ct_encode(t, CT_MAX), ST_LIMIT);
	ck_assert(!t->out->changed);
}
END_TEST

/* ------------------------------------------------------------------ the update */

/* Several lanes of several refs in one metadata file: each ref ends at its last snapshot, and only
 * main's last one is in the snapshot log, as nobody ever saw the others as current. */
START_TEST(lanes_and_refs)
{
	(void)append("a", A_ROWS);
	ct_branch(t, STRV("b"), false);
	struct update u = {.kind = UPDATE_SET_SNAPSHOT_REF,
			   .u.ref = {.name = STRV("b"),
				     .snapshot_id = ct_head(t, CT_MAIN),
				     .min_snapshots_to_keep = 7,
				     .max_snapshot_age_ms = 1234,
				     .max_ref_age_ms = 5678}};
	ct_apply(t, &u, 1);
	(void)ct_append(t, STRV("b"), "x", 10);
	(void)ct_delete(t, STRV("b"), "a", "1");
	(void)ct_append(t, CT_MAIN, "y", 10);
	(void)ct_delete(t, CT_MAIN, "a", "2 3");
	(void)commit();
	ck_assert_uint_eq(t->plan->n_lanes, 4);
	ck_assert_uint_eq(metadata_snapshot_count(t->meta), 5);
	ck_assert_int_eq(metadata_last_sequence_number(t->meta), 5);
	row_ids_are(&(struct snapshot){.first_row_id = A_ROWS, .added_rows = 20}, A_ROWS, 20);
	int64_t seq = 1;
	for (size_t i = 0; i < 4; i++)
		ck_assert_int_eq(
			metadata_snapshot(t->meta, t->plan->lanes[i].snapshot_id)->sequence_number,
			++seq);
	for (int i = 0; i < 2; i++) {
		struct strv ref = i ? CT_MAIN : STRV("b");
		const struct snapshot *s = ct_snapshot(t, ref);
		ck_assert(strv_eq(s->operation, STRV("append")));
		const struct snapshot *parent = metadata_parent(t->meta, s);
		ck_assert(strv_eq(parent->operation, STRV("delete")));
		ck_assert_int_eq(parent->parent_id, 1001);
		const struct ct_state *l = ct_look_ref(t, ref);
		ck_assert_int_eq(
			ct_find(t, l, MANIFEST_DELETES, "a", ENTRY_ADDED)->file.record_count,
			i + 1);
		ck_assert(ct_find(t, l, MANIFEST_DATA, i ? "y" : "x", ENTRY_ADDED) != NULL);
		ck_assert(!ct_find(t, l, MANIFEST_DATA, i ? "x" : "y", ENTRY_ADDED));
		ct_summary(s, "total-position-deletes", number(i + 1));
	}
	int64_t x = ct_row_id(t, ct_look_ref(t, STRV("b")), "x");
	int64_t y = ct_row_id(t, ct_look_ref(t, CT_MAIN), "y");
	ck_assert(x >= A_ROWS && y >= A_ROWS && (x - y == 10 || y - x == 10));
	const struct snapshot_ref *b = metadata_ref_by_name(t->meta, STRV("b"));
	ck_assert_int_eq(b->min_snapshots_to_keep, 7);
	ck_assert_int_eq(b->max_snapshot_age_ms, 1234);
	ck_assert_int_eq(b->max_ref_age_ms, 5678);
	size_t n;
	const struct metadata_snapshot_log_entry *log = metadata_snapshot_log(t->meta, &n);
	ck_assert_uint_eq(n, 2);
	ck_assert_int_eq(log[0].snapshot_id, 1001);
	ck_assert_int_eq(log[1].snapshot_id, ct_head(t, CT_MAIN));
	ck_assert_int_eq(metadata_current_snapshot_id(t->meta), ct_head(t, CT_MAIN));
}
END_TEST

/* Time does not run backwards within a table, whatever the clock says. */
START_TEST(clock_behind)
{
	(void)append("a", A_ROWS);
	int64_t before = metadata_last_updated_ms(t->meta);
	t->runs = -100000;
	const struct snapshot *s = append("b", B_ROWS);
	ck_assert_int_eq(s->timestamp_ms, before);
	ck_assert_int_ge(metadata_last_updated_ms(t->meta), before);
	/* A change without a snapshot counts too. */
	char from[64], to[64];
	before = metadata_last_updated_ms(t->meta);
	snprintf(from, sizeof from, "\"last-updated-ms\":%lld", (long long)before);
	snprintf(to, sizeof to, "\"last-updated-ms\":%lld", (long long)before + 90000);
	ct_edit(t, from, to);
	ck_assert_int_eq(append("c", C_ROWS)->timestamp_ms, before + 90000);
}
END_TEST

/* Older versions: no row ids; version 1 has no sequence numbers either. */
START_TEST(old_versions)
{
	ct_close(t);
	ct_open(t, _i, "");
	(void)append("a", A_ROWS);
	const struct snapshot *s = append("b", B_ROWS);
	ck_assert_int_eq(s->first_row_id, ROW_ID_NONE);
	ck_assert_int_eq(s->added_rows, ROW_ID_NONE);
	ck_assert_int_eq(s->sequence_number, _i == 1 ? 0 : 2);
	ck_assert_int_eq(t->out->txns[0].first_row_ids[0], ROW_ID_NONE);
	ck_assert_int_eq(metadata_last_sequence_number(t->meta), _i == 1 ? 0 : 2);
	const struct ct_state *l = ct_look_ref(t, CT_MAIN);
	ck_assert_uint_eq(l->list->l.n, 2);
	for (size_t i = 0; i < 2; i++) {
		bool a = mview_find(l->views[i], ct_path(t, "a")) != NULL;
		ck_assert_int_eq(l->list->l.rows[i].seq, _i == 1 ? 0 : a ? 1 : 2);
		ck_assert_int_eq(l->list->l.rows[i].first_row_id, ROW_ID_NONE);
		ck_assert_int_eq(l->views[i]->m->format_version, _i);
	}
	ct_summary(s, "total-records", number(A_ROWS + B_ROWS));
}
END_TEST

/* Metadata files that fall off the log are named for deletion when the table asks for it. */
START_TEST(expired_metadata)
{
	ct_close(t);
	ct_open(t, 3,
		"\"write.metadata.previous-versions-max\":\"1\","
		"\"write.metadata.delete-after-commit.enabled\":\"true\"");
	(void)append("a", A_ROWS);
	ck_assert_uint_eq(t->out->n_expired, 0);
	(void)append("b", B_ROWS);
	ck_assert_uint_eq(t->out->n_expired, 1);
	ck_assert(strv_eq(t->out->expired[0], STRV("file:///t/metadata/v0.metadata.json")));
	size_t n;
	const struct metadata_log_entry *log = metadata_log(t->meta, &n);
	ck_assert_uint_eq(n, 1);
	ck_assert(strv_eq(log[0].file, STRV("file:///t/metadata/v1.metadata.json")));
}
END_TEST

/* The log of a table that was registered may name files of elsewhere. */
START_TEST(foreign_metadata)
{
	ct_close(t);
	ct_open(t, 3,
		"\"write.metadata.previous-versions-max\":\"1\","
		"\"write.metadata.delete-after-commit.enabled\":\"true\","
		"\"write.metadata.path\":\"file:///m/\"},\"metadata-log\":["
		"{\"timestamp-ms\":1,\"metadata-file\":\"file:///elsewhere/t/1.metadata.json\"},"
		"{\"timestamp-ms\":1,\"metadata-file\":\"file:///t2/metadata/1.metadata.json\"},"
		"{\"timestamp-ms\":1,\"metadata-file\":\"file:///t/../u/1.metadata.json\"},"
		"{\"timestamp-ms\":1,\"metadata-file\":\"file:///t/\"},"
		"{\"timestamp-ms\":1,\"metadata-file\":\"file:///t/metadata/1.metadata.json\"},"
		"{\"timestamp-ms\":1,\"metadata-file\":\"file:///m/2.metadata.json\"}],"
		"\"x\":{");
	(void)append("a", A_ROWS);
	ck_assert_uint_eq(t->out->n_expired, 2);
	ck_assert(strv_eq(t->out->expired[0], STRV("file:///t/metadata/1.metadata.json")));
	ck_assert(strv_eq(t->out->expired[1], STRV("file:///m/2.metadata.json")));
}
END_TEST

START_TEST(gzipped_metadata)
{
	const struct strv path = STRV("file:///t/metadata/1-x.gz.metadata.json");
	struct encode_in in = {.metadata = t->meta, .metadata_path = path, .max_bytes = CT_MAX};
	struct encode_out *out = encode_out_new(CT_MAX);
	struct buf plain, got;
	struct err err = {0};
	encode_run(&in, out);
	UNIT_OK(out->err.st, &out->err);
	ck_assert_uint_eq(out->n_objects, 1);
	buf_init(&plain, CT_MAX);
	buf_init(&got, CT_MAX);
	metadata_json(t->meta, &plain);
	UNIT_OK(gzip_read(out->objects[0].data, &got, &err), &err);
	ck_assert(bytes_eq(buf_bytes(&plain), buf_bytes(&got)));
	ck_assert(strv_eq(out->objects[0].path, path));
	buf_fini(&plain);
	buf_fini(&got);
	encode_out_free(out);
}
END_TEST

START_TEST(folders)
{
	struct strv dir;
	ck_assert(metadata_data_folder(t->meta, &t->arena, &dir));
	ck_assert(strv_eq(dir, STRV("file:///t/data")));
	ck_assert(metadata_folder(t->meta, &t->arena, &dir));
	ck_assert(strv_eq(dir, STRV("file:///t/metadata")));
	ct_close(t);
	ct_open(t, 3,
		"\"write.data.path\":\"file:///d//\",\"write.metadata.path\":\"file:///m/x/\"");
	ck_assert(metadata_data_folder(t->meta, &t->arena, &dir));
	ck_assert(strv_eq(dir, STRV("file:///d")));
	ck_assert(metadata_folder(t->meta, &t->arena, &dir));
	ck_assert(strv_eq(dir, STRV("file:///m/x")));
}
END_TEST

/* The same input makes the same bytes. */
START_TEST(deterministic)
{
	(void)append_ab();
	(void)ct_append(t, CT_MAIN, "c", C_ROWS);
	(void)ct_delete(t, CT_MAIN, "b", "1-9");
	(void)ct_delete(t, CT_MAIN, "a", "1-9");
	int runs = t->runs;
	(void)ct_plan(t, NULL);
	UNIT_OK(ct_encode(t, CT_MAX), &t->out->err);
	struct encode_out *first = t->out;
	t->runs = runs;
	UNIT_OK(ct_encode(t, CT_MAX), &t->out->err);
	ck_assert_uint_eq(first->n_objects, t->out->n_objects);
	for (size_t i = 0; i < first->n_objects; i++) {
		ck_assert(strv_eq(first->objects[i].path, t->out->objects[i].path));
		ck_assert(bytes_eq(ct_joined(t, &first->objects[i]), ct_joined(t, &t->out->objects[i])));
	}
	ck_assert(strv_ends(first->objects[first->n_objects - 1].path, STRV(".metadata.json")));
	encode_out_free(first);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("encode");
	TCase *c = tcase_create("encode");
	tcase_set_timeout(c, 60);
	tcase_add_checked_fixture(c, up, down);
	tcase_add_test(c, appends);
	tcase_add_test(c, delete_only);
	tcase_add_test(c, overwritten);
	tcase_add_test(c, overwritten_in_part);
	tcase_add_loop_test(c, after_upgrade, 0, 2);
	tcase_add_loop_test(c, copied_after_upgrade, 0, 2);
	tcase_add_test(c, overwrite_after_upgrade);
	tcase_add_test(c, listed_twice);
	tcase_add_test(c, listed_anew);
	tcase_add_test(c, worked_example);
	tcase_add_test(c, row_ids_run_out);
	tcase_add_test(c, lanes_and_refs);
	tcase_add_test(c, clock_behind);
	tcase_add_loop_test(c, old_versions, 1, 3);
	tcase_add_test(c, expired_metadata);
	tcase_add_test(c, foreign_metadata);
	tcase_add_test(c, gzipped_metadata);
	tcase_add_test(c, folders);
	tcase_add_test(c, deterministic);
	suite_add_tcase(s, c);
	return s;
}

UNIT_MAIN(suite)
