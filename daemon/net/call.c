#include "daemon/net/call.h"

#include "conf/log.h"
#include "daemon/admin/ad_metrics.h"
#include "daemon/net/front.h"
#include "daemon/net/http.h"
#include "proto/base/json.h"
#include "proto/base/jwrite.h"

/* Parsing more than this is a job. */
#define PARSE_INLINE ((size_t)64 << 10)
/* Seconds after which a refused client may come again. */
#define RETRY_AFTER "1"

void route_set(struct route_table *t, enum route route, route_fn fn)
{
	ASSERT(!t->fn[route]);
	t->fn[route] = fn;
}

static struct strv trim(struct strv s)
{
	while (s.n && (s.p[0] == ' ' || s.p[0] == '\t'))
		s = strv_sub(s, 1, s.n);
	while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
		s.n--;
	return s;
}

#define WEIGHT_MAX 1000
#define WEIGHT_NONE (-1)

/* "q=0.5" in thousandths; WEIGHT_MAX for what is no weight (RFC 9110, 12.4.2). */
static int weight_of(struct strv parameter)
{
	static const char one[] = "1.000";
	int w = 0, unit = 100;
	if (parameter.n < 3 || parameter.n > 2 + strlen(one) || (parameter.p[0] | 0x20) != 'q' ||
	    parameter.p[1] != '=')
		return WEIGHT_MAX;
	struct strv q = strv_sub(parameter, 2, parameter.n);
	if (q.p[0] == '1' || q.p[0] != '0' || (q.n > 1 && q.p[1] != '.'))
		return WEIGHT_MAX;
	for (size_t i = 2; i < q.n; i++, unit /= 10) {
		if (q.p[i] < '0' || q.p[i] > '9')
			return WEIGHT_MAX;
		w += unit * (q.p[i] - '0');
	}
	return w;
}

bool call_accepts_gzip(const struct call *call)
{
	struct strv list = call->accept_encoding;
	int gzip = WEIGHT_NONE, plain = WEIGHT_NONE, any = WEIGHT_NONE;
	while (list.n) {
		struct strv one = strv_sub(list, 0, strv_find(list, ','));
		list = strv_sub(list, one.n < list.n ? one.n + 1 : one.n, list.n);
		size_t n = strv_find(one, ';');
		struct strv name = trim(strv_sub(one, 0, n));
		int w = n < one.n ? weight_of(trim(strv_sub(one, n + 1, one.n))) : WEIGHT_MAX;
		if (strv_ieq(name, STRV("gzip")) || strv_ieq(name, STRV("x-gzip")))
			gzip = w;
		else if (strv_ieq(name, STRV("identity")))
			plain = w;
		else if (strv_eq(name, STRV("*")))
			any = w;
	}
	if (gzip == WEIGHT_NONE)
		gzip = any;
	/* Who names gzip alone wants it; one that is named is taken before one that is liked less. */
	return gzip > 0 && gzip >= plain;
}

void call_header(struct call *call, const char *name, struct strv value)
{
	ASSERT(call->n_headers < CALL_HEADERS_MAX);
	struct strv copy;
	if (!arena_strv(&call->arena, value, &copy))
		return; /* the reply will fail for the same reason */
	call->headers[call->n_headers].name = name;
	call->headers[call->n_headers].value = copy.p;
	call->n_headers++;
}

static void count(const struct call *call, int http)
{
	int64_t us = loop_mono_us(&call->app->loop) - call->started_mono_us;
	if (!front_is_rest(call->front))
		return;
	ad_metrics_add(http < 300   ? METRIC_rest_2xx
		       : http < 400 ? METRIC_rest_3xx
		       : http < 500 ? METRIC_rest_4xx
				    : METRIC_rest_5xx,
		       1);
	ad_metrics_observe_us(
		route_is_commit(call->hit.route) ? METRIC_rest_commit : METRIC_rest_read, us);
}

/* Sends once; the bytes are released when that was done before. */
static void answer(struct call *call, int http, const char *type, struct bytes body,
		   void (*release)(void *arg), void *arg)
{
	if (call->answered) {
		if (release)
			release(arg);
		return;
	}
	struct http_reply r = {.status = http, .body = body, .free_body = release, .free_arg = arg};
	_Static_assert(CALL_HEADERS_MAX + 2 <= HTTP_HEADERS_MAX, "room for all headers");
	r.headers[r.n_headers].name = "X-Request-Id";
	r.headers[r.n_headers++].value = call->id_text;
	if (type) {
		r.headers[r.n_headers].name = "Content-Type";
		r.headers[r.n_headers++].value = type;
	}
	for (size_t i = 0; i < call->n_headers; i++) {
		r.headers[r.n_headers].name = call->headers[i].name;
		r.headers[r.n_headers++].value = call->headers[i].value;
	}
	call->answered = true;
	count(call, http);
	LOG(LOG_DEBUG, "rest.answered",
	    LOG_WITH(.req = strv_of(call->id_text), .principal = call->principal,
		     .dur_us = loop_mono_us(&call->app->loop) - call->started_mono_us),
	    "%s %d", route_name(call->hit.route), http);
	http_reply(call->req, &r);
}

