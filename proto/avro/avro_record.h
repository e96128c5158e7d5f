/* Records of the metadata files as tables of columns: one row gives the Avro schema, the Iceberg
 * schema, the encoder and the decoder of a member of a C struct. The tables are in
 * manifest_cols. */
#ifndef PROTO_AVRO_AVRO_RECORD_H
#define PROTO_AVRO_AVRO_RECORD_H

#include "proto/base/buf.h"
#include "proto/base/jwrite.h"
#include "proto/iceberg/value.h"

/* C type behind each kind, and what means absent (when there is no flag at `flag`). */
enum avro_kind {
	AVRO_I32,    /* int32_t; INT32_MIN */
	AVRO_I64,    /* int64_t; INT64_MIN */
	AVRO_BOOL,   /* bool; never absent without a flag */
	AVRO_STR,    /* struct strv; p is NULL */
	AVRO_BYTES,  /* struct bytes; p is NULL */
	AVRO_CONST,  /* nothing: `off` is the number written, ignored on reading */
	AVRO_RECORD, /* a struct embedded at off */
	AVRO_TUPLE,  /* struct tuple; one AVRO_VALUE per field */
	AVRO_VALUE,  /* struct value of an Iceberg type; null */
	AVRO_LIST    /* pointer at off, size_t count at `flag`; count 0 */
};

#define AVRO_NO_FLAG SIZE_MAX

struct avro_col {
	int32_t id; /* field-id */
	const char *name;
	enum avro_kind kind;
	/* By format version 1 to 3: '-' not written, 'o' a union with null, 'r' required. */
	const char *in;
	bool must;  /* a reader refuses a record without it or with null */
	size_t off; /* of the member in its record */
	size_t flag;
	/* RECORD, TUPLE and LIST of records: the columns; rec names the Avro record. */
	const struct avro_col *sub;
	size_t n_sub;
	const char *rec;
	/* LIST: sizeof and kind of an element (AVRO_RECORD with sub); maps have key and value. */
	enum avro_kind elem;
	size_t elem_size;
	const void *elem_init; /* what an element holds before decoding; NULL for zeros */
	int32_t elem_id;       /* element-id; 0 on maps */
	bool map;              /* int-keyed: an array of key/value records */
	bool keep_empty;       /* absent is a NULL pointer; an empty list is a list */
	struct type *type;     /* VALUE; the decoder replaces TYPE_UNKNOWN by what the file has */
	struct strv label;     /* VALUE: the partition field's name, which may be any text */
};

/* Writes the Avro record schema of columns for a format version. */
void avro_record_schema(struct jwrite *w, const char *name, const struct avro_col *cols, size_t n,
			int version);
/* Writes the Iceberg struct schema of the same columns (file metadata "iceberg.schema"). */
void avro_record_iceberg(struct jwrite *w, const struct avro_col *cols, size_t n, int version);
/* Appends the datum of the record at `base`. NULL when all went in; otherwise the column whose
 * member is absent though required, or whose value does not fit its type. */
MUST_CHECK const struct avro_col *avro_record_put(struct buf *b, const struct avro_col *cols,
						  size_t n, int version, const void *base);

#endif
