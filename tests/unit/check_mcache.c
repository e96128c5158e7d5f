/* The cache of table metadata over a store that answers when the test says so. */
#include "daemon/bind/mcache.h"

#include <unistd.h>

#include "proto/base/gzip.h"
#include "proto/base/json.h"
#include "proto/iceberg/metadata.h"
#include "proto/iceberg/schema.h"
#include "store/obj/obj.h"
#include "tests/unit/unit.h"

/* One operation that waits for its answer. */
static struct obj_op *asked;
static char asked_what; /* 'g' get, 's' stat */
static int gets, stats;
static const struct buf *content;
/* Where a test has many: all that are under way. */
static struct obj_op *crowd[64];
static bool crowd_reads[64];
static size_t n_crowd, reading, most_reading;
static bool crowded;

static void join_crowd(struct obj_op *o, bool read)
{
	ck_assert_uint_lt(n_crowd, 64);
	crowd_reads[n_crowd] = read;
	crowd[n_crowd++] = o;
	reading += read;
	if (reading > most_reading)
		most_reading = reading;
}

static enum status fake_get(struct obj_store *s, struct strv path, const struct obj_range *range,
			    size_t max, struct obj_op *o, struct err *err)
{
	(void)s;
	(void)path;
	(void)range;
	(void)max;
	(void)err;
	gets++;
	if (crowded) {
		join_crowd(o, true);
		return ST_OK;
	}
	ck_assert_ptr_null(asked);
	asked = o;
	asked_what = 'g';
	return ST_OK;
}

static enum status fake_stat(struct obj_store *s, struct strv path, struct obj_op *o,
			     struct err *err)
{
	(void)s;
	(void)path;
	(void)err;
	stats++;
	if (crowded) {
		join_crowd(o, false);
		return ST_OK;
	}
	ck_assert_ptr_null(asked);
	asked = o;
	asked_what = 's';
	return ST_OK;
}

static uint8_t *fake_take(struct obj_op *o, size_t *ret_n)
{
	uint8_t *p = base_alloc(content->n);
	(void)o;
	memcpy(p, content->p, content->n);
	*ret_n = content->n;
	return p;
}

static const struct obj_ops ops = {.get = fake_get, .stat = fake_stat, .take = fake_take};
static struct obj_store store;
static struct loop loop;
static struct mcache *cache;

static void answer(enum status st)
{
	struct obj_op *o = asked;
	struct err err = {0};
	ck_assert_ptr_nonnull(o);
	asked = NULL;
	if (st != ST_OK)
		err_set(&err, st, "", "as the test wants");
	obj_done(o, st, &err);
}

/* One caller. */
struct caller {
	struct mcache_wait wait;
	struct mcache_entry *entry;
	enum status st;
	int calls;
};

static void called(struct mcache_wait *w, struct mcache_entry *own_entry, const struct err *err)
{
	struct caller *c = CONTAINER_OF(w, struct caller, wait);
	c->calls++;
	c->entry = own_entry;
	c->st = own_entry ? ST_OK : err->st;
}

static void load(struct caller *c, const char *location, enum mcache_rep rep)
{
	*c = (struct caller){.wait = {.rep = rep, .done = called}};
	mcache_load(cache, strv_of(location), &c->wait);
}

static void let_go(struct caller *c)
{
	if (c->entry)
		mcache_unref(c->entry);
	c->entry = NULL;
}

/* A table with n columns; the uuid's first byte is id. */
static struct metadata *table(uint8_t id, int n)
{
	struct buf b;
	struct jdoc *doc;
	struct err err = {0};
	struct arena a;
	struct schema s;
	struct metadata *m = NULL;
	arena_init(&a, 64 << 20);
	buf_init(&b, 16 << 20);
	buf_puts(&b, "{\"type\":\"struct\",\"fields\":[");
	for (int i = 0; i < n; i++)
		buf_printf(&b,
			   "%s{\"id\":%d,\"name\":\"column_%d\",\"type\":\"long\","
			   "\"required\":false}",
			   i ? "," : "", i + 1, i);
	buf_puts(&b, "]}");
	UNIT_OK(jdoc_parse(buf_bytes(&b), ST_CORRUPT, &doc, &err), &err);
	UNIT_OK(schema_parse(jdoc_root(doc), ST_CORRUPT, &a, &s, &err), &err);
	const struct metadata_create c = {.uuid = {{id}},
					  .now_ms = 1700000000000,
					  .location = STRV("file:///w/t"),
					  .schema = &s};
	UNIT_OK(metadata_new(&c, &m, &err), &err);
	jdoc_free(doc);
	buf_fini(&b);
	arena_fini(&a);
	return m;
}

