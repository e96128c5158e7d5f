/* A call has two ends: the request (until http says that it is over) and the handler (until it has
 * replied). It is freed when both are done, so that neither a slow handler nor a client that left
 * can hurt the other. A front stops when its port is closed and no handler is at work. */
#include "daemon/net/front.h"

#include "daemon/admin/ad_metrics.h"
#include "daemon/net/http.h"
#include "daemon/notify.h"
#include "proto/base/digest.h"
#include "proto/rest/rb_oauth.h"

/* Memory of a handler, beside twice the largest body. */
#define ARENA_SPARE ((size_t)16 * 1024 * 1024)
/* Bodies held at once, in bodies of the largest size. */
#define BODIES_FACTOR 8
/* The admin port takes few and small requests. */
#define ADMIN_CONNECTIONS 64
#define ADMIN_BODY ((size_t)64 * 1024)

/* Calls that are over, with some memory of their arena, are used again: a request would take and give
 * back half a dozen pieces otherwise. Not where a tool looks for use after free. */
#ifdef __SANITIZE_ADDRESS__
#define SPARE_CALLS 0
#else
#define SPARE_CALLS 64
#endif
#define SPARE_ARENA ((size_t)4096)

struct front {
	struct app *app;
	struct http *http;
	enum route_surface surface;
	size_t arena_limit;
	size_t calls; /* at work */
	struct call *spare;
	size_t n_spare;
	bool stopping, closed;
	uint8_t random[10 * 256]; /* for request ids; a system call each would cost more than all */
	size_t random_left;       /* of the 256 */
};

bool front_is_rest(const struct front *f)
{
	return f->surface == ROUTE_REST;
}

void front_address(const struct front *f, char *out)
{
	http_address(f->http, out);
}

static struct uuid next_id(struct front *f)
{
	if (f->random_left == 0) {
		digest_random(f->random, sizeof f->random);
		f->random_left = sizeof f->random / 10;
	}
	return uuid_v7(loop_wall_ms(), f->random + 10 * --f->random_left);
}

static void check_stopped(struct front *f)
{
	struct app *app = f->app;
	if (!f->closed || f->calls > 0)
		return;
	http_free(f->http);
	for (struct call *call; (call = f->spare) != NULL;) {
		f->spare = call->user;
		arena_fini(&call->arena);
		base_free(call);
	}
	if (f->surface == ROUTE_REST)
		app->rest_front = NULL;
	else
		app->admin_front = NULL;
	base_free(f);
	app_step_stopped(app);
}

static void call_free(struct call *call)
{
	struct front *f = call->front;
	http_body_freed(f->http, &call->body_buf);
	if (f->n_spare + 1 <= SPARE_CALLS) {
		arena_recycle(&call->arena, SPARE_ARENA);
		call->user = f->spare;
		f->spare = call;
		f->n_spare++;
	} else {
		arena_fini(&call->arena);
		base_free(call);
	}
	f->calls--;
	check_stopped(f);
}

void front_release(struct call *own_call)
{
	if (!own_call->req)
		call_free(own_call);
}

static void op_over(void *ctx, struct http_req *r)
{
	struct call *call = http_user(r);
	(void)ctx;
	call->req = NULL;
	call->answered = true;
	if (call->handled || !call->begun)
		call_free(call);
}

static void op_overdue(void *ctx, struct http_req *r)
{
	(void)ctx;
	call_overdue(http_user(r));
}

static bool copy_header(struct call *call, const char *name, struct strv *ret_v)
{
	struct strv v = http_header(call->req, name);
	return !v.p || arena_strv(&call->arena, v, ret_v);
}

/* Whether the type that a body says it has is JSON, in any case and with any parameters; saying none
 * is fine. Pages of a browser may send other types to any address without asking it. */
static bool is_json(struct strv type)
{
	static const struct strv suffix = {"+json", 5};
	struct strv media = strv_sub(type, 0, strv_find(type, ';'));
	while (media.n && (media.p[media.n - 1] == ' ' || media.p[media.n - 1] == '\t'))
		media.n--;
	if (media.n == 0 || strv_ieq(media, STRV("application/json")))
		return true;
	return media.n > suffix.n && strv_find(media, ',') == media.n &&
	       strv_ieq(strv_sub(media, 0, 12), STRV("application/")) &&
	       strv_ieq(strv_sub(media, media.n - suffix.n, media.n), suffix);
}

static struct call *call_new(struct front *f)
{
	struct call *call = f->spare;
	f->calls++;
	if (!call) {
		call = base_calloc(1, sizeof *call);
		arena_init(&call->arena, f->arena_limit);
		return call;
	}
	f->spare = call->user;
	f->n_spare--;
	*call = (struct call){.arena = call->arena};
	return call;
}

/* All that needs no body is judged before one byte of it is taken: nobody without a token fills the
 * memory that bodies have. */
