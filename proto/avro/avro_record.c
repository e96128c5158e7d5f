#include "proto/avro/avro_record.h"

#include "proto/avro/avro_bin.h"
#include "proto/avro/avro_value.h"

/* All walks below descend along the static tables, at most four levels. */

static const char *prim_avro(enum avro_kind kind)
{
	switch (kind) {
	case AVRO_I32:
		return "int";
	case AVRO_I64:
	case AVRO_CONST:
		return "long";
	case AVRO_BOOL:
		return "boolean";
	case AVRO_STR:
		return "string";
	default:
		return "bytes";
	}
}

static const char *prim_iceberg(enum avro_kind kind)
{
	return kind == AVRO_BYTES ? "binary" : prim_avro(kind);
}

/* ---- names ---- */

static bool letter(uint32_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* The code point at *io_at of well-formed UTF-8; a stray byte stands for itself. */
static uint32_t code_point(struct strv s, size_t *io_at)
{
	const uint8_t *p = (const uint8_t *)s.p + *io_at;
	size_t left = s.n - *io_at;
	size_t n = p[0] < 0xc0 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	if (n == 1 || n > left) {
		*io_at += 1;
		return p[0];
	}
	uint32_t c = p[0] & (0xffu >> (n + 1));
	for (size_t i = 1; i < n; i++)
		c = c << 6 | (p[i] & 0x3f);
	*io_at += n;
	return c;
}

/* Avro names are [A-Za-z_][A-Za-z0-9_]*. What is not becomes _x and the hexadecimal of its UTF-16
 * units; a leading digit gets an underscore. false when nothing had to change. */
static bool sanitise(struct buf *b, struct strv name)
{
	bool changed = name.n == 0;
	for (size_t at = 0; at < name.n;) {
		bool first = at == 0;
		uint32_t c = code_point(name, &at);
		bool digit = c >= '0' && c <= '9';
		if (letter(c) || (digit && !first)) {
			buf_putc(b, (uint8_t)c);
			continue;
		}
		changed = true;
		if (digit)
			buf_printf(b, "_%c", (int)c);
		else if (c > 0xffff)
			buf_printf(b, "_x%X_x%X", 0xd800 + ((c - 0x10000) >> 10),
				   0xdc00 + (c & 0x3ff));
		else
			buf_printf(b, "_x%X", c);
	}
	if (name.n == 0)
		buf_putc(b, '_');
	return changed;
}

static bool clean(struct strv name)
{
	for (size_t i = 0; i < name.n; i++)
		if (!letter((uint8_t)name.p[i]) && !(i && name.p[i] >= '0' && name.p[i] <= '9'))
			return false;
	return name.n > 0;
}

/* Two partition fields may differ only in what sanitising hides; readers go by field-id, yet a
 * record with a name twice is refused by Avro parsers. The id then makes the difference. */
static bool taken(const struct avro_col *cols, size_t i, struct strv name, size_t max)
{
	bool all_clean = clean(cols[i].label);
	for (size_t j = 0; j < i; j++)
		all_clean = all_clean && clean(cols[j].label);
	if (all_clean)
		return false; /* names of a spec are unique */
	bool hit = false;
	for (size_t j = 0; j < i && !hit; j++) {
		struct buf other;
		buf_init(&other, max);
		sanitise(&other, cols[j].label);
		hit = buf_ok(&other) && strv_eq(buf_strv(&other), name);
		buf_fini(&other);
	}
	return hit;
}

static void tuple_field_name(struct jwrite *w, const struct avro_col *cols, size_t i)
{
	struct strv label = cols[i].label;
	struct buf name;
	buf_init(&name, w->b->max);
	bool changed = sanitise(&name, label);
	if (taken(cols, i, buf_strv(&name), w->b->max)) {
		buf_printf(&name, "_%d", cols[i].id);
		changed = true;
	}
	if (!buf_ok(&name))
		w->b->failed = true;
	jwrite_kstr(w, "name", buf_strv(&name));
	buf_fini(&name);
	if (changed)
		jwrite_kstr(w, "iceberg-field-name", label);
}

/* ---- Avro schema ---- */

static void record_schema(struct jwrite *w, const char *name, const struct avro_col *cols, size_t n,
			  int version);

static void map_schema(struct jwrite *w, const struct avro_col *c, int version)
{
	jwrite_object(w);
	jwrite_kstr(w, "type", STRV("array"));
	jwrite_key(w, "items");
	if (c->elem == AVRO_RECORD)
		record_schema(w, c->rec, c->sub, c->n_sub, version);
	else
		jwrite_str(w, strv_of(prim_avro(c->elem)));
	if (c->map)
		jwrite_kstr(w, "logicalType", STRV("map"));
	else
		jwrite_ki64(w, "element-id", c->elem_id);
	jwrite_end_object(w);
}

static void type_schema(struct jwrite *w, const struct avro_col *cols, size_t i, int version)
{
	const struct avro_col *c = &cols[i];
	bool defined = false;
	switch (c->kind) {
	case AVRO_RECORD:
	case AVRO_TUPLE:
		record_schema(w, c->rec, c->sub, c->n_sub, version);
		return;
	case AVRO_LIST:
		map_schema(w, c, version);
		return;
	case AVRO_VALUE:
		for (size_t j = 0; j < i && !defined; j++)
			defined = avro_value_same_name(cols[j].type, c->type);
		avro_value_schema(w, c->type, defined ? c->id : 0);
		return;
	default:
		jwrite_str(w, strv_of(prim_avro(c->kind)));
	}
}

/* A column of type unknown is plain null: a union may not hold null twice. */
static bool always_null(const struct avro_col *c)
{
	if (c->kind != AVRO_VALUE)
		return false;
	return c->type->kind == TYPE_UNKNOWN || !type_is_primitive(c->type);
}

static void record_schema(struct jwrite *w, const char *name, const struct avro_col *cols, size_t n,
			  int version)
{
	jwrite_object(w);
	jwrite_kstr(w, "type", STRV("record"));
	jwrite_kstr(w, "name", strv_of(name));
	jwrite_key(w, "fields");
	jwrite_array(w);
	for (size_t i = 0; i < n; i++) {
		char mode = cols[i].in[version - 1];
		if (mode == '-')
			continue;
		bool optional = mode == 'o';
		jwrite_object(w);
		if (cols[i].kind == AVRO_VALUE)
			tuple_field_name(w, cols, i);
		else
			jwrite_kstr(w, "name", strv_of(cols[i].name));
		jwrite_key(w, "type");
		if (optional && !always_null(&cols[i])) {
			jwrite_array(w);
			jwrite_str(w, STRV("null"));
			type_schema(w, cols, i, version);
			jwrite_end_array(w);
		} else {
			type_schema(w, cols, i, version);
		}
		if (optional) {
			jwrite_key(w, "default");
			jwrite_null(w);
		}
		jwrite_ki64(w, "field-id", cols[i].id);
		jwrite_end_object(w);
	}
	jwrite_end_array(w);
	jwrite_end_object(w);
}

void avro_record_schema(struct jwrite *w, const char *name, const struct avro_col *cols, size_t n,
			int version)
{
	ASSERT(version >= 1 && version <= 3);
	record_schema(w, name, cols, n, version);
}

/* ---- Iceberg schema ---- */

static void struct_iceberg(struct jwrite *w, const struct avro_col *cols, size_t n, int version,
			   bool top);

static void list_iceberg(struct jwrite *w, const struct avro_col *c, int version)
{
	jwrite_object(w);
	jwrite_kstr(w, "type", c->map ? STRV("map") : STRV("list"));
	if (c->map) {
		jwrite_ki64(w, "key-id", c->sub[0].id);
		jwrite_kstr(w, "key", strv_of(prim_iceberg(c->sub[0].kind)));
		jwrite_ki64(w, "value-id", c->sub[1].id);
		jwrite_kstr(w, "value", strv_of(prim_iceberg(c->sub[1].kind)));
		jwrite_kbool(w, "value-required", true);
	} else {
		jwrite_ki64(w, "element-id", c->elem_id);
		jwrite_key(w, "element");
		if (c->elem == AVRO_RECORD)
			struct_iceberg(w, c->sub, c->n_sub, version, false);
		else
			jwrite_str(w, strv_of(prim_iceberg(c->elem)));
		jwrite_kbool(w, "element-required", true);
	}
	jwrite_end_object(w);
}

static void type_iceberg(struct jwrite *w, const struct avro_col *c, int version)
{
	switch (c->kind) {
	case AVRO_RECORD:
	case AVRO_TUPLE:
		struct_iceberg(w, c->sub, c->n_sub, version, false);
		return;
	case AVRO_LIST:
		list_iceberg(w, c, version);
		return;
	case AVRO_VALUE:
		type_write(w, c->type);
		return;
	default:
		jwrite_str(w, strv_of(prim_iceberg(c->kind)));
	}
}

static void struct_iceberg(struct jwrite *w, const struct avro_col *cols, size_t n, int version,
			   bool top)
{
	jwrite_object(w);
	jwrite_kstr(w, "type", STRV("struct"));
	if (top)
		jwrite_ki64(w, "schema-id", 0);
	jwrite_key(w, "fields");
	jwrite_array(w);
	for (size_t i = 0; i < n; i++) {
		char mode = cols[i].in[version - 1];
		if (mode == '-')
			continue;
		jwrite_object(w);
		jwrite_ki64(w, "id", cols[i].id);
		jwrite_kstr(w, "name",
			    cols[i].kind == AVRO_VALUE ? cols[i].label : strv_of(cols[i].name));
		jwrite_kbool(w, "required", mode == 'r');
		jwrite_key(w, "type");
		type_iceberg(w, &cols[i], version);
		jwrite_end_object(w);
	}
	jwrite_end_array(w);
	jwrite_end_object(w);
}

void avro_record_iceberg(struct jwrite *w, const struct avro_col *cols, size_t n, int version)
{
	ASSERT(version >= 1 && version <= 3);
	struct_iceberg(w, cols, n, version, true);
}

/* ---- datums ---- */

#define MEMBER(type, base, off) ((const type *)(const void *)((const uint8_t *)(base) + (off)))

static bool absent(const struct avro_col *c, const void *base)
{
	if (c->kind == AVRO_LIST)
		return c->keep_empty ? !*MEMBER(void *, base, c->off)
				     : *MEMBER(size_t, base, c->flag) == 0;
	if (c->kind == AVRO_VALUE)
		return MEMBER(struct value, base, c->off)->null;
	if (c->flag != AVRO_NO_FLAG && c->kind != AVRO_TUPLE)
		return !*MEMBER(bool, base, c->flag);
	switch (c->kind) {
	case AVRO_I32:
		return *MEMBER(int32_t, base, c->off) == INT32_MIN;
	case AVRO_I64:
		return *MEMBER(int64_t, base, c->off) == INT64_MIN;
	case AVRO_STR:
		return !MEMBER(struct strv, base, c->off)->p;
	case AVRO_BYTES:
		return !MEMBER(struct bytes, base, c->off)->p;
	default:
		return false;
	}
}

static const struct avro_col *put_record(struct buf *b, const struct avro_col *cols, size_t n,
					 int version, const void *base);

static void put_prim(struct buf *b, enum avro_kind kind, const void *at)
{
	switch (kind) {
	case AVRO_I32:
		avro_bin_put_long(b, *(const int32_t *)at);
		return;
	case AVRO_I64:
		avro_bin_put_long(b, *(const int64_t *)at);
		return;
	case AVRO_BOOL:
		buf_putc(b, *(const bool *)at);
		return;
	case AVRO_STR:
		avro_bin_put_bytes(b, strv_bytes(*(const struct strv *)at));
		return;
	default:
		avro_bin_put_bytes(b, *(const struct bytes *)at);
		return;
	}
}

static const struct avro_col *put_list(struct buf *b, const struct avro_col *c, int version,
				       const void *base)
{
	size_t n = *MEMBER(size_t, base, c->flag);
	const uint8_t *items = *MEMBER(uint8_t *, base, c->off);
	if (n)
		avro_bin_put_long(b, (int64_t)n);
	for (size_t i = 0; i < n; i++, items += c->elem_size) {
		if (c->elem != AVRO_RECORD) {
			put_prim(b, c->elem, items);
			continue;
		}
		const struct avro_col *bad = put_record(b, c->sub, c->n_sub, version, items);
		if (bad)
			return bad;
	}
	avro_bin_put_long(b, 0);
	return NULL;
}

static const struct avro_col *put_member(struct buf *b, const struct avro_col *c, int version,
					 const void *base)
{
	const struct tuple *t;
	switch (c->kind) {
	case AVRO_CONST:
		avro_bin_put_long(b, (int64_t)c->off);
		return NULL;
	case AVRO_RECORD:
		return put_record(b, c->sub, c->n_sub, version, (const uint8_t *)base + c->off);
	case AVRO_TUPLE:
		t = MEMBER(struct tuple, base, c->off);
		return t->n == c->n_sub ? put_record(b, c->sub, c->n_sub, version, t->v) : c;
	case AVRO_VALUE:
		return avro_value_put(b, c->type, MEMBER(struct value, base, c->off)) ? NULL : c;
	case AVRO_LIST:
		return put_list(b, c, version, base);
	default:
		put_prim(b, c->kind, (const uint8_t *)base + c->off);
		return NULL;
	}
}

static const struct avro_col *put_record(struct buf *b, const struct avro_col *cols, size_t n,
					 int version, const void *base)
{
	for (size_t i = 0; i < n; i++) {
		const struct avro_col *c = &cols[i];
		char mode = c->in[version - 1];
		if (mode == '-')
			continue;
		bool none = absent(c, base);
		if (always_null(c)) {
			if (!none)
				return c;
			continue;
		}
		/* Required bytes without a pointer are empty bytes: a bound of the empty string. */
		if (none && mode == 'r' && c->kind != AVRO_BYTES)
			return c;
		if (mode == 'o') {
			buf_putc(b, none ? 0 : 2); /* union branch 0 or 1 */
			if (none)
				continue;
		}
		const struct avro_col *bad = put_member(b, c, version, base);
		if (bad)
			return bad;
	}
	return NULL;
}

const struct avro_col *avro_record_put(struct buf *b, const struct avro_col *cols, size_t n,
				       int version, const void *base)
{
	ASSERT(version >= 1 && version <= 3);
	return put_record(b, cols, n, version, base);
}
