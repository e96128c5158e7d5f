/* Snapshots and named references of table metadata (Iceberg spec, "Snapshots" and "Snapshot
 * References"). Plain structs: who fills them owns what they point to. */
#ifndef PROTO_ICEBERG_SNAPSHOT_H
#define PROTO_ICEBERG_SNAPSHOT_H

#include "proto/base/arena.h"
#include "proto/base/err.h"
#include "proto/iceberg/ids.h"

struct jval;
struct jspan;
struct jwrite;

struct snapshot {
	int64_t snapshot_id;
	int64_t parent_id;       /* SNAPSHOT_NONE */
	int64_t sequence_number; /* 0 in version 1 */
	int64_t timestamp_ms;
	int32_t schema_id;         /* SCHEMA_ID_NONE */
	int64_t first_row_id;      /* ROW_ID_NONE */
	int64_t added_rows;        /* ROW_ID_NONE; row ids set aside, not rows inserted */
	struct strv manifest_list; /* p NULL when version 1 lists its manifests inline */
	struct strv operation;     /* p NULL when there is no summary */
	/* Summary without "operation", in document order. */
	const struct strv_pair *summary;
	size_t n_summary;
	struct strv key_id;    /* encryption; p NULL when absent */
	struct strv manifests; /* version 1: raw JSON array of manifest paths; p NULL when absent */
	struct strv extra;     /* members not modelled here, `"k":v,…` verbatim; n 0 for none */
	struct strv raw;       /* canonical JSON; set on snapshots owned by metadata, else p NULL */
};

/* From a member of metadata text, strict; status `bad` on error. Text is borrowed from the document
 * or put into the arena. Metadata of version 2 and later must name a manifest list. */
MUST_CHECK enum status snapshot_parse(const struct jspan *v, int format_version, enum status bad,
				      struct arena *a, struct snapshot *ret_s, struct err *err);
/* From an add-snapshot request; errors are ST_BAD_REQUEST. A missing operation in a summary that
 * is not empty counts as "overwrite", an explicit null parent is refused, unknown members are
 * dropped. */
MUST_CHECK enum status snapshot_from_jval(const struct jval *v, struct arena *a,
					  struct snapshot *ret_s, struct err *err);
/* One JSON object in the reference implementation's member order; fields that hold their "absent"
 * constant are left out. */
void snapshot_write(struct jwrite *w, const struct snapshot *s);
/* Value of a summary key ("operation" too); p NULL when absent. */
struct strv snapshot_summary(const struct snapshot *s, const char *key);

/* A branch or tag. */
#define SNAPSHOT_REF_MAIN STRV("main")

struct snapshot_ref {
	struct strv name;
	int64_t snapshot_id;
	bool tag;                      /* else a branch */
	int32_t min_snapshots_to_keep; /* 0 = absent, as in the next two: valid values are > 0 */
	int64_t max_snapshot_age_ms;
	int64_t max_ref_age_ms;
};

/* Checks the rules that need no table: positive retention, tags carry only max-ref-age-ms, main is
 * a branch. Status `bad` with the field's JSON name. */
MUST_CHECK enum status snapshot_ref_check(const struct snapshot_ref *r, enum status bad,
					  struct err *err);
/* The value in the "refs" map, without the name. */
void snapshot_ref_write(struct jwrite *w, const struct snapshot_ref *r);

#endif
