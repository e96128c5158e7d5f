#include "proto/avro/avro_value.h"

#include <stdio.h>

static const char *const wire_names[] = {
	[AVRO_WIRE_NULL] = "null",   [AVRO_WIRE_BOOLEAN] = "boolean", [AVRO_WIRE_INT] = "int",
	[AVRO_WIRE_LONG] = "long",   [AVRO_WIRE_FLOAT] = "float",     [AVRO_WIRE_DOUBLE] = "double",
	[AVRO_WIRE_BYTES] = "bytes", [AVRO_WIRE_STRING] = "string",
};

bool avro_value_wire(struct strv name, enum avro_wire *ret_wire)
{
	for (size_t i = 0; i < ARRAY_SIZE(wire_names); i++)
		if (strv_eq(name, strv_of(wire_names[i]))) {
			*ret_wire = (enum avro_wire)i;
			return true;
		}
	return false;
}

size_t avro_value_decimal_len(int32_t precision)
{
	ASSERT(precision >= 1 && precision <= TYPE_DECIMAL_MAX_PRECISION);
	unsigned __int128 max = 1;
	for (int32_t i = 0; i < precision; i++)
		max *= 10;
	size_t len = 1;
	/* One bit is the sign. 10^38 needs 127 bits, so that the shift stays in range. */
	while (len < 16 && max - 1 > ((unsigned __int128)1 << (8 * len - 1)) - 1)
		len++;
	return len;
}

/* Wire form and logical type by Iceberg type; a NULL logical type is none. */
static const struct {
	enum avro_wire wire;
	const char *logical;
	int utc; /* adjust-to-utc: -1 none */
} forms[] = {
	[TYPE_BOOLEAN] = {AVRO_WIRE_BOOLEAN, NULL, -1},
	[TYPE_INT] = {AVRO_WIRE_INT, NULL, -1},
	[TYPE_LONG] = {AVRO_WIRE_LONG, NULL, -1},
	[TYPE_FLOAT] = {AVRO_WIRE_FLOAT, NULL, -1},
	[TYPE_DOUBLE] = {AVRO_WIRE_DOUBLE, NULL, -1},
	[TYPE_DATE] = {AVRO_WIRE_INT, "date", -1},
	[TYPE_TIME] = {AVRO_WIRE_LONG, "time-micros", -1},
	[TYPE_TIMESTAMP] = {AVRO_WIRE_LONG, "timestamp-micros", 0},
	[TYPE_TIMESTAMPTZ] = {AVRO_WIRE_LONG, "timestamp-micros", 1},
	[TYPE_TIMESTAMP_NS] = {AVRO_WIRE_LONG, "timestamp-nanos", 0},
	[TYPE_TIMESTAMPTZ_NS] = {AVRO_WIRE_LONG, "timestamp-nanos", 1},
	[TYPE_STRING] = {AVRO_WIRE_STRING, NULL, -1},
	[TYPE_UUID] = {AVRO_WIRE_FIXED, "uuid", -1},
	[TYPE_FIXED] = {AVRO_WIRE_FIXED, NULL, -1},
	[TYPE_BINARY] = {AVRO_WIRE_BYTES, NULL, -1},
	[TYPE_DECIMAL] = {AVRO_WIRE_FIXED, "decimal", -1},
	[TYPE_UNKNOWN] = {AVRO_WIRE_NULL, NULL, -1},
	[TYPE_VARIANT] = {AVRO_WIRE_NULL, NULL, -1},
	/* Geometries are never partition values except under void, where all is null. */
	[TYPE_GEOMETRY] = {AVRO_WIRE_BYTES, NULL, -1},
	[TYPE_GEOGRAPHY] = {AVRO_WIRE_BYTES, NULL, -1},
	/* Likewise nested types under void. */
	[TYPE_STRUCT] = {AVRO_WIRE_NULL, NULL, -1},
	[TYPE_LIST] = {AVRO_WIRE_NULL, NULL, -1},
	[TYPE_MAP] = {AVRO_WIRE_NULL, NULL, -1},
};

static size_t fixed_len(const struct type *t)
{
	if (t->kind == TYPE_UUID)
		return 16;
	return t->kind == TYPE_DECIMAL ? avro_value_decimal_len(t->precision) : (size_t)t->length;
}

static void fixed_name(const struct type *t, int32_t suffix, char *out, size_t cap)
{
	char end[16] = "";
	if (suffix)
		snprintf(end, sizeof end, "_%d", suffix);
	if (t->kind == TYPE_UUID)
		snprintf(out, cap, "uuid_fixed%s", end);
	else if (t->kind == TYPE_DECIMAL)
		snprintf(out, cap, "decimal_%d_%d%s", t->precision, t->scale, end);
	else
		snprintf(out, cap, "fixed_%d%s", t->length, end);
}

