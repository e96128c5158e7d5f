#include "conf/log.h"

#include <stdio.h>
#include <unistd.h>

#include "proto/base/buf.h"
#include "tests/unit/unit.h"

static int fds[2];

static void setup(void)
{
	ck_assert_int_eq(pipe(fds), 0);
	log_set_fd(fds[1]);
	log_set_level(LOG_INFO);
}

/* What was written since; the write end is closed, so a test reads once. */
static const char *written(void)
{
	static char text[65536];
	close(fds[1]);
	size_t n = 0;
	ssize_t r;
	while (n + 1 < sizeof text && (r = read(fds[0], text + n, sizeof text - 1 - n)) > 0)
		n += (size_t)r;
	close(fds[0]);
	text[n] = 0;
	return text;
}

START_TEST(line)
{
	LOG(LOG_WARN, "pg.lost",
	    LOG_WITH(.dur_us = 12, .st = ST_COMMIT_FAILED, .table = STRV("a b"), .req = STRV("r1")),
	    "say \"%s\"\n", "hi");
	LOG(LOG_DEBUG, "never.seen", NULL, "%s", "");
	LOG(LOG_ERROR, "http.quiet", NULL, "%s", "");
	const char *text = written(), *rest = strstr(text, " level=");
	ck_assert_msg(strncmp(text, "<4>ts=", 6) == 0, "%s", text);
	/* Order of the fields is fixed whatever the order of the initialisers. */
	const char *want = " level=warn ev=pg.lost req=r1 table=\"a b\" st=COMMIT_FAILED dur_us=12 "
			   "msg=\"say \\\"hi\\\"\\n\"\n<3>ts=";
	ck_assert_msg(rest && strncmp(rest, want, strlen(want)) == 0, "%s", text);
	ck_assert_ptr_null(strstr(text, "never.seen"));
	rest = strstr(text, " level=error");
	ck_assert_str_eq(rest, " level=error ev=http.quiet\n");
	/* 2026-01-02T03:04:05.123456Z */
	ck_assert_int_eq(text[6 + 26], 'Z');
}
END_TEST

START_TEST(rate)
{
	struct log_site site = {0};
	for (int i = 0; i < 3 * LOG_BURST; i++)
		log_line(&site, LOG_INFO, "a.b", NULL, "%d", i);
	/* As if the second had passed. */
	uint32_t dropped = site.dropped;
	site.second--;
	log_line(&site, LOG_INFO, "a.b", NULL, "after");
	const char *text = written();
	int lines = 0;
	for (const char *p = text; (p = strchr(p, '\n')); p++)
		lines++;
	ck_assert_int_le(lines, 2 * LOG_BURST + 1); /* a second may have turned in between */
	char want[64];
	snprintf(want, sizeof want, "msg=after dropped=%u\n", dropped);
	ck_assert_uint_ge(dropped, 1);
	ck_assert_ptr_nonnull(strstr(text, want));
}
END_TEST

static void value(struct strv v, const char *want)
{
	struct buf b;
	buf_init(&b, 4096);
	log_value(&b, v);
	ck_assert_msg(strv_eq(buf_strv(&b), strv_of(want)), "%.*s, want %s", STRV_ARG(buf_strv(&b)),
		      want);
	buf_fini(&b);
}

START_TEST(values)
{
	value(STRV("plain/9-_.~"), "plain/9-_.~");
	value(STRV(""), "\"\"");
	value(STRV("a=b"), "\"a=b\"");
	value(STRV("a\\b"), "\"a\\\\b\"");
	value(STRV("\x1f\x7f\0\t"), "\"\\u001f\\u007f\\u0000\\t\"");
	value(STRV("\xc3\xa9"), "\"\xc3\xa9\"");
	value(STRV("\xc3("), "\"\xef\xbf\xbd(\"");
	close(fds[0]);
	close(fds[1]);
}
END_TEST

START_TEST(too_long)
{
	static char big[5000];
	memset(big, 'x', sizeof big - 1);
	LOG(LOG_INFO, "a.b", LOG_WITH(.table = strv_of(big)), "%s", big);
	const char *text = written();
	ck_assert_uint_le(strlen(text), 2049);
	ck_assert_int_eq(text[strlen(text) - 1], '\n');
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("log");
	TCase *t = tcase_create("log");
	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_test(t, line);
	tcase_add_test(t, rate);
	tcase_add_test(t, values);
	tcase_add_test(t, too_long);
	suite_add_tcase(s, t);
	return s;
}

UNIT_MAIN(suite)
