#include "proto/iceberg/schema.h"

#include <stdlib.h>

/* As deep as type_parse lets types be; a schema made by hand is held to it too. */
#define MAX_DEPTH JDOC_MAX_DEPTH

static enum status no_memory(struct err *err)
{
	return err_set(err, ST_LIMIT, "", "the schema is larger than this server's limit");
}

/* Index. The walk visits parents before children and keeps document order; its depth is bounded. */

struct walk {
	struct schema_node *nodes; /* NULL while counting */
	size_t n;
	struct arena *a;
	enum status bad;
	struct err *err;
};

static enum status visit_type(struct walk *w, const struct type *t,
			      const struct schema_node *parent, int depth);

/* "parent.name"; names may hold any character, U+0000 too. */
static bool full_name(struct arena *a, struct strv parent, struct strv name, struct strv *ret_full)
{
	size_t n = parent.n + 1 + name.n;
	char *p = arena_alloc(a, n);
	if (!p)
		return false;
	memcpy(p, parent.p, parent.n);
	p[parent.n] = '.';
	memcpy(p + parent.n + 1, name.p, name.n);
	*ret_full = (struct strv){p, n};
	return true;
}

static enum status visit(struct walk *w, int32_t id, struct strv name, const struct field *f,
			 const struct type *t, bool required, const struct schema_node *parent,
			 int depth)
{
	struct schema_node *node = w->nodes ? &w->nodes[w->n] : NULL;
	w->n++;
	if (!node)
		return visit_type(w, t, NULL, depth);
	*node = (struct schema_node){.id = id, .full_name = name, .field = f, .type = t};
	node->parent = parent;
	node->required = required;
	if (parent) {
		enum type_kind in = parent->type->kind;
		node->in_list = parent->in_list || in == TYPE_LIST;
		node->in_map = parent->in_map || in == TYPE_MAP;
		node->in_optional_struct =
			parent->in_optional_struct || (in == TYPE_STRUCT && !parent->required);
		if (!full_name(w->a, parent->full_name, name, &node->full_name))
			return no_memory(w->err);
	}
	return visit_type(w, t, node, depth);
}

static enum status visit_fields(struct walk *w, const struct field *fields, size_t n,
				const struct schema_node *parent, int depth)
{
	for (size_t i = 0; i < n; i++) {
		const struct field *f = &fields[i];
		enum status st = visit(w, f->id, f->name, f, f->type, f->required, parent, depth);
		if (st != ST_OK)
			return st;
	}
	return ST_OK;
}

static enum status visit_type(struct walk *w, const struct type *t,
			      const struct schema_node *parent, int depth)
{
	enum status st;
	if (depth > MAX_DEPTH)
		return err_set(w->err, w->bad, "", "types are nested too deeply");
	switch (t->kind) {
	case TYPE_STRUCT:
		return visit_fields(w, t->u.st.fields, t->u.st.n, parent, depth + 1);
	case TYPE_LIST:
		return visit(w, t->u.list.element_id, STRV("element"), NULL, t->u.list.element,
			     t->u.list.element_required, parent, depth + 1);
	case TYPE_MAP:
		st = visit(w, t->u.map.key_id, STRV("key"), NULL, t->u.map.key, true, parent,
			   depth + 1);
		if (st != ST_OK)
			return st;
		return visit(w, t->u.map.value_id, STRV("value"), NULL, t->u.map.value,
			     t->u.map.value_required, parent, depth + 1);
	default:
		return ST_OK;
	}
}

static int by_id(const void *x, const void *y)
{
	const struct schema_node *a = *(struct schema_node *const *)x,
				 *b = *(struct schema_node *const *)y;
	return (a->id > b->id) - (a->id < b->id);
}

static int by_name(const void *x, const void *y)
{
	const struct schema_node *a = *(struct schema_node *const *)x,
				 *b = *(struct schema_node *const *)y;
	return strv_cmp(a->full_name, b->full_name);
}

static int by_number(const void *x, const void *y)
{
	int32_t a = *(const int32_t *)x, b = *(const int32_t *)y;
	return (a > b) - (a < b);
}

