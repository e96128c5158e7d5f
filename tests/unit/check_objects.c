/* Decoded lists and manifests: what is found by path, what is counted, what is refused. */
#include "daemon/commit/objects.h"

#include "tests/unit/core_table.h"

static struct core_table *t;

static void up(void)
{
	static struct core_table table;
	t = &table;
	ct_open(t, 3, "");
}

static void down(void)
{
	ct_close(t);
}

static struct mview *view(enum manifest_content content, const struct manifest_entry *e, size_t n)
{
	struct manifest *m = base_calloc(1, sizeof *m);
	m->refs = 1;
	arena_init(&m->arena, (size_t)1 << 20);
	m->content = content;
	m->entries = arena_calloc(&m->arena, n ? n : 1, sizeof *e);
	ck_assert(m->entries != NULL);
	if (n)
		memcpy(m->entries, e, n * sizeof *e);
	m->n = n;
	return mview_new(m);
}

START_TEST(data_paths)
{
	struct manifest_entry e[3] = {ct_entry(ENTRY_ADDED, ct_data(t, "a", 1), 1, 1),
				      ct_entry(ENTRY_DELETED, ct_data(t, "b", 1), 1, 1),
				      ct_entry(ENTRY_EXISTING, ct_data(t, "c", 1), 1, 1)};
	struct mview *v = view(MANIFEST_DATA, e, 3);
	ck_assert_ptr_eq(mview_find(v, ct_path(t, "a")), &v->m->entries[0]);
	ck_assert_ptr_eq(mview_find(v, ct_path(t, "c")), &v->m->entries[2]);
	ck_assert(!mview_find(v, ct_path(t, "b")));
	ck_assert(!mview_find(v, ct_path(t, "d")));
	ck_assert_ptr_eq(mview_find_hash(v, ct_path(t, "a"), mview_hash(ct_path(t, "a"))),
			 &v->m->entries[0]);
	ck_assert_uint_eq(v->n_live, 2);
	ck_assert_uint_eq(v->n_legacy, 0);
	ck_assert_uint_ge(mview_memory(v), v->m->arena.used);
	mview_unref(v);
	v = view(MANIFEST_DATA, NULL, 0);
	ck_assert(!mview_find(v, ct_path(t, "a")));
	mview_unref(v);
}
END_TEST

/* Deleted and added again under the same path: the live one is found. */
START_TEST(dead_and_alive)
{
	struct manifest_entry e[2] = {ct_entry(ENTRY_DELETED, ct_vector(t, "a", "1"), 1, 1),
				      ct_entry(ENTRY_ADDED, ct_vector(t, "a", "1 2"), 2, 2)};
	for (int i = 0; i < 2; i++) {
		struct mview *v = view(MANIFEST_DELETES, e, 2);
		const struct manifest_entry *found = mview_find(v, ct_path(t, "a"));
		ck_assert(found && found->status == ENTRY_ADDED);
		ck_assert_uint_eq(v->n_live, 1);
		mview_unref(v);
		struct manifest_entry swap = e[0];
		e[0] = e[1];
		e[1] = swap;
	}
}
END_TEST

