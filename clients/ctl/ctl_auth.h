/* Who we are at a catalog: a token from a file or from a token endpoint (OAuth2 client
 * credentials), and headers of the user's. Secrets come from files and go into headers and
 * request bodies only: never into messages. */
#ifndef CLIENTS_CTL_CTL_AUTH_H
#define CLIENTS_CTL_CTL_AUTH_H

#include "clients/ctl/ctl_fault.h"
#include "proto/base/buf.h"

struct ctl_http_link;

#define CTL_HEADERS_MAX 32

struct ctl_auth_options {
	const char *token_file;	     /* a bearer token */
	const char *credential_file; /* "id:secret" */
	const char *oauth_uri;	     /* token endpoint; NULL: v1/oauth/tokens of the catalog */
	const char *scope;	     /* NULL: "catalog" */
	const char *header_file;     /* lines "Name: value" */
	const char *headers[CTL_HEADERS_MAX];
	size_t n_headers;
};

struct ctl_auth;

/* Reads the files. base: the catalog's address. NULL with a fault. */
struct ctl_auth *ctl_auth_new(const struct ctl_auth_options *o, const char *base,
			      struct ctl_fault *f);
void ctl_auth_free(struct ctl_auth *own_auth);

/* The headers of a request, up to CTL_HEADERS_MAX + 1, the token's last, with a serial number of
 * the token. The token's text is a copy in `own_keep`, which has to live as long. Asks the token
 * endpoint when there is no token yet; safe from several threads, each with a link of its own. */
bool ctl_auth_headers(struct ctl_auth *a, struct ctl_http_link *link, struct buf *keep,
		      const char **ret_headers, size_t *ret_n, unsigned *ret_serial,
		      struct ctl_fault *f);
/* After a 401 to this token: whether there may be a newer one. */
bool ctl_auth_stale(struct ctl_auth *a, unsigned serial);

#endif