static enum status check_ids(const struct schema *s, enum status bad, struct err *err)
{
	for (size_t i = 0; i < s->n_nodes; i++) {
		const struct schema_node *node = s->by_id[i];
		if (node->id < 0 || node->id > SCHEMA_MAX_ID)
			return err_set(err, bad, "id",
				       "field id %d of %.*s is reserved or negative", (int)node->id,
				       STRV_ARG(node->full_name));
		if (i > 0 && s->by_id[i - 1]->id == node->id)
			return err_set(err, bad, "id", "field id %d is used for %.*s and %.*s",
				       (int)node->id, STRV_ARG(s->by_id[i - 1]->full_name),
				       STRV_ARG(node->full_name));
		if (i > 0 && strv_eq(s->by_name[i - 1]->full_name, s->by_name[i]->full_name))
			return err_set(err, bad, "name",
				       "Invalid schema: multiple fields for name %.*s: %d and %d",
				       STRV_ARG(s->by_name[i]->full_name),
				       (int)s->by_name[i - 1]->id, (int)s->by_name[i]->id);
		if (node->type->kind == TYPE_UNKNOWN && node->required)
			return err_set(err, bad, "required",
				       "%.*s cannot be required: its type is unknown",
				       STRV_ARG(node->full_name));
	}
	return ST_OK;
}

static enum status check_identifier(const struct schema *s, int32_t id, enum status bad,
				    struct err *err)
{
	const struct schema_node *node = schema_find(s, id);
	const char *why = NULL;
	if (!node)
		return err_set(err, bad, "identifier-field-ids",
			       "Cannot add fieldId %d as an identifier field: field does not exist",
			       (int)id);
	if (!type_is_primitive(node->type))
		why = "not a primitive type field";
	else if (!node->required)
		why = "not a required field";
	else if (node->type->kind == TYPE_FLOAT || node->type->kind == TYPE_DOUBLE)
		why = "must not be float or double field";
	else if (node->in_list || node->in_map)
		why = "must not be nested in a list or map";
	else if (node->in_optional_struct)
		why = "must not be nested in an optional field";
	if (why)
		return err_set(err, bad, "identifier-field-ids",
			       "Cannot add field %.*s as an identifier field: %s",
			       STRV_ARG(node->full_name), why);
	return ST_OK;
}

static enum status check_identifiers(const struct schema *s, enum status bad, struct err *err)
{
	for (size_t i = 0; i < s->n_identifier; i++) {
		if (i > 0 && s->identifier_ids[i] == s->identifier_ids[i - 1])
			return err_set(err, bad, "identifier-field-ids", "id %d is there twice",
				       (int)s->identifier_ids[i]);
		enum status st = check_identifier(s, s->identifier_ids[i], bad, err);
		if (st != ST_OK)
			return st;
	}
	return ST_OK;
}

enum status schema_index(struct schema *s, enum status bad, struct arena *a, struct err *err)
{
	struct walk w = {.a = a, .bad = bad, .err = err};
	enum status st = visit_fields(&w, s->fields, s->n, NULL, 1);
	if (st != ST_OK)
		return st;
	s->n_nodes = w.n;
	s->nodes = arena_calloc(a, w.n, sizeof *s->nodes);
	s->by_id = arena_calloc(a, w.n, sizeof *s->by_id);
	s->by_name = arena_calloc(a, w.n, sizeof *s->by_name);
	if (w.n > 0 && (!s->nodes || !s->by_id || !s->by_name))
		return no_memory(err);
	w.nodes = s->nodes;
	w.n = 0;
	if (w.nodes && (st = visit_fields(&w, s->fields, s->n, NULL, 1)) != ST_OK)
		return st;
	s->highest_id = 0;
	for (size_t i = 0; i < s->n_nodes; i++) {
		s->by_id[i] = s->by_name[i] = &s->nodes[i];
		if (s->nodes[i].id > s->highest_id)
			s->highest_id = s->nodes[i].id;
	}
	if (s->n_nodes > 0) {
		qsort(s->by_id, s->n_nodes, sizeof(struct schema_node *), by_id);
		qsort(s->by_name, s->n_nodes, sizeof(struct schema_node *), by_name);
	}
	if (s->n_identifier > 0)
		qsort(s->identifier_ids, s->n_identifier, sizeof *s->identifier_ids, by_number);
	st = check_ids(s, bad, err);
	return st == ST_OK ? check_identifiers(s, bad, err) : st;
}

