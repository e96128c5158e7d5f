#include "store/pg/pgc.h"

#include <arpa/inet.h>
#include <libpq-fe.h>
#include <netdb.h>
#include <stdio.h>

enum pgc_state {
	PGC_CONNECTING,
	PGC_SETTING_UP, /* hello, setup and prepares are in flight */
	PGC_READY,
	PGC_DEAD,
};

struct pgc_prepare {
	struct pgc *c;
	struct pgc_op op;
};

struct pgc {
	uv_loop_t *loop;
	const struct pgc_conf *conf;
	PGconn *pg;
	uv_poll_t *poll; /* on its own: a connect may change the socket */
	int fd;
	int events;
	uv_timer_t timer; /* earliest deadline, or at once when `broken` */
	enum pgc_state state;
	struct list ops; /* expected answers, oldest first */
	size_t n_ops;
	int64_t connect_deadline_us;
	bool broken; /* a send failed half-way: give up at the next turn of the loop */
	int depth;   /* callbacks of ours on the stack: storage must outlive them */
	bool closed_handles;
	struct pgc_op hello, setup;
	struct pgc_prepare *prepares;
	size_t prepared;
	uv_getaddrinfo_t *lookup; /* of the server's name, on a thread; outlives us if need be */
	bool resolving;
};

static int64_t now_us(void)
{
	return (int64_t)(uv_hrtime() / 1000);
}

static void step(struct pgc *c);
static void arm(struct pgc *c);
static void watch(struct pgc *c, int events);

/* ------------------------------------------------------------------ the end of a connection */

static void poll_closed(uv_handle_t *h)
{
	base_free(h);
}

static void drop_poll(struct pgc *c)
{
	if (!c->poll)
		return;
	uv_poll_stop(c->poll);
	uv_close((uv_handle_t *)c->poll, poll_closed);
	c->poll = NULL;
	c->fd = -1;
	c->events = 0;
}

static void maybe_free(struct pgc *c)
{
	if (c->state == PGC_DEAD && c->closed_handles && c->depth == 0) {
		base_free(c->prepares);
		base_free(c);
	}
}

static void timer_closed(uv_handle_t *h)
{
	struct pgc *c = h->data;
	c->closed_handles = true;
	maybe_free(c);
}

static void op_finish(struct pgc *c, struct pgc_op *op, enum pgc_end end, const struct err *err)
{
	struct pgres *rows = op->rows;
	op->rows = NULL;
	list_remove(&op->node);
	c->n_ops--;
	op->done(op, end, end == PGC_ROWS ? rows : NULL, err);
	PQclear((PGresult *)rows);
}

/* The poll handle goes before PQfinish closes the descriptor: its number may be reused at once. */
static void fail(struct pgc *c, const struct err *why)
{
	if (c->state == PGC_DEAD)
		return;
	c->depth++;
	struct err err = *why;
	c->state = PGC_DEAD;
	drop_poll(c);
	if (c->lookup) {
		c->lookup->data = NULL;
		uv_cancel((uv_req_t *)c->lookup);
		c->lookup = NULL;
	}
	uv_timer_stop(&c->timer);
	uv_close((uv_handle_t *)&c->timer, timer_closed);
	if (c->pg)
		PQfinish(c->pg);
	c->pg = NULL;
	while (!list_empty(&c->ops))
		op_finish(c, LIST_ITEM(c->ops.next, struct pgc_op, node), PGC_LOST, &err);
	if (c->conf->down)
		c->conf->down(c->conf->ctx, c, &err);
	c->depth--;
	maybe_free(c);
}

static void fail_pg(struct pgc *c, const char *what)
{
	struct err err = {0};
	err_set(&err, ST_UNAVAILABLE, "", "PostgreSQL: %s", what);
	if (c->pg) {
		char text[160];
		snprintf(text, sizeof text, "%s", PQerrorMessage(c->pg));
		for (char *p = text; *p; p++)
			if (*p == '\n')
				*p = ' ';
		err_detail(&err, "%s", text);
	}
	fail(c, &err);
}

/* ------------------------------------------------------------------ the loop's side */

