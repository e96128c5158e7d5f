#include "proto/iceberg/partition.h"

static enum status no_memory(struct err *err)
{
	return err_set(err, ST_LIMIT, "", "the partition spec is larger than this server's limit");
}

/* JSON */

static enum status parse_field(const struct jval *v, enum status bad, struct arena *a,
			       struct partition_field *f, struct err *err)
{
	static const char *const known[] = {"name",       "transform", "source-id",
					    "source-ids", "field-id",  NULL};
	struct strv text;
	enum status st;
	f->field_id = PARTITION_NO_ID;
	if (!jval_is_object(v))
		return err_set(err, bad, "", "not an object");
	if ((st = jval_need_str(v, "name", bad, &f->name, err)) != ST_OK ||
	    (st = jval_need_str(v, "transform", bad, &text, err)) != ST_OK ||
	    (st = transform_parse(text, bad, a, &f->transform, err)) != ST_OK ||
	    (st = transform_sources_parse(v, bad, a, &f->transform, &f->source_id, &f->source_ids,
					  &f->n_source_ids, err)) != ST_OK ||
	    (st = jval_opt_i32(v, "field-id", bad, &f->field_id, NULL, err)) != ST_OK)
		return st;
	if (f->field_id < 0 && f->field_id != PARTITION_NO_ID)
		return err_set(err, bad, "field-id", "a partition field id is not negative");
	if (!arena_strv(a, f->name, &f->name))
		return no_memory(err);
	return type_extra_parse(v, known, a, &f->extra, err);
}

static enum status check_ids(const struct partition_spec *spec, enum status bad, struct err *err)
{
	for (size_t i = 0; i < spec->n; i++) {
		int32_t id = spec->fields[i].field_id;
		if ((id == PARTITION_NO_ID) != (spec->fields[0].field_id == PARTITION_NO_ID))
			return err_set(
				err, bad, "fields",
				"Cannot parse spec with missing field IDs: some fields have ids, "
				"others have none");
		for (size_t k = 0; k < i && id != PARTITION_NO_ID; k++)
			if (spec->fields[k].field_id == id)
				return err_set(err, bad, "fields",
					       "partition field id %d is there twice", (int)id);
	}
	return ST_OK;
}

enum status partition_parse_fields(const struct jval *array, enum status bad, struct arena *a,
				   struct partition_spec *ret_spec, struct err *err)
{
	struct partition_spec spec = {.spec_id = PARTITION_NO_ID, .n = jval_count(array)};
	if (!jval_is_array(array))
		return err_set(err, bad, "fields", "not an array");
	if (spec.n > PARTITION_MAX_FIELDS)
		return err_set(err, ST_LIMIT, "fields", "a partition spec has at most %d fields",
			       PARTITION_MAX_FIELDS);
	spec.fields = arena_calloc(a, spec.n, sizeof *spec.fields);
	if (!spec.fields && spec.n > 0)
		return no_memory(err);
	for (size_t i = 0; i < spec.n; i++) {
		enum status st = parse_field(jval_at(array, i), bad, a, &spec.fields[i], err);
		if (st != ST_OK) {
			err_prefix(err, "fields[%zu]", i);
			return st;
		}
	}
	enum status st = check_ids(&spec, bad, err);
	if (st == ST_OK)
		*ret_spec = spec;
	return st;
}

enum status partition_parse(const struct jval *v, enum status bad, struct arena *a,
			    struct partition_spec *ret_spec, struct err *err)
{
	static const char *const known[] = {"spec-id", "fields", NULL};
	struct partition_spec spec;
	enum status st;
	if (!jval_is_object(v))
		return err_set(err, bad, "", "a partition spec is a JSON object");
	if ((st = partition_parse_fields(jval_get(v, "fields"), bad, a, &spec, err)) != ST_OK ||
	    (st = jval_opt_i32(v, "spec-id", bad, &spec.spec_id, NULL, err)) != ST_OK ||
	    (st = type_extra_parse(v, known, a, &spec.extra, err)) != ST_OK)
		return st;
	*ret_spec = spec;
	return ST_OK;
}

void partition_write_fields(struct jwrite *w, const struct partition_spec *spec)
{
	jwrite_array(w);
	for (size_t i = 0; i < spec->n; i++) {
		const struct partition_field *f = &spec->fields[i];
		jwrite_object(w);
		jwrite_kstr(w, "name", f->name);
		jwrite_kstr(w, "transform", f->transform.text);
		transform_sources_write(w, f->source_id, f->source_ids, f->n_source_ids);
		if (f->field_id != PARTITION_NO_ID)
			jwrite_ki64(w, "field-id", f->field_id);
		type_extra_write(w, &f->extra);
		jwrite_end_object(w);
	}
	jwrite_end_array(w);
}

