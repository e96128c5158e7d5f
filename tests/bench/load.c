/* Load of many workers on one table: each sends a CommitOnce, waits for its outcome, sends the next.
 * One thread, epoll; the daemon's CPU time is read from /proc at both ends of the measured window.
 * Prints one JSON object. Options: see the table below; times are from the moment a message is
 * handed to the kernel to the moment its answer is decoded. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "proto/base/jwrite.h"
#include "proto/dv/dv_blob.h"
#include "proto/rpc/frame.h"
#include "proto/rpc/msg.h"
#include "proto/rpc/msg_json.h"

#define TARGETS_MAX 256
#define ARENA_MAX ((size_t)64 << 20)
#define BUF_MAX ((size_t)64 << 20)
#define READ_CHUNK ((size_t)256 << 10)
/* Multiplies the number of a deletion into its position: odd, so that positions of a file whose
 * row count is a power of two never repeat, and far apart, so that vectors are not just runs. */
#define POSITION_STEP UINT64_C(40503)

enum mode { MODE_APPEND, MODE_DELETE, MODE_MIXED };

struct conn {
	int fd;
	struct buf in, out;
};

struct worker {
	int64_t sent_us; /* 0: nothing under way */
	bool measured;   /* sent inside the measured window */
};

struct target {
	struct strv path;
	int64_t rows;
};

struct samples {
	int64_t *us;
	size_t n, cap;
};

struct load {
	/* options */
	const char *rpc, *namespace, *table, *tag;
	enum mode mode;
	size_t n_workers, n_conns;
	double seconds, warmup;
	int64_t snapshot, first;
	long pid;
	bool once; /* one transaction a worker, all at the same time, then the end */

	struct conn *conns;
	struct worker *workers;
	int epoll;
	struct arena files, arena;
	const struct rpc_data_file *template;
	struct target targets[TARGETS_MAX];
	size_t n_targets;
	char *folder;	/* of the template, as a URI */
	size_t n_linked; /* names that exist already */

	size_t n_appends, n_deletes; /* made so far: the next name, the next position */
	size_t running;
	bool sending, measuring;
	size_t committed, refused, in_window;
	struct samples latency, snapshots, batches;
	char first_error[256];
};

