#include "proto/iceberg/types.h"

#include <stdio.h>

#include "proto/iceberg/value_text.h"

/* JSON levels that a type may take. Schemas are written inside other documents, which must stay
 * within JDOC_MAX_DEPTH and JWRITE_DEPTH themselves. */
#define MAX_DEPTH (JDOC_MAX_DEPTH - 8)
/* Levels and bytes of one unknown member. */
#define EXTRA_MAX_DEPTH 16
#define EXTRA_MAX_BYTES ((size_t)1 << 20)

static const char *const kind_names[] = {
	[TYPE_BOOLEAN] = "boolean",
	[TYPE_INT] = "int",
	[TYPE_LONG] = "long",
	[TYPE_FLOAT] = "float",
	[TYPE_DOUBLE] = "double",
	[TYPE_DATE] = "date",
	[TYPE_TIME] = "time",
	[TYPE_TIMESTAMP] = "timestamp",
	[TYPE_TIMESTAMPTZ] = "timestamptz",
	[TYPE_TIMESTAMP_NS] = "timestamp_ns",
	[TYPE_TIMESTAMPTZ_NS] = "timestamptz_ns",
	[TYPE_STRING] = "string",
	[TYPE_UUID] = "uuid",
	[TYPE_FIXED] = "fixed",
	[TYPE_BINARY] = "binary",
	[TYPE_DECIMAL] = "decimal",
	[TYPE_UNKNOWN] = "unknown",
	[TYPE_VARIANT] = "variant",
	[TYPE_GEOMETRY] = "geometry",
	[TYPE_GEOGRAPHY] = "geography",
	[TYPE_STRUCT] = "struct",
	[TYPE_LIST] = "list",
	[TYPE_MAP] = "map",
};

const char *type_kind_name(enum type_kind kind)
{
	ASSERT((size_t)kind < ARRAY_SIZE(kind_names));
	return kind_names[kind];
}

static enum status no_memory(struct err *err)
{
	return err_set(err, ST_LIMIT, "", "the schema is larger than this server's limit");
}

/* Text of primitive types: a name, then perhaps parameters in brackets. */

static struct strv trim(struct strv s)
{
	while (s.n && (*s.p == ' ' || *s.p == '\t'))
		s = strv_sub(s, 1, s.n);
	while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
		s.n--;
	return s;
}

/* "name ( inner )" with these brackets; false when the shape is another. */
static bool bracketed(struct strv s, const char *name, char open, char close,
		      struct strv *ret_inner)
{
	size_t n = strlen(name);
	if (s.n < n || !strv_ieq(strv_sub(s, 0, n), strv_of(name)))
		return false;
	s = trim(strv_sub(s, n, s.n));
	if (s.n < 2 || s.p[0] != open || s.p[s.n - 1] != close)
		return false;
	*ret_inner = trim(strv_sub(s, 1, s.n - 1));
	return true;
}

static bool small_number(struct strv s, int64_t max, int32_t *ret_v)
{
	int64_t v;
	if (!strv_i64(s, &v) || v < 0 || v > max)
		return false;
	*ret_v = (int32_t)v;
	return true;
}

static bool parse_decimal(struct strv inner, struct type *t)
{
	size_t comma = strv_find(inner, ',');
	if (comma == inner.n)
		return false;
	/* The scale beyond the precision has no Avro or Parquet form. */
	return small_number(trim(strv_sub(inner, 0, comma)), TYPE_DECIMAL_MAX_PRECISION,
			    &t->precision) &&
	       t->precision > 0 &&
	       small_number(trim(strv_sub(inner, comma + 1, inner.n)), t->precision, &t->scale);
}

static const char *const edge_algorithms[] = {"spherical", "vincenty", "thomas", "andoyer",
					      "karney"};

