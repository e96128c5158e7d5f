/* Manifest lists ("Manifest Lists" of the table spec), read in all versions and written in 1 to 3.
 * Pure code. */
#ifndef PROTO_AVRO_MANIFEST_LIST_H
#define PROTO_AVRO_MANIFEST_LIST_H

#include "proto/avro/codec.h"
#include "proto/avro/manifest.h"
#include "proto/base/buf.h"

/* One per field of the manifest's spec, in its order. */
struct partition_summary {
	bool contains_null;
	bool contains_nan, has_contains_nan;
	struct bytes lower, upper; /* single-value binary form; p is NULL when absent */
};

struct manifest_file {
	struct strv path;
	int64_t length; /* bytes */
	int32_t spec_id;
	enum manifest_content content;
	int64_t seq;               /* SEQ_NONE only before writing: the list's own */
	int64_t min_seq;           /* likewise */
	int64_t added_snapshot_id; /* SNAPSHOT_NONE only before writing */
	/* Version 1 may leave counts out; each flag says that all three are there. */
	bool has_file_counts, has_row_counts;
	int32_t added_files, existing_files, deleted_files;
	int64_t added_rows, existing_rows, deleted_rows;
	/* NULL when there are none, so that no reader skips the manifest; an unpartitioned spec has
	 * an empty array. */
	struct partition_summary *partitions;
	size_t n_partitions;
	struct bytes key_metadata;
	bool has_key_metadata;
	int64_t first_row_id; /* ROW_ID_NONE on delete manifests and before version 3 */
};

struct manifest_list_params {
	int format_version;
	int64_t snapshot_id;
	int64_t parent_snapshot_id; /* SNAPSHOT_NONE */
	int64_t seq;                /* version 2 and 3 */
	int64_t first_row_id;       /* version 3: the snapshot's */
	enum codec codec;
	uint8_t sync[16];
};

/* Header values are absent (named constants) when the writer left them out, as some do with all of
 * them. */
struct manifest_list {
	int format_version; /* 0 when absent: go by the table's metadata */
	int64_t snapshot_id, parent_snapshot_id, seq, first_row_id;
	struct manifest_file *rows;
	size_t n;
};

struct manifest_file manifest_file_empty(void);
/* Deep copy into a; false on exhaustion, *ret_row then untouched. */
MUST_CHECK bool manifest_file_copy(struct arena *a, const struct manifest_file *row,
				   struct manifest_file *ret_row);

/* Appends the file to out. A row with seq SEQ_NONE is one of this snapshot: it gets the list's
 * number; min_seq SEQ_NONE becomes the row's own number; added_snapshot_id SNAPSHOT_NONE becomes
 * the snapshot's. In version 3 every data manifest must have its first_row_id and no delete
 * manifest may (readers drop even explicit ids under a null): the caller assigns. Breaches are
 * ST_INTERNAL, a full buf ST_LIMIT. n may be 0: a snapshot can be empty. */
MUST_CHECK enum status manifest_list_write(const struct manifest_list_params *params,
					   const struct manifest_file *rows, size_t n,
					   struct buf *out, struct err *err);
/* Decodes into a, which also holds the decompressed blocks; borrows nothing from file. Absent
 * sequence numbers read as 0 and absent content as data, which is what version 1 means.
 * ST_CORRUPT, ST_LIMIT (arena), ST_UNSUPPORTED (codec). */
MUST_CHECK enum status manifest_list_read(struct bytes file, struct arena *a,
					  struct manifest_list *ret_list, struct err *err);

#endif
