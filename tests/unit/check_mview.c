/* Manifests in memory: what is found by path, what a light view keeps, what is counted and refused. */
#include "daemon/commit/mview.h"

#include "tests/unit/avro_golden.h"
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
	ck_assert(!v);
	mview_unref(NULL);
}
END_TEST

/* FIPS 180-2, appendix B.1: the digest of "abc". */
START_TEST(key)
{
	struct mkey k = mview_key(STRV("abc"));
	ck_assert_uint_eq(k.hi, UINT64_C(0xba7816bf8f01cfea));
	ck_assert_uint_eq(k.lo, UINT64_C(0x414140de5dae2223));
}
END_TEST

static struct strv path_of(const struct manifest *m, const struct manifest_entry *e)
{
	return m->content == MANIFEST_DATA ? e->file.path : e->file.referenced_data_file;
}

/* The last live entry that an exhaustive search finds: NULL when the path is not live. */
static const struct manifest_entry *search(const struct manifest *m, struct strv path)
{
	for (size_t i = 0; i < m->n; i++) {
		const struct manifest_entry *e = &m->entries[i];
		bool keyed = m->content == MANIFEST_DATA || content_file_is_dv(&e->file);
		if (keyed && e->status != ENTRY_DELETED && strv_eq(path_of(m, e), path))
			return e;
	}
	return NULL;
}

/* What a light view says of every entry's path against the decoded manifest. */
static void same_as(const struct mview *v, const struct manifest *m)
{
	size_t live = 0, files = 0;
	int64_t rows = 0;
	for (size_t i = 0; i < m->n; i++) {
		const struct manifest_entry *e = &m->entries[i];
		bool alive = e->status != ENTRY_DELETED;
		live += alive;
		rows += alive ? e->file.record_count : 0;
		bool keyed = m->content == MANIFEST_DATA || content_file_is_dv(&e->file);
		struct strv path = keyed ? path_of(m, e) : e->file.path;
		const struct mfile *f =
			mview_look(v, keyed ? mview_key(path) : mview_delete_key(mview_key(path)));
		const struct manifest_entry *want = keyed ? search(m, path) : alive ? e : NULL;
		ck_assert(!f == !want);
		if (!f)
			continue;
		files += want == e;
		ck_assert_ptr_eq(&m->entries[f->entry], want);
		ck_assert_int_eq(f->seq, want->seq);
		ck_assert_int_eq(f->file_seq, want->file_seq);
		ck_assert_int_eq(f->record_count, want->file.record_count);
		ck_assert_int_eq(f->first_row_id, want->file.first_row_id);
		if (m->content == MANIFEST_DATA)
			ck_assert(tuple_eq(mview_tuple(v, f), &want->file.partition));
	}
	ck_assert_uint_eq(v->n_live, live);
	ck_assert_uint_eq(v->n_files, files);
	ck_assert_int_eq(v->rows, rows);
	ck_assert_uint_eq(v->n_partition, m->n_partition);
	for (size_t i = 0; i < m->n_partition; i++)
		ck_assert(type_eq(v->partition[i].type, m->partition[i].type));
	ck_assert_int_eq(v->spec_id, m->spec_id);
	ck_assert_int_eq(v->content, m->content);
}

static void all_forms(struct mview *whole)
{
	struct manifest *m = manifest_ref(whole->m);
	same_as(whole, m);
	struct mview *light = mview_light(whole), *again = mview_light(light);
	ck_assert_ptr_eq(light, again);
	ck_assert(!light->m);
	struct mview *bare = mview_bare(whole);
	ck_assert(mview_same_tuple(whole, bare));
	mview_unref(again);
	mview_unref(whole);
	same_as(light, m);
	mview_unref(light);
	ck_assert_uint_eq(bare->n_files, 0);
	for (size_t i = 0; i < m->n; i++)
		ck_assert(!mview_look(bare, mview_key(path_of(m, &m->entries[i]))));
	size_t live = 0;
	for (size_t i = 0; i < m->n; i++)
		live += m->entries[i].status != ENTRY_DELETED;
	ck_assert_uint_eq(bare->n_live, live);
	mview_unref(bare);
	manifest_unref(m);
}