static void setup(void)
{
	loop_init(&loop, 2, 1);
	obj_store_init(&store, &ops);
	cache = mcache_new(&loop, &store, 1 << 20);
	asked = NULL;
	gets = stats = 0;
	crowded = false;
	n_crowd = reading = most_reading = 0;
}

static void teardown(void)
{
	ck_assert_ptr_null(asked);
	mcache_free(cache);
	loop_fini(&loop);
}

static void pass_ms(int ms)
{
	int64_t until = loop_mono_us(&loop) + ms * 1000;
	while (loop_mono_us(&loop) <= until)
		uv_update_time(&loop.uv);
}

/* Reads the file once for all who wait, then asks only whether it is there. */
START_TEST(read_once)
{
	struct caller a, b, c;
	struct buf file;
	struct metadata *m = table(1, 2);
	buf_init(&file, 1 << 20);
	metadata_json(m, &file);
	content = &file;
	load(&a, "file:///w/1.json", MCACHE_ALL);
	load(&b, "file:///w/1.json", MCACHE_METADATA);
	load(&c, "file:///w/1.json", MCACHE_REFS);
	ck_assert_int_eq(a.calls + b.calls + c.calls, 0);
	answer(ST_OK);
	if (asked) /* a slow machine */
		answer(ST_OK);
	ck_assert_int_eq(gets, 1);
	ck_assert(a.calls == 1 && b.calls == 1 && c.calls == 1);
	ck_assert(a.entry && a.entry == b.entry && a.entry == c.entry);
	/* What is answered is the file's own metadata. */
	struct buf want;
	buf_init(&want, 1 << 20);
	buf_puts(&want, "{\"metadata-location\":\"file:///w/1.json\",\"metadata\":");
	buf_putv(&want, buf_strv(&file));
	buf_puts(&want, ",\"config\":{}}");
	ck_assert(bytes_eq(mcache_body(a.entry, MCACHE_ALL), buf_bytes(&want)));
	buf_fini(&want);
	let_go(&a);
	let_go(&b);
	let_go(&c);
	/* The same, packed by another hand's standard. */
	load(&a, "file:///w/1.json", MCACHE_ALL_GZIP);
	if (asked)
		answer(ST_OK);
	ck_assert(a.calls == 1 && a.entry);
	struct buf packed;
	struct err err = {0};
	buf_init(&packed, 1 << 20);
	UNIT_OK(gzip_read(mcache_body(a.entry, MCACHE_ALL_GZIP), &packed, &err), &err);
	ck_assert(bytes_eq(buf_bytes(&packed), mcache_body(a.entry, MCACHE_ALL)));
	buf_fini(&packed);
	let_go(&a);
	pass_ms(3);
	load(&a, "file:///w/1.json", MCACHE_ALL);
	load(&b, "file:///w/1.json", MCACHE_ALL);
	ck_assert_int_eq(asked_what, 's');
	ck_assert_int_eq(a.calls + b.calls, 0);
	answer(ST_OK);
	ck_assert(a.calls == 1 && b.calls == 1 && stats >= 1 && gets == 1);
	let_go(&a);
	let_go(&b);
	buf_fini(&file);
	metadata_unref(m);
}
END_TEST

START_TEST(gone)
{
	struct caller a, b;
	struct metadata *m = table(1, 2);
	mcache_put(cache, STRV("file:///w/1.json"), m);
	load(&a, "file:///w/1.json", MCACHE_ALL); /* was just written */
	if (asked)
		answer(ST_OK);
	ck_assert(a.calls == 1 && a.entry);
	pass_ms(3);
	load(&b, "file:///w/1.json", MCACHE_ALL);
	answer(ST_NOT_FOUND);
	ck_assert(b.calls == 1 && !b.entry && b.st == ST_NOT_FOUND);
	/* Who holds it keeps it; the next one looks into the store. */
	ck_assert(mcache_body(a.entry, MCACHE_ALL).n > 0);
	let_go(&a);
	load(&b, "file:///w/1.json", MCACHE_ALL);
	ck_assert_int_eq(asked_what, 'g');
	answer(ST_NOT_FOUND);
	ck_assert(b.calls == 1 && b.st == ST_NOT_FOUND);
	ck_assert_uint_eq(mcache_stats(cache).entries, 0);
	metadata_unref(m);
}
END_TEST

