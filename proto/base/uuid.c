#include "proto/base/uuid.h"

bool uuid_is_nil(struct uuid u)
{
	static const struct uuid nil;
	return uuid_eq(u, nil);
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

bool uuid_parse(struct strv s, struct uuid *ret_u)
{
	if (s.n != UUID_TEXT_LEN)
		return false;
	struct uuid u;
	size_t k = 0;
	for (size_t i = 0; i < s.n;) {
		if (i == 8 || i == 13 || i == 18 || i == 23) {
			if (s.p[i++] != '-')
				return false;
			continue;
		}
		int hi = hex_value(s.p[i]), lo = hex_value(s.p[i + 1]);
		if (hi < 0 || lo < 0)
			return false;
		u.b[k++] = (uint8_t)(hi << 4 | lo);
		i += 2;
	}
	*ret_u = u;
	return true;
}

void uuid_text(struct uuid u, char *out)
{
	static const char digits[] = "0123456789abcdef";
	size_t at = 0;
	for (size_t i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			out[at++] = '-';
		out[at++] = digits[u.b[i] >> 4];
		out[at++] = digits[u.b[i] & 15];
	}
	out[at] = 0;
}

static struct uuid stamp(struct uuid u, uint8_t version)
{
	u.b[6] = (uint8_t)((u.b[6] & 0x0f) | version << 4);
	u.b[8] = (uint8_t)((u.b[8] & 0x3f) | 0x80);
	return u;
}

struct uuid uuid_v4(const uint8_t random[16])
{
	struct uuid u;
	memcpy(u.b, random, 16);
	return stamp(u, 4);
}

struct uuid uuid_v7(int64_t unix_ms, const uint8_t random[10])
{
	struct uuid u;
	for (int i = 0; i < 6; i++)
		u.b[i] = (uint8_t)((uint64_t)unix_ms >> (40 - 8 * i));
	memcpy(u.b + 6, random, 10);
	return stamp(u, 7);
}

int uuid_version(struct uuid u)
{
	return u.b[6] >> 4;
}

int64_t uuid_v7_ms(struct uuid u)
{
	uint64_t v = 0;
	for (int i = 0; i < 6; i++)
		v = v << 8 | u.b[i];
	return (int64_t)v;
}