NORETURN PRINTF_LIKE(1, 2) static void die(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

NORETURN static void die_err(const char *what, const struct err *err)
{
	die("%s: %s: %s", what, err->field, err->msg);
}

static int64_t now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void add(struct samples *s, int64_t v)
{
	if (s->n == s->cap) {
		s->cap = s->cap ? s->cap * 2 : 4096;
		s->us = base_realloc_array(s->us, s->cap, sizeof *s->us);
	}
	s->us[s->n++] = v;
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static void sort(struct samples *s)
{
	if (s->n)
		qsort(s->us, s->n, sizeof *s->us, by_value);
}

/* Of sorted samples. */
static int64_t quantile(const struct samples *s, double q)
{
	return s->n ? s->us[(size_t)(q * (double)(s->n - 1))] : 0;
}

static size_t distinct(const struct samples *s)
{
	size_t n = s->n > 0;
	for (size_t i = 1; i < s->n; i++)
		n += s->us[i] != s->us[i - 1];
	return n;
}

/* User and system time of the daemon, microseconds; a clock tick is 10 ms. */
static int64_t cpu_us(long pid)
{
	char path[64], text[1024];
	snprintf(path, sizeof path, "/proc/%ld/stat", pid);
	FILE *f = fopen(path, "r");
	if (!f)
		return 0;
	size_t n = fread(text, 1, sizeof text - 1, f);
	fclose(f);
	text[n] = 0;
	/* The name may hold anything; the fields begin behind its last parenthesis. */
	char *p = strrchr(text, ')');
	unsigned long user = 0, kernel = 0;
	if (!p || sscanf(p + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
			 &kernel) != 2)
		return 0;
	return (int64_t)(user + kernel) * 1000000 / sysconf(_SC_CLK_TCK);
}

static int64_t own_cpu_us(void)
{
	struct rusage r;
	getrusage(RUSAGE_SELF, &r);
	return (int64_t)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000000 + r.ru_utime.tv_usec +
	       r.ru_stime.tv_usec;
}

/* ------------------------------------------------------------------ inputs */

static struct bytes slurp(struct load *l, const char *path)
{
	FILE *f = fopen(path, "r");
	struct stat st;
	if (!f || fstat(fileno(f), &st) != 0)
		die("%s: %s", path, strerror(errno));
	size_t n = (size_t)st.st_size;
	uint8_t *p = arena_alloc(&l->files, n + 1);
	if (!p || fread(p, 1, n, f) != n)
		die("%s cannot be read", path);
	fclose(f);
	return (struct bytes){p, n};
}

/* The record of a data file as JSON; its file is linked under new names. */
static void read_template(struct load *l, const char *path)
{
	struct err err = {0};
	const void *v;
	if (msg_json_decode(&rpc_record_data_file, slurp(l, path), &l->files, &v, &err) != ST_OK)
		die_err(path, &err);
	l->template = v;
	struct strv p = l->template->path;
	while (p.n && p.p[p.n - 1] != '/')
		p.n--;
	l->folder = arena_printf(&l->files, "%.*s", STRV_ARG(p));
	if (!l->folder || !strv_starts(p, STRV("file://")))
		die("%s: not a file:// path", path);
}

/* Lines: path, space, rows. */
static void read_targets(struct load *l, const char *path)
{
	struct strv text = bytes_strv(slurp(l, path));
	while (text.n) {
		struct strv line = strv_sub(text, 0, strv_find(text, '\n'));
		text = strv_sub(text, line.n + 1, text.n);
		size_t at = strv_find(line, ' ');
		struct target *t = &l->targets[l->n_targets];
		if (l->n_targets == TARGETS_MAX || at == line.n ||
		    !strv_i64(strv_sub(line, at + 1, line.n), &t->rows) || t->rows <= 0)
			die("%s: lines are PATH ROWS, %d at most", path, TARGETS_MAX);
		t->path = strv_sub(line, 0, at);
		l->n_targets++;
	}
}

/* ------------------------------------------------------------------ transactions */

static const char *local(const char *uri)
{
	return uri + sizeof "file://" - 1;
}

static char *file_name(const struct load *l, struct arena *a, size_t n)
{
	char *p = arena_printf(a, "%s%s-%zu.parquet", l->folder, l->tag, n);
	ASSERT(p);
	return p;
}

/* Makes the files of the next n appends. */
static void link_files(struct load *l, size_t n)
{
	struct arena a;
	arena_init(&a, 1 << 16);
	char source[4096];
	if (!strv_cstr(l->template->path, source, sizeof source))
		die("the template's path is too long");
	for (; n > 0; n--) {
		if (link(local(source), local(file_name(l, &a, l->n_linked))) != 0)
			die("link: %s", strerror(errno));
		l->n_linked++;
		arena_reset(&a);
	}
	arena_fini(&a);
}

static void fill_append(struct load *l, struct rpc_fragment *f)
{
	if (l->n_appends == l->n_linked)
		link_files(l, 1);
	struct rpc_data_file *d = arena_calloc(&l->arena, 1, sizeof *d);
	ASSERT(d);
	*d = *l->template;
	d->path = strv_of(file_name(l, &l->arena, l->n_appends++));
	f->data_files = d;
	f->n_data_files = 1;
}

/* One position; every deletion of a run names another one. */
static void fill_delete(struct load *l, struct rpc_fragment *f)
{
	uint64_t k = (uint64_t)l->first + l->n_deletes++;
	const struct target *t = &l->targets[k % l->n_targets];
	uint64_t position = k / l->n_targets * POSITION_STEP % (uint64_t)t->rows;
	struct rpc_delete_vector *d = arena_calloc(&l->arena, 1, sizeof *d);
	struct bitmap64 *set = bitmap64_new();
	struct buf b;
	struct err err = {0};
	buf_init(&b, 4096);
	ASSERT(d);
	if (bitmap64_add(set, position, &err) != ST_OK || dv_blob_encode(set, &b, &err) != ST_OK ||
	    !arena_bytes(&l->arena, buf_bytes(&b), &d->vector))
		die_err("vector", &err);
	buf_fini(&b);
	bitmap64_free(set);
	d->data_file = t->path;
	d->cardinality = 1;
	d->provenance = RPC_PROVENANCE_ABSENT;
	f->deletes = d;
	f->n_deletes = 1;
}

/* Queues the worker's next transaction on its connection. */
static void put_next(struct load *l, size_t w)
{
	bool append = l->mode == MODE_APPEND || (l->mode == MODE_MIXED && w % 2 == 0);
	struct strv levels[1] = {strv_of(l->namespace)};
	struct rpc_fragment f = {.fragment_id = STRV("0")};
	struct rpc_commit_once m = {.fragments = &f, .n_fragments = 1};
	uint8_t random[10];
	digest_random(random, sizeof random);
	struct timespec wall;
	clock_gettime(CLOCK_REALTIME, &wall);
	m.begin.txn_id = uuid_v7((int64_t)wall.tv_sec * 1000 + wall.tv_nsec / 1000000, random);
	m.begin.namespace = levels;
	m.begin.n_namespace = 1;
	m.begin.table = strv_of(l->table);
	m.begin.ref = STRV("main");
	m.begin.isolation = RPC_ISOLATION_SNAPSHOT;
	m.begin.kind = append ? RPC_KIND_APPEND : RPC_KIND_DELETE;
	if (append) {
		fill_append(l, &f);
	} else {
		m.begin.read_snapshot_id = l->snapshot;
		m.begin.has_read_snapshot_id = true;
		fill_delete(l, &f);
	}
	ASSERT(msg_fragment_digest(&f, &f.digest));
	struct conn *c = &l->conns[w % l->n_conns];
	size_t at = frame_open(&c->out, RPC_MSG_COMMIT_ONCE, RPC_VERSION, (uint32_t)w);
	msg_encode(&rpc_record_commit_once, &m, &c->out);
	frame_close(&c->out, at);
	ASSERT(buf_ok(&c->out));
	arena_reset(&l->arena);
	l->workers[w] = (struct worker){.sent_us = now_us(), .measured = l->measuring};
	l->running++;
}

static void flush(struct conn *c)
{
	while (c->out.n) {
		ssize_t n = send(c->fd, c->out.p, c->out.n, MSG_NOSIGNAL);
		if (n < 0 && errno != EINTR)
			die("send: %s", strerror(errno));
		if (n > 0)
			buf_consume(&c->out, (size_t)n);
	}
}

static void flush_all(struct load *l)
{
	for (size_t i = 0; i < l->n_conns; i++)
		flush(&l->conns[i]);
}

static void refused(struct load *l, const struct rpc_error *e)
{
	l->refused++;
	if (!l->first_error[0])
		snprintf(l->first_error, sizeof l->first_error, "%.*s %.*s: %.*s",
			 STRV_ARG(e->name), STRV_ARG(e->field), STRV_ARG(e->message));
}

static void answered(struct load *l, const struct frame *f)
{
	struct err err = {0};
	const void *v;
	size_t w = f->request_id;
	if (w >= l->n_workers || !l->workers[w].sent_us)
		die("an answer to no request: %zu", w);
	if (f->type == RPC_MSG_ERROR) {
		if (msg_decode(&rpc_record_error, f->payload, &l->arena, &v, &err) != ST_OK)
			die_err("error", &err);
		refused(l, v);
	} else {
		if (f->type != RPC_MSG_OUTCOME ||
		    msg_decode(&rpc_record_outcome, f->payload, &l->arena, &v, &err) != ST_OK)
			die_err("outcome", &err);
		const struct rpc_outcome *o = v;
		if (o->state == RPC_STATE_COMMITTED) {
			l->committed++;
			add(&l->snapshots, o->snapshot_id);
			add(&l->batches, o->batch_no);
		} else if (o->reject) {
			refused(l, o->reject);
		} else {
			struct strv name =
				strv_of(rpc_symbol_name(&rpc_list_state, (unsigned)o->state));
			refused(l, &(struct rpc_error){.name = name, .message = o->note});
		}
	}
	arena_reset(&l->arena);
	if (l->workers[w].measured) {
		add(&l->latency, now_us() - l->workers[w].sent_us);
		l->in_window += l->measuring;
	}
	l->workers[w].sent_us = 0;
	l->running--;
	if (l->refused > 1000)
		die("more than 1000 refusals, the first: %s", l->first_error);
	if (l->sending)
		put_next(l, w);
}

static void readable(struct load *l, struct conn *c)
{
	uint8_t *room = buf_room(&c->in, READ_CHUNK);
	ASSERT(room);
	ssize_t n = recv(c->fd, room, READ_CHUNK, MSG_DONTWAIT);
	c->in.n -= READ_CHUNK - (n > 0 ? (size_t)n : 0);
	if (n == 0)
		die("the daemon closed a connection");
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		die("recv: %s", strerror(errno));
	size_t at = 0;
	for (;;) {
		struct frame f;
		struct err err = {0};
		size_t used;
		struct bytes rest = {c->in.p + at, c->in.n - at};
		if (frame_parse(rest, FRAME_MAX, &f, &used, &err) != ST_OK)
			die_err("frame", &err);
		if (!used)
			break;
		answered(l, &f);
		at += used;
	}
	buf_consume(&c->in, at);
}

/* Until `end`, or with end 0 until nothing is under way. */
static void turn_until(struct load *l, int64_t end)
{
	struct epoll_event ready[256];
	for (;;) {
		int64_t left = end ? end - now_us() : 1000000;
		if (left <= 0 || (!end && !l->running))
			return;
		int n = epoll_wait(l->epoll, ready, 256, (int)(left / 1000 + 1));
		for (int i = 0; i < n; i++)
			readable(l, ready[i].data.ptr);
		for (int i = 0; i < n; i++)
			flush(ready[i].data.ptr);
	}
}

static void start_all(struct load *l)
{
	l->sending = !l->once;
	for (size_t w = 0; w < l->n_workers; w++)
		put_next(l, w);
	flush_all(l);
}

/* ------------------------------------------------------------------ connections */

static int dial(const char *rpc)
{
	const char *colon = strrchr(rpc, ':');
	int64_t port;
	struct sockaddr_in sa = {.sin_family = AF_INET};
	sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (!colon || !strv_i64(strv_of(colon + 1), &port) || port <= 0 || port > 65535)
		die("--rpc: 127.0.0.1:PORT");
	sa.sin_port = htons((uint16_t)port);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int one = 1;
	if (fd < 0 || connect(fd, (struct sockaddr *)&sa, sizeof sa) != 0 ||
	    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0)
		die("%s: %s", rpc, strerror(errno));
	return fd;
}

static void shake_hands(struct conn *c)
{
	struct rpc_hello h = {.min_version = RPC_VERSION,
			      .max_version = RPC_VERSION,
			      .client = STRV("frazil-bench")};
	size_t at = frame_open(&c->out, RPC_MSG_HELLO, RPC_VERSION, 0);
	msg_encode(&rpc_record_hello, &h, &c->out);
	frame_close(&c->out, at);
	flush(c);
	for (;;) {
		uint8_t *room = buf_room(&c->in, 4096);
		ASSERT(room);
		ssize_t n = recv(c->fd, room, 4096, 0);
		if (n <= 0)
			die("no answer to Hello");
		c->in.n -= 4096 - (size_t)n;
		struct frame f;
		struct err err = {0};
		size_t used;
		if (frame_parse(buf_bytes(&c->in), FRAME_MAX, &f, &used, &err) != ST_OK)
			die_err("Hello", &err);
		if (!used)
			continue;
		if (f.type != RPC_MSG_HELLO_REPLY)
			die("Hello was answered by message %u", f.type);
		buf_consume(&c->in, used);
		return;
	}
}

static void connect_all(struct load *l)
{
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	l->conns = base_calloc(l->n_conns, sizeof *l->conns);
	for (size_t i = 0; i < l->n_conns; i++) {
		struct conn *c = &l->conns[i];
		buf_init(&c->in, BUF_MAX);
		buf_init(&c->out, BUF_MAX);
		c->fd = dial(l->rpc);
		shake_hands(c);
		struct epoll_event ev = {.events = EPOLLIN, .data.ptr = c};
		if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, c->fd, &ev) != 0)
			die("epoll: %s", strerror(errno));
	}
}