/* A store that cannot say is no reason to refuse what is known. */
START_TEST(look_fails)
{
	struct caller a;
	struct metadata *m = table(1, 2);
	mcache_put(cache, STRV("file:///w/1.json"), m);
	pass_ms(3);
	load(&a, "file:///w/1.json", MCACHE_ALL);
	answer(ST_IO);
	ck_assert(a.calls == 1 && a.entry);
	let_go(&a);
	metadata_unref(m);
}
END_TEST

START_TEST(bad_files)
{
	struct caller a;
	struct buf file;
	buf_init(&file, 64);
	buf_puts(&file, "{\"format-version\":2}");
	content = &file;
	load(&a, "file:///w/1.json", MCACHE_ALL);
	answer(ST_OK);
	ck_assert(a.calls == 1 && a.st == ST_CORRUPT);
	load(&a, "file:///w/1.json", MCACHE_ALL);
	answer(ST_IO);
	ck_assert(a.calls == 1 && a.st == ST_IO);
	ck_assert_uint_eq(mcache_stats(cache).entries, 0);
	ck_assert_uint_eq(mcache_stats(cache).bytes, 0);
	buf_fini(&file);
}
END_TEST

static void load_view(struct caller *c, const char *location, enum mcache_rep rep)
{
	*c = (struct caller){.wait = {.rep = rep, .view = true, .done = called}};
	mcache_load(cache, strv_of(location), &c->wait);
}

static const char view_text[] =
	"{\"view-uuid\":\"00000000-0000-4000-8000-000000000001\",\"format-version\":1,"
	"\"location\":\"file:///w/v\",\"schemas\":[{\"type\":\"struct\",\"schema-id\":0,\"fields\":[]}],"
	"\"current-version-id\":1,\"versions\":[{\"version-id\":1,\"schema-id\":0,\"timestamp-ms\":1,"
	"\"summary\":{},\"default-namespace\":[],\"representations\":[{\"type\":\"sql\",\"sql\":\"select 1\","
	"\"dialect\":\"spark\"}]}],\"version-log\":[{\"timestamp-ms\":1,\"version-id\":1}]}";

/* A view's file is read once, its answer packed when somebody asks; the next version takes its place. */
START_TEST(views)
{
	struct caller a, b, c;
	static const char query[] = "\"sql\":\"select 1\"";
	struct buf file, plain;
	struct err err = {0};
	buf_init(&file, 1 << 20);
	buf_puts(&file, view_text);
	content = &file;
	load_view(&a, "file:///w/v/1.json", MCACHE_ALL);
	load_view(&b, "file:///w/v/1.json", MCACHE_METADATA);
	load_view(&c, "file:///w/v/1.json", MCACHE_ALL_GZIP);
	ck_assert_int_eq(asked_what, 'g');
	answer(ST_OK);
	if (asked)
		answer(ST_OK);
	ck_assert(a.calls == 1 && b.calls == 1 && c.calls == 1 && a.entry && a.entry == b.entry &&
		  a.entry == c.entry);
	struct strv body = bytes_strv(mcache_body(a.entry, MCACHE_ALL));
	ck_assert(strv_starts(body, STRV("{\"metadata-location\":\"file:///w/v/1.json\",\"metadata\":{")));
	ck_assert_ptr_nonnull(memmem(body.p, body.n, query, sizeof query - 1));
	buf_init(&plain, 1 << 20);
	UNIT_OK(gzip_read(mcache_body(a.entry, MCACHE_ALL_GZIP), &plain, &err), &err);
	ck_assert(strv_eq(buf_strv(&plain), body));
	buf_fini(&plain);
	let_go(&b);
	let_go(&c);
	load_view(&b, "file:///w/v/1.json", MCACHE_ALL);
	if (asked)
		answer(ST_OK); /* a look */
	ck_assert(b.calls == 1 && b.entry == a.entry && gets == 1);
	let_go(&b);
	load_view(&b, "file:///w/v/2.json", MCACHE_ALL);
	answer(ST_OK);
	if (asked)
		answer(ST_OK);
	ck_assert(b.calls == 1 && b.entry && gets == 2);
	ck_assert_uint_eq(mcache_stats(cache).entries, 1);
	let_go(&a);
	let_go(&b);
	/* The same file is no table's metadata, and a failure leaves nothing behind. */
	load(&a, "file:///w/v/2.json", MCACHE_ALL);
	answer(ST_OK);
	ck_assert(a.calls == 1 && a.st == ST_CORRUPT);
	buf_clear(&file);
	buf_puts(&file, "{\"format-version\":1}");
	load_view(&a, "file:///w/v/3.json", MCACHE_ALL);
	answer(ST_OK);
	ck_assert(a.calls == 1 && a.st == ST_CORRUPT);
	pass_ms(3);
	load_view(&a, "file:///w/v/2.json", MCACHE_ALL);
	ck_assert_int_eq(asked_what, 's');
	answer(ST_NOT_FOUND);
	ck_assert(a.calls == 1 && a.st == ST_NOT_FOUND);
	ck_assert_uint_eq(mcache_stats(cache).entries, 0);
	ck_assert_uint_eq(mcache_stats(cache).bytes, 0);
	buf_fini(&file);
}
END_TEST

