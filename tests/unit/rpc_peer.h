/* A client's end of a connection of the worker protocol: frames out, answers in, with assertions. */
#ifndef TESTS_UNIT_RPC_PEER_H
#define TESTS_UNIT_RPC_PEER_H

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/rpc/frame.h"
#include "proto/rpc/msg.h"
#include "tests/unit/unit.h"

static inline void nap(int ms)
{
	poll(NULL, 0, ms);
}

static inline bool send_all(int fd, struct bytes b)
{
	while (b.n) {
		ssize_t w = send(fd, b.p, b.n, MSG_NOSIGNAL);
		if (w <= 0)
			return false;
		b.p += w;
		b.n -= (size_t)w;
	}
	return true;
}

static inline void put(struct buf *b, unsigned type, uint8_t version, uint32_t id, const void *record)
{
	size_t at = frame_open(b, (uint8_t)type, version, id);
	if (record)
		msg_encode(rpc_message_of(type)->record, record, b);
	frame_close(b, at);
}

static inline void send_msg(int fd, unsigned type, uint8_t version, uint32_t id, const void *record)
{
	struct buf b;
	buf_init(&b, 1 << 20);
	put(&b, type, version, id, record);
	ck_assert(send_all(fd, buf_bytes(&b)));
	buf_fini(&b);
}

static inline void ask(int fd, uint32_t id, uint8_t what)
{
	struct rpc_status m = {.txn_id.b = {what, (uint8_t)id}};
	send_msg(fd, RPC_MSG_STATUS, 1, id, &m);
}

/* An answer, decoded; type 0 when the peer closed. */
struct answer {
	struct buf raw;
	struct frame f;
	struct arena a;
	const void *v;
};

static inline void answer_fini(struct answer *w)
{
	buf_fini(&w->raw);
	arena_fini(&w->a);
}

static inline bool recv_exactly(int fd, struct buf *b, size_t n)
{
	size_t at = b->n;
	uint8_t *p = buf_room(b, n - at);
	ck_assert_ptr_nonnull(p);
	for (size_t had = 0; had < n - at;) {
		ssize_t r = recv(fd, p + had, n - at - had, 0);
		if (r <= 0) {
			ck_assert_msg(r == 0 || errno == ECONNRESET, "%s", strerror(errno));
			return false;
		}
		had += (size_t)r;
	}
	return true;
}

static inline void receive(int fd, struct answer *w)
{
	*w = (struct answer){0};
	buf_init(&w->raw, (size_t)100 << 20);
	arena_init(&w->a, (size_t)100 << 20);
	struct err err = {0};
	size_t used = 0;
	if (!recv_exactly(fd, &w->raw, 4) || !recv_exactly(fd, &w->raw, 4 + get_u32be(w->raw.p)))
		return;
	UNIT_OK(frame_parse(buf_bytes(&w->raw), (size_t)100 << 20, &w->f, &used, &err), &err);
	ck_assert_uint_eq(used, w->raw.n);
	UNIT_OK(msg_decode(rpc_message_of(w->f.type)->record, w->f.payload, &w->a, &w->v, &err),
		&err);
}

static inline void expect_error(int fd, uint32_t id, enum status st, const char *field)
{
	struct answer w;
	receive(fd, &w);
	ck_assert_int_eq(w.f.type, RPC_MSG_ERROR);
	ck_assert_uint_eq(w.f.request_id, id);
	const struct rpc_error *e = w.v;
	ck_assert_int_eq(e->code, status_info(st)->rpc_code);
	ck_assert(strv_eq(e->name, strv_of(status_info(st)->name)));
	ck_assert_msg(strv_eq(e->field, strv_of(field)), "%.*s", STRV_ARG(e->field));
	answer_fini(&w);
}

static inline void expect_outcome(int fd, uint32_t id)
{
	struct answer w;
	receive(fd, &w);
	ck_assert_int_eq(w.f.type, RPC_MSG_OUTCOME);
	ck_assert_uint_eq(w.f.request_id, id);
	ck_assert_uint_eq(((const struct rpc_outcome *)w.v)->txn_id.b[1], (uint8_t)id);
	answer_fini(&w);
}

static inline void expect_closed(int fd)
{
	struct answer w;
	receive(fd, &w);
	ck_assert_int_eq(w.f.type, 0);
	answer_fini(&w);
	close(fd);
}

#endif