static void on_timer(uv_timer_t *t)
{
	struct pgc *c = t->data;
	if (c->broken) {
		fail_pg(c, c->state == PGC_CONNECTING ? "cannot connect"
						      : "a statement could not be sent");
		return;
	}
	if (c->state == PGC_CONNECTING && !c->poll && !c->resolving) {
		watch(c, UV_WRITABLE);
		arm(c);
		return;
	}
	int64_t now = now_us();
	if (c->state == PGC_CONNECTING && now >= c->connect_deadline_us) {
		fail_pg(c, "connecting took too long");
		return;
	}
	LIST_FOR(n, tmp, &c->ops)
	{
		struct pgc_op *op = LIST_ITEM(n, struct pgc_op, node);
		if (op->deadline_us && now >= op->deadline_us) {
			fail_pg(c, "a statement was not answered in time");
			return;
		}
	}
	step(c);
}

/* Earliest deadline of everything in flight; coarse timers are re-armed when they fire early. */
static void arm(struct pgc *c)
{
	if (c->state == PGC_DEAD)
		return;
	int64_t at = c->state == PGC_CONNECTING ? c->connect_deadline_us : INT64_MAX;
	LIST_FOR(n, tmp, &c->ops)
	{
		const struct pgc_op *op = LIST_ITEM(n, struct pgc_op, node);
		if (op->deadline_us && op->deadline_us < at)
			at = op->deadline_us;
	}
	if (c->broken) {
		uv_timer_start(&c->timer, on_timer, 0, 0);
	} else if (at == INT64_MAX) {
		uv_timer_stop(&c->timer);
	} else {
		int64_t left = at - now_us();
		uv_timer_start(&c->timer, on_timer, left <= 0 ? 0 : (uint64_t)(left / 1000 + 1), 0);
	}
}

static void on_poll(uv_poll_t *p, int status, int events)
{
	struct pgc *c = p->data;
	(void)events;
	if (c->poll != p)
		return;
	if (status < 0) {
		/* While connecting libpq may have further addresses to try. */
		if (c->state != PGC_CONNECTING) {
			fail_pg(c, "the connection was lost");
			return;
		}
		drop_poll(c);
	}
	step(c);
}

/* Each uv_poll_start registers the descriptor again: only real changes. */
static void watch(struct pgc *c, int events)
{
	int fd = PQsocket(c->pg);
	if (fd < 0) {
		fail_pg(c, "the connection has no socket");
		return;
	}
	if (c->poll && c->fd != fd)
		drop_poll(c);
	if (!c->poll) {
		c->poll = base_calloc(1, sizeof *c->poll);
		c->poll->data = c;
		if (uv_poll_init(c->loop, c->poll, fd) != 0) {
			base_free(c->poll);
			c->poll = NULL;
			fail_pg(c, "the socket cannot be watched");
			return;
		}
		c->fd = fd;
	}
	if (c->events != events) {
		c->events = events;
		uv_poll_start(c->poll, events, on_poll);
	}
}

static void flush(struct pgc *c)
{
	int left = PQflush(c->pg);
	if (left < 0)
		fail_pg(c, "the connection was lost while sending");
	else
		watch(c, UV_READABLE | (left ? UV_WRITABLE : 0));
}

/* ------------------------------------------------------------------ answers */

static void op_error(struct pgc_op *op, const PGresult *r)
{
	if (op->failed)
		return;
	op->failed = true;
	const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE);
	const char *text = PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);
	snprintf(op->sqlstate, sizeof op->sqlstate, "%s", state ? state : "");
	enum status st = ST_INTERNAL;
	/* Read-only: a server that has become a standby. System errors: its disk. */
	if (state &&
	    (!strncmp(state, "53", 2) || !strncmp(state, "58", 2) || !strcmp(state, "25006") ||
	     !strcmp(state, "55P03") || !strcmp(state, "57014") ||
	     !strcmp(state, "57P01") || !strcmp(state, "57P02") || !strcmp(state, "57P03") ||
	     !strncmp(state, "40", 2)))
		st = ST_UNAVAILABLE;
	err_set(&op->err, st, "", "PostgreSQL refused a statement");
	err_detail(&op->err, "%s %s", op->sqlstate, text ? text : PQresultErrorMessage(r));
}