/* ------------------------------------------------------------------ runs */

struct result {
	int64_t window_us, cpu_us, own_us;
};

/* A measured window behind a warm-up; the files of the window are linked between the two. */
static struct result run_window(struct load *l)
{
	int64_t began = now_us();
	start_all(l);
	turn_until(l, began + (int64_t)(l->warmup * 1e6));
	l->sending = false;
	turn_until(l, 0);
	double rate = (double)l->committed / ((double)(now_us() - began) / 1e6);
	if (l->mode != MODE_DELETE)
		link_files(l, (size_t)(rate * l->seconds * 1.5) + l->n_workers);

	struct result r = {.cpu_us = cpu_us(l->pid), .own_us = own_cpu_us()};
	began = now_us();
	l->measuring = true;
	start_all(l);
	turn_until(l, began + (int64_t)(l->seconds * 1e6));
	l->measuring = l->sending = false;
	r.window_us = now_us() - began;
	r.cpu_us = cpu_us(l->pid) - r.cpu_us;
	r.own_us = own_cpu_us() - r.own_us;
	turn_until(l, 0);
	return r;
}

static struct result run_once(struct load *l)
{
	if (l->mode != MODE_DELETE)
		link_files(l, l->n_workers);
	struct result r = {.cpu_us = cpu_us(l->pid), .own_us = own_cpu_us()};
	int64_t began = now_us();
	l->measuring = true;
	start_all(l);
	turn_until(l, 0);
	r.window_us = now_us() - began;
	r.cpu_us = cpu_us(l->pid) - r.cpu_us;
	r.own_us = own_cpu_us() - r.own_us;
	return r;
}