/* Parameters that state the default are dropped, so that equal types have equal text. */
static enum status parse_geo(struct strv inner, struct arena *a, struct type *t, bool *ret_ok,
			     struct err *err)
{
	struct strv crs = inner, algorithm = {NULL, 0};
	size_t comma = strv_find(inner, ',');
	*ret_ok = false;
	if (comma < inner.n) {
		if (t->kind == TYPE_GEOMETRY)
			return ST_OK;
		crs = trim(strv_sub(inner, 0, comma));
		algorithm = trim(strv_sub(inner, comma + 1, inner.n));
		const char *known = NULL;
		for (size_t i = 0; i < ARRAY_SIZE(edge_algorithms); i++)
			if (strv_ieq(algorithm, strv_of(edge_algorithms[i])))
				known = edge_algorithms[i];
		if (!known)
			return ST_OK;
		algorithm = strv_of(known);
		if (known == edge_algorithms[0])
			algorithm = (struct strv){NULL, 0};
	}
	if (crs.n == 0 || memchr(crs.p, ')', crs.n) || memchr(crs.p, '(', crs.n))
		return ST_OK;
	if (strv_ieq(crs, STRV("OGC:CRS84")))
		crs = (struct strv){NULL, 0};
	else if (!arena_strv(a, crs, &crs))
		return no_memory(err);
	t->crs = crs;
	t->algorithm = algorithm;
	*ret_ok = true;
	return ST_OK;
}

enum status type_parse_text(struct strv text, enum status bad, struct arena *a,
			    struct type **ret_type, struct err *err)
{
	struct type t = {0};
	struct strv inner;
	bool ok = false;
	for (size_t i = 0; i < ARRAY_SIZE(kind_names) && !ok; i++) {
		t.kind = (enum type_kind)i;
		ok = t.kind != TYPE_FIXED && t.kind != TYPE_DECIMAL && !type_is_nested(&t) &&
		     strv_ieq(text, strv_of(kind_names[i]));
	}
	if (!ok && bracketed(text, "fixed", '[', ']', &inner)) {
		t.kind = TYPE_FIXED;
		ok = small_number(inner, INT32_MAX, &t.length) && t.length > 0;
	} else if (!ok && bracketed(text, "decimal", '(', ')', &inner)) {
		t.kind = TYPE_DECIMAL;
		ok = parse_decimal(inner, &t);
	} else if (!ok && (bracketed(text, "geometry", '(', ')', &inner) ||
			   bracketed(text, "geography", '(', ')', &inner))) {
		t.kind = strv_ieq(strv_sub(text, 0, 4), STRV("geom")) ? TYPE_GEOMETRY
								      : TYPE_GEOGRAPHY;
		enum status st = parse_geo(inner, a, &t, &ok, err);
		if (st != ST_OK)
			return st;
	}
	if (!ok)
		return err_set(err, bad, "", "Cannot parse type string to primitive: %.*s",
			       STRV_ARG(text));
	struct type *out = arena_alloc(a, sizeof *out);
	if (!out)
		return no_memory(err);
	*out = t;
	*ret_type = out;
	return ST_OK;
}

void type_text(struct buf *b, const struct type *t)
{
	buf_puts(b, type_kind_name(t->kind));
	switch (t->kind) {
	case TYPE_FIXED:
		buf_printf(b, "[%d]", (int)t->length);
		break;
	case TYPE_DECIMAL:
		buf_printf(b, "(%d, %d)", (int)t->precision, (int)t->scale);
		break;
	case TYPE_GEOMETRY:
	case TYPE_GEOGRAPHY:
		if (!t->crs.p && !t->algorithm.p)
			break;
		buf_putc(b, '(');
		buf_putv(b, t->crs.p ? t->crs : STRV("OGC:CRS84"));
		if (t->algorithm.p) {
			buf_puts(b, ", ");
			buf_putv(b, t->algorithm);
		}
		buf_putc(b, ')');
		break;
	case TYPE_STRUCT:
	case TYPE_LIST:
	case TYPE_MAP:
		buf_puts(b, "<...>");
		break;
	default:
		break;
	}
}