static struct pgc_op *oldest(struct pgc *c)
{
	return list_empty(&c->ops) ? NULL : LIST_ITEM(c->ops.next, struct pgc_op, node);
}

/* A warning of class 01000 can only be the one of an interrupted wait for a standby (our functions
 * raise none): the commit stands here and may not stand after a failover. */
static void on_notice(void *arg, const PGresult *r)
{
	struct pgc *c = arg;
	const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE);
	const char *severity = PQresultErrorField(r, PG_DIAG_SEVERITY_NONLOCALIZED);
	struct pgc_op *op = oldest(c);
	if (op && state && severity && !strcmp(severity, "WARNING") &&
	    (!strcmp(state, "01000") || !strcmp(state, "57P01")))
		op->warned = true;
}

static void op_answered(struct pgc *c, struct pgc_op *op)
{
	struct err err = op->err;
	if (op->warned && !op->failed) {
		err_set(&err, ST_COMMIT_UNKNOWN, "",
			"PostgreSQL gave up waiting for its synchronous standby");
		op_finish(c, op, PGC_LOST, &err);
	} else if (op->failed) {
		op_finish(c, op, PGC_REJECTED, &err);
	} else {
		op_finish(c, op, PGC_ROWS, &err);
	}
}

/* Returns false when the connection died or nothing more is there. */
static bool take_result(struct pgc *c)
{
	PGresult *r = PQgetResult(c->pg);
	struct pgc_op *op = oldest(c);
	if (!r) {
		/* The end of one statement's results. In a pipeline the sync is still to come. */
		if (!c->conf->pipeline && op)
			op_answered(c, op);
		return c->state != PGC_DEAD && !list_empty(&c->ops);
	}
	ExecStatusType st = PQresultStatus(r);
	if (!op) {
		PQclear(r);
		fail_pg(c, "an answer that nobody waits for");
		return false;
	}
	switch (st) {
	case PGRES_PIPELINE_SYNC:
		PQclear(r);
		op_answered(c, op);
		break;
	case PGRES_TUPLES_OK:
		PQclear((PGresult *)op->rows);
		op->rows = (struct pgres *)r;
		break;
	case PGRES_COMMAND_OK:
	case PGRES_EMPTY_QUERY:
		PQclear(r);
		break;
	case PGRES_FATAL_ERROR:
	case PGRES_PIPELINE_ABORTED:
		op_error(op, r);
		PQclear(r);
		/* An error without SQLSTATE is libpq's own: the connection is gone. */
		if (!op->sqlstate[0] || PQstatus(c->pg) == CONNECTION_BAD) {
			fail_pg(c, "the connection was lost");
			return false;
		}
		break;
	default:
		PQclear(r);
		fail_pg(c, "an answer of an unexpected kind");
		return false;
	}
	return c->state != PGC_DEAD;
}

/* ------------------------------------------------------------------ sending */

static void enlist(struct pgc *c, struct pgc_op *op)
{
	op->rows = NULL;
	op->failed = op->warned = false;
	op->sqlstate[0] = 0;
	memset(&op->err, 0, sizeof op->err);
	list_init(&op->node);
	list_push_back(&c->ops, &op->node);
	c->n_ops++;
}

/* Behind a command that libpq has accepted: its sync, and the answer expected. */
static void sent(struct pgc *c, struct pgc_op *op)
{
	enlist(c, op);
	if (c->conf->pipeline && !PQpipelineSync(c->pg))
		c->broken = true;
	/* No failure is reported from here: the caller is still in the middle of its own work. */
	int left = c->broken ? 0 : PQflush(c->pg);
	if (left < 0) {
		c->broken = true;
	} else if (left && c->poll && !(c->events & UV_WRITABLE)) {
		c->events |= UV_WRITABLE;
		uv_poll_start(c->poll, c->events, on_poll);
	}
	arm(c);
}

/* Without its sync a statement can never commit, so a failed send is surely not sent. */
static bool refused(struct pgc *c)
{
	c->broken = true;
	arm(c);
	return false;
}

