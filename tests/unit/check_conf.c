#include "conf/conf.h"

#include "conf/addr.h"
#include "tests/unit/unit.h"

static struct err err;

static enum status text(struct conf *c, const char *z)
{
	memset(&err, 0, sizeof err);
	return conf_apply_text(c, strv_of(z), "f.ini", &err);
}

/* The whole text is refused with a message that begins with this place and holds this word. */
static void refuse(const char *z, const char *place, const char *word)
{
	struct conf *c = conf_new();
	UNIT_STATUS(text(c, z), ST_ILLEGAL_ARGUMENT);
	ck_assert_msg(strncmp(err.msg, place, strlen(place)) == 0, "message: %s", err.msg);
	ck_assert_msg(strstr(err.msg, word) != NULL, "message: %s", err.msg);
	conf_unref(c);
}

static enum status check_with(const char *set)
{
	struct conf *c = conf_new();
	memset(&err, 0, sizeof err);
	enum status st = conf_apply_set(c, strv_of(set), &err);
	ck_assert_msg(st == ST_OK, "%s", err.msg);
	st = conf_check(c, &err);
	conf_unref(c);
	return st;
}

START_TEST(defaults)
{
	struct conf *c = conf_new();
	UNIT_OK(conf_check(c, &err), &err);
	ck_assert_int_eq(c->commit_batch_max_txns, 1024);
	ck_assert_int_eq(c->commit_window_ms, 0);
	ck_assert(!c->pg_allow_unsafe);
	ck_assert(strv_eq(c->warehouse_name, STRV("main")));
	ck_assert_int_eq(c->log_level, LOG_INFO);
	ck_assert_int_eq(c->rest_verify_snapshots, CONF_VERIFY_WARN);
	conf_unref(c);
}
END_TEST

START_TEST(file_syntax)
{
	struct conf *c = conf_new();
	UNIT_OK(text(c, "# note\n; note\r\n\n[ pg ]\r\n  conninfo =  host=/run dbname=x \r\n"
			"allow-unsafe=yes\n[rest]\nlisten=[::1]:0\n[log]\nlevel = debug"),
		&err);
	/* Only the first '=' parts key and value. */
	ck_assert_str_eq(c->pg_conninfo.p, "host=/run dbname=x");
	ck_assert(c->pg_allow_unsafe);
	ck_assert_int_eq(c->log_level, LOG_DEBUG);
	UNIT_OK(conf_check(c, &err), &err);
	conf_unref(c);

	refuse("[pg]\nnope = 1\n", "f.ini:2:", "nope");
	refuse("conninfo = 1\n", "f.ini:1:", "section");
	refuse("[nope]\n", "f.ini:1:", "nope");
	refuse("[pg\n", "f.ini:1:", "]");
	refuse("[pg]\n\nconnections\n", "f.ini:3:", "key = value");
	refuse("[pg]\nconnections = 1\nconnections = 1\n", "f.ini:3:", "twice");
	refuse("[pg]\nconnections = 0\n", "f.ini:2:", "1 to 64");
	refuse("[pg]\nconnections = 65\n", "f.ini:2:", "1 to 64");
	refuse("[pg]\nconnections = 3x\n", "f.ini:2:", "3x");
	refuse("[pg]\nconnections =\n", "f.ini:2:", "1 to 64");
	refuse("[pg]\nallow-unsafe = true\n", "f.ini:2:", "yes");
	refuse("[log]\nlevel = loud\n", "f.ini:2:", "debug");
	refuse("[pg]\nconninfo = \xff\n", "f.ini:2:", "UTF-8");
	refuse("[pg]\nconninfo = a\x01\n", "f.ini:2:", "UTF-8");
}
END_TEST