void partition_write(struct jwrite *w, const struct partition_spec *spec)
{
	jwrite_object(w);
	if (spec->spec_id != PARTITION_NO_ID)
		jwrite_ki64(w, "spec-id", spec->spec_id);
	jwrite_key(w, "fields");
	partition_write_fields(w, spec);
	type_extra_write(w, &spec->extra);
	jwrite_end_object(w);
}

/* Comparison */

static bool same_term(const struct partition_field *f, const struct partition_field *g)
{
	return f->source_id == g->source_id && f->n_source_ids == g->n_source_ids &&
	       (f->n_source_ids == 0 || memcmp(f->source_ids, g->source_ids,
					       f->n_source_ids * sizeof *f->source_ids) == 0) &&
	       transform_eq(&f->transform, &g->transform);
}

bool partition_compatible(const struct partition_spec *x, const struct partition_spec *y)
{
	if (x->n != y->n)
		return false;
	for (size_t i = 0; i < x->n; i++)
		if (!same_term(&x->fields[i], &y->fields[i]) ||
		    !strv_eq(x->fields[i].name, y->fields[i].name))
			return false;
	return true;
}

bool partition_same(const struct partition_spec *x, const struct partition_spec *y)
{
	if (!partition_compatible(x, y))
		return false;
	for (size_t i = 0; i < x->n; i++)
		if (x->fields[i].field_id != y->fields[i].field_id)
			return false;
	return true;
}

/* Rules */

enum status partition_check_schema(const struct partition_spec *spec, const struct schema *schema,
				   struct err *err)
{
	for (size_t i = 0; i < spec->n; i++) {
		const struct partition_field *f = &spec->fields[i];
		/* void keeps its place in the tuple after the column is gone. */
		if (f->transform.kind == TRANSFORM_VOID)
			continue;
		const char *why;
		const struct type *type = NULL;
		if (transform_sources_bind(schema, &f->transform, f->source_id, f->source_ids,
					   f->n_source_ids, &type, &why))
			continue;
		if (type)
			err_set(err, ST_VALIDATION, "", "%s: %s for transform %.*s", why,
				type_name(type).z, STRV_ARG(f->transform.text));
		else
			err_set(err, ST_VALIDATION, "", "%s: %.*s", why, STRV_ARG(f->name));
		err_prefix(err, "fields[%zu]", i);
		return ST_VALIDATION;
	}
	return ST_OK;
}

static enum status check_name(const struct partition_spec *spec, size_t i,
			      const struct schema *schema, struct err *err)
{
	const struct partition_field *f = &spec->fields[i];
	if (f->name.n == 0)
		return err_set(err, ST_VALIDATION, "name", "Cannot use empty partition name");
	for (size_t k = 0; k < i; k++)
		if (strv_eq(spec->fields[k].name, f->name))
			return err_set(err, ST_VALIDATION, "name",
				       "Cannot use partition name more than once: %.*s",
				       STRV_ARG(f->name));
	const struct schema_node *column = schema_find_name(schema, f->name);
	if (column && column->id != f->source_id)
		return err_set(err, ST_VALIDATION, "name",
			       "Cannot create partition from name that exists in schema: %.*s",
			       STRV_ARG(f->name));
	return ST_OK;
}

enum status partition_check(const struct partition_spec *spec, const struct schema *schema,
			    int format_version, struct err *err)
{
	for (size_t i = 0; i < spec->n; i++) {
		enum status st = check_name(spec, i, schema, err);
		if (st == ST_OK && format_version < 2 &&
		    spec->fields[i].field_id != PARTITION_FIELD_ID_FIRST + (int32_t)i)
			st = err_set(err, ST_VALIDATION, "field-id",
				     "Spec does not use sequential IDs that are required in v1");
		if (st != ST_OK) {
			err_prefix(err, "fields[%zu]", i);
			return st;
		}
	}
	return partition_check_schema(spec, schema, err);
}

static bool id_taken(const struct partition_spec *spec, int32_t id)
{
	for (size_t i = 0; i < spec->n; i++)
		if (spec->fields[i].field_id == id)
			return true;
	return false;
}

/* PARTITION_NO_ID when no spec has such a field with an id that is still free. */
static int32_t known_id(const struct partition_spec *spec, const struct partition_field *f,
			const struct partition_spec *const *specs, size_t n_specs)
{
	for (size_t s = 0; s < n_specs; s++)
		for (size_t i = 0; i < specs[s]->n; i++)
			if (same_term(f, &specs[s]->fields[i]) &&
			    !id_taken(spec, specs[s]->fields[i].field_id))
				return specs[s]->fields[i].field_id;
	return PARTITION_NO_ID;
}

