/* Single values: any bytes are read as every type; what is taken must be canonical, survive its
 * JSON text, keep its order under cut bounds and give a result for every transform. The text form
 * is also read from any JSON. */
#include <stddef.h>
#include <stdint.h>

#include "proto/iceberg/transform.h"
#include "proto/iceberg/value_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void text_back(const struct type *t, const struct value *v, struct arena *a)
{
	struct buf b;
	struct jwrite w;
	struct jdoc *doc = NULL;
	struct value again;
	bool nan = value_is_nan(t, v);
	buf_init(&b, 64 << 20);
	value_text_human(&b, t, v);
	buf_clear(&b);
	jwrite_init(&w, &b);
	value_text_write(&w, t, v);
	enum status st = jdoc_parse(buf_bytes(&b), ST_CORRUPT, &doc, NULL);
	ASSERT(buf_ok(&b) && st == ST_OK);
	st = value_text_parse(t, jdoc_root(doc), ST_CORRUPT, a, &again, NULL);
	/* A decimal may pass its precision in bytes (by truncation) but not in text; JSON has no
	 * infinities. */
	if (st == ST_OK)
		ASSERT(value_eq(v, &again));
	else
		ASSERT(nan || t->kind == TYPE_DECIMAL || t->kind == TYPE_FLOAT ||
		       t->kind == TYPE_DOUBLE);
	jdoc_free(doc);
	buf_fini(&b);
}

static void value_laws(const struct type *t, const struct value *v, struct arena *a)
{
	struct value again, low = value_cut_lower(t, v, 3), high;
	bool has = false;
	enum status st = value_read(t, v->b, false, ST_CORRUPT, a, &again, NULL);
	ASSERT(st == ST_OK && value_eq(v, &again));
	if (!value_has_order(t))
		return;
	text_back(t, v, a);
	ASSERT(value_cmp(t, v, &again) == 0);
	ASSERT(value_valid(t, low.b) && value_cmp(t, &low, v) <= 0);
	if (value_cut_upper(t, v, 3, a, &high, &has) && has)
		ASSERT(value_valid(t, high.b) && value_cmp(t, v, &high) <= 0);
}

static void transforms(const struct type *t, const struct value *v, struct arena *a)
{
	static const char *const texts[] = {"identity", "bucket[7]", "truncate[3]", "year",
					    "month",    "day",       "hour",        "void"};
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct transform x;
		struct value out;
		enum status st = transform_parse(strv_of(texts[i]), ST_CORRUPT, a, &x, NULL);
		ASSERT(st == ST_OK);
		if (!transform_accepts(&x, t))
			continue;
		const struct type *result = transform_result(&x, t);
		st = transform_apply(&x, t, v, a, &out, NULL);
		if (st != ST_OK) {
			ASSERT(x.kind == TRANSFORM_HOUR ||
			       (x.kind == TRANSFORM_TRUNCATE && t->kind == TYPE_DECIMAL));
			continue;
		}
		ASSERT(out.null || t->kind == TYPE_DECIMAL || value_valid(result, out.b));
		ASSERT(transform_gives(&x, result, &out));
		struct buf b;
		buf_init(&b, 64 << 20);
		transform_human(&b, &x, result, &out);
		buf_fini(&b);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const types[] = {"boolean",
					    "int",
					    "long",
					    "float",
					    "double",
					    "date",
					    "time",
					    "timestamp",
					    "timestamptz",
					    "timestamp_ns",
					    "timestamptz_ns",
					    "string",
					    "uuid",
					    "fixed[5]",
					    "binary",
					    "decimal(9, 2)",
					    "decimal(38, 38)",
					    "unknown",
					    "variant",
					    "geometry",
					    "geography"};
	struct jdoc *doc = NULL;
	struct arena a;
	struct err err;
	if (jdoc_parse((struct bytes){data, size}, ST_BAD_REQUEST, &doc, &err) != ST_OK)
		doc = NULL;
	arena_init(&a, 16 << 20);
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		struct type *t;
		struct value v;
		enum status st = type_parse_text(strv_of(types[i]), ST_CORRUPT, &a, &t, &err);
		ASSERT(st == ST_OK);
		if (value_read(t, (struct bytes){data, size}, false, ST_BAD_REQUEST, &a, &v,
			       &err) == ST_OK) {
			value_laws(t, &v, &a);
			transforms(t, &v, &a);
		}
		if (value_read(t, (struct bytes){data, size}, true, ST_BAD_REQUEST, &a, &v, &err) ==
			    ST_OK &&
		    value_has_order(t))
			ASSERT(value_cmp(t, &v, &v) == 0);
		if (doc &&
		    value_text_parse(t, jdoc_root(doc), ST_BAD_REQUEST, &a, &v, &err) == ST_OK &&
		    !v.null) {
			value_laws(t, &v, &a);
			transforms(t, &v, &a);
		}
	}
	arena_fini(&a);
	jdoc_free(doc);
	return 0;
}
