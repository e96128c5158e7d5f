#include "proto/iceberg/place.h"

#include "proto/base/arena.h"
#include "proto/iceberg/metadata.h"

/* Of the text that the server's index of places holds: one row of an index takes 2,704 bytes. */
#define INDEXED_MAX 2400

const char *const place_keys[PLACE_KEYS] = {
	"write.data.path",
	"write.metadata.path",
	"write.object-storage.path",
	"write.folder-storage.path",
};

bool place_is_key(struct strv key)
{
	for (size_t i = 0; i < PLACE_KEYS; i++)
		if (strv_eq(strv_of(place_keys[i]), key))
			return true;
	return false;
}

size_t place_list(const struct metadata *m, struct strv ret[PLACE_MAX])
{
	size_t n = 0;
	ret[n++] = metadata_location(m);
	for (size_t i = 0; i < PLACE_KEYS; i++) {
		struct strv v = metadata_property(m, place_keys[i]);
		if (v.n)
			ret[n++] = v;
	}
	return n;
}

bool place_copy(struct arena *a, const struct strv *places, size_t n, const struct strv **ret_places)
{
	struct strv *v = arena_calloc(a, n + 1, sizeof *v);
	for (size_t i = 0; v && i < n; i++)
		if (!arena_strv(a, places[i], &v[i]))
			return false;
	*ret_places = v;
	return v != NULL;
}

const char *place_field(const struct metadata *m, size_t i)
{
	size_t n = 0;
	for (size_t k = 0; i > 0 && k < PLACE_KEYS; k++)
		if (metadata_property(m, place_keys[k]).n && ++n == i)
			return place_keys[k];
	return "location";
}

/* ------------------------------------------------------------------ spelling */

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte at s, with a percent sign undone; *ret_n: how many bytes stand for it. */
static uint8_t unescaped(struct strv s, size_t *ret_n)
{
	*ret_n = 1;
	if (s.n < 3 || s.p[0] != '%' || hex(s.p[1]) < 0 || hex(s.p[2]) < 0)
		return (uint8_t)s.p[0];
	*ret_n = 3;
	return (uint8_t)(hex(s.p[1]) << 4 | hex(s.p[2]));
}

/* Length of a white space character, also of those that only Unicode knows, at s. */
static size_t white(struct strv s)
{
	const uint8_t *p = (const uint8_t *)s.p;
	if (s.n >= 1 && (p[0] == ' ' || (p[0] >= 9 && p[0] <= 13)))
		return 1;
	if (s.n >= 2 && p[0] == 0xc2 && (p[1] == 0xa0 || p[1] == 0x85))
		return 2;
	if (s.n < 3)
		return 0;
	bool wide = p[0] == 0xe2 && p[1] == 0x80 &&
		    ((p[2] >= 0x80 && p[2] <= 0x8b) || p[2] == 0xa8 || p[2] == 0xa9 || p[2] == 0xaf);
	wide |= p[0] == 0xe2 && p[1] == 0x81 && p[2] == 0x9f;
	wide |= p[0] == 0xe3 && p[1] == 0x80 && p[2] == 0x80;
	wide |= p[0] == 0xef && p[1] == 0xbb && p[2] == 0xbf;
	return wide ? 3 : 0;
}

static bool white_at_end(struct strv s)
{
	for (size_t k = 1; k <= 3 && k <= s.n; k++)
		if (white(strv_sub(s, s.n - k, s.n)) == k)
			return true;
	return white(s) > 0;
}

static enum status refuse(struct err *err, const char *what)
{
	return err_set(err, ST_ILLEGAL_ARGUMENT, "path", "a folder's name must not %s", what);
}

enum status place_check(struct strv uri, struct err *err)
{
	size_t n, indexed = 1, dots = 0, others = 0;
	if (uri.n == 0)
		return refuse(err, "be empty");
	if (white_at_end(uri))
		return refuse(err, "begin or end with white space");
	for (size_t i = 0; i <= uri.n; i += n) {
		n = 1;
		uint8_t c = i < uri.n ? unescaped(strv_sub(uri, i, uri.n), &n) : '/';
		if (n == 3 && (c == '/' || c == '\\'))
			return refuse(err, "hold a slash or backslash behind a percent sign");
		if (c == '\\')
			return refuse(err, "hold a backslash");
		if (c < 0x20 || c == 0x7f)
			return refuse(err, "hold a control character");
		if (c == '/' && !others && (dots == 1 || dots == 2))
			return refuse(err, "hold a \".\" or \"..\" part");
		dots = c == '/' ? 0 : dots + (c == '.');
		others = c == '/' ? 0 : others + (c != '.');
		indexed += c < 0x80 ? 1 : 4;
	}
	if (indexed > INDEXED_MAX)
		return refuse(err, "be longer than 2400 bytes, each outside of ASCII counted four times");
	return ST_OK;
}

/* ------------------------------------------------------------------ comparing */

static struct strv without_scheme(struct strv s)
{
	if (s.n < 6 || !strv_ieq(strv_sub(s, 0, 5), STRV("file:")) || s.p[5] != '/')
		return s;
	if (strv_starts(strv_sub(s, 5, s.n), STRV("///")))
		return strv_sub(s, 7, s.n);
	/* With a host it is another folder. */
	return s.n > 6 && s.p[6] == '/' ? s : strv_sub(s, 5, s.n);
}

/* The next part that is neither empty nor "."; false at the end. */
static bool next_part(struct strv *s, struct strv *ret_part)
{
	while (s->n) {
		size_t n = strv_find(*s, '/');
		*ret_part = strv_sub(*s, 0, n);
		*s = strv_sub(*s, n < s->n ? n + 1 : n, s->n);
		if (ret_part->n && !strv_eq(*ret_part, STRV(".")))
			return true;
	}
	return false;
}

bool place_beneath(struct strv folder, struct strv path)
{
	struct strv f = without_scheme(folder), p = without_scheme(path), want, have;
	while (next_part(&f, &want))
		if (!next_part(&p, &have) || !strv_eq(want, have) || strv_eq(have, STRV("..")))
			return false;
	bool below = false;
	while (next_part(&p, &have)) {
		if (strv_eq(have, STRV("..")))
			return false;
		below = true;
	}
	return below;
}