/* Vectors by the file that they belong to; other deletes by their own path, and counted. */
START_TEST(deletes)
{
	struct content_file named = ct_legacy(t, "p");
	named.referenced_data_file = ct_path(t, "b");
	struct content_file equality = ct_legacy(t, "q");
	equality.content = CONTENT_EQUALITY_DELETES;
	struct manifest_entry e[5] = {ct_entry(ENTRY_ADDED, ct_vector(t, "a", "1"), 1, 1),
				      ct_entry(ENTRY_ADDED, named, 1, 1),
				      ct_entry(ENTRY_EXISTING, ct_legacy(t, "r"), 1, 1),
				      ct_entry(ENTRY_ADDED, equality, 1, 1),
				      ct_entry(ENTRY_DELETED, ct_legacy(t, "s"), 1, 1)};
	struct mview *v = view(MANIFEST_DELETES, e, 5);
	ck_assert_ptr_eq(mview_find(v, ct_path(t, "a")), &v->m->entries[0]);
	ck_assert(!mview_find(v, e[0].file.path));
	ck_assert(!mview_find(v, ct_path(t, "b")));
	ck_assert_ptr_eq(mview_find(v, ct_path(t, "p")), &v->m->entries[1]);
	ck_assert_ptr_eq(mview_find(v, ct_path(t, "q")), &v->m->entries[3]);
	ck_assert(!mview_find(v, ct_path(t, "s")));
	ck_assert_uint_eq(v->n_live, 4);
	ck_assert_uint_eq(v->n_legacy, 2);
	ck_assert_uint_eq(v->n_equality, 1);
	mview_unref(v);
}
END_TEST

START_TEST(many)
{
	static struct manifest_entry e[1000];
	char name[24];
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof name, "f%d", i);
		e[i] = ct_entry(i % 3 ? ENTRY_EXISTING : ENTRY_DELETED, ct_data(t, name, 1), 1, 1);
	}
	struct mview *v = view(MANIFEST_DATA, e, 1000);
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof name, "f%d", i);
		const struct manifest_entry *found = mview_find(v, ct_path(t, name));
		ck_assert_ptr_eq(found, i % 3 ? &v->m->entries[i] : NULL);
	}
	mview_unref(v);
}
END_TEST

START_TEST(reading)
{
	struct err err = {0};
	(void)ct_append(t, CT_MAIN, "a", 10);
	ct_commit(t);
	const struct ct_object *list = ct_object(t, ct_snapshot(t, CT_MAIN)->manifest_list);
	struct mlist *l = NULL;
	UNIT_OK(mlist_read(list->data, CT_MAX, &l, &err), &err);
	ck_assert_uint_eq(l->l.n, 1);
	ck_assert_ptr_eq(mlist_ref(l), l);
	mlist_unref(l);
	const struct ct_object *file = ct_object(t, l->l.rows[0].path);
	struct mview *v = NULL;
	UNIT_OK(mview_read(file->data, &l->l.rows[0], t->meta, CT_MAX, &v, &err), &err);
	ck_assert(mview_find(v, ct_path(t, "a")) != NULL);
	ck_assert_ptr_eq(mview_ref(v), v);
	mview_unref(v);
	mview_unref(v);
	v = NULL;
	/* A spec that the metadata lacks, damage, and memory. */
	struct manifest_file row = l->l.rows[0];
	row.spec_id = 7;
	UNIT_STATUS(mview_read(file->data, &row, t->meta, CT_MAX, &v, &err), ST_CORRUPT);
	ck_assert_str_eq(err.field, "partition_spec_id");
	UNIT_STATUS(mview_read(list->data, &l->l.rows[0], t->meta, CT_MAX, &v, &err), ST_CORRUPT);
	UNIT_STATUS(mview_read(file->data, &l->l.rows[0], t->meta, 64, &v, &err), ST_LIMIT);
	mlist_unref(l);
	l = NULL;
	UNIT_STATUS(mlist_read((struct bytes){list->data.p, list->data.n - 1}, CT_MAX, &l, &err),
		    ST_CORRUPT);
	UNIT_STATUS(mlist_read(list->data, 64, &l, &err), ST_LIMIT);
	ck_assert(!l && !v);
	mlist_unref(NULL);
	mview_unref(NULL);
	vec_unref(NULL);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("objects");
	TCase *c = tcase_create("objects");
	tcase_add_checked_fixture(c, up, down);
	tcase_add_test(c, data_paths);
	tcase_add_test(c, dead_and_alive);
	tcase_add_test(c, deletes);
	tcase_add_test(c, many);
	tcase_add_test(c, reading);
	suite_add_tcase(s, c);
	return s;
}

UNIT_MAIN(suite)
