/* Rows of the commit log from arbitrary column bytes: a stand-in for the connection's results cuts
 * the input into columns. */
#include "store/pg/pg_rows.h"

#define COLS 32

struct pgres {
	struct bytes col[COLS];
	bool null[COLS];
};

size_t pgres_rows(const struct pgres *res)
{
	return res ? 1 : 0;
}

bool pgres_value(const struct pgres *res, size_t row, int col, struct bytes *ret_b)
{
	*ret_b = (struct bytes){NULL, 0};
	if (!res || row > 0 || col < 0 || col >= COLS)
		return false;
	if (!res->null[col])
		*ret_b = res->col[col];
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pgres res = {0};
	/* Each column: one byte of length (255: NULL), then its bytes. */
	for (int i = 0; i < COLS; i++) {
		size_t n = size ? *data : 0;
		if (size)
			data++, size--;
		res.null[i] = n == 255;
		if (n == 255)
			n = 0;
		if (n > size)
			n = size;
		res.col[i] = (struct bytes){size ? data : (const uint8_t *)"", n};
		data += n;
		size -= n;
	}
	struct arena arena;
	arena_init(&arena, 1 << 20);
	struct pgrow r = {.res = &res};
	struct txn_row txn;
	struct fragment_row fragment;
	struct batch_row batch;
	struct head_row head;
	pg_rows_txn(&r, 0, &txn);
	r.bad = false;
	pg_rows_fragment(&r, 5, &fragment);
	r.bad = false;
	pg_rows_batch(&r, 3, &arena, &batch);
	if (!r.bad) {
		size_t sum = 0;
		for (size_t i = 0; i < batch.n_txns; i++)
			sum += batch.txn_states[i] + batch.txns[i].u.b[15];
		for (size_t i = 0; i < batch.n_snapshots; i++)
			sum += batch.snapshots[i] == 0;
		if (sum == SIZE_MAX)
			return 1;
	}
	r.bad = false;
	pg_rows_head(&r, 20, &head);
	for (int i = 0; i < COLS; i++) {
		struct pgrow_array_view a = pgrow_array(&r, i);
		for (size_t k = 0; k < a.n; k++)
			(void)pgrow_array_next(&a);
	}
	arena_fini(&arena);
	return 0;
}
