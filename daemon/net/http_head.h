/* The judgement of a request's head: what the HTTP library lets pass and another server may read
 * differently, what is not served, what is too large. Fields are added as they stand in the
 * library's memory, for what it cut out of them shows only there. Pure. */
#ifndef DAEMON_NET_HTTP_HEAD_H
#define DAEMON_NET_HTTP_HEAD_H

#include "proto/base/err.h"
#include "proto/base/strv.h"

struct http_head {
	size_t memory; /* that the library reads heads into */
	int lengths, encodings, hosts, proofs;
	bool bad_line, bad_name, bad_value, bad_length, bad_encoding, bad_expect, expects, packed;
	size_t length;	 /* as stated; 0 without */
	const char *end; /* of the value before */
};

void http_head_init(struct http_head *h, size_t memory);
/* The request line: method and version end with NUL in the library's memory, target (n bytes) lies
 * between them. */
void http_head_line(struct http_head *h, const char *method, const char *target, size_t n,
		    const char *version);
/* One field, in their order; value.p may be NULL. */
void http_head_field(struct http_head *h, struct strv name, struct strv value);
/* After the last one. version as above. BAD_REQUEST, EXPECTATION, UNSUPPORTED_MEDIA, TOO_LARGE (more
 * than max_body bytes are stated). */
MUST_CHECK enum status http_head_judge(struct http_head *h, const char *version, size_t max_body,
				       struct err *err);
/* Whether bytes of a body will follow, as far as is known: a chunked one may turn out empty. */
static inline bool http_head_has_body(const struct http_head *h)
{
	return h->encodings > 0 || h->length > 0;
}
/* Whether it waits to be asked for it, or brings more than `max` or nobody knows how much: then a refusal
 * goes out at once, and the connection ends with it. */
static inline bool http_head_waits(const struct http_head *h, size_t max)
{
	return h->expects || h->encodings > 0 || h->length > max;
}
/* The value without the white space that the library leaves behind it (RFC 9110 §5.5 does not). */
struct strv http_head_bare(struct strv value);

#endif
