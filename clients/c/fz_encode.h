/* Public structs to payloads, through avro-c values. */
#ifndef CLIENTS_C_FZ_ENCODE_H
#define CLIENTS_C_FZ_ENCODE_H

#include "clients/c/frazil.h"
#include "clients/c/fz_schemas.h"
#include "proto/base/buf.h"
#include "proto/base/digest.h"
#include "proto/base/uuid.h"

/* A transaction's begin as kept by the client: the strings are NUL-terminated and its own. */
struct fz_ref {
	const char *fragment_id;
	int32_t attempt;
	struct digest digest;
};

/* Totals of one fragment, for Seal. */
struct fz_totals {
	int64_t files, rows, deleted;
	bool unknown; /* task messages are not read here */
};

struct fz_lease {
	struct uuid txn_id;
	struct bytes token;
};

/* One message under construction. Errors stick: FZ_USAGE (memory, bad argument) from fz_encode_end.
 */
struct fz_encode {
	struct fz_schemas *schemas;
	size_t max; /* bytes of the payload and of one vector */
	struct fz_error *err;
	enum fz_status st;
	avro_value_t root;
	bool have_root;
};

void fz_encode_open(struct fz_encode *e, struct fz_schemas *schemas, enum fz_msg msg, size_t max,
		    struct fz_error *err);
/* Appends the payload to out; frees. */
MUST_CHECK enum fz_status fz_encode_close(struct fz_encode *e, struct buf *out);

void fz_encode_hello(struct fz_encode *e, int min_version, int max_version, const char *client,
		     bool provenance);
/* `txn_id` wins over begin->txn_id. */
void fz_encode_begin(struct fz_encode *e, struct uuid txn_id, const struct fz_begin *begin);
/* The digest of the fragment is computed here. */
void fz_encode_stage(struct fz_encode *e, const struct fz_lease *lease,
		     const struct fz_fragment *fragment, struct digest *ret_digest,
		     struct fz_totals *ret_totals);
void fz_encode_seal(struct fz_encode *e, const struct fz_lease *lease, const struct fz_ref *refs,
		    size_t n_refs, const struct fz_totals *totals);
void fz_encode_commit(struct fz_encode *e, const struct fz_lease *lease, int64_t max_wait_ms,
		      const struct fz_property *summary, size_t n_summary);
void fz_encode_commit_once(struct fz_encode *e, struct uuid txn_id, const struct fz_begin *begin,
			   const struct fz_fragment *fragments, size_t n_fragments,
			   int64_t max_wait_ms, const struct fz_property *summary,
			   size_t n_summary);
void fz_encode_status(struct fz_encode *e, struct uuid txn_id);
void fz_encode_abort(struct fz_encode *e, const struct fz_lease *lease, const char *reason);
void fz_encode_heartbeat(struct fz_encode *e, const struct fz_lease *leases, size_t n_leases);

#endif