static void print(struct load *l, const struct result *r)
{
	sort(&l->latency);
	sort(&l->snapshots);
	sort(&l->batches);
	const struct {
		const char *key;
		int64_t v;
	} rows[] = {
		{"committed", (int64_t)l->committed},
		{"refused", (int64_t)l->refused},
		{"appends", (int64_t)l->n_appends},
		{"deletes", (int64_t)l->n_deletes},
		{"in_window", (int64_t)l->in_window},
		{"window_us", r->window_us},
		{"p50_us", quantile(&l->latency, 0.5)},
		{"p99_us", quantile(&l->latency, 0.99)},
		{"max_us", quantile(&l->latency, 1)},
		{"daemon_cpu_us", r->cpu_us},
		{"own_cpu_us", r->own_us},
		{"snapshots", (int64_t)distinct(&l->snapshots)},
		{"batches", (int64_t)distinct(&l->batches)},
	};
	struct buf b;
	struct jwrite w;
	buf_init(&b, 1 << 16);
	jwrite_init(&w, &b);
	jwrite_object(&w);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		jwrite_ki64(&w, rows[i].key, rows[i].v);
	jwrite_kstr(&w, "first_error", strv_of(l->first_error));
	jwrite_end_object(&w);
	buf_putc(&b, '\n');
	fwrite(b.p, 1, b.n, stdout);
	buf_fini(&b);
}