struct type_name type_name(const struct type *t)
{
	struct type_name name = {{0}};
	struct buf b;
	buf_init(&b, 4096);
	type_text(&b, t);
	struct strv text = buf_strv(&b);
	snprintf(name.z, sizeof name.z, "%.*s", STRV_ARG(text));
	buf_fini(&b);
	return name;
}

/* Unknown members */

static size_t text_depth(struct strv json)
{
	size_t depth = 0, deepest = 0;
	bool str = false;
	for (size_t i = 0; i < json.n; i++) {
		char c = json.p[i];
		if (str) {
			if (c == '\\')
				i++;
			else if (c == '"')
				str = false;
		} else if (c == '"') {
			str = true;
		} else if (c == '{' || c == '[') {
			if (++depth > deepest)
				deepest = depth;
		} else if (c == '}' || c == ']') {
			depth--;
		}
	}
	return deepest;
}

static bool is_known(struct strv key, const char *const *known)
{
	for (; *known; known++)
		if (strv_eq(key, strv_of(*known)))
			return true;
	return false;
}

enum status type_extra_parse(const struct jval *object, const char *const *known, struct arena *a,
			     struct type_extra *ret_extra, struct err *err)
{
	struct type_extra extra = {NULL, 0};
	size_t n = 0;
	for (struct jval_iter it = jval_iter(object); jval_next(&it);)
		n += !is_known(it.key, known);
	if (n == 0) {
		*ret_extra = extra;
		return ST_OK;
	}
	extra.m = arena_calloc(a, n, sizeof *extra.m);
	if (!extra.m)
		return no_memory(err);
	struct buf b;
	buf_init(&b, EXTRA_MAX_BYTES);
	enum status st = ST_OK;
	for (struct jval_iter it = jval_iter(object); st == ST_OK && jval_next(&it);) {
		if (is_known(it.key, known))
			continue;
		buf_clear(&b);
		jval_dump(&b, it.val);
		struct type_member *m = &extra.m[extra.n++];
		if (!buf_ok(&b) || text_depth(buf_strv(&b)) > EXTRA_MAX_DEPTH)
			st = err_set(err, ST_LIMIT, "",
				     "the unknown member \"%.*s\" is too large or too deep",
				     STRV_ARG(it.key));
		else if (!arena_strv(a, it.key, &m->key) || !arena_strv(a, buf_strv(&b), &m->json))
			st = no_memory(err);
	}
	buf_fini(&b);
	if (st == ST_OK)
		*ret_extra = extra;
	return st;
}

void type_extra_write(struct jwrite *w, const struct type_extra *extra)
{
	for (size_t i = 0; i < extra->n; i++) {
		jwrite_keyv(w, extra->m[i].key);
		jwrite_raw(w, extra->m[i].json);
	}
}

/* JSON of types. The parsers below call each other to at most MAX_DEPTH levels of JSON. */

static enum status parse_type(const struct jval *v, int depth, enum status bad, struct arena *a,
			      struct type **ret_type, struct err *err);

static enum status copy(struct arena *a, struct strv *s, struct err *err)
{
	return arena_strv(a, *s, s) ? ST_OK : no_memory(err);
}

