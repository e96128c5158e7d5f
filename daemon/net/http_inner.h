/* What the two files of the HTTP layer share: http.c has the listener, the library's turns and the
 * connections, http_req.c a request from its line to its end. Nobody else includes this. */
#ifndef DAEMON_NET_HTTP_INNER_H
#define DAEMON_NET_HTTP_INNER_H

#include <microhttpd.h>

#include "daemon/net/http.h"
#include "daemon/net/parting.h"

/* Head of a request and its answer's head live in it; one per connection, idle ones too. */
#define HTTP_MEMORY ((size_t)32 * 1024)
/* First look for peers that have ended; the next ones take twice the time. */
#define HTTP_LOOK_US 1000000

enum req_state { REQ_HEAD, REQ_JUDGING, REQ_BODY, REQ_SERVING, REQ_REPLIED };

struct http {
	struct http_options o;
	struct MHD_Daemon *mhd;
	uv_poll_t poll;
	struct loop_hook hook;
	struct loop_timer timer; /* libmicrohttpd's own timeouts */
	struct sockaddr_storage bound;
	struct http_stats stats;
	struct parting parting;
	size_t limited; /* bytes of limited bodies that are being read */
	bool inside;   /* libmicrohttpd must not be entered from its own callbacks */
	bool draining, closing;
	int suspended; /* requests that a handler works on */
	int64_t drain_mono_us; /* when it began, or gave its last answer */
	void (*drained)(void *ctx);
	void *drained_ctx;
};

/* A connection between its requests. Its timer ends one that does not complete a request line in
 * time: the library only sees that bytes come, however slowly. */
struct conn {
	struct http *h;
	struct MHD_Connection *conn;
	struct loop_timer timer;
	int64_t waits_mono_us, until_mono_us;
	bool parts; /* it was answered before it had sent all */
	struct http_req *req;
};

struct http_req {
	struct http *h;
	struct MHD_Connection *conn;
	struct conn *of;
	enum req_state state;
	bool suspended;
	bool has_body;	    /* announced */
	bool waits;	    /* a refusal goes out before it */
	size_t stated;	    /* Content-Length */
	size_t max_body;
	bool limited;
	enum status refuse; /* of the body: answered when it has been read */
	struct MHD_Response *response;
	unsigned int status;
	size_t reply_n;
	struct loop_timer timer;
	int64_t started_mono_us, due_mono_us; /* the timer may look earlier */
	struct buf body;
	const char *method;
	const char *line_target; /* the library's copy, decoded by now */
	void *user;
	size_t target_n;
	char target[];
};

static inline int64_t http_earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* --- http.c --- */
struct conn *http_conn_of(struct MHD_Connection *conn);
void http_hang_up(struct http *h, struct MHD_Connection *conn);
/* The same, for one whose time is over. */
void http_cut(struct http *h, struct MHD_Connection *conn);
/* The peer sends no more, and all that it sent was read. */
bool http_has_ended(struct MHD_Connection *conn);
/* A request is over or has not begun. */
void http_wait_for_request(struct conn *c);

/* --- http_req.c --- */
/* The library's own function of that name, without ours in front. */
enum MHD_Result http_send_response(struct MHD_Connection *conn, unsigned int status,
				   struct MHD_Response *response);
void http_req_end(struct http_req *own_r);
/* Callbacks of the library: a request line was read, the target not decoded yet (the result becomes
 * *con_cls); head, body and their end; the request is over. */
void *http_req_line(void *cls, const char *target, struct MHD_Connection *conn);
enum MHD_Result http_req_goes_on(void *cls, struct MHD_Connection *conn, const char *url,
				 const char *method, const char *version, const char *upload,
				 size_t *upload_n, void **con_cls);
void http_req_over(void *cls, struct MHD_Connection *conn, void **con_cls,
		   enum MHD_RequestTerminationCode why);

#endif
