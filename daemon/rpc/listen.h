/* Listeners of the worker protocol, on TCP and on a unix socket, and what their connections have in
 * common: limits, counters, stopping. Loop thread only. */
#ifndef DAEMON_RPC_LISTEN_H
#define DAEMON_RPC_LISTEN_H

#include "conf/addr.h"
#include "daemon/loop.h"
#include "daemon/rpc/rpc_request.h"

struct rpc_server;

struct rpc_options {
	struct loop *loop;
	struct rpc_sink sink;
	/* TCP: a listening socket, or -1 and an address, or neither (tcp false). */
	bool tcp;
	int own_fd;
	struct addr addr;
	const char *socket; /* path of a unix socket; NULL or empty for none */
	size_t max_frame;   /* header included */
	int max_connections;
	/* Bytes of one connection that are unanswered or unsent; above, it is not read. 0 is twice
	 * the largest frame. */
	size_t session_budget;
	/* The same of all connections; above, requests are refused as overload. 0 is 1 GiB. */
	size_t total_budget;
	/* 0 takes the default in parentheses. */
	int64_t hello_timeout_ms; /* from connect to Hello (10 s) */
	int64_t frame_timeout_ms; /* for the rest of a frame that has begun (60 s) */
	int64_t write_timeout_ms; /* without a byte taken by a reader (30 s) */
	struct daemon_id daemon_id;
	const char *server; /* name and version, static */
	/* The newest version that Hello may agree on; 0 is RPC_VERSION. Payloads are those of
	 * RPC_VERSION: a later version exists in tests only. */
	int max_version;
};

struct rpc_stats {
	int sessions, requests; /* now; requests are those without an answer */
	size_t bytes;           /* held now */
	int64_t accepted, served;
	int64_t malformed; /* connections closed for a frame that could not be trusted */
	int64_t slow;      /* closed because they did not read, write or say Hello in time */
	int64_t overloaded;
};

/* IO when an address cannot be bound; the message names it. Nothing is left then. */
MUST_CHECK enum status rpc_server_new(const struct rpc_options *o, struct rpc_server **ret_s,
				      struct err *err);
/* Accepts no more and refuses new requests (UNAVAILABLE); closes each connection when all its
 * requests are answered. done is called once, later, when no connection and no request is left. */
void rpc_server_drain(struct rpc_server *s, void (*done)(void *ctx), void *ctx);
/* Only after done. */
void rpc_server_free(struct rpc_server *own_s);
/* Where TCP listens: ADDR_TEXT_MAX bytes; empty when it does not. */
void rpc_server_address(const struct rpc_server *s, char *out);
struct rpc_stats rpc_server_stats(const struct rpc_server *s);

#endif
