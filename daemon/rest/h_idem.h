/* Idempotency keys of mutations. A call with a key comes here before its handler and its answer
 * passes here on its way out: the first call of a key is worked on, others wait for it, and the final
 * answer is in PostgreSQL before it goes out, so that whoever repeats the request gets it again.
 *
 * What a handler does for it: it hands h_idem() to the statement that decides, and says so when that
 * statement has written the row. An answer that no statement decided is kept by one of its own. */
#ifndef DAEMON_REST_H_IDEM_H
#define DAEMON_REST_H_IDEM_H

#include "daemon/net/call.h"
#include "store/pg/pg_idem.h"

struct idem;

struct idem *h_idem_new(struct app *app);
/* No call may be held. */
void h_idem_free(struct idem *own_idem);
/* The gate of the route table. */
void h_idem_gate(struct call *own_call, route_fn fn);

/* For the statement that decides a call: its key with the status that success is answered with, and
 * whether the answer is made from the metadata file that is published. All zero without a key. */
struct sql_idem h_idem(const struct call *call, int http, bool file);
static inline struct pg_idem h_idem_pg(const struct call *call, int http)
{
	return (struct pg_idem){.k = h_idem(call, http, false)};
}
/* That statement has written the key's row. */
void h_idem_decided(struct call *call);
/* The coming answer is made from this metadata file. */
void h_idem_file(struct call *call, struct strv location);

/* Text of a time as ISO 8601 writes it: "PT30M". */
#define H_IDEM_DURATION_MAX 32
void h_idem_duration(int64_t ms, char out[H_IDEM_DURATION_MAX]);
/* A key as the REST specification wants it: a UUID of version 7 in its text form. */
MUST_CHECK enum status h_idem_parse(struct strv text, struct uuid *ret_key, struct err *err);
/* What a key is bound to: principal, method, target as sent, body. */
struct digest h_idem_bound(struct strv principal, struct strv method, struct strv target,
			   struct bytes body);

#endif
