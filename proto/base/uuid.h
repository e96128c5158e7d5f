/* UUIDs. Randomness comes from the caller, so that pure code stays deterministic. */
#ifndef PROTO_BASE_UUID_H
#define PROTO_BASE_UUID_H

#include "proto/base/strv.h"

struct uuid {
	uint8_t b[16];
};

#define UUID_TEXT_LEN 36

/* Each kind of id wraps one, so that the compiler tells them apart. */
struct txn_id {
	struct uuid u;
};
struct table_id {
	struct uuid u;
};
struct daemon_id {
	struct uuid u;
};
struct batch_id {
	struct uuid u;
};

static inline bool uuid_eq(struct uuid a, struct uuid b)
{
	return memcmp(a.b, b.b, 16) == 0;
}
static inline int uuid_cmp(struct uuid a, struct uuid b)
{
	return memcmp(a.b, b.b, 16);
}
bool uuid_is_nil(struct uuid u);
/* Canonical text of 36 characters, either case. */
MUST_CHECK bool uuid_parse(struct strv s, struct uuid *ret_u);
/* Lower case; out holds UUID_TEXT_LEN + 1 bytes and is ended with NUL. */
void uuid_text(struct uuid u, char *out);
/* Version 4 from 16 random bytes. */
struct uuid uuid_v4(const uint8_t random[16]);
/* Version 7 (RFC 9562) from a Unix time in milliseconds and 10 random bytes. */
struct uuid uuid_v7(int64_t unix_ms, const uint8_t random[10]);
/* The version nibble. */
int uuid_version(struct uuid u);
/* The 48-bit millisecond time of a version 7 id. */
int64_t uuid_v7_ms(struct uuid u);

#endif
