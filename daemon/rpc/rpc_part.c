#include "daemon/rpc/rpc_part.h"

#include "daemon/admin/ad_metrics.h"
#include "daemon/app.h"
#include "daemon/net/call.h"
#include "daemon/notify.h"

struct rpc_part {
	struct rpc_sink sink;
	struct rpc_server *server;
	void (*stopped)(struct app *app);
};

/* POST /frazil/v1/<message>. The reply of a call whose time is over is dropped by the call itself,
 * so that nothing has to be cancelled here. */
static void on_json(void *ctx, int http, struct buf *own_body)
{
	call_reply_buf(ctx, http, own_body);
}

static enum status mirror_parse(void *ctx, struct bytes body, struct arena *a, struct err *err)
{
	struct call *call = ctx;
	(void)a;
	return rpc_json_decode(call->user, body, err);
}

static void mirror_parsed(void *ctx, enum status st, const struct err *parse_err)
{
	struct call *call = ctx;
	const struct rpc_part *part = call->app->rpc;
	struct err err = {0};
	static const struct rpc_sink none;
	if (st != ST_OK)
		err = *parse_err;
	else if (!part)
		(void)err_set(&err, ST_OVERLOADED, "", "the server is stopping");
	rpc_json_run(call->user, part ? &part->sink : &none, call->principal, &err);
}

static void mirror(struct call *own_call)
{
	const struct rpc_part *part = own_call->app->rpc;
	struct err err = {0};
	if (!strv_eq(own_call->method, STRV("POST"))) {
		memcpy(own_call->hit.allow, "POST", sizeof "POST");
		(void)err_set(&err, ST_METHOD_NOT_ALLOWED, "", "messages are posted");
		call_reply_err(own_call, &err);
		return;
	}
	if (!part) {
		(void)err_set(&err, ST_OVERLOADED, "", "the server is stopping");
		call_reply_err(own_call, &err);
		return;
	}
	own_call->user = rpc_json_new(own_call->hit.rest, own_call->started_mono_us, on_json,
				      own_call);
	call_parse(own_call, mirror_parse, mirror_parsed, own_call);
}

static void collect(void *ctx)
{
	const struct rpc_part *part = ((struct app *)ctx)->rpc;
	struct rpc_stats s = rpc_server_stats(part->server);
	ad_metrics_set(METRIC_rpc_connections, s.sessions);
	ad_metrics_set(METRIC_rpc_running, s.requests);
	ad_metrics_set(METRIC_rpc_held, (int64_t)s.bytes);
	ad_metrics_copy(METRIC_rpc_served, s.served);
	ad_metrics_copy(METRIC_rpc_malformed, s.malformed);
	ad_metrics_copy(METRIC_rpc_slow, s.slow);
	ad_metrics_copy(METRIC_rpc_overloaded, s.overloaded);
}

enum status rpc_part_start(struct app *app, const struct rpc_sink *sink, struct err *err)
{
	const struct conf *c = app->conf;
	struct rpc_options o = {
		.loop = &app->loop,
		.sink = *sink,
		.tcp = c->rpc_listen.n > 0,
		.own_fd = -1,
		.socket = c->rpc_socket.p,
		.max_frame = (size_t)c->rpc_max_frame_bytes,
		.max_connections = (int)c->rpc_max_connections,
		.daemon_id = app->id,
		.server = "frazild/" APP_VERSION,
	};
	if (o.tcp) {
		enum status st = addr_parse(c->rpc_listen, "rpc.listen", &o.addr, err);
		if (st == ST_OK)
			st = notify_listen(c, "rpc", &o.own_fd, err);
		if (st != ST_OK)
			return st;
	}
	struct rpc_part *part = base_calloc(1, sizeof *part);
	part->sink = *sink;
	enum status st = rpc_server_new(&o, &part->server, err);
	if (st != ST_OK) {
		base_free(part);
		return st;
	}
	char text[ADDR_TEXT_MAX];
	rpc_server_address(part->server, text);
	LOG(LOG_INFO, "rpc.listening", NULL, "%s%s%.*s", text, c->rpc_socket.n ? " and " : "",
	    STRV_ARG(c->rpc_socket));
	app->rpc = part;
	route_set(app->routes, ROUTE_mirror, mirror);
	ad_metrics_collect(collect, app);
	return ST_OK;
}

static void on_drained(void *ctx)
{
	struct app *app = ctx;
	struct rpc_part *part = app->rpc;
	void (*stopped)(struct app *) = part->stopped;
	ad_metrics_drop(collect, app);
	rpc_server_free(part->server);
	base_free(part);
	app->rpc = NULL;
	stopped(app);
}

void rpc_part_stop(struct app *app, void (*stopped)(struct app *app))
{
	struct rpc_part *part = app->rpc;
	part->stopped = stopped;
	rpc_server_drain(part->server, on_drained, app);
}

const struct rpc_server *rpc_part_server(const struct app *app)
{
	const struct rpc_part *part = app->rpc;
	return part ? part->server : NULL;
}