START_TEST(order_of_sources)
{
	struct conf *c = conf_new();
	char *env[] = {(char *)"FRAZIL_COMMIT_BATCH_MAX_TXNS=7", (char *)"HOME=/x",
		       (char *)"FRAZIL_VAR=/y", (char *)"FRAZIL_PG_CONNECTIONS=9", NULL};
	UNIT_OK(text(c, "[commit]\nbatch-max-txns = 5\nwindow-ms = 6\n[pg]\nconnections = 8\n"),
		&err);
	UNIT_OK(conf_apply_env(c, env, &err), &err);
	UNIT_OK(conf_apply_set(c, STRV("pg.connections=10"), &err), &err);
	ck_assert_int_eq(c->commit_window_ms, 6);
	ck_assert_int_eq(c->commit_batch_max_txns, 7);
	ck_assert_int_eq(c->pg_connections, 10);
	ck_assert_str_eq(c->from[CONF_commit_window_ms], "f.ini:3");
	ck_assert_str_eq(c->from[CONF_pg_connections], "--set");

	char *typo[] = {(char *)"FRAZIL_PG_CONECTIONS=9", NULL};
	UNIT_STATUS(conf_apply_env(c, typo, &err), ST_ILLEGAL_ARGUMENT);
	UNIT_STATUS(conf_apply_set(c, STRV("pg.conections=9"), &err), ST_ILLEGAL_ARGUMENT);
	UNIT_STATUS(conf_apply_set(c, STRV("pg.connections"), &err), ST_ILLEGAL_ARGUMENT);
	UNIT_STATUS(conf_apply_set(c, STRV("pg.connections=-1"), &err), ST_ILLEGAL_ARGUMENT);
	ck_assert_int_eq(c->pg_connections, 10);
	conf_unref(c);
}
END_TEST

START_TEST(rules)
{
	UNIT_STATUS(check_with("rest.listen=0.0.0.0:8181"), ST_ILLEGAL_ARGUMENT);
	ck_assert_str_eq(err.field, "rest.listen");
	UNIT_STATUS(check_with("rpc.listen=[::]:8182"), ST_ILLEGAL_ARGUMENT);
	UNIT_STATUS(check_with("admin.listen=10.0.0.1:1"), ST_ILLEGAL_ARGUMENT);
	UNIT_STATUS(check_with("admin.listen="), ST_OK);
	UNIT_STATUS(check_with("rest.listen="), ST_ILLEGAL_ARGUMENT);
	UNIT_STATUS(check_with("rest.listen=127.8.0.1:65535"), ST_OK);
	UNIT_STATUS(check_with("rest.listen=127.0.0.1:65536"), ST_ILLEGAL_ARGUMENT);
	UNIT_STATUS(check_with("rest.listen=127.0.0.1"), ST_ILLEGAL_ARGUMENT);
	UNIT_STATUS(check_with("rest.listen=example.org:80"), ST_ILLEGAL_ARGUMENT);
	UNIT_STATUS(check_with("warehouse.name=tables"), ST_ILLEGAL_ARGUMENT);
	UNIT_STATUS(check_with("warehouse.location=/tmp"), ST_ILLEGAL_ARGUMENT);
	UNIT_STATUS(check_with("warehouse.location=file:///tmp"), ST_OK);
	UNIT_STATUS(check_with("warehouse.extra=b"), ST_ILLEGAL_ARGUMENT);
	UNIT_STATUS(check_with("warehouse.extra=main=file:///x"), ST_ILLEGAL_ARGUMENT);
	UNIT_STATUS(check_with("warehouse.extra=b=file:///x,b=file:///y"), ST_ILLEGAL_ARGUMENT);
	UNIT_STATUS(check_with("txn.ttl-default-ms=3600001"), ST_ILLEGAL_ARGUMENT);

	struct conf *c = conf_new();
	UNIT_OK(text(c, "[rest]\nlisten = 0.0.0.0:1\n[auth]\nallow-anonymous = yes\n"), &err);
	UNIT_OK(conf_check(c, &err), &err);
	conf_unref(c);
}
END_TEST

