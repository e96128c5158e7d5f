#include "daemon/net/parting.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

/* Read in one turn, so that a fast peer leaves turns to others. */
#define PART ((size_t)64 * 1024)

struct peer {
	struct list node;
	struct parting *l;
	uv_poll_t poll;
	struct loop_timer timer;
	int fd;
	size_t left;
	int64_t until_mono_us;
};

void parting_init(struct parting *l, struct loop *loop)
{
	*l = (struct parting){.loop = loop};
	list_init(&l->peers);
}

static void on_closed(uv_handle_t *handle)
{
	base_free(handle->data);
}

static void let_go(struct peer *p)
{
	loop_timer_cancel(p->l->loop, &p->timer);
	list_remove(&p->node);
	p->l->n--;
	uv_poll_stop(&p->poll);
	close(p->fd);
	uv_close((uv_handle_t *)&p->poll, on_closed);
}

static void on_time(struct loop_timer *t)
{
	let_go(CONTAINER_OF(t, struct peer, timer));
}

static void wait_on(struct peer *p)
{
	int64_t quiet = loop_mono_us(p->l->loop) + PARTING_QUIET_US;
	loop_timer_set(p->l->loop, &p->timer, quiet < p->until_mono_us ? quiet : p->until_mono_us);
}

static void on_bytes(uv_poll_t *poll, int status, int events)
{
	struct peer *p = poll->data;
	char part[PART];
	(void)events;
	ssize_t n = status < 0 ? 0 : recv(p->fd, part, sizeof part, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0 || (size_t)n >= p->left) {
		let_go(p);
		return;
	}
	p->left -= (size_t)n;
	wait_on(p);
}

void parting_start(struct parting *l, int own_fd, size_t max_bytes)
{
	if (l->n == PARTING_PEERS) {
		close(own_fd);
		return;
	}
	struct peer *p = base_calloc(1, sizeof *p);
	if (uv_poll_init(&l->loop->uv, &p->poll, own_fd) != 0) {
		close(own_fd);
		base_free(p);
		return;
	}
	p->l = l;
	list_init(&p->node);
	p->fd = own_fd;
	p->left = max_bytes;
	p->poll.data = p;
	p->until_mono_us = loop_mono_us(l->loop) + PARTING_US;
	loop_timer_init(&p->timer, on_time);
	list_push_back(&l->peers, &p->node);
	l->n++;
	wait_on(p);
	uv_poll_start(&p->poll, UV_READABLE, on_bytes);
}

void parting_end(struct parting *l)
{
	while (l->n > 0)
		let_go(LIST_ITEM(l->peers.next, struct peer, node));
}
