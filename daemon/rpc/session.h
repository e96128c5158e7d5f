/* One connection of a worker: frames in, requests to the sink, answers out in any order. Private to
 * this folder. */
#ifndef DAEMON_RPC_SESSION_H
#define DAEMON_RPC_SESSION_H

#include "daemon/rpc/listen.h"

/* Shared by all sessions; owned by listen.c. */
struct rpc_server {
	struct rpc_options o;
	struct rpc_stats stats;
	struct list sessions;
	uint64_t last_session;
	bool draining;
	/* What a read lands in: whole frames are parsed here, only the rest of one is kept. */
	char *scratch;
	/* A session is gone or a request answered. */
	void (*changed)(struct rpc_server *s);

	/* listen.c's own. */
	uv_tcp_t tcp;
	uv_pipe_t pipe;
	bool tcp_open, pipe_open;
	bool tcp_waits, pipe_waits; /* a connection waits for room */
	int closing;                /* handles that are being closed */
	bool orphan;                /* failed to start: freed with the last handle */
	struct loop_hook drained;
	void (*done)(void *ctx);
	void *done_ctx;
};

#define SESSION_SCRATCH ((size_t)256 << 10)

/* Takes the connection that waits at the listener; nothing happens when it is gone already. */
void session_accept(struct rpc_server *s, uv_stream_t *listener, bool tcp);
/* Closes every session as soon as it owes no answer. */
void session_drain_all(struct rpc_server *s);

#endif