static bool send_prepared(struct pgc *c, size_t stmt, const struct pgargs *a, struct pgc_op *op)
{
	const char *v[PGARGS_MAX];
	int len[PGARGS_MAX], fmt[PGARGS_MAX];
	for (int i = 0; i < a->n; i++) {
		v[i] = a->null[i] ? NULL : a->buf.p ? (const char *)a->buf.p + a->at[i] : "";
		len[i] = (int)a->len[i]; /* bounded by PGARGS_BYTES_MAX */
		fmt[i] = 1;
	}
	if (!PQsendQueryPrepared(c->pg, c->conf->stmts[stmt].name, a->n, v, len, fmt, 1))
		return refused(c);
	sent(c, op);
	return true;
}

bool pgc_send(struct pgc *c, size_t stmt, const struct pgargs *args, struct pgc_op *op)
{
	ASSERT(stmt < c->conf->n_stmts && c->conf->pipeline);
	if (c->state != PGC_READY || c->broken || !pgargs_ok(args))
		return false;
	return send_prepared(c, stmt, args, op);
}

static bool query(struct pgc *c, const char *sql, struct pgc_op *op)
{
	if (!PQsendQueryParams(c->pg, sql, 0, NULL, NULL, NULL, NULL, 1))
		return refused(c);
	sent(c, op);
	return true;
}

bool pgc_query(struct pgc *c, const char *sql, struct pgc_op *op)
{
	if (c->state != PGC_READY || c->broken)
		return false;
	ASSERT(c->conf->pipeline || list_empty(&c->ops));
	return query(c, sql, op);
}

bool pgc_script(struct pgc *c, const char *sql, struct pgc_op *op)
{
	ASSERT(!c->conf->pipeline);
	if (c->state != PGC_READY || c->broken)
		return false;
	ASSERT(list_empty(&c->ops));
	if (!PQsendQuery(c->pg, sql))
		return refused(c);
	sent(c, op);
	return true;
}

/* ------------------------------------------------------------------ setting up */

static void become_ready(struct pgc *c)
{
	c->state = PGC_READY;
	arm(c);
	if (c->conf->ready)
		c->conf->ready(c->conf->ctx, c);
}

static void on_prepared(struct pgc_op *op, enum pgc_end end, const struct pgres *res,
			const struct err *err)
{
	struct pgc *c = CONTAINER_OF(op, struct pgc_prepare, op)->c;
	(void)res;
	if (c->state == PGC_DEAD)
		return;
	if (end != PGC_ROWS)
		fail(c, err);
	else if (++c->prepared == c->conf->n_stmts)
		become_ready(c);
}

static void prepare_all(struct pgc *c)
{
	if (!c->conf->n_stmts) {
		become_ready(c);
		return;
	}
	for (size_t i = 0; i < c->conf->n_stmts && !c->broken && c->state != PGC_DEAD; i++) {
		struct pgc_prepare *p = &c->prepares[i];
		p->c = c;
		p->op.done = on_prepared;
		p->op.deadline_us = c->connect_deadline_us;
		if (PQsendPrepare(c->pg, c->conf->stmts[i].name, c->conf->stmts[i].sql, 0, NULL))
			sent(c, &p->op);
		else
			(void)refused(c);
	}
}

static void on_setup(struct pgc_op *op, enum pgc_end end, const struct pgres *res,
		     const struct err *err)
{
	struct pgc *c = CONTAINER_OF(op, struct pgc, setup);
	if (c->state == PGC_DEAD)
		return;
	struct err why = *err;
	if (end != PGC_ROWS || c->conf->check_setup(c->conf->ctx, res, PQbackendPID(c->pg), &why))
		fail(c, &why);
	else
		prepare_all(c);
}

static void on_hello(struct pgc_op *op, enum pgc_end end, const struct pgres *res,
		     const struct err *err)
{
	struct pgc *c = CONTAINER_OF(op, struct pgc, hello);
	if (c->state == PGC_DEAD)
		return;
	struct err why = *err;
	if (end != PGC_ROWS || c->conf->check_hello(c->conf->ctx, res, PQbackendPID(c->pg), &why)) {
		fail(c, &why);
		return;
	}
	c->setup.done = on_setup;
	c->setup.deadline_us = c->connect_deadline_us;
	(void)!query(c, c->conf->setup_sql, &c->setup);
}

