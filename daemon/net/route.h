/* From a raw request target to a route of route.tbl with its decoded segments and query. Splits on
 * the raw '/' first and decodes each segment alone, because names may hold an encoded slash or the
 * namespace separator 0x1F. Pure. */
#ifndef DAEMON_NET_ROUTE_H
#define DAEMON_NET_ROUTE_H

#include "proto/base/arena.h"
#include "proto/base/buf.h"
#include "proto/base/err.h"

enum route {
#define ROUTE(id, surface, method, path, kind) ROUTE_##id,
#include "daemon/net/route.tbl"
	/* /frazil/v1/…, any method: the worker protocol as JSON. */
	ROUTE_mirror,
	ROUTE__COUNT
};

/* Which port the request came in by. */
enum route_surface { ROUTE_REST, ROUTE_ADMIN };

#define ROUTE_PARAMS_MAX 4
#define ROUTE_SEGMENTS_MAX 16
#define ROUTE_ARGS_MAX 64

/* raw: as sent; text: decoded, valid UTF-8 without U+0000. */
struct route_part {
	struct strv raw, text;
};
struct route_arg {
	struct strv key; /* decoded */
	struct route_part value;
};

struct route_hit {
	enum route route;
	struct strv prefix; /* decoded; p NULL when the path has none */
	struct route_part params[ROUTE_PARAMS_MAX];
	size_t n_params;
	struct route_arg *args;
	size_t n_args;
	struct strv rest; /* ROUTE_mirror: raw path behind "/frazil/v1/" */
	char allow[40];   /* with METHOD_NOT_ALLOWED: value for Allow */
};

/* BAD_REQUEST for bad escapes, control characters, text that is not UTF-8; NOT_FOUND when no route
 * has the path; METHOD_NOT_ALLOWED fills ret_hit->allow. Memory from the arena (LIMIT when full).
 */
MUST_CHECK enum status route_match(enum route_surface surface, struct strv method,
				   struct strv target, struct arena *arena,
				   struct route_hit *ret_hit, struct err *err);
/* %XX, and '+' as a space: clients encode path segments like forms. Strict. */
MUST_CHECK enum status route_decode(struct arena *arena, struct strv raw, const char *field,
				    struct strv *ret_text, struct err *err);
/* The levels of a namespace: splits the raw text on the encoded 0x1F, then decodes each. An empty
 * level is BAD_REQUEST. */
MUST_CHECK enum status route_namespace(struct arena *arena, struct strv raw, const char *field,
				       struct strv **ret_levels, size_t *ret_n, struct err *err);
/* NULL when the query has no such key; the first otherwise. */
const struct route_arg *route_arg(const struct route_hit *hit, const char *key);

const char *route_name(enum route route);
/* Clients take 503 for "may have happened" here. */
bool route_is_commit(enum route route);
/* "GET /v1/{prefix}/namespaces" as the specification spells it; false for rows that are not of the
 * REST specification. */
bool route_endpoint(enum route route, struct buf *out);

#endif
