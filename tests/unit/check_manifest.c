/* Manifests against files that the Java library wrote and read. */
#include "proto/avro/manifest.h"

#include "proto/avro/manifest_list.h"
#include "tests/unit/avro_golden.h"
#include "tests/unit/unit.h"

/* Every row, entry and inherited value of Java's files, versions 1 to 3. */
START_TEST(java)
{
	struct golden g = {0};
	golden_open(&g, _i);
	ck_assert_int_eq(g.list.format_version, _i);
	ck_assert_uint_eq(jval_count(g.rows), g.list.n);
	ck_assert_uint_eq(g.list.n, _i == 1 ? 2 : 3);
	for (size_t i = 0; i < g.list.n; i++) {
		const struct jval *o = jval_at(g.rows, i), *entries = jval_get(o, "entries");
		golden_row(o, &g.list.rows[i]);
		struct manifest *m = golden_manifest(&g, &g.list.rows[i]);
		ck_assert_int_eq(m->format_version, _i);
		ck_assert_uint_eq(m->n, jval_count(entries));
		for (size_t k = 0; k < m->n; k++)
			golden_entry(jval_at(entries, k), &m->entries[k]);
		ck_assert_ptr_eq(manifest_ref(m), m);
		manifest_unref(m);
		manifest_unref(m);
	}
	golden_close(&g);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("manifest");
	TCase *t = tcase_create("manifest");
	tcase_add_loop_test(t, java, 1, 4);
	suite_add_tcase(s, t);
	return s;
}
UNIT_MAIN(suite)
