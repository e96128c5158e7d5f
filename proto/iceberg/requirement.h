/* Requirements of a table commit (REST spec, TableRequirement): what must still hold of the
 * metadata that the updates are applied to. */
#ifndef PROTO_ICEBERG_REQUIREMENT_H
#define PROTO_ICEBERG_REQUIREMENT_H

#include "proto/base/arena.h"
#include "proto/base/err.h"
#include "proto/base/uuid.h"

struct jval;
struct metadata;

enum requirement_kind {
#define REQUIREMENT(name, type, help) REQUIREMENT_##name,
#include "proto/iceberg/requirement.tbl"
	REQUIREMENT__COUNT
};

struct requirement {
	enum requirement_kind kind;
	struct uuid uuid;    /* ASSERT_TABLE_UUID */
	struct strv ref;     /* ASSERT_REF_SNAPSHOT_ID */
	int64_t snapshot_id; /* the same; SNAPSHOT_NONE: the ref must not exist */
	int32_t id;          /* the others: the expected id */
};

/* The "requirements" array of a commit request. Unknown types, anything beside
 * assert-create, and other faults are ST_BAD_REQUEST, field "requirements[i]…". */
MUST_CHECK enum status requirement_parse(const struct jval *array, struct arena *a,
					 const struct requirement **ret_r, size_t *ret_n,
					 struct err *err);
/* Whether the request creates the table: assert-create is among them. */
bool requirement_is_create(const struct requirement *r, size_t n);
/* base NULL: the table does not exist. The first that fails gives ST_COMMIT_FAILED and a message
 * "Requirement failed: …"; assert-create on an existing table too (clients of a create transaction
 * read any 409 as "already exists"). */
MUST_CHECK enum status requirement_check(const struct requirement *r, size_t n,
					 const struct metadata *base, struct err *err);

#endif