static enum status parse_identifiers(const struct jval *v, enum status bad, struct arena *a,
				     struct schema *s, struct err *err)
{
	const struct jval *array = NULL;
	enum status st = jval_opt_array(v, "identifier-field-ids", bad, &array, err);
	if (st != ST_OK)
		return st;
	s->n_identifier = jval_count(array);
	if (s->n_identifier == 0)
		return ST_OK;
	s->identifier_ids = arena_calloc(a, s->n_identifier, sizeof *s->identifier_ids);
	if (!s->identifier_ids)
		return no_memory(err);
	for (size_t i = 0; i < s->n_identifier; i++) {
		int64_t id;
		if (!jval_as_i64(jval_at(array, i), &id) || id < 0 || id > INT32_MAX)
			return err_set(err, bad, "identifier-field-ids",
				       "element %zu is not a field id", i);
		s->identifier_ids[i] = (int32_t)id;
	}
	return ST_OK;
}

enum status schema_parse(const struct jval *v, enum status bad, struct arena *a,
			 struct schema *ret_schema, struct err *err)
{
	static const char *const known[] = {"type", "schema-id", "identifier-field-ids", "fields",
					    NULL};
	struct schema s = {.schema_id = SCHEMA_ID_NONE};
	struct strv type;
	enum status st;
	if (!jval_is_object(v))
		return err_set(err, bad, "", "a schema is a JSON object");
	if (jval_is_null(jval_get(v, "type")))
		return err_set(err, bad, "type",
			       "Cannot parse type from json: a schema has no type");
	if ((st = jval_need_str(v, "type", bad, &type, err)) != ST_OK)
		return st;
	if (!strv_eq(type, STRV("struct")))
		return err_set(err, bad, "type", "Cannot create schema, not a struct type: %.*s",
			       STRV_ARG(type));
	if ((st = jval_opt_i32(v, "schema-id", bad, &s.schema_id, NULL, err)) != ST_OK ||
	    (st = type_parse_fields(jval_get(v, "fields"), bad, a, &s.fields, &s.n, err)) !=
		    ST_OK ||
	    (st = parse_identifiers(v, bad, a, &s, err)) != ST_OK ||
	    (st = type_extra_parse(v, known, a, &s.extra, err)) != ST_OK ||
	    (st = schema_index(&s, bad, a, err)) != ST_OK)
		return st;
	*ret_schema = s;
	return ST_OK;
}

void schema_write(struct jwrite *w, const struct schema *s)
{
	jwrite_object(w);
	jwrite_kstr(w, "type", STRV("struct"));
	if (s->schema_id != SCHEMA_ID_NONE)
		jwrite_ki64(w, "schema-id", s->schema_id);
	if (s->n_identifier > 0) {
		jwrite_key(w, "identifier-field-ids");
		jwrite_array(w);
		for (size_t i = 0; i < s->n_identifier; i++)
			jwrite_i64(w, s->identifier_ids[i]);
		jwrite_end_array(w);
	}
	jwrite_key(w, "fields");
	type_write_fields(w, s->fields, s->n);
	type_extra_write(w, &s->extra);
	jwrite_end_object(w);
}

