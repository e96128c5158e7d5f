#include "proto/base/digest.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>
#include <zlib.h>

struct digest digest_sha256(struct bytes data)
{
	struct digest d;
	unsigned n = 0;
	ASSERT(EVP_Digest(data.n ? data.p : (const void *)"", data.n, d.b, &n, EVP_sha256(), NULL) == 1);
	ASSERT(n == sizeof d.b);
	return d;
}

struct digest digest_hmac(struct bytes key, struct bytes data)
{
	struct digest d;
	unsigned n = 0;
	ASSERT(key.n <= 4096);
	ASSERT(HMAC(EVP_sha256(), key.n ? key.p : (const void *)"", (int)key.n,
		    data.n ? data.p : (const void *)"", data.n, d.b, &n) != NULL);
	ASSERT(n == sizeof d.b);
	return d;
}

bool digest_eq_secret(struct bytes a, struct bytes b)
{
	return a.n == b.n && (a.n == 0 || CRYPTO_memcmp(a.p, b.p, a.n) == 0);
}

void digest_init(struct digest_ctx *c)
{
	EVP_MD_CTX *m = EVP_MD_CTX_new();
	ASSERT(m != NULL && EVP_DigestInit_ex(m, EVP_sha256(), NULL) == 1);
	c->impl = m;
}

void digest_add(struct digest_ctx *c, struct bytes data)
{
	if (data.n)
		ASSERT(EVP_DigestUpdate(c->impl, data.p, data.n) == 1);
}

struct digest digest_fini(struct digest_ctx *c)
{
	struct digest d;
	unsigned n = 0;
	ASSERT(EVP_DigestFinal_ex(c->impl, d.b, &n) == 1 && n == sizeof d.b);
	EVP_MD_CTX_free(c->impl);
	c->impl = NULL;
	return d;
}

/* Reflected polynomial 0x82f63b78, a table of 8 × 256 made once at load time by the compiler's
 * constructor, so that no caller races on it. */
static uint32_t crc32c_table[8][256];

__attribute__((constructor)) static void crc32c_build(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t v = i;
		for (int k = 0; k < 8; k++)
			v = v & 1 ? v >> 1 ^ 0x82f63b78u : v >> 1;
		crc32c_table[0][i] = v;
	}
	for (uint32_t i = 0; i < 256; i++)
		for (int t = 1; t < 8; t++)
			crc32c_table[t][i] = crc32c_table[t - 1][i] >> 8 ^
					     crc32c_table[0][crc32c_table[t - 1][i] & 255];
}

uint32_t digest_crc32c(uint32_t seed, struct bytes data)
{
	uint32_t v = ~seed;
	const uint8_t *p = data.p;
	size_t n = data.n;
	for (; n >= 8; n -= 8, p += 8) {
		uint32_t lo = v ^ get_u32le(p), hi = get_u32le(p + 4);
		v = crc32c_table[7][lo & 255] ^ crc32c_table[6][lo >> 8 & 255] ^
		    crc32c_table[5][lo >> 16 & 255] ^ crc32c_table[4][lo >> 24] ^
		    crc32c_table[3][hi & 255] ^ crc32c_table[2][hi >> 8 & 255] ^
		    crc32c_table[1][hi >> 16 & 255] ^ crc32c_table[0][hi >> 24];
	}
	for (; n; n--, p++)
		v = v >> 8 ^ crc32c_table[0][(v ^ *p) & 255];
	return ~v;
}

uint32_t digest_crc32(uint32_t seed, struct bytes data)
{
	/* crc32_z answers 0 for a null pointer, whatever the seed. */
	return data.n ? (uint32_t)crc32_z(seed, data.p, data.n) : seed;
}

void digest_random(uint8_t *out, size_t n)
{
	while (n) {
		ssize_t got = getrandom(out, n, 0);
		ASSERT(got > 0);
		out += got;
		n -= (size_t)got;
	}
}

void digest_hex(struct buf *b, struct bytes data)
{
	static const char digits[] = "0123456789abcdef";
	for (size_t i = 0; i < data.n; i++) {
		buf_putc(b, (uint8_t)digits[data.p[i] >> 4]);
		buf_putc(b, (uint8_t)digits[data.p[i] & 15]);
	}
}

static const char b64_digits[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void digest_base64(struct buf *b, struct bytes data)
{
	for (size_t i = 0; i < data.n; i += 3) {
		size_t left = data.n - i;
		uint32_t v = (uint32_t)data.p[i] << 16 | (left > 1 ? (uint32_t)data.p[i + 1] << 8 : 0) |
			     (left > 2 ? data.p[i + 2] : 0);
		buf_putc(b, (uint8_t)b64_digits[v >> 18]);
		buf_putc(b, (uint8_t)b64_digits[v >> 12 & 63]);
		buf_putc(b, (uint8_t)(left > 1 ? b64_digits[v >> 6 & 63] : '='));
		buf_putc(b, (uint8_t)(left > 2 ? b64_digits[v & 63] : '='));
	}
}

static int b64_value(char c)
{
	const char *at = c ? strchr(b64_digits, c) : NULL;
	return at ? (int)(at - b64_digits) : -1;
}

bool digest_unbase64(struct buf *b, struct strv text)
{
	if (text.n % 4)
		return false;
	for (size_t i = 0; i < text.n; i += 4) {
		bool last = i + 4 == text.n;
		size_t pad = last ? (size_t)(text.p[i + 3] == '=') + (text.p[i + 2] == '=' &&
								      text.p[i + 3] == '=')
				  : 0;
		uint32_t v = 0;
		for (size_t k = 0; k < 4; k++) {
			int d = k >= 4 - pad ? 0 : b64_value(text.p[i + k]);
			if (d < 0)
				return false;
			v = v << 6 | (uint32_t)d;
		}
		/* Bits under the padding must be zero: one text per value. */
		if ((pad == 1 && (v & 0xff)) || (pad == 2 && (v & 0xffff)))
			return false;
		uint8_t out[3] = {(uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v};
		buf_put(b, out, 3 - pad);
	}
	return buf_ok(b);
}