/* While the file is read, the core makes the same version known. */
START_TEST(put_during_read)
{
	struct caller a;
	struct buf file;
	struct metadata *m = table(1, 2);
	buf_init(&file, 1 << 20);
	metadata_json(m, &file);
	content = &file;
	load(&a, "file:///w/1.json", MCACHE_METADATA);
	mcache_put(cache, STRV("file:///w/1.json"), m);
	answer(ST_OK);
	if (asked)
		answer(ST_OK);
	ck_assert(a.calls == 1 && mcache_metadata(a.entry) == m);
	let_go(&a);
	buf_fini(&file);
	metadata_unref(m);
}
END_TEST

START_TEST(newest_of_a_table)
{
	struct metadata *m = table(1, 2), *other = table(2, 2);
	mcache_put(cache, STRV("file:///w/1.json"), m);
	mcache_put(cache, STRV("file:///w/x.json"), other);
	mcache_put(cache, STRV("file:///w/2.json"), m);
	ck_assert_uint_eq(mcache_stats(cache).entries, 2); /* 1.json made room */
	metadata_unref(m);
	metadata_unref(other);
}
END_TEST

/* Within the budget, least recently used first; what is held stays good. */
START_TEST(eviction)
{
	struct caller first, c;
	char location[32];
	size_t big = 0;
	for (uint8_t i = 1; i <= 40; i++) {
		struct metadata *m = table(i, 700); /* some 50 KB of text each, and what was made of it */
		big += metadata_json_size(m);
		snprintf(location, sizeof location, "file:///w/%d.json", i);
		mcache_put(cache, strv_of(location), m);
		load(i == 1 ? &first : &c, location, MCACHE_ALL);
		if (asked) /* a slow machine */
			answer(ST_OK);
		if (i > 1) {
			ck_assert_int_eq(c.calls, 1);
			let_go(&c);
		}
		metadata_unref(m);
		ck_assert_uint_le(mcache_stats(cache).bytes, 1 << 20);
	}
	ck_assert_uint_gt(big, 3 << 19);
	ck_assert_int_gt(mcache_stats(cache).evicted, 20);
	ck_assert(mcache_body(first.entry, MCACHE_ALL).n > 0);
	let_go(&first);
	pass_ms(3);
	load(&c, "file:///w/40.json", MCACHE_ALL);
	ck_assert_int_eq(asked_what, 's'); /* the newest is there */
	answer(ST_OK);
	ck_assert_int_eq(c.calls, 1);
	let_go(&c);
	load(&c, "file:///w/1.json", MCACHE_ALL);
	ck_assert_int_eq(asked_what, 'g'); /* the oldest is not */
	answer(ST_NOT_FOUND);
}
END_TEST