/* Bodies. */

struct parse_job {
	struct loop_job job;
	struct call *call;
	enum status (*parse)(void *ctx, struct bytes body, struct arena *a, struct err *err);
	void (*then)(void *ctx, enum status st, const struct err *err);
	void *ctx;
	enum status st;
	struct err err;
};

static void parse_run(struct loop_job *job)
{
	struct parse_job *p = CONTAINER_OF(job, struct parse_job, job);
	base_memory_reset();
	p->st = p->parse(p->ctx, p->call->body, &p->call->arena, &p->err);
	if (p->st != ST_OK) {
		err_memory(&p->err);
		p->st = p->err.st;
	}
}

static void parse_done(struct loop_job *job)
{
	struct parse_job *p = CONTAINER_OF(job, struct parse_job, job);
	p->then(p->ctx, p->st, &p->err);
	base_free(p);
}

void call_parse(struct call *call,
		enum status (*parse)(void *ctx, struct bytes body, struct arena *a, struct err *err),
		void (*then)(void *ctx, enum status st, const struct err *err), void *ctx)
{
	if (call->body.n <= PARSE_INLINE) {
		struct err err = {0};
		enum status st = parse(ctx, call->body, &call->arena, &err);
		then(ctx, st, &err);
		return;
	}
	struct parse_job *p = base_calloc(1, sizeof *p);
	p->call = call;
	p->parse = parse;
	p->then = then;
	p->ctx = ctx;
	p->job.run = parse_run;
	p->job.done = parse_done;
	loop_job_start(&call->app->loop, &p->job, true);
}

struct free_job {
	struct loop_job job;
	struct jdoc *doc;
};

static void free_run(struct loop_job *job)
{
	jdoc_free(CONTAINER_OF(job, struct free_job, job)->doc);
}

static void free_done(struct loop_job *job)
{
	base_free(CONTAINER_OF(job, struct free_job, job));
}

void call_free_doc(struct call *call, struct jdoc *own_doc)
{
	if (!own_doc || call->body.n <= PARSE_INLINE) {
		jdoc_free(own_doc);
		return;
	}
	struct free_job *f = base_calloc(1, sizeof *f);
	f->doc = own_doc;
	f->job.run = free_run;
	f->job.done = free_done;
	loop_job_start(&call->app->loop, &f->job, true);
}

void call_send(struct call *own_call, const struct call_answer *own_answer)
{
	struct call *call = own_call;
	const struct call_answer *a = own_answer;
	ASSERT(!call->handled && !call->hold);
	answer(call, a->http, a->type, a->body, a->release, a->arg);
	call->handled = true;
	front_release(call);
}

void call_drop(struct call *call, const struct call_answer *own_answer)
{
	if (own_answer->release)
		own_answer->release(own_answer->arg);
	call->n_headers = 0;
}

/* The handler's end of the call. */
static void finish(struct call *call, const struct call_answer *own_answer)
{
	ASSERT(!call->handled);
	if (call->hold)
		call->hold->answered(call, own_answer);
	else
		call_send(call, own_answer);
}

void call_reply_shared(struct call *own_call, int http, struct bytes body,
		       void (*release)(void *arg), void *arg)
{
	finish(own_call, &(struct call_answer){.http = http,
					       .type = "application/json",
					       .body = body,
					       .release = release,
					       .arg = arg});
}

void call_reply_json(struct call *own_call, int http, struct bytes own_body)
{
	void *p = (void *)(uintptr_t)own_body.p; /* ours to free now */
	call_reply_shared(own_call, http, own_body, p ? base_free : NULL, p);
}

void call_reply_text(struct call *own_call, int http, const char *content_type, struct buf *own_buf)
{
	size_t n;
	if (!buf_ok(own_buf)) {
		struct err err;
		buf_fini(own_buf);
		err_set(&err, ST_INTERNAL, "", "the answer is too large");
		call_reply_err(own_call, &err);
		return;
	}
	uint8_t *p = buf_take(own_buf, &n);
	buf_fini(own_buf);
	finish(own_call, &(struct call_answer){.http = http,
					       .type = content_type,
					       .body = {p, n},
					       .release = p ? base_free : NULL,
					       .arg = p});
}

void call_reply_buf(struct call *own_call, int http, struct buf *own_buf)
{
	call_reply_text(own_call, http, "application/json", own_buf);
}

void call_reply_status(struct call *own_call, int http)
{
	finish(own_call, &(struct call_answer){.http = http});
}

