#include "conf/addr.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>

static enum status refuse(struct err *err, const char *field, struct strv text, const char *why)
{
	return err_set(err, ST_ILLEGAL_ARGUMENT, field, "\"%.*s\" is not an address: %s",
		       STRV_ARG(text), why);
}

enum status addr_parse(struct strv text, const char *field, struct addr *ret_addr, struct err *err)
{
	size_t colon = text.n;
	for (size_t i = 0; i < text.n; i++)
		if (text.p[i] == ':')
			colon = i;
	if (colon == text.n)
		return refuse(err, field, text, "the port is missing");
	struct strv host = strv_sub(text, 0, colon);
	int64_t port;
	struct strv digits = strv_sub(text, colon + 1, text.n);
	if (!strv_i64(digits, &port) || port < 0 || port > 65535 || digits.p[0] == '-')
		return refuse(err, field, text, "the port is not a number up to 65535");

	struct addr a = {.port = (uint16_t)port};
	char name[INET6_ADDRSTRLEN + 2];
	bool v6 = host.n >= 2 && host.p[0] == '[' && host.p[host.n - 1] == ']';
	if (v6)
		host = strv_sub(host, 1, host.n - 1);
	if (!v6 && strv_eq(host, STRV("localhost")))
		host = STRV("127.0.0.1");
	if (!strv_cstr(host, name, sizeof name))
		return refuse(err, field, text, "the host is too long");
	if (v6) {
		struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&a.sa;
		if (inet_pton(AF_INET6, name, &in6->sin6_addr) != 1)
			return refuse(err, field, text, "the host is not an IPv6 address");
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(a.port);
		a.len = sizeof *in6;
	} else {
		struct sockaddr_in *in = (struct sockaddr_in *)&a.sa;
		if (inet_pton(AF_INET, name, &in->sin_addr) != 1)
			return refuse(err, field, text, "the host is not a numeric address");
		in->sin_family = AF_INET;
		in->sin_port = htons(a.port);
		a.len = sizeof *in;
	}
	a.loopback = addr_is_loopback(&a.sa);
	*ret_addr = a;
	return ST_OK;
}

bool addr_is_loopback(const struct sockaddr_storage *sa)
{
	switch (sa->ss_family) {
	case AF_UNIX:
		return true;
	case AF_INET:
		return ntohl(((const struct sockaddr_in *)sa)->sin_addr.s_addr) >> 24 == 127;
	case AF_INET6:
		return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)sa)->sin6_addr);
	default:
		return false;
	}
}

void addr_text(const struct sockaddr_storage *sa, char *out)
{
	char host[INET6_ADDRSTRLEN] = "?";
	if (sa->ss_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)sa;
		inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof host);
		snprintf(out, ADDR_TEXT_MAX, "[%s]:%u", host, ntohs(in6->sin6_port));
		return;
	}
	const struct sockaddr_in *in = (const struct sockaddr_in *)sa;
	inet_ntop(AF_INET, &in->sin_addr, host, sizeof host);
	snprintf(out, ADDR_TEXT_MAX, "%s:%u", host, ntohs(in->sin_port));
}
