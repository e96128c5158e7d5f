#include "store/obj/fs.h"

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/unit.h"

/* One loop, one store over a fresh folder; each call runs the loop until its operation is done. */
static uv_loop_t loop;
static struct fs *fs;
static struct obj_store *store;
static char top[64];

struct wait {
	struct obj_op o;
	int runs;
	enum status st;
	struct err err;
	uint8_t data[64];
	size_t n;
	bool stop;
	const struct buf *text; /* compared with what was read */
	bool same;
};

static void on_done(struct op *op, enum status st, const struct err *err)
{
	struct wait *w = op->ctx;
	ck_assert_int_eq(op->state, OP_IDLE);
	ck_assert_int_eq(err->st, st);
	w->runs++;
	w->st = st;
	w->err = *err;
	w->n = w->o.data.n;
	if (w->text)
		w->same = bytes_eq(w->o.data, buf_bytes(w->text));
	if (w->n && w->n <= sizeof w->data)
		memcpy(w->data, w->o.data.p, w->n);
	if (w->stop)
		uv_stop(&loop);
}

static void wait_init(struct wait *w)
{
	*w = (struct wait){.stop = true};
	op_init(&w->o.op, on_done, w);
}

static void wait_for(struct wait *w)
{
	ck_assert_int_eq(w->runs, 0); /* never inside the start */
	while (w->runs == 0)
		uv_run(&loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(w->runs, 1);
}

static const char *path_of(const char *rel)
{
	static char text[4][512];
	static int at;
	at = (at + 1) % 4;
	snprintf(text[at], sizeof text[at], "%s/%s", top, rel);
	return text[at];
}

static enum status run(struct wait *w, enum status started)
{
	if (started == ST_OK)
		wait_for(w);
	return started == ST_OK ? w->st : started;
}

static enum status put_uri(struct wait *w, const char *uri, const char *text)
{
	wait_init(w);
	return run(w, obj_put(store, strv_of(uri), strv_bytes(strv_of(text)), &w->o, &w->err));
}

static enum status put(struct wait *w, const char *rel, const char *text)
{
	return put_uri(w, path_of(rel), text);
}

static enum status get(struct wait *w, const char *rel, const struct obj_range *range, size_t max)
{
	wait_init(w);
	return run(w, obj_get(store, strv_of(path_of(rel)), range, max, &w->o, &w->err));
}

static enum status stat_of(struct wait *w, const char *rel)
{
	wait_init(w);
	return run(w, obj_stat(store, strv_of(path_of(rel)), &w->o, &w->err));
}

static enum status delete (struct wait *w, const char *rel) {
	wait_init(w); return run(w, obj_delete(store, strv_of(path_of(rel)), &w->o, &w->err));
}

static void setup(void)
{
	snprintf(top, sizeof top, "/tmp/frazil-fs-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(top));
	ck_assert_int_eq(setenv("UV_THREADPOOL_SIZE", "4", 1), 0);
	ck_assert_int_eq(uv_loop_init(&loop), 0);
	struct err err = {0};
	struct strv root = strv_of(path_of("w"));
	UNIT_OK(fs_make_root(root, &err), &err);
	UNIT_OK(fs_new(&loop, &root, 1, &fs, &err), &err);
	store = fs_store(fs);
}

static void on_closed(void *ctx)
{
	*(bool *)ctx = true;
}

static void close_store(void)
{
	bool closed = false;
	fs_free(fs, on_closed, &closed);
	while (!closed)
		uv_run(&loop, UV_RUN_DEFAULT);
	uv_run(&loop, UV_RUN_DEFAULT);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	return remove(path);
}

static void teardown(void)
{
	close_store();
	ck_assert_int_eq(uv_loop_close(&loop), 0);
	uv_library_shutdown();
	ck_assert_int_eq(nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* Names in a folder, without "." and "..". */
static int count_names(const char *path)
{
	DIR *d = opendir(path);
	ck_assert_ptr_nonnull(d);
	int n = 0;
	for (struct dirent *e; (e = readdir(d));)
		n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
	closedir(d);
	return n;
}

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
}

START_TEST(put_get_stat_delete)
{
	struct wait w;
	UNIT_OK(put(&w, "w/t/metadata/a%20b.json", "hello"), &w.err);
	ck_assert(!w.o.existed);
	/* The very name, with its percent sign, and no temporary file beside it. */
	ck_assert_int_eq(access(path_of("w/t/metadata/a%20b.json"), F_OK), 0);
	ck_assert_int_eq(count_names(path_of("w/t/metadata")), 1);
	UNIT_OK(get(&w, "w/t/metadata/a%20b.json", NULL, 5), &w.err);
	ck_assert_uint_eq(w.n, 5);
	ck_assert_mem_eq(w.data, "hello", 5);
	UNIT_OK(stat_of(&w, "w/t/metadata/a%20b.json"), &w.err);
	ck_assert_uint_eq(w.o.size, 5);
	UNIT_OK(delete (&w, "w/t/metadata/a%20b.json"), &w.err);
	ck_assert(w.o.existed);
	UNIT_STATUS(get(&w, "w/t/metadata/a%20b.json", NULL, 5), ST_NOT_FOUND);
	UNIT_STATUS(stat_of(&w, "w/t/metadata/a%20b.json"), ST_NOT_FOUND);
	UNIT_OK(delete (&w, "w/t/metadata/a%20b.json"), &w.err);
	ck_assert(!w.o.existed);
	UNIT_OK(delete (&w, "w/never/was"), &w.err);
	/* Empty objects, and a repeated put. */
	UNIT_OK(put(&w, "w/empty", ""), &w.err);
	UNIT_OK(put(&w, "w/empty", ""), &w.err);
	ck_assert(w.o.existed);
	UNIT_OK(get(&w, "w/empty", NULL, 0), &w.err);
	ck_assert_uint_eq(w.n, 0);
	const struct obj_counts *c = obj_counts(store);
	ck_assert_uint_eq(c->puts, 3);
	ck_assert_uint_eq(c->put_bytes, 5);
	ck_assert_uint_eq(c->gets, 3);
	ck_assert_uint_eq(c->get_bytes, 5);
	ck_assert_uint_eq(c->stats, 2);
	ck_assert_uint_eq(c->deletes, 3);
	ck_assert_uint_eq(c->failed, 0);
	ck_assert_uint_eq(c->in_flight, 0);
}
END_TEST

START_TEST(uri_forms)
{
	struct wait w;
	char uri[256];
	snprintf(uri, sizeof uri, "file:%s", path_of("w/one"));
	UNIT_OK(put_uri(&w, uri, "1"), &w.err);
	snprintf(uri, sizeof uri, "file://%s", path_of("w/one"));
	UNIT_OK(put_uri(&w, uri, "1"), &w.err);
	ck_assert(w.o.existed);
	UNIT_STATUS(put_uri(&w, "s3://b/one", "1"), ST_UNSUPPORTED);
	UNIT_STATUS(put(&w, "w/folder/", "1"), ST_ILLEGAL_ARGUMENT);
	ck_assert_int_eq(w.runs, 0);
}
END_TEST

/* case BC-181: a put that comes again after a lost answer meets its own object */
START_TEST(exists)
{
	struct wait w;
	UNIT_OK(put(&w, "w/a", "same"), &w.err);
	UNIT_OK(put(&w, "w/a", "same"), &w.err);
	ck_assert(w.o.existed);
	const char *others[] = {"samf", "sam", "same ", ""};
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		UNIT_STATUS(put(&w, "w/a", others[i]), ST_ALREADY_EXISTS);
		ck_assert_str_eq(w.err.field, "path");
		/* Paths of this machine are not for clients. */
		ck_assert_ptr_null(strstr(w.err.msg, top));
		ck_assert_ptr_nonnull(strstr(w.err.detail, top));
	}
	UNIT_OK(get(&w, "w/a", NULL, 64), &w.err);
	ck_assert_mem_eq(w.data, "same", 4);
	ck_assert_int_eq(count_names(path_of("w")), 1);
	/* A large one differs in its last byte only. */
	char *big = malloc(200001);
	memset(big, 'x', 200000);
	big[200000] = 0;
	UNIT_OK(put(&w, "w/big", big), &w.err);
	UNIT_OK(put(&w, "w/big", big), &w.err);
	big[199999] = 'y';
	UNIT_STATUS(put(&w, "w/big", big), ST_ALREADY_EXISTS);
	free(big);
}
END_TEST

START_TEST(ranges_and_limits)
{
	struct wait w;
	UNIT_OK(put(&w, "w/r", "0123456789"), &w.err);
	struct obj_range r = {3, 4};
	UNIT_OK(get(&w, "w/r", &r, 4), &w.err);
	ck_assert_uint_eq(w.n, 4);
	ck_assert_mem_eq(w.data, "3456", 4);
	r = (struct obj_range){10, 0};
	UNIT_OK(get(&w, "w/r", &r, 0), &w.err);
	const struct obj_range bad[] = {{7, 4}, {11, 0}, {UINT64_MAX, 1}, {1, 10}};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		UNIT_STATUS(get(&w, "w/r", &bad[i], 64), ST_CORRUPT);
		ck_assert_str_eq(w.err.field, "range");
	}
	r = (struct obj_range){0, 5};
	UNIT_STATUS(get(&w, "w/r", &r, 4), ST_LIMIT);
	UNIT_STATUS(get(&w, "w/r", NULL, 9), ST_LIMIT);
	ck_assert_uint_eq(w.n, 0);
}
END_TEST

START_TEST(outside)
{
	struct wait w;
	UNIT_STATUS(put(&w, "x", "1"), ST_PATH_OUTSIDE);
	UNIT_STATUS(put(&w, "wx/a", "1"), ST_PATH_OUTSIDE);
	UNIT_STATUS(put(&w, "w/../x", "1"), ST_PATH_OUTSIDE);
	UNIT_STATUS(get(&w, "w/../w/a", NULL, 1), ST_PATH_OUTSIDE);
	UNIT_STATUS(stat_of(&w, "w"), ST_PATH_OUTSIDE);
	ck_assert_int_eq(mkdir(path_of("secret"), 0700), 0);
	write_file(path_of("secret/key"), "k");
	/* A link as folder and as file, out of the root and within it, dangling too. */
	ck_assert_int_eq(symlink("../secret", path_of("w/out")), 0);
	ck_assert_int_eq(symlink("../secret/key", path_of("w/key")), 0);
	ck_assert_int_eq(symlink("nothing", path_of("w/dangling")), 0);
	ck_assert_int_eq(mkdir(path_of("w/in"), 0700), 0);
	ck_assert_int_eq(symlink("in", path_of("w/alias")), 0);
	const char *links[] = {"w/out/key", "w/key", "w/alias/key"};
	for (size_t i = 0; i < ARRAY_SIZE(links); i++) {
		UNIT_STATUS(get(&w, links[i], NULL, 9), ST_PATH_OUTSIDE);
		UNIT_STATUS(stat_of(&w, links[i]), ST_PATH_OUTSIDE);
		UNIT_STATUS(delete (&w, links[i]), ST_PATH_OUTSIDE);
		UNIT_STATUS(put(&w, links[i], "k"), ST_PATH_OUTSIDE);
	}
	UNIT_STATUS(put(&w, "w/out/new", "k"), ST_PATH_OUTSIDE);
	UNIT_STATUS(put(&w, "w/out/new/folder/x", "k"), ST_PATH_OUTSIDE);
	UNIT_STATUS(put(&w, "w/dangling", "k"), ST_PATH_OUTSIDE);
	ck_assert_int_eq(access(path_of("w/nothing"), F_OK), -1);
	ck_assert_int_eq(count_names(path_of("secret")), 1);
	ck_assert_int_eq(access(path_of("w/key"), F_OK), 0);
	/* A root may itself be reached through a link, and be added while running. */
	ck_assert_int_eq(symlink("secret", path_of("link")), 0);
	struct err err = {0};
	UNIT_OK(fs_add_root(fs, strv_of(path_of("link")), &err), &err);
	UNIT_OK(fs_add_root(fs, strv_of(path_of("link/")), &err), &err);
	UNIT_OK(get(&w, "link/key", NULL, 1), &w.err);
	UNIT_OK(fs_check(fs, strv_of(path_of("link/z")), &err), &err);
	UNIT_STATUS(fs_check(fs, strv_of(path_of("secret/z")), &err), ST_PATH_OUTSIDE);
}
END_TEST

START_TEST(not_files)
{
	struct wait w;
	write_file(path_of("w/file"), "1");
	/* A file where a folder should be: nothing can exist below it, nothing can be written. */
	UNIT_STATUS(get(&w, "w/file/x", NULL, 1), ST_NOT_FOUND);
	UNIT_STATUS(stat_of(&w, "w/file/x"), ST_NOT_FOUND);
	UNIT_OK(delete (&w, "w/file/x"), &w.err);
	UNIT_STATUS(put(&w, "w/file/x", "1"), ST_IO);
	ck_assert_ptr_nonnull(strstr(w.err.msg, "ENOTDIR"));
	/* A folder where a file should be. */
	ck_assert_int_eq(mkdir(path_of("w/d"), 0700), 0);
	UNIT_STATUS(get(&w, "w/d", NULL, 1), ST_IO);
	UNIT_STATUS(stat_of(&w, "w/d"), ST_IO);
	UNIT_STATUS(delete (&w, "w/d"), ST_IO);
	UNIT_STATUS(put(&w, "w/d", "1"), ST_IO);
	ck_assert_int_eq(access(path_of("w/d"), F_OK), 0);
	/* A pipe without a writer must not hold a thread. */
	ck_assert_int_eq(mkfifo(path_of("w/pipe"), 0600), 0);
	UNIT_STATUS(get(&w, "w/pipe", NULL, 1), ST_IO);
	char name[300];
	memset(name, 'n', sizeof name);
	memcpy(name, "w/", 2);
	name[299] = 0;
	UNIT_STATUS(stat_of(&w, name), ST_NOT_FOUND);
	UNIT_STATUS(put(&w, name, "1"), ST_IO);
	ck_assert_int_eq(count_names(path_of("w")), 3);
}
END_TEST

START_TEST(missing_root)
{
	struct wait w;
	UNIT_OK(put(&w, "w/a", "1"), &w.err);
	ck_assert_int_eq(rename(path_of("w"), path_of("gone")), 0);
	/* An unmounted volume must not look like deleted objects. */
	UNIT_STATUS(get(&w, "w/a", NULL, 1), ST_IO);
	UNIT_STATUS(stat_of(&w, "w/a"), ST_IO);
	UNIT_STATUS(delete (&w, "w/a"), ST_IO);
	UNIT_STATUS(put(&w, "w/a", "1"), ST_IO);
	ck_assert_int_eq(access(path_of("w"), F_OK), -1);
	ck_assert_int_eq(rename(path_of("gone"), path_of("w")), 0);
}
END_TEST

START_TEST(no_access)
{
	struct wait w;
	UNIT_OK(put(&w, "w/closed/a", "1"), &w.err);
	ck_assert_int_eq(chmod(path_of("w/closed"), 0), 0);
	/* Root passes every permission, so as somebody else then. */
	bool root = geteuid() == 0;
	ck_assert_int_eq(chmod(top, 0755), 0);
	ck_assert(!root || seteuid(65534) == 0);
	UNIT_STATUS(get(&w, "w/closed/a", NULL, 1), ST_IO);
	UNIT_STATUS(stat_of(&w, "w/closed/a"), ST_IO);
	UNIT_STATUS(put(&w, "w/closed/b", "1"), ST_IO);
	ck_assert_ptr_nonnull(strstr(w.err.msg, "EACCES"));
	UNIT_STATUS(delete (&w, "w/closed/a"), ST_IO);
	ck_assert(!root || seteuid(0) == 0);
	ck_assert_int_eq(chmod(path_of("w/closed"), 0700), 0);
}
END_TEST

START_TEST(disk_full)
{
	/* A limit on file size fails the write as a full disk does: nothing may be left behind. */
	struct wait w;
	struct rlimit limit = {1000, RLIM_INFINITY};
	signal(SIGXFSZ, SIG_IGN);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	char text[2001];
	memset(text, 'x', 2000);
	text[2000] = 0;
	UNIT_STATUS(put(&w, "w/t/large", text), ST_IO);
	ck_assert_int_eq(count_names(path_of("w/t")), 0);
	text[1000] = 0;
	UNIT_OK(put(&w, "w/t/large", text), &w.err);
}
END_TEST

START_TEST(delay_without_thread)
{
	/* Far more waiting writes than the pool has threads: a read still goes right through. */
	static struct wait w[100];
	struct wait g;
	struct err err = {0};
	UNIT_OK(put(&g, "w/d/there", "1"), &g.err);
	fs_put_delay(fs, 700);
	uint64_t begin = uv_hrtime();
	for (int i = 0; i < 100; i++) {
		char rel[32];
		snprintf(rel, sizeof rel, "w/d/%d", i);
		wait_init(&w[i]);
		w[i].stop = false;
		UNIT_OK(obj_put(store, strv_of(path_of(rel)), strv_bytes(STRV("x")), &w[i].o, &err),
			&err);
	}
	ck_assert_uint_eq(obj_counts(store)->in_flight, 100);
	UNIT_OK(get(&g, "w/d/there", NULL, 1), &g.err);
	for (int i = 0; i < 100; i++)
		ck_assert_int_eq(w[i].runs, 0);
	uv_run(&loop, UV_RUN_DEFAULT);
	ck_assert_uint_ge((uv_hrtime() - begin) / 1000000, 700);
	for (int i = 0; i < 100; i++) {
		ck_assert_int_eq(w[i].runs, 1);
		UNIT_OK(w[i].st, &w[i].err);
	}
	ck_assert_int_eq(count_names(path_of("w/d")), 101);
}
END_TEST

START_TEST(cancel_and_deadline)
{
	struct wait w;
	struct err err = {0};
	fs_put_delay(fs, 5000);
	/* Cancelled before it was sent: clean, and nothing was written. */
	wait_init(&w);
	UNIT_OK(obj_put(store, strv_of(path_of("w/c")), strv_bytes(STRV("x")), &w.o, &err), &err);
	obj_cancel(&w.o);
	wait_for(&w);
	ck_assert_int_eq(w.st, ST_IO);
	ck_assert_int_eq(status_info(w.st)->effect, EFFECT_CLEAN);
	/* The same by a deadline. */
	wait_init(&w);
	w.o.op.deadline_mono_us = (int64_t)(uv_hrtime() / 1000) + 20000;
	uint64_t begin = uv_hrtime();
	UNIT_OK(obj_put(store, strv_of(path_of("w/c")), strv_bytes(STRV("x")), &w.o, &err), &err);
	wait_for(&w);
	ck_assert_int_eq(w.st, ST_IO);
	ck_assert_uint_ge((uv_hrtime() - begin) / 1000, 20000);
	ck_assert_uint_lt((uv_hrtime() - begin) / 1000000, 3000);
	ck_assert_int_eq(access(path_of("w/c"), F_OK), -1);
	fs_put_delay(fs, 0);
	/* A deadline that is long past when it starts. */
	wait_init(&w);
	w.o.op.deadline_mono_us = 1;
	UNIT_OK(obj_get(store, strv_of(path_of("w/c")), NULL, 1, &w.o, &err), &err);
	wait_for(&w);
	ck_assert(w.st == ST_IO || w.st == ST_NOT_FOUND);
}
END_TEST

#define POOL_THREADS 4
#define MANY 64

static uv_sem_t gate;

static void hold(uv_work_t *work)
{
	(void)work;
	uv_sem_wait(&gate);
}

static void held(uv_work_t *work, int status)
{
	(void)work;
	ck_assert_int_eq(status, 0);
}

static const char *many_name(int i)
{
	static char rel[32];
	snprintf(rel, sizeof rel, "w/m%d", i);
	return rel;
}

static void start_and_cancel(struct wait *w)
{
	for (int i = 0; i < MANY; i++) {
		struct err err = {0};
		wait_init(&w[i]);
		w[i].stop = false;
		UNIT_OK(obj_put(store, strv_of(path_of(many_name(i))), strv_bytes(STRV("x")),
				&w[i].o, &err),
			&err);
		obj_cancel(&w[i].o);
		ck_assert_int_eq(w[i].runs, 0);
	}
}

START_TEST(cancel_queued)
{
	/* Every thread is busy, so none of these begins: all end clean and leave nothing. */
	static struct wait w[MANY];
	uv_work_t holds[POOL_THREADS];
	ck_assert_int_eq(uv_sem_init(&gate, 0), 0);
	for (int i = 0; i < POOL_THREADS; i++)
		ck_assert_int_eq(uv_queue_work(&loop, &holds[i], hold, held), 0);
	start_and_cancel(w);
	for (int turns = 0; obj_counts(store)->in_flight > 0; turns++) {
		ck_assert_int_lt(turns, 1000);
		uv_run(&loop, UV_RUN_ONCE);
	}
	for (int i = 0; i < POOL_THREADS; i++)
		uv_sem_post(&gate);
	uv_run(&loop, UV_RUN_DEFAULT);
	for (int i = 0; i < MANY; i++) {
		ck_assert_int_eq(w[i].runs, 1);
		ck_assert_int_eq(w[i].st, ST_IO);
		ck_assert_int_eq(access(path_of(many_name(i)), F_OK), -1);
	}
	uv_sem_destroy(&gate);
}
END_TEST

START_TEST(cancel_racing)
{
	/* Cancelled while threads take them up: each done runs once, what says "clean" has left
	 * nothing, and what says ST_OK is there. */
	static struct wait w[MANY];
	start_and_cancel(w);
	uv_run(&loop, UV_RUN_DEFAULT);
	for (int i = 0; i < MANY; i++) {
		bool there = access(path_of(many_name(i)), F_OK) == 0;
		ck_assert_int_eq(w[i].runs, 1);
		ck_assert(w[i].st == ST_OK || w[i].st == ST_IO || w[i].st == ST_TIMEOUT);
		ck_assert(w[i].st != ST_IO || !there);
		ck_assert(w[i].st != ST_OK || there);
	}
	ck_assert_uint_eq(obj_counts(store)->in_flight, 0);
}
END_TEST

struct lent {
	struct obj_op o;
	char *bytes;
	int runs;
};

static void given_back(struct op *op, enum status st, const struct err *err)
{
	struct lent *l = CONTAINER_OF(op, struct lent, o.op);
	(void)st;
	(void)err;
	l->runs++;
	memset(l->bytes, 'z', 1 << 18);
	base_free(l->bytes);
}

START_TEST(bytes_are_the_callers)
{
	/* The caller frees its bytes in done, which a cancel or a deadline brings about while a thread
	 * may be writing: no thread reads them then (the sanitizers tell), and no file has others. */
	static struct lent l[MANY];
	static char want[1 << 18], have[1 << 18];
	struct err err = {0};
	memset(want, 'a', sizeof want);
	for (int i = 0; i < MANY; i++) {
		l[i].runs = 0;
		l[i].bytes = base_alloc(sizeof want);
		memcpy(l[i].bytes, want, sizeof want);
		op_init(&l[i].o.op, given_back, NULL);
		if (i % 2)
			l[i].o.op.deadline_mono_us = (int64_t)(uv_hrtime() / 1000) + 500;
		struct bytes data = {(const uint8_t *)l[i].bytes, sizeof want};
		/* A repeated put compares, so that the bytes are read at the end too. */
		UNIT_OK(obj_put(store, strv_of(path_of(many_name(i % 3))), data, &l[i].o, &err), &err);
		if (i % 4 == 0)
			obj_cancel(&l[i].o);
		uv_run(&loop, UV_RUN_NOWAIT);
	}
	uv_run(&loop, UV_RUN_DEFAULT);
	for (int i = 0; i < MANY; i++)
		ck_assert_int_eq(l[i].runs, 1);
	for (int i = 0; i < 3; i++) {
		FILE *f = fopen(path_of(many_name(i)), "r");
		ck_assert_ptr_nonnull(f);
		ck_assert_uint_eq(fread(have, 1, sizeof have, f), sizeof have);
		ck_assert_int_eq(memcmp(have, want, sizeof have), 0);
		fclose(f);
	}
}
END_TEST

START_TEST(close_with_work)
{
	/* The teardown closes the store while these run; every done still comes. */
	static struct wait w[32];
	struct err err = {0};
	for (int i = 0; i < 32; i++) {
		char rel[32];
		snprintf(rel, sizeof rel, "w/n%d/x", i);
		fs_put_delay(fs, i % 2 ? 10000 : 0);
		wait_init(&w[i]);
		w[i].stop = false;
		UNIT_OK(obj_put(store, strv_of(path_of(rel)), strv_bytes(STRV("x")), &w[i].o, &err),
			&err);
	}
	struct fs *old = fs;
	bool closed = false;
	fs_free(old, on_closed, &closed);
	struct wait late;
	wait_init(&late);
	UNIT_STATUS(obj_stat(store, strv_of(path_of("w/a")), &late.o, &err), ST_UNAVAILABLE);
	uv_run(&loop, UV_RUN_DEFAULT);
	ck_assert(closed);
	for (int i = 0; i < 32; i++)
		ck_assert_int_eq(w[i].runs, 1);
	struct strv root = strv_of(path_of("w"));
	UNIT_OK(fs_new(&loop, &root, 1, &fs, &err), &err);
}
END_TEST

static uint8_t *taken;
static size_t taken_n;

static void on_take(struct op *op, enum status st, const struct err *err)
{
	struct wait *w = op->ctx;
	ck_assert_int_eq(st, ST_OK);
	(void)err;
	taken = obj_take(&w->o, &taken_n);
	w->runs++;
	uv_stop(&loop);
}

START_TEST(take)
{
	struct wait w;
	struct err err = {0};
	UNIT_OK(put(&w, "w/t", "take me"), &w.err);
	wait_init(&w);
	w.o.op.done = on_take;
	UNIT_OK(obj_get(store, strv_of(path_of("w/t")), NULL, 100, &w.o, &err), &err);
	wait_for(&w);
	ck_assert_uint_eq(taken_n, 7);
	ck_assert_mem_eq(taken, "take me", 7);
	base_free(taken);
}
END_TEST

START_TEST(racing_puts)
{
	/* Two contents race for each name: exactly one content wins, its writers all succeed. */
	static struct wait w[16][4];
	struct err err = {0};
	for (int i = 0; i < 16; i++)
		for (int k = 0; k < 4; k++) {
			char rel[32];
			snprintf(rel, sizeof rel, "w/r%d/deep/x", i);
			wait_init(&w[i][k]);
			w[i][k].stop = false;
			UNIT_OK(obj_put(store, strv_of(path_of(rel)),
					strv_bytes(k % 2 ? STRV("odd") : STRV("even")), &w[i][k].o,
					&err),
				&err);
		}
	uv_run(&loop, UV_RUN_DEFAULT);
	for (int i = 0; i < 16; i++) {
		ck_assert_int_eq(w[i][0].st, w[i][2].st);
		ck_assert_int_eq(w[i][1].st, w[i][3].st);
		ck_assert((w[i][0].st == ST_OK) != (w[i][1].st == ST_OK));
		int fresh = 0;
		for (int k = 0; k < 4; k++) {
			fresh += w[i][k].st == ST_OK && !w[i][k].o.existed;
			ck_assert(w[i][k].st == ST_OK || w[i][k].st == ST_ALREADY_EXISTS);
		}
		ck_assert_int_eq(fresh, 1);
	}
}
END_TEST

static enum status put_pieces(struct wait *w, const char *rel, const struct pieces *p, int64_t deadline)
{
	wait_init(w);
	w->o.op.deadline_mono_us = deadline;
	return run(w, obj_put_pieces(store, strv_of(path_of(rel)), p, &w->o, &w->err));
}

/* More pieces than one call of the system takes. */
START_TEST(pieces)
{
	enum { CUTS = 5000 };
	struct wait w;
	struct buf text;
	struct bytes *v = base_calloc(CUTS, sizeof *v);
	struct pieces p = {.v = v, .n = CUTS};
	buf_init(&text, 1 << 20);
	for (int i = 0; i < CUTS; i++)
		buf_printf(&text, "%d,", i * i);
	for (size_t i = 0, at = 0; i < CUTS; i++) {
		size_t n = i + 1 < CUTS ? i % 17 : text.n - at;
		v[i] = (struct bytes){text.p + at, n};
		at += n;
	}
	for (int copied = 0; copied < 2; copied++) {
		const char *rel = copied ? "w/copied" : "w/many";
		int64_t deadline = copied ? (int64_t)(uv_hrtime() / 1000) + 30000000 : OP_NO_DEADLINE;
		ck_assert_int_eq(put_pieces(&w, rel, &p, deadline), ST_OK);
		ck_assert(!w.o.existed);
		wait_init(&w);
		w.text = &text;
		ck_assert_int_eq(run(&w, obj_get(store, strv_of(path_of(rel)), NULL, 1 << 20, &w.o,
						 &w.err)),
				 ST_OK);
		ck_assert(w.same);
	}
	/* The same bytes are the same object, however they are cut. */
	struct bytes whole = buf_bytes(&text);
	ck_assert_int_eq(put_pieces(&w, "w/many", &(struct pieces){.v = &whole, .n = 1},
				    OP_NO_DEADLINE),
			 ST_OK);
	ck_assert(w.o.existed);
	ck_assert_int_eq(put_pieces(&w, "w/many", &p, OP_NO_DEADLINE), ST_OK);
	ck_assert(w.o.existed);
	text.p[text.n / 2] ^= 1;
	ck_assert_int_eq(put_pieces(&w, "w/many", &p, OP_NO_DEADLINE), ST_ALREADY_EXISTS);
	ck_assert_int_eq(put_pieces(&w, "w/none", &(struct pieces){0}, OP_NO_DEADLINE), ST_OK);
	ck_assert_int_eq(stat_of(&w, "w/none"), ST_OK);
	ck_assert_uint_eq(w.o.size, 0);
	base_free(v);
	buf_fini(&text);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("fs");
	TCase *t = tcase_create("objects");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 30);
	tcase_add_test(t, put_get_stat_delete);
	tcase_add_test(t, uri_forms);
	tcase_add_test(t, exists);
	tcase_add_test(t, ranges_and_limits);
	tcase_add_test(t, pieces);
	tcase_add_test(t, outside);
	tcase_add_test(t, not_files);
	tcase_add_test(t, missing_root);
	tcase_add_test(t, no_access);
	tcase_add_test(t, disk_full);
	tcase_add_test(t, delay_without_thread);
	tcase_add_test(t, cancel_and_deadline);
	tcase_add_test(t, cancel_queued);
	tcase_add_test(t, cancel_racing);
	tcase_add_test(t, bytes_are_the_callers);
	tcase_add_test(t, close_with_work);
	tcase_add_test(t, take);
	tcase_add_test(t, racing_puts);
	suite_add_tcase(s, t);
	return s;
}

UNIT_MAIN(suite)
