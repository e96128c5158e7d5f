/* One Iceberg REST catalog at the other end: what its configuration says, paths in its spelling,
 * and requests that are tried again when that is safe. */
#ifndef CLIENTS_CTL_CTL_PEER_H
#define CLIENTS_CTL_CTL_PEER_H

#include "clients/ctl/ctl_auth.h"
#include "clients/ctl/ctl_fault.h"
#include "proto/base/arena.h"
#include "proto/base/buf.h"
#include "proto/base/jspan.h"

/* Largest answer of a catalog that is read, and memory for its index. */
#define PEER_ANSWER_MAX ((size_t)32 << 20)
#define PEER_INDEX_MAX ((size_t)96 << 20)

struct ctl_peer_options {
	const char *uri, *warehouse, *ca_file;
	struct ctl_auth_options auth;
	int timeout_ms; /* of one request */
};

struct ctl_peer;
struct ctl_http_link;

/* A thread's way to a catalog. */
struct ctl_peer_link {
	struct ctl_peer *peer;
	struct ctl_http_link *http;
	struct buf keep;
};

/* Asks for the configuration. NULL with a fault. */
struct ctl_peer *ctl_peer_new(const struct ctl_peer_options *o, struct ctl_fault *f);
void ctl_peer_free(struct ctl_peer *own_peer);
/* The address as given, for messages. */
const char *ctl_peer_uri(const struct ctl_peer *p);
/* Whether the catalog offers an endpoint of the specification, "GET /v1/{prefix}/namespaces";
 * true when it lists none at all, *ret_told (may be NULL) is then false. One thread at a time. */
bool ctl_peer_offers(struct ctl_peer *p, const char *endpoint, bool *ret_told);

void ctl_peer_link_init(struct ctl_peer_link *l, struct ctl_peer *p);
void ctl_peer_link_fini(struct ctl_peer_link *l); /* also one that is zeroed */

/* Appends "/v1/{prefix}/namespaces", then the namespace, `tail` ("tables") and a name, as far as
 * they are given. False with a fault when a level holds the catalog's separator: such a
 * namespace cannot be named there. */
bool ctl_peer_path(const struct ctl_peer *p, struct buf *b, const struct strv *levels, size_t n,
		   const char *tail, struct strv name, struct ctl_fault *f);
/* Appends "&parent=" and a namespace; the same fault. */
bool ctl_peer_parent(const struct ctl_peer *p, struct buf *b, const struct strv *levels, size_t n,
		     struct ctl_fault *f);
/* Appends text percent-encoded. */
void ctl_peer_quote(struct buf *b, struct strv s);

struct ctl_peer_answer {
	int status;
	struct buf body;
	struct arena arena;
	const struct jspan *root; /* of a 2xx answer with a body; borrows the body */
};

/* One request; `send` is a JSON body (n 0: none). GET is tried again after a lost connection and
 * 500, 502, 504; every request after 429 and 503 and, with a new token, once after 401. True for
 * a 2xx answer; otherwise a fault. To be released in either case. */
bool ctl_peer_ask(struct ctl_peer_link *l, const char *method, const struct buf *path,
		  struct strv send, struct ctl_peer_answer *a, struct ctl_fault *f);
void ctl_peer_release(struct ctl_peer_answer *a);

#endif
