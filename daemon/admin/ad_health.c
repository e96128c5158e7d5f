#include "daemon/admin/ad_health.h"

#include "daemon/admin/ad_metrics.h"
#include "daemon/net/call.h"
#include "proto/base/jwrite.h"

#define METRICS_MAX ((size_t)1024 * 1024)

static void h_healthz(struct call *own_call)
{
	struct buf b;
	buf_init(&b, 64);
	buf_puts(&b, "{\"status\":\"ok\"}");
	call_reply_buf(own_call, 200, &b);
}

static void h_readyz(struct call *own_call)
{
	const char *why = app_not_ready(own_call->app);
	struct buf b;
	struct jwrite w;
	buf_init(&b, 1024);
	jwrite_init(&w, &b);
	jwrite_object(&w);
	jwrite_kbool(&w, "ready", !why);
	if (why)
		jwrite_kstr(&w, "reason", strv_of(why));
	jwrite_end_object(&w);
	call_reply_buf(own_call, why ? 503 : 200, &b);
}

static void h_metrics(struct call *own_call)
{
	struct buf b;
	buf_init(&b, METRICS_MAX);
	ad_metrics_set(METRIC_build_info, 1);
	ad_metrics_set(METRIC_ready, !app_not_ready(own_call->app));
	ad_metrics_render(&b);
	call_reply_text(own_call, 200, "text/plain; version=0.0.4; charset=utf-8", &b);
}

static enum status start(struct app *app, bool *ret_pending, struct err *err)
{
	(void)ret_pending;
	(void)err;
	route_set(app->routes, ROUTE_healthz, h_healthz);
	route_set(app->routes, ROUTE_readyz, h_readyz);
	route_set(app->routes, ROUTE_metrics, h_metrics);
	return ST_OK;
}

static bool stop(struct app *app)
{
	(void)app;
	return true;
}

const struct app_step ad_health_step = {"health", start, stop, NULL};