void avro_value_schema(struct jwrite *w, const struct type *t, int32_t suffix)
{
	enum avro_wire wire = forms[t->kind].wire;
	const char *logical = forms[t->kind].logical;
	char name[64];
	if (wire != AVRO_WIRE_FIXED && !logical) {
		jwrite_str(w, strv_of(wire_names[wire]));
		return;
	}
	jwrite_object(w);
	if (wire == AVRO_WIRE_FIXED) {
		fixed_name(t, suffix, name, sizeof name);
		jwrite_kstr(w, "type", STRV("fixed"));
		jwrite_kstr(w, "name", strv_of(name));
		jwrite_ki64(w, "size", (int64_t)fixed_len(t));
	} else {
		jwrite_kstr(w, "type", strv_of(wire_names[wire]));
	}
	if (logical)
		jwrite_kstr(w, "logicalType", strv_of(logical));
	if (t->kind == TYPE_DECIMAL) {
		jwrite_ki64(w, "precision", t->precision);
		jwrite_ki64(w, "scale", t->scale);
	}
	if (forms[t->kind].utc >= 0)
		jwrite_kbool(w, "adjust-to-utc", forms[t->kind].utc);
	jwrite_end_object(w);
}

bool avro_value_same_name(const struct type *x, const struct type *y)
{
	return x->kind == y->kind && forms[x->kind].wire == AVRO_WIRE_FIXED &&
	       (x->kind == TYPE_UUID ||
		(x->kind == TYPE_FIXED ? x->length == y->length
				       : x->precision == y->precision && x->scale == y->scale));
}

bool avro_value_put(struct buf *b, const struct type *t, const struct value *v)
{
	struct bytes d = v->b;
	switch (forms[t->kind].wire) {
	case AVRO_WIRE_NULL:
		return false;
	case AVRO_WIRE_BOOLEAN:
		if (d.n != 1)
			return false;
		buf_putc(b, d.p[0] != 0);
		return true;
	case AVRO_WIRE_INT:
		if (d.n != 4)
			return false;
		avro_bin_put_long(b, (int32_t)get_u32le(d.p));
		return true;
	case AVRO_WIRE_LONG:
		if (d.n != 8)
			return false;
		avro_bin_put_long(b, (int64_t)get_u64le(d.p));
		return true;
	case AVRO_WIRE_FLOAT:
	case AVRO_WIRE_DOUBLE:
		/* Both forms are little-endian IEEE 754. */
		if (d.n != (t->kind == TYPE_FLOAT ? 4u : 8u))
			return false;
		buf_put(b, d.p, d.n);
		return true;
	case AVRO_WIRE_BYTES:
	case AVRO_WIRE_STRING:
		avro_bin_put_bytes(b, d);
		return true;
	case AVRO_WIRE_FIXED:
		break;
	}
	size_t len = fixed_len(t);
	if (t->kind != TYPE_DECIMAL && d.n != len)
		return false;
	if (d.n == 0 ? len != 0 : d.n > len)
		return false;
	/* A decimal in fewest bytes gets its sign bit repeated in front. */
	for (size_t i = d.n; i < len; i++)
		buf_putc(b, d.p[0] & 0x80 ? 0xff : 0);
	buf_put(b, d.p, d.n);
	return true;
}

static bool ends_millis(struct strv s)
{
	return strv_ends(s, STRV("-millis"));
}

/* The type that a file's own schema gives to a value. */
static enum status infer(struct avro_form form, const struct jval *attrs, struct type *t,
			 struct err *err)
{
	struct strv logical = {"", 0};
	bool utc = false;
	int64_t precision = 0, scale = 0;
	(void)!jval_as_str(jval_get(attrs, "logicalType"), &logical);
	(void)!jval_as_bool(jval_get(attrs, "adjust-to-utc"), &utc);
	switch (form.wire) {
	case AVRO_WIRE_NULL:
		return ST_OK;
	case AVRO_WIRE_BOOLEAN:
		t->kind = TYPE_BOOLEAN;
		return ST_OK;
	case AVRO_WIRE_INT:
		t->kind = strv_eq(logical, STRV("date")) ? TYPE_DATE : TYPE_INT;
		return ST_OK;
	case AVRO_WIRE_LONG:
		t->kind = TYPE_LONG;
		if (strv_eq(logical, STRV("time-micros")))
			t->kind = TYPE_TIME;
		else if (strv_eq(logical, STRV("timestamp-micros")))
			t->kind = utc ? TYPE_TIMESTAMPTZ : TYPE_TIMESTAMP;
		else if (strv_eq(logical, STRV("timestamp-nanos")))
			t->kind = utc ? TYPE_TIMESTAMPTZ_NS : TYPE_TIMESTAMP_NS;
		return ST_OK;
	case AVRO_WIRE_FLOAT:
		t->kind = TYPE_FLOAT;
		return ST_OK;
	case AVRO_WIRE_DOUBLE:
		t->kind = TYPE_DOUBLE;
		return ST_OK;
	case AVRO_WIRE_STRING:
		t->kind = TYPE_STRING;
		return ST_OK;
	case AVRO_WIRE_BYTES:
	case AVRO_WIRE_FIXED:
		break;
	}
	if (strv_eq(logical, STRV("decimal"))) {
		if (!jval_as_i64(jval_get(attrs, "precision"), &precision) || precision < 1 ||
		    precision > TYPE_DECIMAL_MAX_PRECISION ||
		    (!jval_is_null(jval_get(attrs, "scale")) &&
		     !jval_as_i64(jval_get(attrs, "scale"), &scale)) ||
		    scale < 0 || scale > precision)
			return err_set(err, ST_CORRUPT, "", "bad decimal in the Avro schema");
		t->kind = TYPE_DECIMAL;
		t->precision = (int32_t)precision;
		t->scale = (int32_t)scale;
	} else if (form.wire == AVRO_WIRE_BYTES) {
		t->kind = TYPE_BINARY;
	} else if (strv_eq(logical, STRV("uuid")) && form.fixed == 16) {
		t->kind = TYPE_UUID;
	} else {
		t->kind = TYPE_FIXED;
		t->length = (int32_t)form.fixed;
	}
	return ST_OK;
}

