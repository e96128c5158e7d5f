/* Digests and encodings of bytes; the only file of its layer that uses OpenSSL. Checksums of file
 * formats (CRC-32 of zlib, CRC-32C) live here too. */
#ifndef PROTO_BASE_DIGEST_H
#define PROTO_BASE_DIGEST_H

#include "proto/base/buf.h"

struct digest {
	uint8_t b[32];
};

/* SHA-256. */
struct digest digest_sha256(struct bytes data);
/* HMAC-SHA-256. */
struct digest digest_hmac(struct bytes key, struct bytes data);
static inline bool digest_eq(const struct digest *a, const struct digest *b)
{
	return memcmp(a->b, b->b, sizeof a->b) == 0;
}
/* Compares in constant time: for tokens. */
bool digest_eq_secret(struct bytes a, struct bytes b);
/* Streaming SHA-256; fini must follow init exactly once. */
struct digest_ctx {
	void *impl;
};
void digest_init(struct digest_ctx *c);
void digest_add(struct digest_ctx *c, struct bytes data);
struct digest digest_fini(struct digest_ctx *c);

/* CRC-32C (Castagnoli), as in RFC 3720; seed 0 to begin. */
uint32_t digest_crc32c(uint32_t seed, struct bytes data);
/* CRC-32 of zlib; seed 0 to begin. */
uint32_t digest_crc32(uint32_t seed, struct bytes data);

/* Cryptographic random bytes from the kernel; aborts when there are none. */
void digest_random(uint8_t *out, size_t n);

void digest_hex(struct buf *b, struct bytes data);
/* Standard base64 with padding (RFC 4648 §4). */
void digest_base64(struct buf *b, struct bytes data);
/* Strict: padded, no spaces. Appends to b; false on bad input (b then holds a part) or when b is
 * full. */
MUST_CHECK bool digest_unbase64(struct buf *b, struct strv text);

#endif
