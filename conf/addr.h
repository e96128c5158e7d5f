/* Listen addresses: numeric host and port. No name is resolved, because what a name means can
 * change under a running daemon and decides here whether an address is loopback. */
#ifndef CONF_ADDR_H
#define CONF_ADDR_H

#include <sys/socket.h>

#include "proto/base/err.h"

struct addr {
	struct sockaddr_storage sa;
	socklen_t len;
	uint16_t port;
	bool loopback;
};

#define ADDR_TEXT_MAX 64

/* "127.0.0.1:8181", "[::1]:8181", "localhost:8181". ILLEGAL_ARGUMENT with the field as given. */
MUST_CHECK enum status addr_parse(struct strv text, const char *field, struct addr *ret_addr,
				  struct err *err);
/* Reachable from this machine alone; a unix socket is. */
bool addr_is_loopback(const struct sockaddr_storage *sa);
/* "127.0.0.1:8181"; out holds ADDR_TEXT_MAX bytes. Of IP addresses. */
void addr_text(const struct sockaddr_storage *sa, char *out);

#endif
