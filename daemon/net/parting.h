/* Sockets of peers that were answered before they had said all. Closed at once, what still comes in
 * would make the kernel reset the connection, and the peer might never see its answer (RFC 9112 §9.6).
 * So they are read to the end, for nothing, within bounds of number, bytes and time. Loop thread only. */
#ifndef DAEMON_NET_PARTING_H
#define DAEMON_NET_PARTING_H

#include "daemon/loop.h"

struct parting {
	struct loop *loop;
	struct list peers;
	size_t n;
};

void parting_init(struct parting *l, struct loop *loop);
/* own_fd: non-blocking, all of the answer is written, its sending side is shut. At most max_bytes are
 * read. With PARTING_PEERS under way already it is closed at once. */
void parting_start(struct parting *l, int own_fd, size_t max_bytes);
/* Closes them all; their handles are gone with the loop's next closing callbacks, and do not touch l. */
void parting_end(struct parting *l);

#define PARTING_PEERS 256
/* Of silence, and in all. */
#define PARTING_QUIET_US 2000000
#define PARTING_US 10000000

#endif
