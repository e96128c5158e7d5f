/* HTTP/1.1 listeners on the loop. The only user of libmicrohttpd: everything else sees whole
 * requests and gives one reply. Loop thread only. */
#ifndef DAEMON_NET_HTTP_H
#define DAEMON_NET_HTTP_H

#include "conf/addr.h"
#include "daemon/loop.h"
#include "proto/base/arena.h"
#include "proto/base/buf.h"

struct http;
struct http_req;

struct http_ops {
	/* The head is here and none of its body. http_reply refuses, and no byte of a body is taken: a
	 * short one is read over, so that the connection goes on; for a long one, one in chunks and one
	 * that waits for 100 Continue the answer goes out at once and the connection ends. Without a
	 * reply the body is read, and serve follows unless the connection ends. */
	void (*head)(void *ctx, struct http_req *r);
	/* The body is here too; exactly one http_reply follows, at once or later. */
	void (*serve)(void *ctx, struct http_req *r);
	/* The request's time is over and no reply was given: must call http_reply before it
	 * returns. */
	void (*overdue)(void *ctx, struct http_req *r);
	/* The request is over, replied or not; r dies when this returns. */
	void (*over)(void *ctx, struct http_req *r);
	/* Body for a refusal by this layer (malformed, too large, overload, draining), answered with
	 * this HTTP status. */
	void (*error_body)(const struct err *err, int status, struct buf *out);
};

struct http_options {
	struct loop *loop;
	int own_fd; /* a listening socket, consumed; or -1: bind addr */
	struct addr addr;
	int max_connections;
	size_t max_body;            /* bytes of one body */
	size_t max_bodies;          /* bytes of all bodies held at once */
	int64_t request_timeout_ms; /* request line to reply; again, and more for a long one, to read it */
	size_t read_rate;	    /* bytes a second that a client must read at least; 0: 64 KiB */
	int64_t idle_timeout_ms;    /* rounded up to seconds */
	const struct http_ops *ops;
	void *ctx;
};

struct http_stats {
	int connections, requests; /* now */
	int64_t refused;           /* answered 4xx by this layer */
	size_t bodies;		   /* bytes of them held now */
	size_t parting;	   /* answered, and still sending */
	int64_t cut; /* closed in the middle of a head, body or answer whose time was over */
};

/* IO when the address cannot be bound (the message names it). */
MUST_CHECK enum status http_new(const struct http_options *o, struct http **ret_http,
				struct err *err);
/* Accepts no more, answers what runs with Connection: close, then calls done once, later, when
 * every handler has replied and the port is closed. Clients that are slow to read their answer or
 * to send their request are given some seconds. */
void http_drain(struct http *h, void (*done)(void *ctx), void *ctx);
/* Only after done. */
void http_free(struct http *own_h);
/* Where it listens, for logs: ADDR_TEXT_MAX bytes. */
void http_address(const struct http *h, char *out);
struct http_stats http_stats(const struct http *h);

/* Views live until the reply. */
struct strv http_method(const struct http_req *r);
/* As sent, nothing decoded. */
struct strv http_target(const struct http_req *r);
/* The first header of this name in any case; p is NULL when absent. */
struct strv http_header(const struct http_req *r, const char *name);
/* All values of a header that is a list, joined by commas (RFC 9110, 5.3), in the arena; p is NULL when
 * absent. false when the arena is full. */
MUST_CHECK bool http_header_list(const struct http_req *r, const char *name, struct arena *a,
				 struct strv *ret_v);
/* In head: whether a body is announced; a chunked one may turn out empty. */
bool http_has_body(const struct http_req *r);
/* In head: this one may have so many bytes only, where that is less than max_body, and all such that are
 * being read together no more than one of max_body. false: it says that it has more. */
MUST_CHECK bool http_limit_body(struct http_req *r, size_t max);
struct bytes http_body(const struct http_req *r);
/* Moves the body to the caller, who gives it back with http_body_freed (which frees it): it counts
 * against max_bodies until then and may outlive the request. */
void http_take_body(struct http_req *r, struct buf *ret_body);
void http_body_freed(struct http *h, struct buf *own_body);
int64_t http_started_mono_us(const struct http_req *r);
int64_t http_deadline_mono_us(const struct http_req *r);
void http_set_user(struct http_req *r, void *user);
void *http_user(const struct http_req *r);

#define HTTP_HEADERS_MAX 8
struct http_reply {
	int status;
	struct bytes body;
	void (*free_body)(
		void *arg); /* called once when the body was sent; NULL for static bytes */
	void *free_arg;
	size_t n_headers;
	/* Copied. Neither may hold CR or LF. */
	struct {
		const char *name, *value;
	} headers[HTTP_HEADERS_MAX];
};

/* Consumes the body. */
void http_reply(struct http_req *r, const struct http_reply *reply);

#endif
