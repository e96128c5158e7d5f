#include "proto/iceberg/requirement.h"

#include "proto/base/json.h"
#include "proto/iceberg/metadata.h"

static const struct strv types[] = {
#define REQUIREMENT(name, type, help) [REQUIREMENT_##name] = {type, sizeof(type) - 1},
#include "proto/iceberg/requirement.tbl"
};

/* Name of the expected id in the request, for the requirements that are one number. */
static const char *const id_keys[REQUIREMENT__COUNT] = {
	[REQUIREMENT_LAST_FIELD_ID] = "last-assigned-field-id",
	[REQUIREMENT_CURRENT_SCHEMA_ID] = "current-schema-id",
	[REQUIREMENT_LAST_PARTITION_ID] = "last-assigned-partition-id",
	[REQUIREMENT_DEFAULT_SPEC_ID] = "default-spec-id",
	[REQUIREMENT_DEFAULT_SORT_ORDER_ID] = "default-sort-order-id",
};

/* Of one change: each may be looked for among many refs. */
#define REQUIREMENTS_MAX 32768

static enum status parse_ref(const struct jval *v, struct arena *a, struct requirement *r,
			     struct err *err)
{
	bool has = false;
	struct strv ref;
	enum status st = jval_need_str(v, "ref", ST_BAD_REQUEST, &ref, err);
	/* Some writers drop a null: what they meant to assert is not for us to guess. */
	if (st == ST_OK && !jval_get(v, "snapshot-id"))
		st = err_set(err, ST_BAD_REQUEST, "snapshot-id",
			     "is missing; null asserts that the ref does not exist");
	if (st == ST_OK)
		st = jval_opt_i64(v, "snapshot-id", ST_BAD_REQUEST, &r->snapshot_id, &has, err);
	if (st != ST_OK)
		return st;
	if (!has)
		r->snapshot_id = SNAPSHOT_NONE;
	else if (r->snapshot_id == SNAPSHOT_NONE)
		return err_set(err, ST_BAD_REQUEST, "snapshot-id", "Invalid snapshot-id");
	return arena_strv(a, ref, &r->ref)
		       ? ST_OK
		       : err_set(err, ST_LIMIT, "ref", "the request is too large");
}

static enum status parse_one(const struct jval *v, struct arena *a, struct requirement *r,
			     struct err *err)
{
	struct strv type, text;
	enum status st = jval_need_str(v, "type", ST_BAD_REQUEST, &type, err);
	if (st != ST_OK)
		return st;
	size_t kind = 0;
	while (kind < REQUIREMENT__COUNT && !strv_ieq(type, types[kind]))
		kind++;
	if (kind == REQUIREMENT__COUNT)
		return err_set(err, ST_BAD_REQUEST, "type", "Unknown requirement type: %.*s",
			       STRV_ARG(strv_sub(type, 0, 64)));
	*r = (struct requirement){.kind = (enum requirement_kind)kind,
				  .snapshot_id = SNAPSHOT_NONE};
	if (id_keys[kind])
		return jval_need_i32(v, id_keys[kind], ST_BAD_REQUEST, &r->id, err);
	if (kind == REQUIREMENT_REF_SNAPSHOT_ID)
		return parse_ref(v, a, r, err);
	if (kind == REQUIREMENT_CREATE)
		return ST_OK;
	st = jval_need_str(v, "uuid", ST_BAD_REQUEST, &text, err);
	if (st == ST_OK && !uuid_parse(text, &r->uuid))
		return err_set(err, ST_BAD_REQUEST, "uuid", "Invalid UUID: %.*s",
			       STRV_ARG(strv_sub(text, 0, 64)));
	return st;
}

enum status requirement_parse(const struct jval *array, struct arena *a,
			      const struct requirement **ret_r, size_t *ret_n, struct err *err)
{
	size_t n = jval_count(array);
	if (!jval_is_null(array) && !jval_is_array(array))
		return err_set(err, ST_BAD_REQUEST, "requirements",
			       "requirements must be an array");
	if (n > REQUIREMENTS_MAX)
		return err_set(err, ST_LIMIT, "requirements", "at most %d, these are %zu",
			       REQUIREMENTS_MAX, n);
	struct requirement *r = arena_calloc(a, n, sizeof *r);
	if (!r)
		return err_set(err, ST_LIMIT, "requirements", "the request is too large");
	for (size_t i = 0; i < n; i++) {
		enum status st = parse_one(jval_at(array, i), a, &r[i], err);
		if (st != ST_OK) {
			err_prefix(err, "requirements[%zu]", i);
			return st;
		}
	}
	if (n > 1 && requirement_is_create(r, n))
		return err_set(err, ST_BAD_REQUEST, "requirements",
			       "Invalid create requirements: assert-create must stand alone");
	*ret_r = r;
	*ret_n = n;
	return ST_OK;
}

