/* The inside of struct metadata, shared by metadata.c (reading and writing out), metadata_parse.c,
 * metadata_new.c, metadata_apply.c, metadata_shape.c, metadata_evolve.c, metadata_check.c, metadata_history.c and
 * metadata_files.c.
 * Nobody else includes it. A version is mutable until its maker hands it out. */
#ifndef PROTO_ICEBERG_METADATA_INT_H
#define PROTO_ICEBERG_METADATA_INT_H

#include "proto/iceberg/metadata.h"
#include "proto/iceberg/metapart.h"
#include "proto/iceberg/metasnap.h"
#include "proto/iceberg/update.h"

struct metadata {
	uint32_t refs;
	int format_version;
	bool has_uuid;
	struct uuid uuid;
	struct strv location;
	int64_t last_sequence_number;
	int64_t last_updated_ms;
	int64_t next_row_id;
	int64_t current_snapshot_id; /* SNAPSHOT_NONE; always that of the main branch */
	int32_t last_column_id;
	int32_t last_partition_id;
	int32_t current_schema_id;
	int32_t default_spec_id;
	int32_t default_order_id;
	struct metapart_list schemas, specs, orders, stats, pstats, keys;
	struct strv_pair *properties;
	size_t n_properties, cap_properties;
	/* While being made: where keys stand among the properties, plus 1; NULL when few or unknown. */
	uint32_t *property_slots;
	size_t cap_property_slots;
	struct snapshot_ref *snapshot_refs;
	size_t n_refs, cap_refs;
	struct metasnap_list snapshots;
	struct metadata_snapshot_log_entry *slog;
	size_t n_slog, cap_slog;
	struct metadata_log_entry *mlog;
	size_t n_mlog, cap_mlog;
	struct strv extra;  /* members that are not modelled, `"k":v,…`; n 0 for none */
	struct arena arena; /* of the arrays and strings above */
};

/* Empty, refs 1. */
struct metadata *metadata_blank(void);
/* A mutable copy that shares every part. */
MUST_CHECK enum status metadata_copy(const struct metadata *base, struct metadata **ret_m,
				     struct err *err);
MUST_CHECK enum status metadata_limit(struct err *err);

/* Setters that copy text into the version's arena; false when it is full. */
/* Index of the property, or n_properties. */
size_t metadata_property_index(struct metadata *m, struct strv key);
/* Those of the keys that are there; *ret_some: any were. They keep their places, without a value, until
 * they are settled: a request may bring tens of thousands of updates that drop one of many. */
void metadata_drop_properties(struct metadata *m, const struct strv *keys, size_t n, bool *ret_some);
void metadata_settle_properties(struct metadata *m);
MUST_CHECK bool metadata_put_property(struct metadata *m, struct strv key, struct strv value);
MUST_CHECK bool metadata_put_ref(struct metadata *m, const struct snapshot_ref *r);
MUST_CHECK bool metadata_put_slog(struct metadata *m, int64_t timestamp_ms, int64_t snapshot_id);
MUST_CHECK bool metadata_put_mlog(struct metadata *m, int64_t timestamp_ms, struct strv file);
/* Without trailing slashes, but never eating those of "://". */
MUST_CHECK bool metadata_put_location(struct metadata *m, struct strv location);
/* Index in snapshot_refs, n_refs when there is none. */
size_t metadata_ref_index(const struct metadata *m, struct strv name);

/* Names that stand for other members and may not be stored (metadata_apply.c). */
bool metadata_property_reserved(struct strv key);
/* Appends the snapshots that a ref names, joined by commas (metadata_history.c). */
void metadata_refs_json(const struct metadata *m, struct buf *b);

/* One metadata_apply at work. */
struct metadata_change {
	struct metadata *m; /* the result being made */
	const struct metadata *base;
	const struct metadata_ctx *ctx;
	struct err *err;
	bool changed;
	/* Added, or found equal, by this request; -1: none yet. */
	int32_t last_schema, last_spec, last_order;
	/* The highest ids that this request removed, -1: none. They are not given again: what names them
	 * would mean another one. */
	int64_t gone_schema, gone_spec;
	bool removed_keys;
	int64_t *added; /* snapshots added by this request */
	size_t n_added, cap_added;
	int64_t *mains; /* snapshots that main pointed to on the way */
	size_t n_mains, cap_mains;
	int64_t *removed; /* snapshots this request removed, ascending */
	size_t n_removed, cap_removed;
	struct arena scratch;
};
/* Updates of schemas, specs and sort orders (metadata_shape.c). */
MUST_CHECK enum status metadata_shape(struct metadata_change *c, const struct update *u);

/* Whether a schema may follow the current one; last: last-column-id before it came; added: it is new to
 * the table (metadata_evolve.c). */
MUST_CHECK enum status metadata_check_evolution(struct metadata_change *c, const struct schema *to,
						int32_t last, bool added);

/* Invariants between members that any change may break (metadata_check.c): status `bad`. */
MUST_CHECK enum status metadata_check(const struct metadata *m, enum status bad, struct err *err);
/* Default spec and order against the current schema, as after updates. */
MUST_CHECK enum status metadata_check_bindings(const struct metadata *m, enum status bad,
					       struct err *err);
/* What only a foreign document can break: ids that stand twice, sequence numbers beyond the last
 * one, refs to unknown snapshots. Linear in the history. */
MUST_CHECK enum status metadata_check_lists(const struct metadata *m, enum status bad,
					    struct err *err);

#endif