enum status avro_value_accept(struct avro_form form, const struct jval *attrs, struct type *t,
			      struct err *err)
{
	struct strv logical;
	if (form.wire == AVRO_WIRE_NULL)
		return ST_OK; /* every value is null, whatever the type */
	if (t->kind == TYPE_UNKNOWN)
		return infer(form, attrs, t, err);
	bool fits = form.wire == forms[t->kind].wire;
	switch (t->kind) {
	case TYPE_LONG:
	case TYPE_TIMESTAMP:
	case TYPE_TIMESTAMP_NS:
		fits = fits || form.wire == AVRO_WIRE_INT;
		break;
	case TYPE_DOUBLE:
		fits = fits || form.wire == AVRO_WIRE_FLOAT;
		break;
	case TYPE_UUID:
	case TYPE_FIXED:
		fits = fits && form.fixed == fixed_len(t);
		break;
	case TYPE_DECIMAL:
		fits = fits || form.wire == AVRO_WIRE_BYTES;
		break;
	default:
		break;
	}
	/* A unit that is not Iceberg's would be taken for microseconds. */
	if (jval_as_str(jval_get(attrs, "logicalType"), &logical) && ends_millis(logical))
		fits = false;
	return fits ? ST_OK
		    : err_set(err, ST_CORRUPT, "", "the Avro type cannot be read as %s",
			      type_name(t).z);
}

static enum status cut(struct err *err)
{
	return err_set(err, ST_CORRUPT, "", "the Avro data ends early");
}

enum status avro_value_get(struct avro_in *in, struct avro_form form, const struct type *t,
			   struct arena *a, struct value *ret_v, struct err *err)
{
	struct bytes b = {NULL, 0};
	int32_t i = 0;
	int64_t l = 0;
	uint8_t *p;
	bool ok = true;
	switch (form.wire) {
	case AVRO_WIRE_NULL:
		*ret_v = VALUE_NULL;
		return ST_OK;
	case AVRO_WIRE_BOOLEAN:
		ok = avro_bin_get_fixed(in, 1, &b);
		if (ok && b.p[0] > 1)
			return err_set(err, ST_CORRUPT, "", "a boolean is neither 0 nor 1");
		break;
	case AVRO_WIRE_INT:
		ok = avro_bin_get_int(in, &i);
		p = ok ? arena_alloc(a, 4) : NULL;
		if (ok && !p)
			return err_set(err, ST_LIMIT, "",
				       "partition values exceed the memory limit");
		if (p)
			put_u32le(p, (uint32_t)i);
		b = (struct bytes){p, 4};
		break;
	case AVRO_WIRE_LONG:
		ok = avro_bin_get_long(in, &l);
		p = ok ? arena_alloc(a, 8) : NULL;
		if (ok && !p)
			return err_set(err, ST_LIMIT, "",
				       "partition values exceed the memory limit");
		if (p)
			put_u64le(p, (uint64_t)l);
		b = (struct bytes){p, 8};
		break;
	case AVRO_WIRE_FLOAT:
		ok = avro_bin_get_fixed(in, 4, &b);
		break;
	case AVRO_WIRE_DOUBLE:
		ok = avro_bin_get_fixed(in, 8, &b);
		break;
	case AVRO_WIRE_BYTES:
	case AVRO_WIRE_STRING:
		ok = avro_bin_get_bytes(in, &b);
		break;
	case AVRO_WIRE_FIXED:
		ok = avro_bin_get_fixed(in, form.fixed, &b);
		break;
	}
	if (!ok)
		return cut(err);
	return value_read(t, b, true, ST_CORRUPT, a, ret_v, err);
}