static int64_t number(const char *option)
{
	int64_t v;
	if (!strv_i64(strv_of(optarg), &v) || v < 0)
		die("--%s: not a number: %s", option, optarg);
	return v;
}

int main(int argc, char **argv)
{
	static const struct option known[] = {
		{"rpc", required_argument, NULL, 'r'},	   /* 127.0.0.1:PORT */
		{"pid", required_argument, NULL, 'p'},	   /* of the daemon */
		{"namespace", required_argument, NULL, 'n'}, /* one level */
		{"table", required_argument, NULL, 't'},
		{"mode", required_argument, NULL, 'm'},	     /* append | delete | mixed */
		{"workers", required_argument, NULL, 'w'},
		{"connections", required_argument, NULL, 'c'}, /* default: one a worker */
		{"seconds", required_argument, NULL, 's'},
		{"warmup", required_argument, NULL, 'u'},
		{"template", required_argument, NULL, 'f'}, /* JSON record of a data file */
		{"targets", required_argument, NULL, 'd'},  /* lines PATH ROWS: deleted from */
		{"snapshot", required_argument, NULL, 'i'}, /* that the deletions read */
		{"first", required_argument, NULL, 'k'},    /* number of the first deletion */
		{"tag", required_argument, NULL, 'g'},	    /* how names of data files begin */
		{"once", no_argument, NULL, '1'},	    /* one transaction a worker */
		{NULL, 0, NULL, 0},
	};
	struct load l = {.namespace = "bench", .tag = "load", .n_workers = 1, .seconds = 3,
			 .warmup = 1};
	arena_init(&l.files, ARENA_MAX);
	arena_init(&l.arena, ARENA_MAX);
	int c;
	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (c) {
		case 'r':
			l.rpc = optarg;
			break;
		case 'p':
			l.pid = (long)number("pid");
			break;
		case 'n':
			l.namespace = optarg;
			break;
		case 't':
			l.table = optarg;
			break;
		case 'm':
			l.mode = strv_eq(strv_of(optarg), STRV("append"))   ? MODE_APPEND
				 : strv_eq(strv_of(optarg), STRV("delete")) ? MODE_DELETE
									    : MODE_MIXED;
			break;
		case 'w':
			l.n_workers = (size_t)number("workers");
			break;
		case 'c':
			l.n_conns = (size_t)number("connections");
			break;
		case 's':
			l.seconds = strtod(optarg, NULL);
			break;
		case 'u':
			l.warmup = strtod(optarg, NULL);
			break;
		case 'f':
			read_template(&l, optarg);
			break;
		case 'd':
			read_targets(&l, optarg);
			break;
		case 'i':
			l.snapshot = number("snapshot");
			break;
		case 'k':
			l.first = number("first");
			break;
		case 'g':
			l.tag = optarg;
			break;
		case '1':
			l.once = true;
			break;
		default:
			return 2;
		}
	}
	if (!l.rpc || !l.table || !l.n_workers || (l.mode != MODE_DELETE && !l.template) ||
	    (l.mode != MODE_APPEND && !l.n_targets))
		die("--rpc, --table, --workers, and what the mode needs");
	if (!l.n_conns || l.n_conns > l.n_workers)
		l.n_conns = l.n_workers;
	l.workers = base_calloc(l.n_workers, sizeof *l.workers);
	connect_all(&l);
	struct result r = l.once ? run_once(&l) : run_window(&l);
	print(&l, &r);
	return l.refused > 0;
}
