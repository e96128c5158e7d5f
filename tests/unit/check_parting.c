/* Peers that send on after their answer: each bound of how long they are read. */
#include "daemon/net/parting.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/unit.h"

static struct loop loop;
static struct parting parting;
static struct loop_timer stop;

static void on_stop(struct loop_timer *t)
{
	(void)t;
	loop_stop(&loop);
}

static void setup(void)
{
	loop_init(&loop, 1, 1);
	loop_timer_init(&stop, on_stop);
	parting_init(&parting, &loop);
}

static void run_ms(int ms)
{
	loop_timer_set(&loop, &stop, loop_mono_us(&loop) + ms * 1000);
	loop_run(&loop);
}

static void teardown(void)
{
	parting_end(&parting);
	ck_assert_uint_eq(parting.n, 0);
	run_ms(1);
	loop_fini(&loop);
}

/* The peer's end of one whose other end parts. */
static int part(size_t max_bytes)
{
	int fd[2];
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
	parting_start(&parting, fd[0], max_bytes);
	return fd[1];
}

static bool is_closed(int fd)
{
	char c;
	return recv(fd, &c, 1, MSG_DONTWAIT) == 0;
}

START_TEST(ends)
{
	char text[1000] = {0};
	int fd = part(1 << 20);
	for (int i = 0; i < 50; i++)
		ck_assert_int_eq(send(fd, text, sizeof text, MSG_NOSIGNAL), sizeof text);
	run_ms(50);
	ck_assert(!is_closed(fd));
	ck_assert_uint_eq(parting.n, 1);
	shutdown(fd, SHUT_WR);
	run_ms(50);
	ck_assert(is_closed(fd));
	ck_assert_uint_eq(parting.n, 0);
	close(fd);
}
END_TEST

START_TEST(bytes)
{
	char text[1000] = {0};
	int fd = part(1500);
	ck_assert_int_eq(send(fd, text, sizeof text, MSG_NOSIGNAL), sizeof text);
	run_ms(50);
	ck_assert_uint_eq(parting.n, 1);
	ck_assert_int_eq(send(fd, text, sizeof text, MSG_NOSIGNAL), sizeof text);
	run_ms(50);
	ck_assert_uint_eq(parting.n, 0);
	ck_assert(is_closed(fd));
	close(fd);
}
END_TEST

START_TEST(silence)
{
	int fd = part(1000);
	run_ms(PARTING_QUIET_US / 2000);
	ck_assert(!is_closed(fd));
	run_ms(PARTING_QUIET_US / 2000 + 200);
	ck_assert(is_closed(fd));
	close(fd);
}
END_TEST

/* A byte now and then does not lengthen it for ever. */
START_TEST(trickle)
{
	int fd = part(1000), turns = 0;
	for (; !is_closed(fd) && turns < 30; turns++) {
		(void)!send(fd, "x", 1, MSG_NOSIGNAL);
		run_ms(500);
	}
	ck_assert_int_ge(turns, PARTING_QUIET_US / 500000 + 1);
	ck_assert_int_le(turns, PARTING_US / 500000 + 1);
	close(fd);
}
END_TEST

START_TEST(number)
{
	int fds[PARTING_PEERS + 1];
	for (int i = 0; i <= PARTING_PEERS; i++)
		fds[i] = part(1000);
	ck_assert_uint_eq(parting.n, PARTING_PEERS);
	ck_assert(is_closed(fds[PARTING_PEERS]));
	ck_assert(!is_closed(fds[0]));
	parting_end(&parting);
	for (int i = 0; i <= PARTING_PEERS; i++) {
		ck_assert(is_closed(fds[i]));
		close(fds[i]);
	}
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("parting");
	TCase *t = tcase_create("parting");
	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, ends);
	tcase_add_test(t, bytes);
	tcase_add_test(t, silence);
	tcase_add_test(t, trickle);
	tcase_add_test(t, number);
	suite_add_tcase(s, t);
	return s;
}

UNIT_MAIN(suite)
