#include "proto/base/strv.h"

static unsigned char lower(char c)
{
	return (unsigned char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

int strv_cmp(struct strv a, struct strv b)
{
	size_t n = a.n < b.n ? a.n : b.n;
	int c = n ? memcmp(a.p, b.p, n) : 0;
	if (c != 0)
		return c;
	return a.n < b.n ? -1 : a.n > b.n;
}

bool strv_ieq(struct strv a, struct strv b)
{
	if (a.n != b.n)
		return false;
	for (size_t i = 0; i < a.n; i++)
		if (lower(a.p[i]) != lower(b.p[i]))
			return false;
	return true;
}

bool strv_starts(struct strv s, struct strv prefix)
{
	return s.n >= prefix.n && (prefix.n == 0 || memcmp(s.p, prefix.p, prefix.n) == 0);
}

bool strv_ends(struct strv s, struct strv suffix)
{
	return s.n >= suffix.n &&
	       (suffix.n == 0 || memcmp(s.p + s.n - suffix.n, suffix.p, suffix.n) == 0);
}

size_t strv_find(struct strv s, char c)
{
	const char *p = s.n ? memchr(s.p, c, s.n) : NULL;
	return p ? (size_t)(p - s.p) : s.n;
}

struct strv strv_sub(struct strv s, size_t from, size_t to)
{
	if (to > s.n)
		to = s.n;
	if (from > to)
		from = to;
	return (struct strv){s.p ? s.p + from : NULL, to - from};
}

bool strv_i64(struct strv s, int64_t *ret_v)
{
	bool neg = s.n > 0 && s.p[0] == '-';
	size_t i = neg ? 1 : 0;
	if (i == s.n)
		return false;
	int64_t v = 0;
	for (; i < s.n; i++) {
		if (s.p[i] < '0' || s.p[i] > '9')
			return false;
		int digit = s.p[i] - '0';
		if (__builtin_mul_overflow(v, 10, &v))
			return false;
		/* Built downwards for negatives, so that INT64_MIN parses. */
		if (neg ? __builtin_sub_overflow(v, digit, &v) : __builtin_add_overflow(v, digit, &v))
			return false;
	}
	*ret_v = v;
	return true;
}

bool strv_utf8(struct strv s)
{
	const uint8_t *p = (const uint8_t *)s.p;
	size_t i = 0;
	while (i < s.n) {
		uint8_t c = p[i];
		size_t more;
		uint32_t v, least;
		if (c < 0x80) {
			i++;
			continue;
		}
		if (c >= 0xc2 && c <= 0xdf) {
			more = 1;
			v = c & 0x1fu;
			least = 0x80;
		} else if (c >= 0xe0 && c <= 0xef) {
			more = 2;
			v = c & 0x0fu;
			least = 0x800;
		} else if (c >= 0xf0 && c <= 0xf4) {
			more = 3;
			v = c & 0x07u;
			least = 0x10000;
		} else {
			return false;
		}
		if (s.n - i <= more)
			return false;
		for (size_t k = 1; k <= more; k++) {
			if ((p[i + k] & 0xc0) != 0x80)
				return false;
			v = v << 6 | (p[i + k] & 0x3fu);
		}
		if (v < least || v > 0x10ffff || (v >= 0xd800 && v <= 0xdfff))
			return false;
		i += more + 1;
	}
	return true;
}

bool strv_cstr(struct strv s, char *dst, size_t cap)
{
	if (s.n >= cap || (s.n && memchr(s.p, 0, s.n)))
		return false;
	if (s.n)
		memcpy(dst, s.p, s.n);
	dst[s.n] = 0;
	return true;
}

uint64_t bytes_hash(struct bytes b)
{
	uint64_t h = 14695981039346656037u;
	for (size_t i = 0; i < b.n; i++)
		h = (h ^ b.p[i]) * 1099511628211u;
	return h;
}
