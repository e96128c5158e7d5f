/* Encoding one manifest file, format versions 1 to 3. Pure: the sync marker comes from the caller.
 */
#ifndef PROTO_AVRO_MANIFEST_WRITE_H
#define PROTO_AVRO_MANIFEST_WRITE_H

#include "proto/avro/codec.h"
#include "proto/avro/manifest.h"
#include "proto/base/buf.h"

struct manifest_file;

struct manifest_params {
	int format_version; /* 1, 2 or 3 */
	enum manifest_content content;
	struct strv schema; /* Iceberg JSON of the table schema */
	int32_t schema_id;
	int32_t spec_id;
	struct strv spec_fields;       /* JSON array of the spec's fields */
	const struct field *partition; /* as made by partition_type */
	size_t n_partition;
	/* The writing snapshot: given to ADDED entries of a version 1 manifest that name none, and
	 * to the row. SNAPSHOT_NONE where only the manifest list will know it (version 2 and 3). */
	int64_t snapshot_id;
	enum codec codec; /* CODEC_NULL or CODEC_DEFLATE */
	uint8_t sync[16]; /* random */
};

/* Appends the file to out and describes it in *ret_row: length, spec, content, counts, lowest
 * explicit sequence number of a live entry (SEQ_NONE when there is none), and partition summaries
 * over all entries, whose bounds point into the entries' tuples (none where UUIDs have two orders).
 * Left for the caller: path, seq (SEQ_NONE), first_row_id (ROW_ID_NONE), key metadata. Summaries
 * live in a.
 *
 * Of an ADDED entry snapshot_id and seq are written when present; file_seq and first_row_id are
 * always written null, because readers inherit them. EXISTING and DELETED entries must carry
 * snapshot_id, seq and file_seq (SEQ_UNKNOWN is written null). Breaches of the entries are
 * ST_INTERNAL, since they were validated before; a count beyond 32 bits or a full buf is ST_LIMIT.
 * Zero entries are refused. out is left poisoned or longer on failure. */
MUST_CHECK enum status manifest_write(const struct manifest_params *params,
				      const struct manifest_entry *const *entries, size_t n,
				      struct buf *out, struct arena *a,
				      struct manifest_file *ret_row, struct err *err);

/* The row of a manifest that was written elsewhere and of which only the entries are known: counts
 * and partition summaries as manifest_write makes them, and in the same way incomplete; length and
 * path are the caller's. Of params, spec, content and partition count. */
MUST_CHECK enum status manifest_describe(const struct manifest_params *params,
					 const struct manifest_entry *const *entries, size_t n,
					 struct arena *a, struct manifest_file *ret_row,
					 struct err *err);

#endif