/* Appends as much as fits and stays UTF-8: messages may quote what a client sent. */
static void put_utf8(struct buf *b, const char *z)
{
	struct strv s = strv_of(z);
	while (s.n) {
		size_t n = 1;
		while (n <= 4 && n <= s.n && !strv_utf8(strv_sub(s, 0, n)))
			n++;
		bool good = n <= 4 && n <= s.n;
		if (good)
			buf_put(b, s.p, n);
		else
			buf_putc(b, '?');
		s = strv_sub(s, good ? n : 1, s.n);
	}
}

void call_error_body(const struct err *err, int http, struct buf *out)
{
	const struct status_info *info = status_info(err->st);
	struct jwrite w;
	struct buf message;
	buf_init(&message, 1024);
	put_utf8(&message, err->field);
	if (err->field[0])
		buf_puts(&message, ": ");
	put_utf8(&message, err->msg[0] ? err->msg : info->help);
	jwrite_init(&w, out);
	jwrite_object(&w);
	jwrite_key(&w, "error");
	jwrite_object(&w);
	jwrite_kstr(&w, "message", buf_strv(&message));
	jwrite_kstr(&w, "type", strv_of(info->iceberg_type));
	jwrite_ki64(&w, "code", http);
	jwrite_end_object(&w);
	jwrite_end_object(&w);
	buf_fini(&message);
}

static void log_error(const struct call *call, const struct err *err)
{
	bool ours = status_info(err->st)->http >= 500;
	LOG(ours ? LOG_WARN : LOG_DEBUG, "rest.failed",
	    LOG_WITH(.req = strv_of(call->id_text), .principal = call->principal, .st = err->st,
		     .dur_us = loop_mono_us(&call->app->loop) - call->started_mono_us),
	    "%s: %s%s%s%s%s", route_name(call->hit.route), err->field, err->field[0] ? ": " : "",
	    err->msg, err->detail[0] ? ": " : "", err->detail);
}

/* On a commit route clients take 503 for "may have happened" although nothing was started, and a
 * timeout must say that the state is unknown. */
static struct err adapt(const struct call *call, const struct err *err)
{
	struct err e = *err;
	/* Clients look for messages that begin with "Requirement failed". */
	if (e.st == ST_COMMIT_FAILED && strv_starts(strv_of(e.msg), STRV("Requirement failed")))
		e.field[0] = '\0';
	if (route_is_commit(call->hit.route)) {
		if (e.st == ST_UNAVAILABLE)
			e.st = ST_OVERLOADED;
		else if (e.st == ST_TIMEOUT)
			e.st = ST_COMMIT_UNKNOWN;
	}
	return e;
}

/* Returns the body for err, with the headers it needs added. */
static struct bytes error_reply(struct call *call, const struct err *err)
{
	struct buf b;
	size_t n;
	buf_init(&b, 8192);
	call_error_body(err, status_info(err->st)->http, &b);
	uint8_t *p = buf_take(&b, &n);
	buf_fini(&b);
	call->n_headers = 0; /* an ETag of the answer that failed would be a lie */
	/* Not through the arena: a job may be using it. */
	if (status_info(err->st)->retry == RETRY_LATER) {
		call->headers[call->n_headers].name = "Retry-After";
		call->headers[call->n_headers++].value = RETRY_AFTER;
	}
	if (err->st == ST_NOT_AUTHORIZED) {
		call->headers[call->n_headers].name = "WWW-Authenticate";
		call->headers[call->n_headers++].value =
			call->token_bad ? "Bearer realm=\"frazil\", error=\"invalid_token\""
					: "Bearer realm=\"frazil\"";
	}
	if (err->st == ST_METHOD_NOT_ALLOWED) {
		call->headers[call->n_headers].name = "Allow";
		call->headers[call->n_headers++].value = call->hit.allow;
	}
	return (struct bytes){p, n};
}

void call_reply_err(struct call *own_call, const struct err *err)
{
	ASSERT(err->st != ST_OK);
	if (own_call->hold && err->st == ST_KEY_DECIDED) {
		own_call->hold->decided(own_call);
		return;
	}
	struct err e = adapt(own_call, err);
	const struct status_info *info = status_info(e.st);
	if (!own_call->answered)
		log_error(own_call, &e);
	struct bytes body = error_reply(own_call, &e);
	void *p = (void *)(uintptr_t)body.p;
	finish(own_call,
	       &(struct call_answer){.http = info->http,
				     .again = info->retry == RETRY_SAME || info->retry == RETRY_LATER,
				     .type = "application/json",
				     .body = body,
				     .release = p ? base_free : NULL,
				     .arg = p});
}

void call_overdue(struct call *call)
{
	struct err e = {0};
	if (front_is_rest(call->front))
		ad_metrics_add(METRIC_rest_overdue, 1);
	err_set(&e, ST_TIMEOUT, "", "no answer within the time of a request");
	e = adapt(call, &e);
	log_error(call, &e);
	struct bytes body = error_reply(call, &e);
	void *p = (void *)(uintptr_t)body.p;
	answer(call, status_info(e.st)->http, "application/json", body, p ? base_free : NULL, p);
	call->n_headers = 0;
}