static enum status parse_field(const struct jval *v, int depth, enum status bad, struct arena *a,
			       struct field *f, struct err *err)
{
	static const char *const known[] = {
		"id", "name", "required", "type", "doc", "initial-default", "write-default", NULL};
	enum status st;
	if (!jval_is_object(v))
		return err_set(err, bad, "", "not an object");
	if ((st = jval_need_i32(v, "id", bad, &f->id, err)) != ST_OK ||
	    (st = jval_need_str(v, "name", bad, &f->name, err)) != ST_OK ||
	    (st = jval_need_bool(v, "required", bad, &f->required, err)) != ST_OK ||
	    (st = jval_opt_str(v, "doc", bad, &f->doc, &f->has_doc, err)) != ST_OK ||
	    (st = copy(a, &f->name, err)) != ST_OK)
		return st;
	if (f->has_doc && (st = copy(a, &f->doc, err)) != ST_OK)
		return st;
	if ((st = parse_type(jval_get(v, "type"), depth + 1, bad, a, &f->type, err)) != ST_OK) {
		err_prefix(err, "type");
		return st;
	}
	if ((st = value_text_default(f->type, jval_get(v, "initial-default"), bad, a,
				     &f->initial_default, err)) != ST_OK) {
		err_prefix(err, "initial-default");
		return st;
	}
	if ((st = value_text_default(f->type, jval_get(v, "write-default"), bad, a,
				     &f->write_default, err)) != ST_OK) {
		err_prefix(err, "write-default");
		return st;
	}
	return type_extra_parse(v, known, a, &f->extra, err);
}

static enum status parse_fields(const struct jval *array, int depth, enum status bad,
				struct arena *a, struct field **ret_fields, size_t *ret_n,
				struct err *err)
{
	size_t n = jval_count(array);
	struct field *fields = arena_calloc(a, n, sizeof *fields);
	if (!fields && n > 0)
		return no_memory(err);
	for (size_t i = 0; i < n; i++) {
		enum status st = parse_field(jval_at(array, i), depth + 1, bad, a, &fields[i], err);
		if (st != ST_OK) {
			err_prefix(err, "fields[%zu]", i);
			return st;
		}
	}
	*ret_fields = fields;
	*ret_n = n;
	return ST_OK;
}

static enum status parse_struct(const struct jval *v, int depth, enum status bad, struct arena *a,
				struct type *t, struct err *err)
{
	static const char *const known[] = {"type", "fields", NULL};
	const struct jval *array;
	enum status st = jval_need_array(v, "fields", bad, &array, err);
	t->kind = TYPE_STRUCT;
	if (st == ST_OK)
		st = parse_fields(array, depth + 1, bad, a, &t->u.st.fields, &t->u.st.n, err);
	return st == ST_OK ? type_extra_parse(v, known, a, &t->extra, err) : st;
}

static enum status parse_part(const struct jval *v, const char *key, int depth, enum status bad,
			      struct arena *a, struct type **ret_type, struct err *err)
{
	enum status st = parse_type(jval_get(v, key), depth + 1, bad, a, ret_type, err);
	if (st != ST_OK)
		err_prefix(err, "%s", key);
	return st;
}

static enum status parse_list(const struct jval *v, int depth, enum status bad, struct arena *a,
			      struct type *t, struct err *err)
{
	static const char *const known[] = {"type", "element-id", "element", "element-required",
					    NULL};
	enum status st;
	t->kind = TYPE_LIST;
	if ((st = jval_need_i32(v, "element-id", bad, &t->u.list.element_id, err)) != ST_OK ||
	    (st = jval_need_bool(v, "element-required", bad, &t->u.list.element_required, err)) !=
		    ST_OK ||
	    (st = parse_part(v, "element", depth, bad, a, &t->u.list.element, err)) != ST_OK)
		return st;
	return type_extra_parse(v, known, a, &t->extra, err);
}

static enum status parse_map(const struct jval *v, int depth, enum status bad, struct arena *a,
			     struct type *t, struct err *err)
{
	static const char *const known[] = {"type",  "key-id",         "key", "value-id",
					    "value", "value-required", NULL};
	enum status st;
	t->kind = TYPE_MAP;
	if ((st = jval_need_i32(v, "key-id", bad, &t->u.map.key_id, err)) != ST_OK ||
	    (st = jval_need_i32(v, "value-id", bad, &t->u.map.value_id, err)) != ST_OK ||
	    (st = jval_need_bool(v, "value-required", bad, &t->u.map.value_required, err)) !=
		    ST_OK ||
	    (st = parse_part(v, "key", depth, bad, a, &t->u.map.key, err)) != ST_OK ||
	    (st = parse_part(v, "value", depth, bad, a, &t->u.map.value, err)) != ST_OK)
		return st;
	return type_extra_parse(v, known, a, &t->extra, err);
}