/* Manifests of another writer, in all versions. */
START_TEST(golden)
{
	struct golden g;
	golden_open(&g, _i);
	for (size_t i = 0; i < g.list.n; i++)
		all_forms(mview_new(golden_manifest(&g, &g.list.rows[i])));
	golden_close(&g);
}
END_TEST

static uint64_t seed;

static uint64_t draw(uint64_t below)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (seed >> 33) % below;
}

#define PARTITIONS 40

static struct type int_type = {.kind = TYPE_INT};
static struct field types[1] = {{.id = 1000, .type = &int_type}};

/* Long paths, few partitions, metrics of ten columns. */
static struct mview *random_view(enum manifest_content content, size_t n)
{
	struct manifest *m = base_calloc(1, sizeof *m);
	m->refs = 1;
	arena_init(&m->arena, (size_t)256 << 20);
	m->content = content;
	m->spec_id = 1;
	m->partition = types;
	m->n_partition = 1;
	m->entries = arena_calloc(&m->arena, n, sizeof *m->entries);
	for (size_t i = 0; i < n; i++) {
		struct manifest_entry *e = &m->entries[i];
		struct strv path = strv_of(arena_printf(
			&m->arena, "s3://bucket/warehouse/db/table/data/p=%d/%zu-%llu.parquet",
			(int)draw(9), draw(20) ? i : i / 2, (unsigned long long)draw(2)));
		enum entry_status status = (enum entry_status)draw(3);
		struct content_file f = content_file_empty();
		/* A path stands once among the live ones. */
		f.path = path;
		f.record_count = (int64_t)draw(1000000) + 1;
		f.partition = ct_tuple(t, (uint32_t)draw(PARTITIONS));
		f.first_row_id = draw(3) ? (int64_t)draw(1u << 30) : ROW_ID_NONE;
		if (content == MANIFEST_DELETES) {
			f.content = CONTENT_POSITION_DELETES;
			f.path = STRV("s3://bucket/x.puffin");
			f.referenced_data_file = path;
			f.content_offset = 4;
			f.content_size = 40;
			f.first_row_id = ROW_ID_NONE;
		}
		f.n_value_counts = 10;
		f.value_counts = arena_calloc(&m->arena, 10, sizeof *f.value_counts);
		m->n = i;
		if (status != ENTRY_DELETED && search(m, path))
			status = ENTRY_DELETED;
		*e = (struct manifest_entry){.status = status,
					     .snapshot_id = 1,
					     .seq = (int64_t)draw(1u << 20),
					     .file_seq = draw(9) ? (int64_t)draw(1u << 20)
								 : SEQ_UNKNOWN,
					     .file = f};
	}
	m->n = n;
	return mview_new(m);
}

START_TEST(random_ones)
{
	seed = (uint64_t)_i;
	all_forms(random_view(_i % 2 ? MANIFEST_DELETES : MANIFEST_DATA, 1 + draw(_i < 4 ? 5 : 700)));
}
END_TEST

/* What stays in memory of a live file, with its share of the manifest's own data. */
START_TEST(bytes_a_file)
{
	seed = 99;
	struct mview *whole = random_view(_i ? MANIFEST_DELETES : MANIFEST_DATA, 3000);
	struct mview *light = mview_light(whole);
	size_t decoded = mview_memory(whole);
	mview_unref(whole);
	mview_unref(mview_bare(light));
	ck_assert_uint_ge(light->n_live, 1500);
	ck_assert_msg(mview_memory(light) <= 64 * light->n_live, "%zu bytes for %zu files",
		      mview_memory(light), light->n_live);
	ck_assert_uint_gt(decoded, 10 * mview_memory(light));
	mview_unref(light);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("mview");
	TCase *c = tcase_create("mview");
	tcase_add_checked_fixture(c, up, down);
	tcase_add_test(c, data_paths);
	tcase_add_test(c, dead_and_alive);
	tcase_add_test(c, deletes);
	tcase_add_test(c, many);
	tcase_add_test(c, reading);
	tcase_add_test(c, key);
	tcase_add_loop_test(c, golden, 1, 4);
	tcase_add_loop_test(c, random_ones, 0, 24);
	tcase_add_loop_test(c, bytes_a_file, 0, 2);
	suite_add_tcase(s, c);
	return s;
}

UNIT_MAIN(suite)