START_TEST(warehouses)
{
	struct conf *c = conf_new();
	UNIT_OK(text(c,
		     "[warehouse]\nlocation=file:///a/\nextra = b = file:///b// ,, c=file:///c\n"),
		&err);
	struct strv name, location;
	ck_assert(conf_warehouse(c, 0, &name, &location));
	ck_assert(strv_eq(location, STRV("file:///a")));
	ck_assert(conf_warehouse(c, 1, &name, &location));
	ck_assert(strv_eq(name, STRV("b")) && strv_eq(location, STRV("file:///b")));
	ck_assert(conf_warehouse(c, 2, &name, &location));
	ck_assert(strv_eq(name, STRV("c")));
	ck_assert(!conf_warehouse(c, 3, &name, &location));
	conf_unref(c);
}
END_TEST

/* What is printed can be read again and means the same. */
START_TEST(print_round)
{
	struct conf *c = conf_new(), *d = conf_new();
	UNIT_OK(text(c,
		     "[pg]\nconninfo=host=/tmp\nconnections=3\n[rest]\nverify-snapshots=reject\n"),
		&err);
	struct buf b, b2;
	buf_init(&b, CONF_MAX_FILE);
	buf_init(&b2, CONF_MAX_FILE);
	conf_print(c, &b);
	ck_assert(buf_ok(&b));
	UNIT_OK(conf_apply_text(d, buf_strv(&b), "again", &err), &err);
	ck_assert(strv_eq(d->pg_conninfo, STRV("host=/tmp")));
	ck_assert_int_eq(d->pg_connections, 3);
	ck_assert_int_eq(d->rest_verify_snapshots, CONF_VERIFY_REJECT);

	/* The template changes nothing. */
	conf_template(&b2);
	ck_assert(buf_ok(&b2));
	UNIT_OK(conf_apply_text(d, buf_strv(&b2), "template", &err), &err);
	ck_assert_int_eq(d->pg_connections, 3);
	buf_fini(&b);
	buf_fini(&b2);
	conf_unref(c);
	conf_unref(d);
}
END_TEST

START_TEST(reload)
{
	struct conf *old = conf_new(), *fresh = conf_new();
	UNIT_OK(text(old, "[pg]\nconninfo=dbname=a\n[commit]\nwindow-ms=1\n"), &err);
	UNIT_OK(text(fresh, "[pg]\nconninfo=dbname=b\nconnections=9\n[commit]\nwindow-ms=2\n"),
		&err);
	struct buf b;
	buf_init(&b, 4096);
	UNIT_OK(conf_keep_cold(fresh, old, &b, &err), &err);
	ck_assert(strv_eq(buf_strv(&b), STRV("pg.conninfo pg.connections")));
	conf_unref(old);
	ck_assert_str_eq(fresh->pg_conninfo.p, "dbname=a");
	ck_assert_int_eq(fresh->pg_connections, 4);
	ck_assert_int_eq(fresh->commit_window_ms, 2);
	buf_fini(&b);
	conf_unref(fresh);
}
END_TEST

START_TEST(files)
{
	struct conf *c = conf_new();
	UNIT_STATUS(conf_apply_file(c, "/nonexistent/frazild.ini", &err), ST_IO);
	/* A source without end must meet the limit, not memory. */
	UNIT_STATUS(conf_apply_file(c, "/dev/zero", &err), ST_LIMIT);
	conf_unref(c);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("conf");
	TCase *t = tcase_create("conf");
	tcase_add_test(t, defaults);
	tcase_add_test(t, file_syntax);
	tcase_add_test(t, order_of_sources);
	tcase_add_test(t, rules);
	tcase_add_test(t, warehouses);
	tcase_add_test(t, print_round);
	tcase_add_test(t, reload);
	tcase_add_test(t, files);
	suite_add_tcase(s, t);
	return s;
}

UNIT_MAIN(suite)