static void op_head(void *ctx, struct http_req *r)
{
	struct front *f = ctx;
	struct err err;
	struct call *call = call_new(f);
	call->app = f->app;
	call->front = f;
	call->req = r;
	call->hit.route = ROUTE__COUNT;
	call->id = next_id(f);
	uuid_text(call->id, call->id_text);
	call->started_mono_us = http_started_mono_us(r);
	call->deadline_mono_us = http_deadline_mono_us(r);
	call->principal = STRV("anonymous");
	http_set_user(r, call);
	if (!arena_strv(&call->arena, http_method(r), &call->method) ||
	    !arena_strv(&call->arena, http_target(r), &call->target) ||
	    !http_header_list(r, "If-None-Match", &call->arena, &call->if_none_match) ||
	    !copy_header(call, "Idempotency-Key", &call->idempotency_key) ||
	    !copy_header(call, "X-Iceberg-Access-Delegation", &call->access_delegation) ||
	    !http_header_list(r, "Accept-Encoding", &call->arena, &call->accept_encoding) ||
	    !copy_header(call, "Authorization", &call->authorization) ||
	    !copy_header(call, "Content-Type", &call->content_type)) {
		err_set(&err, ST_LIMIT, "", "the request is too large");
		call_reply_err(call, &err);
		return;
	}
	if (route_match(f->surface, call->method, call->target, &call->arena, &call->hit, &err) !=
	    ST_OK) {
		call_reply_err(call, &err);
		return;
	}
	const struct route_table *t = f->app->routes;
	if (f->surface == ROUTE_REST && t->admit && !t->admit(call))
		return;
	/* The token route takes a form, a small one, from everybody. */
	bool form = call->hit.route == ROUTE_oauth_token;
	if (http_has_body(r) && !form && !is_json(call->content_type))
		err_set(&err, ST_UNSUPPORTED_MEDIA, "Content-Type", "must be application/json");
	else if (!t->fn[call->hit.route])
		err_set(&err, ST_NOT_ACCEPTABLE, "", "%s is not offered by this server",
			route_name(call->hit.route));
	else if (form && !http_limit_body(r, RB_OAUTH_BODY_MAX))
		err_set(&err, ST_TOO_LARGE, "", "a form may have %d bytes", RB_OAUTH_BODY_MAX);
	else
		return;
	call_reply_err(call, &err);
}

static void op_serve(void *ctx, struct http_req *r)
{
	struct call *call = http_user(r);
	const struct route_table *t = call->app->routes;
	route_fn fn = t->fn[call->hit.route];
	(void)ctx;
	http_take_body(r, &call->body_buf);
	call->body = buf_bytes(&call->body_buf);
	call->begun = true;
	if (t->gate && call->idempotency_key.p)
		t->gate(call, fn);
	else
		fn(call);
}

static const struct http_ops ops = {op_head, op_serve, op_overdue, op_over, call_error_body};

static enum status front_start(struct app *app, enum route_surface surface, struct strv listen,
			       const char *name, struct front **ret_front, struct err *err)
{
	const struct conf *c = app->conf;
	bool rest = surface == ROUTE_REST;
	struct http_options o = {
		.loop = &app->loop,
		.max_connections = rest ? (int)c->rest_max_connections : ADMIN_CONNECTIONS,
		.max_body = rest ? (size_t)c->rest_max_body_bytes : ADMIN_BODY,
		.request_timeout_ms = c->rest_request_timeout_ms,
		.idle_timeout_ms = c->rest_idle_timeout_ms,
		.ops = &ops,
	};
	o.max_bodies = BODIES_FACTOR * o.max_body;
	enum status st = addr_parse(listen, name, &o.addr, err);
	if (st == ST_OK)
		st = notify_listen(c, name, &o.own_fd, err);
	if (st != ST_OK)
		return st;
	struct front *f = base_calloc(1, sizeof *f);
	f->app = app;
	f->surface = surface;
	f->arena_limit = 2 * o.max_body + ARENA_SPARE;
	o.ctx = f;
	st = http_new(&o, &f->http, err);
	if (st != ST_OK) {
		base_free(f);
		return st;
	}
	char text[ADDR_TEXT_MAX];
	http_address(f->http, text);
	LOG(LOG_INFO, "http.listening", NULL, "%s on %s", name, text);
	*ret_front = f;
	return ST_OK;
}

static void on_closed(void *ctx)
{
	struct front *f = ctx;
	f->closed = true;
	check_stopped(f);
}

static bool front_stop(struct front *f)
{
	if (!f)
		return true;
	f->stopping = true;
	http_drain(f->http, on_closed, f);
	return false;
}

/* Steps. */

static void collect_rest(void *ctx)
{
	const struct front *f = ((struct app *)ctx)->rest_front;
	struct http_stats s = http_stats(f->http);
	ad_metrics_set(METRIC_rest_connections, s.connections);
	ad_metrics_set(METRIC_rest_running, s.requests);
	ad_metrics_set(METRIC_rest_body_bytes, (int64_t)s.bodies);
	ad_metrics_set(METRIC_rest_parting, (int64_t)s.parting);
	ad_metrics_copy(METRIC_rest_refused, s.refused);
	ad_metrics_copy(METRIC_rest_cut, s.cut);
}

static enum status rest_start(struct app *app, bool *ret_pending, struct err *err)
{
	(void)ret_pending;
	enum status st =
		front_start(app, ROUTE_REST, app->conf->rest_listen, "rest", &app->rest_front, err);
	if (st == ST_OK)
		ad_metrics_collect(collect_rest, app);
	return st;
}

static bool rest_stop(struct app *app)
{
	ad_metrics_drop(collect_rest, app);
	return front_stop(app->rest_front);
}

static enum status admin_start(struct app *app, bool *ret_pending, struct err *err)
{
	(void)ret_pending;
	if (app->conf->admin_listen.n == 0)
		return ST_OK;
	return front_start(app, ROUTE_ADMIN, app->conf->admin_listen, "admin", &app->admin_front,
			   err);
}

static bool admin_stop(struct app *app)
{
	return front_stop(app->admin_front);
}

static enum status routes_start(struct app *app, bool *ret_pending, struct err *err)
{
	(void)ret_pending;
	(void)err;
	app->routes = base_calloc(1, sizeof *app->routes);
	return ST_OK;
}

static bool routes_stop(struct app *app)
{
	base_free(app->routes);
	app->routes = NULL;
	return true;
}

const struct app_step front_routes_step = {"routes", routes_start, routes_stop, NULL};
const struct app_step front_admin_step = {"admin port", admin_start, admin_stop, NULL};
const struct app_step front_rest_step = {"REST port", rest_start, rest_stop, NULL};
