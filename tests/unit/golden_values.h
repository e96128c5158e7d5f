/* Files of expected single values: rows of type, single-value JSON and bytes in hexadecimal. */
#ifndef TESTS_UNIT_GOLDEN_VALUES_H
#define TESTS_UNIT_GOLDEN_VALUES_H

#include "proto/base/digest.h"
#include "proto/iceberg/value_text.h"
#include "tests/unit/golden.h"

static UNUSED struct jdoc *golden_load(const char *path)
{
	struct err err = {0};
	struct jdoc *doc = NULL;
	struct buf b;
	buf_init(&b, 64 << 20);
	golden_read(path, &b);
	UNIT_OK(jdoc_parse(buf_bytes(&b), ST_CORRUPT, &doc, &err), &err);
	buf_fini(&b);
	return doc;
}

static UNUSED struct strv golden_str(const struct jval *row, const char *key)
{
	struct strv s = {NULL, 0};
	ck_assert_msg(jval_as_str(jval_get(row, key), &s), "no text %s", key);
	return s;
}

static UNUSED struct type *golden_type(struct arena *a, struct strv text)
{
	struct err err = {0};
	struct type *t = NULL;
	UNIT_OK(type_parse_text(text, ST_CORRUPT, a, &t, &err), &err);
	return t;
}

static UNUSED void golden_bytes(struct bytes got, struct strv want_hex, const char *what)
{
	struct buf hex;
	buf_init(&hex, 2 * got.n + 1);
	digest_hex(&hex, got);
	ck_assert_msg(strv_eq(buf_strv(&hex), want_hex), "%s: got %.*s, want %.*s", what,
		      STRV_ARG(buf_strv(&hex)), STRV_ARG(want_hex));
	buf_fini(&hex);
}

/* The value of the row's members "type" and "json". */
static UNUSED struct value golden_value(struct arena *a, const struct jval *row,
					const struct type *t)
{
	struct err err = {0};
	struct value v = VALUE_NULL;
	UNIT_OK(value_text_parse(t, jval_get(row, "json"), ST_CORRUPT, a, &v, &err), &err);
	return v;
}

/* The value of single-value bytes in hexadecimal. */
static UNUSED struct value golden_raw(struct arena *a, const struct type *t, struct strv hex)
{
	struct err err = {0};
	struct value v = VALUE_NULL;
	struct bytes b;
	struct buf raw;
	buf_init(&raw, hex.n + 1);
	golden_hex(hex.p, &raw);
	ck_assert_uint_eq(raw.n, hex.n / 2);
	ck_assert(arena_bytes(a, buf_bytes(&raw), &b));
	UNIT_OK(value_read(t, b, false, ST_CORRUPT, a, &v, &err), &err);
	buf_fini(&raw);
	return v;
}

static UNUSED struct strv golden_text(const struct jval *v)
{
	struct strv s = {NULL, 0};
	ck_assert_msg(jval_as_str(v, &s), "no text");
	return s;
}

#endif
