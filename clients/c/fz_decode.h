/* Payloads of answers to public structs: checked by fz_scan, read by avro-c, copied into an arena.
 */
#ifndef CLIENTS_C_FZ_DECODE_H
#define CLIENTS_C_FZ_DECODE_H

#include "clients/c/frazil.h"
#include "clients/c/fz_schemas.h"
#include "proto/base/arena.h"
#include "proto/base/digest.h"

/* Bytes that one element of an array may take in avro-c's value and in our copy together. */
#define FZ_DECODE_ITEM_BYTES 512

/* The members that belong to the message are set; they point into the arena. */
struct fz_decoded {
	struct fz_hello *hello;
	struct fz_info *info;
	struct bytes token; /* beside info */
	struct fz_staged *staged;
	struct digest set_digest;
	struct fz_outcome *outcome;
	struct fz_lease_state *leases;
	size_t n_leases;
	struct fz_error *error;
};

/* FZ_PROTOCOL for a number that is no answer, malformed data, and data whose decoded form would
 * pass the arena's limit, which is judged before avro-c allocates. */
MUST_CHECK enum fz_status fz_decode(struct fz_schemas *schemas, int msg, struct bytes payload,
				    struct arena *arena, struct fz_decoded *ret_d,
				    struct fz_error *err);

#endif
