/* The sink of the worker protocol: names are resolved, then the core decides. */
#include "daemon/bind/bind_rpc.h"

#include "daemon/admin/ad_metrics.h"
#include "daemon/bind/bind.h"
#include "daemon/rpc/rpc_part.h"
#include "store/pg/pg_tabular.h"

#define WAIT_DEFAULT_MS INT64_C(60000)
#define WAIT_MAX_MS INT64_C(600000)
#define OTHER_MS INT64_C(30000)

struct job {
	struct app *app;
	struct rpc_request *r;
	struct event ev;
};

static enum metric metric_of(const struct rpc_message *m)
{
	switch (m->type) {
	case RPC_MSG_BEGIN:
		return METRIC_rpc_begin;
	case RPC_MSG_STAGE:
		return METRIC_rpc_stage;
	case RPC_MSG_SEAL:
		return METRIC_rpc_seal;
	case RPC_MSG_COMMIT:
		return METRIC_rpc_commit;
	case RPC_MSG_COMMIT_ONCE:
		return METRIC_rpc_commit_once;
	case RPC_MSG_ABORT:
		return METRIC_rpc_abort;
	case RPC_MSG_HEARTBEAT:
		return METRIC_rpc_heartbeat;
	default:
		return METRIC_rpc_status;
	}
}

static void replied(void *ctx, const struct reply *reply)
{
	struct job *j = ctx;
	struct rpc_request *r = j->r;
	ad_metrics_observe_us(metric_of(r->message),
			      loop_mono_us(&j->app->loop) - r->started_mono_us);
	base_free(j);
	if (reply->kind == REPLY_RPC && reply->msg)
		rpc_reply(r, reply->msg);
	else
		rpc_reply_err(r, &reply->err);
}

static void refuse(struct job *j, const struct err *err)
{
	struct rpc_request *r = j->r;
	base_free(j);
	rpc_reply_err(r, err);
}

static void submit(struct job *j)
{
	struct bind *b = bind_of(j->app);
	struct err err = {0};
	if (!b) {
		err_set(&err, ST_UNAVAILABLE, "", "the daemon is shutting down");
		refuse(j, &err);
		return;
	}
	bind_request(b, &j->ev, replied, j);
}

static void resolved(void *ctx, const struct pg_tabular_result *res)
{
	struct job *j = ctx;
	struct err err = {0};
	if (res->err.st != ST_OK) {
		err = res->err;
	} else if (!res->found) {
		err_set(&err, ST_NO_SUCH_TABLE, "table", "the table does not exist");
	} else if (res->row.kind != PG_TABULAR_TABLE) {
		err_set(&err, ST_NO_SUCH_TABLE, "table", "the name is a view's");
	} else {
		j->ev.u.req.table = res->row.table;
		j->ev.u.req.incarnation = res->row.incarnation;
		submit(j);
		return;
	}
	refuse(j, &err);
}

static void resolve(struct job *j, const struct rpc_begin *m)
{
	struct err err = {0};
	struct strv warehouse = m->warehouse;
	struct strv name, location;
	bool known = false;
	for (size_t i = 0; !known && conf_warehouse(j->app->conf, i, &name, &location); i++) {
		known = warehouse.n == 0 || strv_eq(warehouse, name);
		if (known)
			warehouse = name;
	}
	if (!known) {
		err_set(&err, ST_NO_SUCH_WAREHOUSE, "warehouse", "the warehouse does not exist");
		refuse(j, &err);
		return;
	}
	struct pg_path ns = {.warehouse = warehouse, .levels = m->namespace, .n = m->n_namespace};
	enum status st = pg_tabular_resolve(bind_cat(j->app), ns, m->table, resolved, j, &err);
	if (st != ST_OK)
		refuse(j, &err);
}

static int64_t wait_ms(int64_t asked)
{
	if (asked <= 0)
		return WAIT_DEFAULT_MS;
	return asked < WAIT_MAX_MS ? asked : WAIT_MAX_MS;
}

static void sink(void *ctx, struct rpc_request *own_r)
{
	struct app *app = ctx;
	struct job *j = base_calloc(1, sizeof *j);
	*j = (struct job){.app = app, .r = own_r};
	struct ev_request *q = &j->ev.u.req;
	int64_t wait = OTHER_MS;
	q->principal = own_r->principal;
	const struct rpc_begin *begin = NULL;
	switch (own_r->message->type) {
	case RPC_MSG_BEGIN:
		j->ev.kind = EV_BEGIN;
		q->u.begin = begin = own_r->msg;
		break;
	case RPC_MSG_STAGE:
		j->ev.kind = EV_STAGE;
		q->u.stage = own_r->msg;
		break;
	case RPC_MSG_SEAL:
		j->ev.kind = EV_SEAL;
		q->u.seal = own_r->msg;
		break;
	case RPC_MSG_COMMIT:
		j->ev.kind = EV_COMMIT;
		q->u.commit = own_r->msg;
		wait = wait_ms(q->u.commit->max_wait_ms);
		break;
	case RPC_MSG_COMMIT_ONCE:
		j->ev.kind = EV_COMMIT_ONCE;
		q->u.once = own_r->msg;
		begin = &q->u.once->begin;
		wait = wait_ms(q->u.once->max_wait_ms);
		break;
	case RPC_MSG_STATUS:
		j->ev.kind = EV_STATUS;
		q->u.status = own_r->msg;
		break;
	case RPC_MSG_ABORT:
		j->ev.kind = EV_ABORT;
		q->u.abort = own_r->msg;
		wait = WAIT_DEFAULT_MS;
		break;
	case RPC_MSG_HEARTBEAT:
		j->ev.kind = EV_HEARTBEAT;
		q->u.heartbeat = own_r->msg;
		break;
	default: {
		struct err err = {0};
		err_set(&err, ST_BAD_REQUEST, "", "not a message that a client sends");
		refuse(j, &err);
		return;
	}
	}
	q->deadline_us = loop_mono_us(&app->loop) + wait * 1000;
	if (begin)
		resolve(j, begin);
	else
		submit(j);
}

static enum status start(struct app *app, bool *ret_pending, struct err *err)
{
	*ret_pending = false;
	return rpc_part_start(app, &(struct rpc_sink){sink, app}, err);
}

static bool stop(struct app *app)
{
	rpc_part_stop(app, app_step_stopped);
	return false;
}

const struct app_step bind_rpc_step = {"worker protocol", start, stop, NULL};
