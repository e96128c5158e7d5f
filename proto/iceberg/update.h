/* Updates of a table commit as plain structs: parsed from a REST request, or filled in by the
 * commit core (add-snapshot, set-snapshot-ref) without a detour through JSON. */
#ifndef PROTO_ICEBERG_UPDATE_H
#define PROTO_ICEBERG_UPDATE_H

#include "proto/base/arena.h"
#include "proto/base/err.h"
#include "proto/base/uuid.h"
#include "proto/iceberg/snapshot.h"

struct jval;
struct schema;
struct partition_spec;
struct sort_order;

enum update_kind {
#define UPDATE(name, action, help) UPDATE_##name,
#include "proto/iceberg/update.tbl"
	UPDATE__COUNT
};

#define UPDATE_LAST_ADDED ((int32_t)-1) /* id: what this request added last */

struct update {
	enum update_kind kind;
	union {
		struct uuid uuid;       /* ASSIGN_UUID */
		int32_t format_version; /* UPGRADE_FORMAT_VERSION */
		int32_t id;             /* SET_CURRENT_SCHEMA, SET_DEFAULT_SPEC, …_SORT_ORDER */
		struct strv
			text; /* SET_LOCATION; REMOVE_SNAPSHOT_REF: name; REMOVE_ENCRYPTION_KEY */
		struct {
			const struct strv_pair *v;
			size_t n;
		} properties; /* SET_PROPERTIES */
		struct {
			const struct strv *v;
			size_t n;
		} keys;                      /* REMOVE_PROPERTIES */
		const struct schema *schema; /* ADD_SCHEMA; its id is ignored */
		const struct partition_spec
			*spec; /* ADD_SPEC; its id is ignored; field_id < 0: assign */
		const struct sort_order *order; /* ADD_SORT_ORDER; its id is ignored */
		struct {
			const int32_t *v;
			size_t n;
		} ids;                           /* REMOVE_SCHEMAS, REMOVE_SPECS */
		const struct snapshot *snapshot; /* ADD_SNAPSHOT */
		struct snapshot_ref ref;         /* SET_SNAPSHOT_REF */
		struct {
			const int64_t *v;
			size_t n;
		} snapshot_ids; /* REMOVE_SNAPSHOTS */
		struct {
			int64_t snapshot_id;
			struct strv path; /* of the file; SET_… only */
			struct strv json; /* the entry as it will stand in the metadata */
		} stats; /* SET_… and REMOVE_STATISTICS, …_PARTITION_STATISTICS */
		struct {
			struct strv key_id;
			struct strv json;
		} key; /* ADD_ENCRYPTION_KEY */
	} u;
};

/* The "updates" array of a commit request; text and structs go into the arena or are borrowed from
 * the document. Unknown actions, like every other fault, are ST_BAD_REQUEST with field
 * "updates[i]…". Actions are matched without regard to case. */
MUST_CHECK enum status update_parse(const struct jval *array, struct arena *a,
				    const struct update **ret_u, size_t *ret_n, struct err *err);
/* Its "action" text; static. */
const char *update_action(enum update_kind kind);

#endif
