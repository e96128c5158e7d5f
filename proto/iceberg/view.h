/* View metadata (Iceberg view spec, version 1): strict parse, canonical JSON, and commits of the
 * REST catalog's replaceView. Immutable once made; small enough to be written anew each time. */
#ifndef PROTO_ICEBERG_VIEW_H
#define PROTO_ICEBERG_VIEW_H

#include "proto/base/arena.h"
#include "proto/base/err.h"
#include "proto/base/json.h"
#include "proto/base/uuid.h"

struct schema;

/* Bytes of a view's metadata, read or written; its text in memory is a small multiple. */
#define VIEW_MAX_BYTES ((size_t)4 << 20)
/* Properties, versions, schemas, log entries, texts of a namespace, queries of a version, updates of a
 * commit: at most as many of each. They are looked through one by one, on the loop. */
#define VIEW_MAX_ENTRIES ((size_t)1024)

struct view_version {
	int32_t id;
	int32_t schema_id;
	int64_t timestamp_ms;
	const struct strv_pair *summary;
	size_t n_summary;
	struct strv default_catalog; /* p NULL when absent */
	const struct strv *default_namespace;
	size_t n_default_namespace;
	/* Each as compact JSON; the dialect of one of type "sql", otherwise p NULL. */
	const struct strv *representations;
	const struct strv *dialects;
	size_t n_representations;
	struct strv extra; /* members not modelled here, `,"k":v…` verbatim */
};

struct view_log_entry {
	int64_t timestamp_ms;
	int32_t version_id;
};

struct view {
	struct arena arena;
	struct uuid uuid;
	struct strv location;
	int32_t current_version_id;
	const struct strv_pair *properties;
	size_t n_properties;
	const struct schema **schemas;
	size_t n_schemas;
	const struct view_version **versions;
	size_t n_versions;
	const struct view_log_entry *log;
	size_t n_log;
	struct strv extra;
};

/* Of a stored file: gzipped or not as its name says. ST_CORRUPT, ST_LIMIT, or ST_UNSUPPORTED for a
 * later format version. */
MUST_CHECK enum status view_read(struct bytes file, bool gzip, struct view **ret_v,
				 struct err *err);
void view_free(struct view *own_v); /* NULL is allowed */
/* Appends the canonical JSON. */
void view_write(struct buf *b, const struct view *v);
/* Value of a property; p NULL when absent. */
struct strv view_property(const struct view *v, const char *key);

/* createView: the version becomes number 1, its schema number 0, whatever the request said. Text is
 * copied. Broken rules are ST_BAD_REQUEST or ST_ILLEGAL_ARGUMENT. */
struct view_create {
	struct uuid uuid;
	struct strv location;
	const struct jval *schema;
	const struct jval *version;
	const struct strv_pair *properties;
	size_t n_properties;
};
MUST_CHECK enum status view_create(const struct view_create *c, struct view **ret_v,
				   struct err *err);

/* replaceView: "requirements" and "updates" of the request, in order, on base. ST_COMMIT_FAILED when
 * a requirement does not hold. *ret_changed false: nothing would change. */
MUST_CHECK enum status view_commit(const struct view *base, const struct jval *requirements,
				   const struct jval *updates, int64_t now_ms, struct view **ret_v,
				   bool *ret_changed, struct err *err);

#endif