bool requirement_is_create(const struct requirement *r, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (r[i].kind == REQUIREMENT_CREATE)
			return true;
	return false;
}

static enum status changed(const char *what, int32_t want, int32_t have, struct err *err)
{
	return want == have ? ST_OK
			    : err_set(err, ST_COMMIT_FAILED, "requirements",
				      "Requirement failed: %s changed: expected id %d != %d", what,
				      (int)want, (int)have);
}

static enum status check_ref(const struct requirement *r, const struct metadata *base,
			     struct err *err)
{
	const struct snapshot_ref *ref = metadata_ref_by_name(base, r->ref);
	const char *type = ref && ref->tag ? "tag" : "branch";
	struct strv name = strv_sub(r->ref, 0, 64);
	if (!ref && r->snapshot_id == SNAPSHOT_NONE)
		return ST_OK;
	if (!ref)
		return err_set(err, ST_COMMIT_FAILED, "requirements",
			       "Requirement failed: branch or tag %.*s is missing, expected %lld",
			       STRV_ARG(name), (long long)r->snapshot_id);
	if (r->snapshot_id == SNAPSHOT_NONE)
		return err_set(err, ST_COMMIT_FAILED, "requirements",
			       "Requirement failed: %s %.*s was created concurrently", type,
			       STRV_ARG(name));
	if (r->snapshot_id != ref->snapshot_id)
		return err_set(err, ST_COMMIT_FAILED, "requirements",
			       "Requirement failed: %s %.*s has changed: expected id %lld != %lld",
			       type, STRV_ARG(name), (long long)r->snapshot_id,
			       (long long)ref->snapshot_id);
	return ST_OK;
}

static enum status check_uuid(const struct requirement *r, const struct metadata *base,
			      struct err *err)
{
	struct uuid have;
	char want_text[UUID_TEXT_LEN + 1], have_text[UUID_TEXT_LEN + 1] = "null";
	if (metadata_uuid(base, &have)) {
		if (uuid_eq(have, r->uuid))
			return ST_OK;
		uuid_text(have, have_text);
	}
	uuid_text(r->uuid, want_text);
	return err_set(err, ST_COMMIT_FAILED, "requirements",
		       "Requirement failed: UUID does not match: expected %s != %s", have_text,
		       want_text);
}

/* The table exists. */
static enum status check_one(const struct requirement *r, const struct metadata *base,
			     struct err *err)
{
	switch (r->kind) {
	case REQUIREMENT_CREATE:
		return err_set(err, ST_COMMIT_FAILED, "requirements",
			       "Requirement failed: table already exists");
	case REQUIREMENT_TABLE_UUID:
		return check_uuid(r, base, err);
	case REQUIREMENT_REF_SNAPSHOT_ID:
		return check_ref(r, base, err);
	case REQUIREMENT_LAST_FIELD_ID:
		return changed("last assigned field id", r->id, metadata_last_column_id(base), err);
	case REQUIREMENT_CURRENT_SCHEMA_ID:
		return changed("current schema", r->id, metadata_current_schema_id(base), err);
	case REQUIREMENT_LAST_PARTITION_ID:
		return changed("last assigned partition id", r->id,
			       metadata_last_partition_id(base), err);
	case REQUIREMENT_DEFAULT_SPEC_ID:
		return changed("default partition spec", r->id, metadata_default_spec_id(base),
			       err);
	case REQUIREMENT_DEFAULT_SORT_ORDER_ID:
		return changed("default sort order", r->id, metadata_default_sort_order_id(base),
			       err);
	case REQUIREMENT__COUNT:
		break;
	}
	ASSERT(false);
	return ST_INTERNAL;
}

/* Without a table only those hold that say so, or that compare with nothing yet assigned. */
static bool holds_without_table(enum requirement_kind kind)
{
	return kind == REQUIREMENT_CREATE || kind == REQUIREMENT_LAST_FIELD_ID ||
	       kind == REQUIREMENT_LAST_PARTITION_ID;
}

enum status requirement_check(const struct requirement *r, size_t n, const struct metadata *base,
			      struct err *err)
{
	for (size_t i = 0; i < n; i++) {
		enum status st = ST_OK;
		if (base)
			st = check_one(&r[i], base, err);
		else if (!holds_without_table(r[i].kind))
			st = err_set(err, ST_COMMIT_FAILED, "requirements",
				     "Requirement failed: table does not exist");
		if (st != ST_OK)
			return st;
	}
	return ST_OK;
}