static enum status parse_type(const struct jval *v, int depth, enum status bad, struct arena *a,
			      struct type **ret_type, struct err *err)
{
	struct strv text;
	if (depth > MAX_DEPTH)
		return err_set(err, bad, "", "types are nested too deeply");
	if (jval_as_str(v, &text))
		return type_parse_text(text, bad, a, ret_type, err);
	if (!jval_is_object(v))
		return err_set(err, bad, "",
			       "Cannot parse type from json: neither a string nor an object");
	enum status st = jval_need_str(v, "type", bad, &text, err);
	if (st != ST_OK)
		return st;
	struct type *t = arena_calloc(a, 1, sizeof *t);
	if (!t)
		return no_memory(err);
	if (strv_eq(text, STRV("struct")))
		st = parse_struct(v, depth, bad, a, t, err);
	else if (strv_eq(text, STRV("list")))
		st = parse_list(v, depth, bad, a, t, err);
	else if (strv_eq(text, STRV("map")))
		st = parse_map(v, depth, bad, a, t, err);
	else
		st = err_set(err, bad, "type",
			     "Cannot parse type from json: \"%.*s\" is not struct, list or map",
			     STRV_ARG(text));
	if (st == ST_OK)
		*ret_type = t;
	return st;
}

enum status type_parse(const struct jval *v, enum status bad, struct arena *a,
		       struct type **ret_type, struct err *err)
{
	return parse_type(v, 1, bad, a, ret_type, err);
}

enum status type_parse_fields(const struct jval *array, enum status bad, struct arena *a,
			      struct field **ret_fields, size_t *ret_n, struct err *err)
{
	if (!jval_is_array(array))
		return err_set(err, bad, "fields", "not an array");
	return parse_fields(array, 2, bad, a, ret_fields, ret_n, err);
}

void type_write_fields(struct jwrite *w, const struct field *fields, size_t n)
{
	jwrite_array(w);
	for (size_t i = 0; i < n; i++) {
		const struct field *f = &fields[i];
		jwrite_object(w);
		jwrite_ki64(w, "id", f->id);
		jwrite_kstr(w, "name", f->name);
		jwrite_kbool(w, "required", f->required);
		jwrite_key(w, "type");
		type_write(w, f->type);
		if (f->has_doc)
			jwrite_kstr(w, "doc", f->doc);
		if (f->initial_default.p) {
			jwrite_key(w, "initial-default");
			jwrite_raw(w, f->initial_default);
		}
		if (f->write_default.p) {
			jwrite_key(w, "write-default");
			jwrite_raw(w, f->write_default);
		}
		type_extra_write(w, &f->extra);
		jwrite_end_object(w);
	}
	jwrite_end_array(w);
}

static void write_text(struct jwrite *w, const struct type *t)
{
	struct buf b;
	buf_init(&b, EXTRA_MAX_BYTES);
	type_text(&b, t);
	jwrite_str(w, buf_strv(&b));
	if (!buf_ok(&b))
		w->b->failed = true;
	buf_fini(&b);
}

