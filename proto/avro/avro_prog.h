/* Decoding datums of a foreign writer: the writer's schema is compiled once, against a table of
 * wanted columns, into a flat program that stores or skips. Columns are found by field-id only, so
 * that order, names, additions and missing optional columns do not matter ("Column Projection" of
 * the table spec). */
#ifndef PROTO_AVRO_AVRO_PROG_H
#define PROTO_AVRO_AVRO_PROG_H

#include "proto/avro/avro_bin.h"
#include "proto/avro/avro_record.h"
#include "proto/base/arena.h"
#include "proto/base/err.h"

/* Limits on schemas: nesting, counting uses of named types (which may also refer to themselves, and
 * then never end), and length of the program. */
#define AVRO_PROG_DEPTH 24
#define AVRO_PROG_OPS 65536

struct avro_prog;

/* Compiles a record schema in JSON. Program and columns stay referenced: both must outlive the
 * runs. ST_CORRUPT when the schema is malformed, lacks a column that must be there, or gives a
 * column a type that cannot be read; field names the column. ST_LIMIT. */
MUST_CHECK enum status avro_prog_compile(struct strv schema, const struct avro_col *cols, size_t n,
					 struct arena *a, struct avro_prog **ret_prog,
					 struct err *err);
/* Decodes one datum into the record at dst, which holds its defaults already: columns that are
 * absent or null are not touched. Texts and bytes point into the input; lists and tuples lie in a.
 * *io_items is the number of items without content that may still be skipped; give the block's
 * length. dst is half filled on failure. */
MUST_CHECK enum status avro_prog_run(const struct avro_prog *prog, struct avro_in *in, void *dst,
				     size_t *io_items, struct arena *a, struct err *err);

#endif