static void connected(struct pgc *c)
{
	PQsetnonblocking(c->pg, 1);
	PQsetNoticeReceiver(c->pg, on_notice, c);
	if (c->conf->pipeline && !PQenterPipelineMode(c->pg)) {
		fail_pg(c, "pipeline mode was refused");
		return;
	}
	c->state = PGC_SETTING_UP;
	watch(c, UV_READABLE);
	if (c->state == PGC_DEAD)
		return;
	c->hello.done = on_hello;
	c->hello.deadline_us = c->connect_deadline_us;
	(void)!query(c, c->conf->hello_sql, &c->hello);
}

static void connect_step(struct pgc *c)
{
	switch (PQconnectPoll(c->pg)) {
	case PGRES_POLLING_READING:
		watch(c, UV_READABLE);
		break;
	case PGRES_POLLING_WRITING:
		watch(c, UV_WRITABLE);
		break;
	case PGRES_POLLING_OK:
		connected(c);
		break;
	default:
		fail_pg(c, "cannot connect");
		break;
	}
}

/* One turn of the machine: whatever woke us, look at everything. */
static void step(struct pgc *c)
{
	if (c->state == PGC_DEAD)
		return;
	c->depth++;
	if (c->state == PGC_CONNECTING) {
		connect_step(c);
	} else if (!PQconsumeInput(c->pg)) {
		fail_pg(c, "the connection was lost");
	} else {
		while (c->state != PGC_DEAD && !list_empty(&c->ops) && !PQisBusy(c->pg) &&
		       take_result(c))
			;
		if (c->state != PGC_DEAD)
			flush(c);
	}
	if (c->state != PGC_DEAD)
		arm(c);
	c->depth--;
	maybe_free(c);
}

/* Failures are reported on the loop's next turn: the owner has the pointer before anything can go
 * wrong. hosts and addresses: of a lookup, or NULL. */
static void connect_begin(struct pgc *c, const char *hosts, const char *addresses)
{
	char tcp[24];
	snprintf(tcp, sizeof tcp, "%lld", (long long)c->conf->tcp_user_timeout_ms);
	/* The first row expands the caller's string; later rows win over it. */
	const char *key[] = {"dbname",
			     "application_name",
			     "client_encoding",
			     "tcp_user_timeout",
			     "keepalives",
			     "keepalives_idle",
			     "keepalives_interval",
			     "keepalives_count",
			     hosts ? "host" : NULL,
			     "hostaddr",
			     NULL};
	const char *val[] = {c->conf->conninfo,
			     c->conf->application_name,
			     "UTF8",
			     tcp,
			     "1",
			     "10",
			     "5",
			     "3",
			     hosts,
			     addresses,
			     NULL};
	c->resolving = false;
	c->pg = PQconnectStartParams(key, val, 1);
	if (!c->pg || PQstatus(c->pg) == CONNECTION_BAD) {
		c->broken = true;
		arm(c);
		return;
	}
	uv_timer_start(&c->timer, on_timer, 0, 0);
}

#define ADDRESSES_MAX 8
#define HOST_MAX 255

static void looked_up(uv_getaddrinfo_t *req, int status, struct addrinfo *list)
{
	struct pgc *c = req->data;
	char hosts[ADDRESSES_MAX * (HOST_MAX + 1)], addresses[ADDRESSES_MAX * INET6_ADDRSTRLEN];
	size_t at = 0, host_at = 0;
	int n = 0;
	if (c) {
		c->lookup = NULL;
		const char *host = (const char *)(req + 1);
		for (struct addrinfo *i = list; status == 0 && i && n < ADDRESSES_MAX;
		     i = i->ai_next) {
			char text[INET6_ADDRSTRLEN];
			const void *addr =
				i->ai_family == AF_INET6
					? (const void *)&((struct sockaddr_in6 *)(void *)i->ai_addr)
						  ->sin6_addr
					: (const void *)&((struct sockaddr_in *)(void *)i->ai_addr)
						  ->sin_addr;
			if (!inet_ntop(i->ai_family, addr, text, sizeof text))
				continue;
			/* libpq pairs the two lists; the name stays for certificates. */
			at += (size_t)snprintf(addresses + at, sizeof addresses - at, "%s%s",
					       n ? "," : "", text);
			host_at += (size_t)snprintf(hosts + host_at, sizeof hosts - host_at, "%s%s",
						    n ? "," : "", host);
			n++;
		}
	}
	uv_freeaddrinfo(list);
	base_free(req);
	if (!c)
		return;
	if (n == 0)
		fail_pg(c, "the server's name cannot be resolved");
	else
		connect_begin(c, hosts, addresses);
}

