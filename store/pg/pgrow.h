/* Columns of a result in PostgreSQL's binary format. No libpq here. */
#ifndef STORE_PG_PGROW_H
#define STORE_PG_PGROW_H

#include "proto/base/strv.h"
#include "proto/base/uuid.h"

struct pgres;

/* Reads one row of binary columns. A column that is NULL, absent or of another size sets `bad` and
 * reads as zero, so that a decoder asks once at its end. */
struct pgrow {
	const struct pgres *res;
	size_t row;
	bool bad;
};

/* Of pgc, the only file that knows what a result is. value: false when there is no such row or
 * column; a NULL has a NULL pointer, an empty value has not. */
size_t pgres_rows(const struct pgres *res);
bool pgres_value(const struct pgres *res, size_t row, int col, struct bytes *ret_b);

bool pgrow_null(const struct pgrow *r, int col);
bool pgrow_bool(struct pgrow *r, int col);
int16_t pgrow_i16(struct pgrow *r, int col);
int32_t pgrow_i32(struct pgrow *r, int col);
int64_t pgrow_i64(struct pgrow *r, int col);
struct uuid pgrow_uuid(struct pgrow *r, int col);
/* Views into the result; NULL reads as empty and is not bad. */
struct bytes pgrow_bytes(struct pgrow *r, int col);
struct strv pgrow_text(struct pgrow *r, int col);

/* A one-dimensional array column: open gives the number of elements, next hands them out as raw
 * bytes (nulls as empty). */
struct pgrow_array_view {
	struct bytes rest;
	size_t n;
	bool bad;
};
struct pgrow_array_view pgrow_array(struct pgrow *r, int col);
struct bytes pgrow_array_next(struct pgrow_array_view *a);

#endif
