/* Batches on one table whose first files have 125, 100 and 90 rows, the figures of the reference
 * implementation's own test of row lineage. */
#ifndef TESTS_UNIT_CORE_BATCH_H
#define TESTS_UNIT_CORE_BATCH_H

#include "tests/unit/core_table.h"

#define A_ROWS 125
#define B_ROWS 100
#define C_ROWS 90

static struct core_table *t;

static inline void up(void)
{
	static struct core_table table;
	t = &table;
	ct_open(t, 3, "");
}

static inline void down(void)
{
	ct_close(t);
}

static inline const struct snapshot *commit(void)
{
	ct_commit(t);
	for (size_t i = 0; i < t->n; i++)
		CT_COMMITTED(&t->txns[i]);
	ct_batch(t);
	return ct_snapshot(t, CT_MAIN);
}

static inline void row_ids_are(const struct snapshot *s, int64_t first, int64_t added)
{
	ck_assert_int_eq(s->first_row_id, first);
	ck_assert_int_eq(s->added_rows, added);
	ck_assert_int_eq(metadata_next_row_id(t->meta), first + added);
}

/* A file of the table, whole and as one append. */
static inline const struct snapshot *append(const char *name, int64_t records)
{
	(void)ct_append(t, CT_MAIN, name, records);
	return commit();
}

static inline const struct snapshot *append_ab(void)
{
	struct plan_txn *x = ct_append(t, CT_MAIN, "a", A_ROWS);
	ct_add(t, x, ct_data(t, "b", B_ROWS));
	return commit();
}

static inline char *number(int64_t n)
{
	static char text[8][24];
	static int at;
	char *p = text[at++ % 8];
	snprintf(p, 24, "%lld", (long long)n);
	return p;
}

#endif