/* Depth: that of the type, which the parser kept below MAX_DEPTH. */
void type_write(struct jwrite *w, const struct type *t)
{
	if (!type_is_nested(t)) {
		write_text(w, t);
		return;
	}
	jwrite_object(w);
	jwrite_kstr(w, "type", strv_of(type_kind_name(t->kind)));
	if (t->kind == TYPE_STRUCT) {
		jwrite_key(w, "fields");
		type_write_fields(w, t->u.st.fields, t->u.st.n);
	} else if (t->kind == TYPE_LIST) {
		jwrite_ki64(w, "element-id", t->u.list.element_id);
		jwrite_key(w, "element");
		type_write(w, t->u.list.element);
		jwrite_kbool(w, "element-required", t->u.list.element_required);
	} else {
		jwrite_ki64(w, "key-id", t->u.map.key_id);
		jwrite_key(w, "key");
		type_write(w, t->u.map.key);
		jwrite_ki64(w, "value-id", t->u.map.value_id);
		jwrite_key(w, "value");
		type_write(w, t->u.map.value);
		jwrite_kbool(w, "value-required", t->u.map.value_required);
	}
	type_extra_write(w, &t->extra);
	jwrite_end_object(w);
}

/* Rules */

/* Depth: that of the types, which the parser kept below MAX_DEPTH. */
bool type_eq(const struct type *x, const struct type *y)
{
	if (x->kind != y->kind)
		return false;
	switch (x->kind) {
	case TYPE_STRUCT:
		return type_fields_eq(x->u.st.fields, x->u.st.n, y->u.st.fields, y->u.st.n);
	case TYPE_LIST:
		return x->u.list.element_id == y->u.list.element_id &&
		       x->u.list.element_required == y->u.list.element_required &&
		       type_eq(x->u.list.element, y->u.list.element);
	case TYPE_MAP:
		return x->u.map.key_id == y->u.map.key_id &&
		       x->u.map.value_id == y->u.map.value_id &&
		       x->u.map.value_required == y->u.map.value_required &&
		       type_eq(x->u.map.key, y->u.map.key) &&
		       type_eq(x->u.map.value, y->u.map.value);
	default:
		return x->length == y->length && x->precision == y->precision &&
		       x->scale == y->scale && strv_eq(x->crs, y->crs) &&
		       strv_eq(x->algorithm, y->algorithm);
	}
}

bool type_fields_eq(const struct field *x, size_t nx, const struct field *y, size_t ny)
{
	if (nx != ny)
		return false;
	for (size_t i = 0; i < nx; i++) {
		const struct field *f = &x[i], *g = &y[i];
		if (f->id != g->id || !strv_eq(f->name, g->name) || f->required != g->required ||
		    f->has_doc != g->has_doc || (f->has_doc && !strv_eq(f->doc, g->doc)) ||
		    (f->initial_default.p == NULL) != (g->initial_default.p == NULL) ||
		    (f->write_default.p == NULL) != (g->write_default.p == NULL) ||
		    !strv_eq(f->initial_default, g->initial_default) ||
		    !strv_eq(f->write_default, g->write_default) || !type_eq(f->type, g->type))
			return false;
	}
	return true;
}

int type_min_version(const struct type *t)
{
	switch (t->kind) {
	case TYPE_TIMESTAMP_NS:
	case TYPE_TIMESTAMPTZ_NS:
	case TYPE_UNKNOWN:
	case TYPE_VARIANT:
	case TYPE_GEOMETRY:
	case TYPE_GEOGRAPHY:
		return 3;
	default:
		return 1;
	}
}

bool type_promotes(const struct type *from, const struct type *to, int format_version)
{
	if (!type_is_nested(from) && !type_is_nested(to) && type_eq(from, to))
		return true;
	switch (from->kind) {
	case TYPE_INT:
		return to->kind == TYPE_LONG;
	case TYPE_FLOAT:
		return to->kind == TYPE_DOUBLE;
	case TYPE_DECIMAL:
		return to->kind == TYPE_DECIMAL && to->scale == from->scale &&
		       to->precision > from->precision;
	case TYPE_DATE:
		return format_version >= 3 &&
		       (to->kind == TYPE_TIMESTAMP || to->kind == TYPE_TIMESTAMP_NS);
	case TYPE_UNKNOWN:
		return format_version >= 3;
	default:
		return false;
	}
}
