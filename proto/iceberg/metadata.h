/* Table metadata (Iceberg spec, "Table Metadata"), format versions 1 to 3. A version is immutable
 * and refcounted; applying updates yields a new one that shares every unchanged schema, spec,
 * snapshot and statistics entry with its base, so that the work depends on the change and not on
 * the length of the history. Reference counts are atomic: apply and json may run in a job that
 * holds a reference. Everything returned by an accessor is borrowed from the version. */
#ifndef PROTO_ICEBERG_METADATA_H
#define PROTO_ICEBERG_METADATA_H

#include "proto/base/pieces.h"
#include "proto/base/err.h"
#include "proto/base/uuid.h"
#include "proto/iceberg/snapshot.h"

struct gzip_writer;
struct schema;
struct partition_spec;
struct sort_order;
struct update;
struct metadata;

#define METADATA_VERSION_MAX 3
#define METADATA_VERSION_DEFAULT 2
/* Text beyond this is refused (ST_LIMIT) on parse and apply. */
#define METADATA_MAX_BYTES ((size_t)512 << 20)

/* Parses a metadata file's JSON (not compressed). Strict; status `bad` for anything wrong,
 * ST_UNSUPPORTED for a format version above 3, ST_LIMIT for size. Version 1 documents without the
 * list members are read through their singular ones; main is synthesised from the current
 * snapshot. The text may be freed afterwards. */
MUST_CHECK enum status metadata_parse(struct bytes json, enum status bad, struct metadata **ret_m,
				      struct err *err);
struct metadata *metadata_ref(const struct metadata *m);
void metadata_unref(const struct metadata *own_m); /* NULL is allowed */

/* Appends the canonical text: the reference implementation's member order, no white space. Same
 * version, same bytes. A full buffer shows in buf_ok. */
void metadata_json(const struct metadata *m, struct buf *b);
/* The same text in pieces: those of snapshots are borrowed from the version, all else is put into
 * `text` (empty before), which must stay as it is while the pieces are used. false: the arena or
 * the buffer is full. */
MUST_CHECK bool metadata_pieces(const struct metadata *m, struct buf *text, struct arena *a,
				struct pieces *ret_p);
/* Packs the same text into a gzip member: of a long history only what the version does not share
 * with one that was packed before is work. */
void metadata_gzip(const struct metadata *m, struct gzip_writer *w);
/* The same with only those snapshots that a branch or tag names directly (snapshots=refs). */
void metadata_json_refs(const struct metadata *m, struct buf *b);
/* Bytes that metadata_json would append, roughly (never below by more than a few KiB): to size a
 * buffer and to judge the cadence of publishing. */
size_t metadata_json_size(const struct metadata *m);
/* Bytes of memory that the version takes, what it shares with others included. */
size_t metadata_memory(const struct metadata *m);

int metadata_format_version(const struct metadata *m);
bool metadata_uuid(const struct metadata *m, struct uuid *ret_u); /* false: version 1 without */
struct strv metadata_location(const struct metadata *m);          /* without trailing slashes */
int64_t metadata_last_sequence_number(const struct metadata *m);  /* 0 in version 1 */
int64_t metadata_next_row_id(const struct metadata *m);           /* 0 below version 3 */
int64_t metadata_last_updated_ms(const struct metadata *m);
int32_t metadata_last_column_id(const struct metadata *m);
int32_t metadata_last_partition_id(const struct metadata *m);

const struct schema *metadata_schema(const struct metadata *m);                   /* current */
const struct schema *metadata_schema_by_id(const struct metadata *m, int32_t id); /* or NULL */
size_t metadata_schema_count(const struct metadata *m);
const struct schema *metadata_schema_at(const struct metadata *m, size_t i);
const struct partition_spec *metadata_spec(const struct metadata *m); /* default */
const struct partition_spec *metadata_spec_by_id(const struct metadata *m, int32_t id);
size_t metadata_spec_count(const struct metadata *m);
const struct partition_spec *metadata_spec_at(const struct metadata *m, size_t i);
const struct sort_order *metadata_sort_order(const struct metadata *m); /* default */
const struct sort_order *metadata_sort_order_by_id(const struct metadata *m, int32_t id);
size_t metadata_sort_order_count(const struct metadata *m);
const struct sort_order *metadata_sort_order_at(const struct metadata *m, size_t i);
int32_t metadata_current_schema_id(const struct metadata *m);
int32_t metadata_default_spec_id(const struct metadata *m);
int32_t metadata_default_sort_order_id(const struct metadata *m);

/* p NULL when the property is not set. */
struct strv metadata_property(const struct metadata *m, const char *key);
const struct strv_pair *metadata_properties(const struct metadata *m, size_t *ret_n);
/* Property `key` as a decimal integer; `missing` when it is not set or does not parse. */
int64_t metadata_property_i64(const struct metadata *m, const char *key, int64_t missing);
/* The table key of an encrypted table (property encryption.key-id); p NULL when not encrypted. */
struct strv metadata_encryption_key_id(const struct metadata *m);

