/* One socket: address, connecting, reading whole frames, writing. Never blocks but for looking up a
 * host name. Knows nothing of messages. */
#ifndef CLIENTS_C_FZ_CONN_H
#define CLIENTS_C_FZ_CONN_H

#include <sys/types.h>
#include <sys/un.h>

#include "clients/c/frazil.h"
#include "proto/rpc/frame.h"

struct fz_address {
	bool is_unix;
	char host[256];
	char port[8];
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
};

/* "host:port", "[v6]:port", "unix:/path", "unix:///path" or a path with a slash. */
MUST_CHECK bool fz_address_parse(const char *text, struct fz_address *ret_a);

struct fz_conn {
	int epoll; /* the client's descriptor; the socket is registered there */
	int sock;  /* -1 for none */
	bool connecting;
	uint32_t events; /* as registered */
	struct buf in;
	size_t in_at;     /* bytes of `in` that were taken already */
	size_t max_frame; /* of what the server sends, header included */
};

void fz_conn_init(struct fz_conn *c, int epoll, size_t max_frame);
/* Closes the socket and forgets what was read; may be opened again. */
void fz_conn_close(struct fz_conn *c);
void fz_conn_fini(struct fz_conn *c);
/* Begins to connect; `turn` picks one of several addresses. false with the reason in *err. */
MUST_CHECK bool fz_conn_open(struct fz_conn *c, const struct fz_address *a, unsigned turn,
			     struct fz_error *err);
/* Whether connecting has ended: 1 yes, 0 not yet, -1 failed. */
MUST_CHECK int fz_conn_ready(struct fz_conn *c, struct fz_error *err);
/* Bytes written, 0 when the socket is full, -1 when it broke. */
MUST_CHECK ssize_t fz_conn_write(struct fz_conn *c, struct bytes data, struct fz_error *err);
/* Reads once: 1 something came, 0 nothing now, -1 the connection ended. */
MUST_CHECK int fz_conn_read(struct fz_conn *c, struct fz_error *err);
/* The next whole frame of what was read: 1, 0 none, -1 the stream cannot be trusted. The payload is
 * borrowed until the next fz_conn_read or fz_conn_close. */
MUST_CHECK int fz_conn_frame(struct fz_conn *c, struct frame *ret_f, struct fz_error *err);
/* Registers interest: always in reading, in writing when asked. */
void fz_conn_want(struct fz_conn *c, bool write);

#endif