/* A document that is written by a job; the waiter hears of it on the loop. */
START_TEST(large)
{
	struct caller a = {.wait = {.rep = MCACHE_ALL, .done = called}};
	struct metadata *m = table(1, 1500);
	mcache_put(cache, STRV("file:///w/1.json"), m);
	mcache_load(cache, STRV("file:///w/1.json"), &a.wait);
	ck_assert_int_eq(a.calls, 0);
	/* The job may take longer than the age at which the file is looked for again. */
	for (int i = 0; i < 50000 && !a.calls; i++) {
		uv_run(&loop.uv, UV_RUN_NOWAIT);
		usleep(200);
		if (asked)
			answer(ST_OK);
	}
	ck_assert_int_eq(a.calls, 1);
	ck_assert_uint_gt(mcache_body(a.entry, MCACHE_ALL).n, 64 << 10);
	let_go(&a);
	metadata_unref(m);
}
END_TEST

START_TEST(tags)
{
	char all[MCACHE_ETAG_LEN + 1], refs[MCACHE_ETAG_LEN + 1], other[MCACHE_ETAG_LEN + 1];
	mcache_etag(STRV("file:///w/1.json"), MCACHE_ALL, all);
	mcache_etag(STRV("file:///w/1.json"), MCACHE_REFS, refs);
	mcache_etag(STRV("file:///w/2.json"), MCACHE_ALL, other);
	/* Over one byte 0 and the location, with coreutils' sha256sum. */
	ck_assert_str_eq(all, "\"7bf61151001dab1e81d4af0ec24c7c34\"");
	ck_assert_str_ne(all, refs);
	ck_assert_str_ne(all, other);
	/* A representation has a tag of its own. */
	mcache_etag(STRV("file:///w/1.json"), MCACHE_ALL_GZIP, other);
	ck_assert_str_ne(all, other);
	ck_assert_str_ne(refs, other);
}
END_TEST

/* Ends what waits longest. */
static void crowd_answer(enum status st)
{
	struct obj_op *o = crowd[0];
	ck_assert_uint_gt(n_crowd, 0);
	n_crowd--;
	reading -= crowd_reads[0];
	memmove(crowd, crowd + 1, n_crowd * sizeof crowd[0]);
	memmove(crowd_reads, crowd_reads + 1, n_crowd);
	asked = o;
	answer(st);
}

START_TEST(few_reads_at_a_time)
{
	/* Many cold tables, three loads of each: a read for each, few of them under way, all answered;
	 * what became known while it waited needs none, what fails lets the next one in. */
	enum { TABLES = 30 };
	static struct caller callers[3 * TABLES];
	static char names[TABLES][32];
	struct metadata *m = table(1, 2), *known = table(2, 2);
	struct buf text;
	buf_init(&text, 1 << 20);
	metadata_json(m, &text);
	content = &text;
	crowded = true;
	for (int i = 0; i < 3 * TABLES; i++) {
		snprintf(names[i % TABLES], sizeof names[0], "file:///w/%d.json", i % TABLES);
		load(&callers[i], names[i % TABLES], MCACHE_ALL);
	}
	ck_assert_uint_eq(n_crowd, 8);
	mcache_put(cache, strv_of(names[TABLES - 1]), known);
	crowd_answer(ST_IO);
	while (n_crowd)
		crowd_answer(ST_OK);
	ck_assert_uint_eq(most_reading, 8);
	ck_assert_int_eq(gets, TABLES - 1);
	for (int i = 0; i < 3 * TABLES; i++) {
		ck_assert_int_eq(callers[i].calls, 1);
		ck_assert_int_eq(callers[i].st, i % TABLES == 0 ? ST_IO : ST_OK);
		let_go(&callers[i]);
	}
	ck_assert_uint_le(mcache_stats(cache).bytes, 1 << 20);
	metadata_unref(m);
	metadata_unref(known);
	buf_fini(&text);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("mcache");
	TCase *t = tcase_create("all");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, read_once);
	tcase_add_test(t, gone);
	tcase_add_test(t, look_fails);
	tcase_add_test(t, bad_files);
	tcase_add_test(t, views);
	tcase_add_test(t, put_during_read);
	tcase_add_test(t, newest_of_a_table);
	tcase_add_test(t, eviction);
	tcase_add_test(t, large);
	tcase_add_test(t, few_reads_at_a_time);
	tcase_add_test(t, tags);
	suite_add_tcase(s, t);
	return s;
}
UNIT_MAIN(suite)