int64_t metadata_current_snapshot_id(const struct metadata *m);                 /* SNAPSHOT_NONE */
const struct snapshot *metadata_current_snapshot(const struct metadata *m);     /* or NULL */
const struct snapshot *metadata_snapshot(const struct metadata *m, int64_t id); /* or NULL */
size_t metadata_snapshot_count(const struct metadata *m);
const struct snapshot *metadata_snapshot_at(const struct metadata *m, size_t i); /* list order */
/* Parent as far as the metadata still holds it, else NULL. */
const struct snapshot *metadata_parent(const struct metadata *m, const struct snapshot *s);
/* Whether `ancestor` is `of` or reachable from it through parents that the metadata still holds. */
bool metadata_is_ancestor(const struct metadata *m, int64_t ancestor, int64_t of);
/* Whether a snapshot that was once put on a branch has left its history, by a rollback or a
 * replacement. Not when the branch's line ends at an expired parent: then nobody can tell. since: when main
 * was moved, by the snapshot log, as far as it goes; 0 for other branches. */
bool metadata_left(const struct metadata *m, struct strv branch, int64_t snapshot,
		   int64_t *ret_since_ms);

const struct snapshot_ref *metadata_ref_by_name(const struct metadata *m, struct strv name);
const struct snapshot_ref *metadata_refs(const struct metadata *m, size_t *ret_n);

struct metadata_log_entry {
	int64_t timestamp_ms;
	struct strv file;
};
struct metadata_snapshot_log_entry {
	int64_t timestamp_ms;
	int64_t snapshot_id;
};
const struct metadata_log_entry *metadata_log(const struct metadata *m, size_t *ret_n);
const struct metadata_snapshot_log_entry *metadata_snapshot_log(const struct metadata *m,
								size_t *ret_n);

/* Files that the statistics entries name, those of partitions behind the others. */
size_t metadata_statistics_count(const struct metadata *m);
struct strv metadata_statistics_path(const struct metadata *m, size_t i);

/* POST tables, staged or not: field ids are assigned anew from 1 (all fields of a struct before
 * those of its members), spec and order follow by column name, partition field ids from 1000.
 * Property format-version picks the version and is not stored. */
struct metadata_create {
	struct uuid uuid;
	int64_t now_ms;
	struct strv location;
	const struct schema *schema;
	const struct partition_spec *spec; /* NULL: unpartitioned */
	const struct sort_order *order;    /* NULL: unsorted */
	const struct strv_pair *properties;
	size_t n_properties;
};
MUST_CHECK enum status metadata_new(const struct metadata_create *c, struct metadata **ret_m,
				    struct err *err);

struct metadata_ctx {
	int64_t now_ms; /* the clock; the result never runs behind the base or its logs */
	struct strv base_location; /* file of the base, for the metadata log; n 0 for a create */
	struct uuid new_uuid;      /* of a created table unless an assign-uuid says otherwise */
};
/* Applies updates in array order and checks the result. base NULL starts an empty table at the
 * version of the first upgrade-format-version (default 2). When nothing changes, *ret_m is another
 * reference to the base and *ret_changed false: write nothing. ST_COMMIT_FAILED for a sequence
 * number or first-row-id that another commit has overtaken and for removing a snapshot that a ref
 * still names; ST_VALIDATION or ST_BAD_REQUEST for everything else. Whether a manifest still uses a
 * removed spec only its readers know: the caller checks. Field paths begin with
 * "updates[i]". */
MUST_CHECK enum status metadata_apply(const struct metadata *base, const struct update *updates,
				      size_t n, const struct metadata_ctx *ctx,
				      struct metadata **ret_m, bool *ret_changed, struct err *err);

/* Without trailing slashes, but never eating those of "://". */
struct strv metadata_strip(struct strv location);
/* Folders of a table's files, without a trailing slash: properties write.metadata.path and
 * write.data.path, else "metadata" and "data" under the location. false: the arena is full. */
MUST_CHECK bool metadata_folder(const struct metadata *m, struct arena *a, struct strv *ret_dir);
MUST_CHECK bool metadata_data_folder(const struct metadata *m, struct arena *a,
				     struct strv *ret_dir);
/* Whether a metadata file lies beneath the table's location or its metadata folder. */
bool metadata_owns_file(const struct metadata *m, struct strv file);
/* Property write.metadata.compression-codec; what no request could set means none. */
bool metadata_wants_gzip(const struct metadata *m);
/* Entries that the metadata log may have, at least 1 (write.metadata.previous-versions-max). */
#define METADATA_LOG_DEFAULT 100
int64_t metadata_log_max(const struct metadata *m);
/* Values of properties that the catalog itself acts on: an unknown codec, a number that is none, an
 * empty folder are `bad`, with the key as the field. Other properties are never wrong. */
MUST_CHECK enum status metadata_check_property(struct strv key, struct strv value, enum status bad,
					       struct err *err);
/* The same of a version that somebody else wrote; field "properties.KEY". */
MUST_CHECK enum status metadata_check_properties(const struct metadata *m, enum status bad,
						 struct err *err);

/* Name of the metadata file after base_location (n 0: the first): NNNNN-<uuid>.metadata.json, or
 * .gz.metadata.json. */
#define METADATA_FILE_NAME_MAX 80
void metadata_file_name(struct strv base_location, struct uuid u, bool gzip,
			char out[METADATA_FILE_NAME_MAX]);
/* Number in the name of a metadata file, -1 when it has none. */
int64_t metadata_file_number(struct strv location);
/* Whether a reader must gunzip the file; only the name tells. */
bool metadata_file_gzip(struct strv location);

#endif
