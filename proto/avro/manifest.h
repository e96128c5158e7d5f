/* Manifests in memory ("Manifests" of the table spec): entries of one spec, decoded once, immutable
 * and shared by reference, with everything that a manifest inherits from its manifest list row
 * already filled in. Pure code; a manifest is read on any thread, its count changes on one. */
#ifndef PROTO_AVRO_MANIFEST_H
#define PROTO_AVRO_MANIFEST_H

#include "proto/avro/content_file.h"
#include "proto/iceberg/types.h"

struct manifest_file;

enum manifest_content { MANIFEST_DATA, MANIFEST_DELETES };
enum entry_status { ENTRY_EXISTING, ENTRY_ADDED, ENTRY_DELETED };

struct manifest_entry {
	enum entry_status status;
	/* After manifest_read: never SNAPSHOT_NONE. A DELETED entry holds the deleting snapshot. */
	int64_t snapshot_id;
	/* Data sequence number. After manifest_read: never SEQ_NONE. */
	int64_t seq;
	/* SEQ_UNKNOWN for entries carried by writers that did not know this column. */
	int64_t file_seq;
	struct content_file file;
};

struct manifest {
	int refs;
	struct arena arena; /* owns all below; arena.used is the memory held */
	int format_version;
	enum manifest_content content;
	int32_t spec_id;
	int32_t schema_id;       /* SCHEMA_ID_NONE where the writer left it out */
	struct strv schema;      /* Iceberg JSON of the table schema at writing */
	struct strv spec_fields; /* JSON array of the spec's fields */
	struct field *partition; /* fields of the tuple, in order */
	size_t n_partition;
	struct manifest_entry *entries;
	size_t n;
};

/* What a manifest says of itself. */
struct manifest_head {
	int format_version;
	bool data;         /* content; a file without the key has data */
	int32_t spec_id;   /* SPEC_ID_NONE where the writer left it out */
	int32_t schema_id; /* the header's, else the schema's own; SCHEMA_ID_NONE */
};

/* Decodes a manifest file and applies inheritance from its row ("Sequence Number Inheritance",
 * "First Row ID Inheritance"): snapshot id, both sequence numbers, and row ids by running count;
 * a row without first_row_id takes away every file's id. partition: the fields of the row's spec as
 * made by partition_type; tuples come out in that order, promoted to those types. limit: bytes of
 * memory for the result, decompressed blocks included. ST_CORRUPT for every breach of the format,
 * ST_LIMIT for the limit, ST_UNSUPPORTED for a codec we lack; field begins with the file's
 * name. The result has one reference and
 * borrows nothing. */
MUST_CHECK enum status manifest_read(struct bytes file, const struct manifest_file *row,
				     const struct field *partition, size_t n_partition,
				     size_t limit, struct manifest **ret_m, struct err *err);
/* For a manifest that no list names yet, so that there is no row to inherit from: the header, then
 * the entries of a data manifest with what they leave out absent, row ids too. Errors as above. */
MUST_CHECK enum status manifest_read_head(struct bytes file, size_t limit,
					  struct manifest_head *ret_h, struct err *err);
MUST_CHECK enum status manifest_read_unlisted(struct bytes file, int32_t spec_id,
					      const struct field *partition, size_t n_partition,
					      size_t limit, struct manifest **ret_m,
					      struct err *err);
struct manifest *manifest_ref(struct manifest *m);
/* m may be NULL. */
void manifest_unref(struct manifest *own_m);

#endif
