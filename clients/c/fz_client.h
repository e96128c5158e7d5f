/* The client's engine: calls that wait, are sent, wait for a repeat or have ended; connecting
 * again; deadlines. What a message means stands in fz_txn. */
#ifndef CLIENTS_C_FZ_CLIENT_H
#define CLIENTS_C_FZ_CLIENT_H

#include "clients/c/fz_conn.h"
#include "clients/c/fz_decode.h"
#include "clients/c/fz_encode.h"
#include "proto/base/list.h"

struct fz_call {
	struct list node; /* on one of the client's lists */
	struct fz_client *client;
	enum fz_msg msg;     /* 0: only waits for a connection */
	struct uuid txn_id;  /* whose status settles an unknown outcome */
	struct buf frame;    /* header and payload, kept until the answer */
	size_t written;      /* bytes of the frame that the socket took */
	uint32_t request_id; /* of the last attempt */
	int attempts;        /* repeats so far */
	bool sent;           /* some attempt went out whole */
	bool maybe;          /* some attempt may have had an effect that no answer told */
	bool settling;       /* `frame` is a Status now; the reply's error is the earlier one */
	int64_t deadline_us, attempt_us, attempt_end_us, not_before_us;
	struct arena arena; /* of the reply */
	struct fz_reply reply;
	struct fz_decoded decoded;
	bool blocking;
	fz_done done;
	void *ctx;
	/* Runs before the caller hears of the end, on any end; may change the reply. */
	void (*apply)(struct fz_call *call);
	struct fz_txn *txn; /* counted */
	struct fz_ref ref;  /* Stage: what was sent; fragment_id is the call's own copy */
	struct fz_totals totals;
};

struct fz_client {
	struct fz_options options;
	char *client_name;
	struct fz_address address;
	struct fz_schemas schemas;
	int epoll, timer;
	struct fz_conn conn;
	bool hello_done;
	int min_version, max_version, version;
	struct buf hello_frame;
	size_t hello_written;
	int64_t hello_end_us;
	struct arena hello_arena;
	struct fz_hello hello; /* of the last connection; server "" before */
	uint32_t next_request;
	int failures; /* connections in a row that gave no answer */
	unsigned turns;
	int64_t retry_at_us;
	struct fz_error last; /* why the last connection ended */
	struct list ready, sent, waiting, ended;
	size_t pending;
	size_t memory; /* of the frames */
	int timeout_ms;
	bool in_callback;
	bool closing;
	/* The result of the last blocking call. */
	bool kept_done;
	struct arena kept;
	struct fz_reply kept_reply;
};

/* Versions that Hello offers; the payloads are those of version 1. For tests. */
void fz_client_versions(struct fz_client *c, int min_version, int max_version);
/* A call that has not started; its deadline is now + timeout + extra_ms. NULL and FZ_USAGE when a
 * blocking call is made from a call-back. */
MUST_CHECK struct fz_call *fz_client_call(struct fz_client *c, enum fz_msg msg, int64_t extra_ms,
					  fz_done done, void *ctx, struct fz_error *err);
/* Bytes that the payload of one call may have. */
size_t fz_client_room(const struct fz_client *c);
/* Opens the frame; the payload goes to call->frame behind it. */
void fz_client_open_frame(struct fz_call *call);
/* Starts the call, whose frame is complete but for its header's numbers; frees it when it is
 * refused (FZ_USAGE, FZ_OVERLOADED). */
MUST_CHECK enum fz_status fz_client_start(struct fz_call *own_call, struct fz_error *err);
/* Frees a call that was not started. */
void fz_client_drop(struct fz_call *own_call);
/* Until the blocking call that was started last has ended; its status. */
MUST_CHECK enum fz_status fz_client_wait(struct fz_client *c, struct fz_error *err);
/* done of a blocking call. */
void fz_client_keep(void *ctx, const struct fz_reply *reply);

/* In fz_txn. */
void fz_txn_unref(struct fz_txn *own_txn);

#endif
