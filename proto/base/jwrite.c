#include "proto/base/jwrite.h"

void jwrite_init(struct jwrite *w, struct buf *b)
{
	*w = (struct jwrite){.b = b};
}

static void before_value(struct jwrite *w)
{
	if (w->keyed) {
		w->keyed = false;
		return;
	}
	if (w->some[w->depth])
		buf_putc(w->b, ',');
	w->some[w->depth] = 1;
}

static void open_level(struct jwrite *w, char c)
{
	before_value(w);
	ASSERT(w->depth + 1 < JWRITE_DEPTH);
	w->some[++w->depth] = 0;
	buf_putc(w->b, (uint8_t)c);
}

static void close_level(struct jwrite *w, char c)
{
	ASSERT(w->depth > 0 && !w->keyed);
	w->depth--;
	buf_putc(w->b, (uint8_t)c);
}

void jwrite_object(struct jwrite *w)
{
	open_level(w, '{');
}
void jwrite_end_object(struct jwrite *w)
{
	close_level(w, '}');
}
void jwrite_array(struct jwrite *w)
{
	open_level(w, '[');
}
void jwrite_end_array(struct jwrite *w)
{
	close_level(w, ']');
}

void jwrite_quote(struct buf *b, struct strv s)
{
	/* An empty view may have no pointer. */
	if (s.n == 0) {
		buf_puts(b, "\"\"");
		return;
	}
	buf_putc(b, '"');
	size_t from = 0;
	for (size_t i = 0; i < s.n; i++) {
		uint8_t c = (uint8_t)s.p[i];
		if (c >= 0x20 && c != '"' && c != '\\')
			continue;
		buf_put(b, s.p + from, i - from);
		from = i + 1;
		switch (c) {
		case '"':
			buf_puts(b, "\\\"");
			break;
		case '\\':
			buf_puts(b, "\\\\");
			break;
		case '\n':
			buf_puts(b, "\\n");
			break;
		case '\r':
			buf_puts(b, "\\r");
			break;
		case '\t':
			buf_puts(b, "\\t");
			break;
		default:
			buf_printf(b, "\\u%04x", c);
		}
	}
	buf_put(b, s.p + from, s.n - from);
	buf_putc(b, '"');
}

void jwrite_keyv(struct jwrite *w, struct strv key)
{
	ASSERT(w->depth > 0 && !w->keyed);
	before_value(w);
	jwrite_quote(w->b, key);
	buf_putc(w->b, ':');
	w->keyed = true;
}

void jwrite_key(struct jwrite *w, const char *key)
{
	size_t n = strlen(key);
	ASSERT(w->depth > 0 && !w->keyed);
	before_value(w);
	uint8_t *at = buf_room(w->b, n + 3);
	if (at) {
		at[0] = at[n + 1] = '"';
		memcpy(at + 1, key, n);
		at[n + 2] = ':';
	}
	w->keyed = true;
}

void jwrite_str(struct jwrite *w, struct strv s)
{
	before_value(w);
	jwrite_quote(w->b, s);
}

void jwrite_i64(struct jwrite *w, int64_t v)
{
	/* Logs of large tables are tens of thousands of numbers: no formatting by printf. */
	char digits[20], *p = digits + sizeof digits;
	uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
	before_value(w);
	do
		*--p = (char)('0' + u % 10);
	while ((u /= 10) > 0);
	if (v < 0)
		*--p = '-';
	buf_put(w->b, p, (size_t)(digits + sizeof digits - p));
}

void jwrite_bool(struct jwrite *w, bool v)
{
	before_value(w);
	buf_puts(w->b, v ? "true" : "false");
}

void jwrite_null(struct jwrite *w)
{
	before_value(w);
	buf_puts(w->b, "null");
}

void jwrite_raw(struct jwrite *w, struct strv json)
{
	before_value(w);
	buf_putv(w->b, json);
}

void jwrite_kstr(struct jwrite *w, const char *key, struct strv s)
{
	jwrite_key(w, key);
	jwrite_str(w, s);
}

void jwrite_ki64(struct jwrite *w, const char *key, int64_t v)
{
	jwrite_key(w, key);
	jwrite_i64(w, v);
}

void jwrite_kbool(struct jwrite *w, const char *key, bool v)
{
	jwrite_key(w, key);
	jwrite_bool(w, v);
}
