/* Requests to the admin port; the only file that uses curl. */
#ifndef CLIENTS_CTL_CTL_HTTP_H
#define CLIENTS_CTL_CTL_HTTP_H

#include "proto/base/buf.h"

/* Largest answer that is read. */
#define CTL_HTTP_MAX ((size_t)64 << 20)

/* Sends one request, with a JSON body unless it is NULL, and appends the answer's body. The HTTP status, or 0 with a reason in `why`
 * when there was no answer. Proxies of the environment are not used. */
int ctl_http(const char *base, const char *method, const char *path, const char *send,
	     int timeout_ms, struct buf *body, char why[256]);

#endif