/* One name to look up, or false: a socket's folder, an address, a list of hosts (libpq does these
 * itself; a list of names then blocks while it is looked up). */
static bool name_of(const char *conninfo, char out[HOST_MAX + 1])
{
	bool found = false;
	PQconninfoOption *opts = PQconninfoParse(conninfo, NULL);
	for (PQconninfoOption *o = opts; o && o->keyword; o++) {
		uint8_t addr[16];
		if (!strcmp(o->keyword, "hostaddr") && o->val && o->val[0]) {
			found = false;
			break;
		}
		if (!strcmp(o->keyword, "host") && o->val && o->val[0] && o->val[0] != '/' &&
		    o->val[0] != '@' && !strchr(o->val, ',') && strlen(o->val) <= HOST_MAX &&
		    inet_pton(AF_INET, o->val, addr) != 1 &&
		    inet_pton(AF_INET6, o->val, addr) != 1) {
			snprintf(out, HOST_MAX + 1, "%s", o->val);
			found = true;
		}
	}
	PQconninfoFree(opts);
	return found;
}

struct pgc *pgc_open(uv_loop_t *loop, const struct pgc_conf *conf)
{
	struct pgc *c = base_calloc(1, sizeof *c);
	char host[HOST_MAX + 1];
	c->loop = loop;
	c->conf = conf;
	c->fd = -1;
	c->state = PGC_CONNECTING;
	list_init(&c->ops);
	c->prepares = base_calloc(conf->n_stmts + 1, sizeof *c->prepares);
	c->connect_deadline_us = now_us() + conf->connect_timeout_us;
	uv_timer_init(loop, &c->timer);
	c->timer.data = c;
	if (!name_of(conf->conninfo, host)) {
		connect_begin(c, NULL, NULL);
		return c;
	}
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	size_t n = strlen(host) + 1;
	uv_getaddrinfo_t *req = base_calloc(1, sizeof *req + n);
	memcpy(req + 1, host, n);
	req->data = c;
	c->resolving = true;
	if (uv_getaddrinfo(loop, req, looked_up, host, NULL, &hints) != 0) {
		base_free(req);
		c->broken = true;
	} else {
		c->lookup = req;
	}
	arm(c);
	return c;
}

void pgc_close(struct pgc *own_c)
{
	struct err err = {0};
	err_set(&err, ST_UNAVAILABLE, "", "PostgreSQL: the connection was closed");
	fail(own_c, &err);
}

bool pgc_ready(const struct pgc *c)
{
	return c->state == PGC_READY && !c->broken;
}

size_t pgc_in_flight(const struct pgc *c)
{
	return c->n_ops;
}

/* ------------------------------------------------------------------ rows */

static const PGresult *pg(const struct pgres *res)
{
	return (const PGresult *)res;
}

size_t pgres_rows(const struct pgres *res)
{
	return res ? (size_t)PQntuples(pg(res)) : 0;
}

bool pgres_value(const struct pgres *res, size_t row, int col, struct bytes *ret_b)
{
	*ret_b = (struct bytes){NULL, 0};
	if (row >= pgres_rows(res) || col < 0 || col >= PQnfields(pg(res)))
		return false;
	if (!PQgetisnull(pg(res), (int)row, col))
		*ret_b = (struct bytes){(const uint8_t *)PQgetvalue(pg(res), (int)row, col),
					(size_t)PQgetlength(pg(res), (int)row, col)};
	return true;
}

enum status pgc_conninfo_check(const char *conninfo, struct err *err)
{
	PQconninfoOption *opts = PQconninfoParse(conninfo, NULL);
	/* libpq's own message quotes it, secrets and all. */
	if (!opts)
		return err_set(err, ST_ILLEGAL_ARGUMENT, "pg.conninfo",
			       "not a connection string as libpq reads it");
	PQconninfoFree(opts);
	return ST_OK;
}