const struct schema_node *schema_find(const struct schema *s, int32_t id)
{
	size_t lo = 0, hi = s->n_nodes;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (s->by_id[mid]->id == id)
			return s->by_id[mid];
		if (s->by_id[mid]->id < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

const struct schema_node *schema_find_name(const struct schema *s, struct strv full_name)
{
	size_t lo = 0, hi = s->n_nodes;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int c = strv_cmp(s->by_name[mid]->full_name, full_name);
		if (c == 0)
			return s->by_name[mid];
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

bool schema_same(const struct schema *x, const struct schema *y)
{
	return x->n_identifier == y->n_identifier &&
	       (x->n_identifier == 0 || memcmp(x->identifier_ids, y->identifier_ids,
					       x->n_identifier * sizeof *x->identifier_ids) == 0) &&
	       type_fields_eq(x->fields, x->n, y->fields, y->n);
}

enum status schema_check_version(const struct schema *s, int format_version, struct err *err)
{
	for (size_t i = 0; i < s->n_nodes; i++) {
		const struct schema_node *node = &s->nodes[i];
		int least = type_min_version(node->type);
		if (least > format_version)
			return err_set(err, ST_VALIDATION, "schema",
				       "Invalid type for %.*s: %s is not supported until v%d",
				       STRV_ARG(node->full_name), type_name(node->type).z, least);
		if (format_version < 3 && node->field && node->field->initial_default.p)
			return err_set(
				err, ST_VALIDATION, "schema",
				"Invalid initial default for %.*s: non-null default (%.*s) is "
				"not supported until v3",
				STRV_ARG(node->full_name), STRV_ARG(node->field->initial_default));
	}
	return ST_OK;
}

/* Fresh ids. The copy has the shape of the original, so that both walks meet the same nodes in the
 * same order. */

struct fresh {
	struct arena *a;
	int64_t next;
};

static bool fresh_id(struct fresh *f, int32_t *ret_id)
{
	if (f->next > SCHEMA_MAX_ID)
		return false;
	*ret_id = (int32_t)f->next++;
	return true;
}

/* false when memory or ids run out. Depth is that of the original, which was checked. */
static bool fresh_fields(struct fresh *f, const struct field *from, size_t n,
			 struct field **ret_fields);

/* Bounded by the depth of `from`. */
static bool fresh_type(struct fresh *f, const struct type *from, struct type **ret_type)
{
	struct type *t = arena_alloc(f->a, sizeof *t);
	if (!t)
		return false;
	*t = *from;
	*ret_type = t;
	switch (from->kind) {
	case TYPE_STRUCT:
		return fresh_fields(f, from->u.st.fields, from->u.st.n, &t->u.st.fields);
	case TYPE_LIST:
		return fresh_id(f, &t->u.list.element_id) &&
		       fresh_type(f, from->u.list.element, &t->u.list.element);
	case TYPE_MAP:
		return fresh_id(f, &t->u.map.key_id) && fresh_id(f, &t->u.map.value_id) &&
		       fresh_type(f, from->u.map.key, &t->u.map.key) &&
		       fresh_type(f, from->u.map.value, &t->u.map.value);
	default:
		return true;
	}
}

static bool fresh_fields(struct fresh *f, const struct field *from, size_t n,
			 struct field **ret_fields)
{
	struct field *out = arena_calloc(f->a, n, sizeof *out);
	if (!out && n > 0)
		return false;
	for (size_t i = 0; i < n; i++) {
		out[i] = from[i];
		if (!fresh_id(f, &out[i].id))
			return false;
	}
	for (size_t i = 0; i < n; i++)
		if (!fresh_type(f, from[i].type, &out[i].type))
			return false;
	*ret_fields = out;
	return true;
}

enum status schema_fresh(const struct schema *from, int32_t first_id, struct arena *a,
			 struct schema *ret_schema, struct err *err)
{
	struct fresh f = {a, first_id};
	struct schema s = {.schema_id = from->schema_id, .n = from->n, .extra = from->extra};
	if (!fresh_fields(&f, from->fields, from->n, &s.fields))
		return no_memory(err);
	s.n_identifier = from->n_identifier;
	s.identifier_ids = arena_calloc(a, s.n_identifier, sizeof *s.identifier_ids);
	if (s.n_identifier > 0 && !s.identifier_ids)
		return no_memory(err);
	/* Identifiers need the index, and the index checks them: first without, then with. */
	struct schema plain = s;
	plain.n_identifier = 0;
	enum status st = schema_index(&plain, ST_VALIDATION, a, err);
	if (st != ST_OK)
		return st;
	for (size_t i = 0; i < from->n_identifier; i++) {
		const struct schema_node *node = schema_find(from, from->identifier_ids[i]);
		ASSERT(node);
		s.identifier_ids[i] = plain.nodes[node - from->nodes].id;
	}
	plain.n_identifier = s.n_identifier;
	if (plain.n_identifier > 0)
		qsort(plain.identifier_ids, plain.n_identifier, sizeof *plain.identifier_ids,
		      by_number);
	*ret_schema = plain;
	return ST_OK;
}

bool schema_remap(const struct schema *from, const struct schema *to, int32_t id, int32_t *ret_id)
{
	const struct schema_node *old = schema_find(from, id);
	const struct schema_node *now = old ? schema_find_name(to, old->full_name) : NULL;
	if (!now)
		return false;
	*ret_id = now->id;
	return true;
}