enum status partition_assign_ids(struct partition_spec *spec,
				 const struct partition_spec *const *specs, size_t n_specs,
				 int format_version, int32_t *io_last_id, struct err *err)
{
	int32_t last = *io_last_id;
	for (size_t i = 0; i < spec->n; i++) {
		struct partition_field *f = &spec->fields[i];
		if (f->field_id == PARTITION_NO_ID && format_version < 2)
			f->field_id = PARTITION_FIELD_ID_FIRST + (int32_t)i;
		if (f->field_id == PARTITION_NO_ID)
			f->field_id = known_id(spec, f, specs, n_specs);
		if (f->field_id == PARTITION_NO_ID) {
			if (last == INT32_MAX)
				return err_set(err, ST_VALIDATION, "fields",
					       "there is no partition field id left");
			f->field_id = last + 1;
		}
		if (f->field_id > last)
			last = f->field_id;
	}
	*io_last_id = last;
	return ST_OK;
}

static bool same_source(const struct partition_field *f, const struct partition_field *g)
{
	return f->source_id == g->source_id &&
	       (f->transform.kind == TRANSFORM_VOID || g->transform.kind == TRANSFORM_VOID);
}

enum status partition_check_reuse(const struct partition_spec *spec,
				  const struct partition_spec *const *specs, size_t n_specs,
				  struct err *err)
{
	for (size_t i = 0; i < spec->n; i++) {
		const struct partition_field *f = &spec->fields[i];
		bool known = false, fits = false;
		for (size_t s = 0; s < n_specs; s++)
			for (size_t k = 0; k < specs[s]->n; k++) {
				const struct partition_field *g = &specs[s]->fields[k];
				if (g->field_id != f->field_id)
					continue;
				known = true;
				/* Format version 1 put a void where a field was dropped. */
				fits |= same_term(f, g) || same_source(f, g);
			}
		if (known && !fits) {
			err_set(err, ST_VALIDATION, "field-id",
				"Cannot reuse partition field id %d for another source or transform",
				(int)f->field_id);
			err_prefix(err, "fields[%zu]", i);
			return ST_VALIDATION;
		}
	}
	return ST_OK;
}

int32_t partition_last_id(const struct partition_spec *spec)
{
	int32_t last = PARTITION_FIELD_ID_FIRST - 1;
	for (size_t i = 0; i < spec->n; i++)
		if (spec->fields[i].field_id > last)
			last = spec->fields[i].field_id;
	return last;
}

enum status partition_type(const struct partition_spec *spec, const struct schema *schema,
			   struct arena *a, struct field **ret_fields, struct err *err)
{
	struct field *fields = arena_calloc(a, spec->n, sizeof *fields);
	if (!fields && spec->n > 0)
		return no_memory(err);
	for (size_t i = 0; i < spec->n; i++) {
		const struct partition_field *f = &spec->fields[i];
		const struct schema_node *source = schema_find(schema, f->source_id);
		const struct type *result =
			transform_result(&f->transform, source ? source->type : NULL);
		struct type *copy = arena_alloc(a, sizeof *copy);
		if (!copy)
			return no_memory(err);
		*copy = *result;
		fields[i].id = f->field_id;
		fields[i].name = f->name;
		fields[i].type = copy;
	}
	*ret_fields = fields;
	return ST_OK;
}

/* As form data: letters, digits and .-*_ stand for themselves, a space is +. */
static void put_encoded(struct buf *b, struct strv s)
{
	static const char digits[] = "0123456789ABCDEF";
	for (size_t i = 0; i < s.n; i++) {
		uint8_t c = (uint8_t)s.p[i];
		bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			     (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '*' || c == '_';
		if (plain) {
			buf_putc(b, c);
		} else if (c == ' ') {
			buf_putc(b, '+');
		} else {
			buf_putc(b, '%');
			buf_putc(b, (uint8_t)digits[c >> 4]);
			buf_putc(b, (uint8_t)digits[c & 15]);
		}
	}
}

void partition_path(struct buf *b, const struct partition_spec *spec, const struct field *types,
		    const struct tuple *t)
{
	struct buf text;
	ASSERT(t->n == spec->n);
	buf_init(&text, b->max);
	for (size_t i = 0; i < spec->n; i++) {
		if (i > 0)
			buf_putc(b, '/');
		put_encoded(b, spec->fields[i].name);
		buf_putc(b, '=');
		buf_clear(&text);
		transform_human(&text, &spec->fields[i].transform, types[i].type, &t->v[i]);
		put_encoded(b, buf_strv(&text));
		if (!buf_ok(&text))
			b->failed = true;
	}
	buf_fini(&text);
}
