/* HTTP requests, to the admin port and to catalogs; the only file that uses curl. Proxies of the
 * environment are not used, and a redirect is an answer like another: nothing is sent to an
 * address that the user did not name. */
#ifndef CLIENTS_CTL_CTL_HTTP_H
#define CLIENTS_CTL_CTL_HTTP_H

#include "proto/base/buf.h"

/* Largest answer that is read. */
#define CTL_HTTP_MAX ((size_t)64 << 20)

/* Sends one request, with a JSON body unless it is NULL, and appends the answer's body. The HTTP
 * status, or 0 with a reason in `why` when there was no answer. */
int ctl_http(const char *base, const char *method, const char *path, const char *send,
	     int timeout_ms, struct buf *body, char why[256]);

/* Connections that are kept between requests. One thread uses it at a time; the first is to be
 * made before there are threads. */
struct ctl_http_link;
/* ca_file: NULL for the system's. Borrowed until free. */
struct ctl_http_link *ctl_http_link_new(const char *ca_file, int timeout_ms);
void ctl_http_link_free(struct ctl_http_link *own_link); /* NULL: nothing */

enum ctl_http_end {
	CTL_HTTP_ANSWERED,
	CTL_HTTP_LOST,
	CTL_HTTP_LARGE,	   /* the answer did not fit the buffer */
	CTL_HTTP_UNTRUSTED /* certificates do not fit: another try will not help */
};

struct ctl_http_call {
	const char *method, *url;
	const char *type;	    /* of the body; NULL: there is none */
	struct strv body;
	const char *const *headers; /* "Name: value" */
	size_t n_headers;
};
/* As ctl_http. ret_again_s: seconds after which the server wants to be asked again, 0 when it does
 * not say. ret_end: how it ended. */
int ctl_http_link_send(struct ctl_http_link *link, const struct ctl_http_call *call,
		       struct buf *body, int64_t *ret_again_s, enum ctl_http_end *ret_end, char why[256]);

#endif
