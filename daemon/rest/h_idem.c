/* Calls with a key from their arrival to their answer. Loop thread only; the calls of one key that
 * are under way in this daemon stand in one flight. Between daemons, and between a statement that is
 * still on its way and a repetition, the row decides: whoever comes second finds it there, is undone
 * and gives its answer. */
#include "daemon/rest/h_idem.h"

#include <stdio.h>

#include "daemon/admin/ad_metrics.h"
#include "daemon/rest/h_rest.h"
#include "proto/base/digest.h"

#define BUCKETS 256
/* Largest answer that is kept as bytes. Only one that changed nothing can be larger: a staged
 * creation, which a repetition stages anew. */
#define KEEP_MAX_BYTES ((size_t)1 << 20)
/* Rows forgotten by one statement. */
#define FORGET_MAX 50000

struct idem {
	struct app *app;
	struct list flights[BUCKETS];
	size_t n_held;
	struct loop_timer timer;
	bool forgetting, freed;
};

/* All calls of one key: the leader is worked on, the others wait for its end. */
struct flight {
	struct list node;
	struct list waiting;
	struct uuid key;
};

struct held {
	struct idem *idem;
	struct call *call;
	struct list node; /* of a flight's waiting */
	struct flight *flight; /* led by this one */
	route_fn fn;
	struct uuid key;
	struct digest bound;
	bool decided;
	struct strv file; /* the answer is made from it; p NULL: from bytes */
	struct call_answer answer; /* while it is being kept */
};

/* Mutations, and how an answer that is made from a metadata file is given again. */
static void (*const again[ROUTE__COUNT])(struct call *own_call, struct strv location) = {
	[ROUTE_table_create] = h_reply_file,	[ROUTE_table_register] = h_reply_file,
	[ROUTE_table_commit] = h_reply_file,	[ROUTE_table_unregister] = h_reply_file,
	[ROUTE_view_create] = h_reply_view_file,
	[ROUTE_view_register] = h_reply_view_file, [ROUTE_view_replace] = h_reply_view_file,
};

static bool is_keyed(enum route route)
{
	switch (route) {
	case ROUTE_ns_create:
	case ROUTE_ns_drop:
	case ROUTE_ns_properties:
	case ROUTE_table_drop:
	case ROUTE_table_rename:
	case ROUTE_txn_commit:
	case ROUTE_view_drop:
	case ROUTE_view_rename:
		return true;
	default:
		return again[route] != NULL;
	}
}

/* ------------------------------------------------------------------ keys */

enum status h_idem_parse(struct strv text, struct uuid *ret_key, struct err *err)
{
	struct uuid u;
	if (text.n != UUID_TEXT_LEN || !uuid_parse(text, &u) || uuid_version(u) != 7 ||
	    (u.b[8] & 0xc0) != 0x80)
		return err_set(err, ST_BAD_REQUEST, "Idempotency-Key",
			       "must be a UUID of version 7 in its text form");
	*ret_key = u;
	return ST_OK;
}

static void add_part(struct digest_ctx *ctx, struct bytes part)
{
	uint8_t n[8];
	for (int i = 0; i < 8; i++)
		n[i] = (uint8_t)((uint64_t)part.n >> (8 * i));
	digest_add(ctx, (struct bytes){n, sizeof n});
	digest_add(ctx, part);
}

struct digest h_idem_bound(struct strv principal, struct strv method, struct strv target,
			   struct bytes body)
{
	struct digest_ctx ctx;
	digest_init(&ctx);
	add_part(&ctx, strv_bytes(principal));
	add_part(&ctx, strv_bytes(method));
	add_part(&ctx, strv_bytes(target));
	add_part(&ctx, body);
	return digest_fini(&ctx);
}

void h_idem_duration(int64_t ms, char out[H_IDEM_DURATION_MAX])
{
	if (ms % 60000 == 0)
		snprintf(out, H_IDEM_DURATION_MAX, "PT%lldM", (long long)(ms / 60000));
	else if (ms % 1000 == 0)
		snprintf(out, H_IDEM_DURATION_MAX, "PT%lldS", (long long)(ms / 1000));
	else
		snprintf(out, H_IDEM_DURATION_MAX, "PT%lld.%03lldS", (long long)(ms / 1000),
			 (long long)(ms % 1000));
}

/* ------------------------------------------------------------------ flights */

static void arrive(struct held *h);

static struct flight *flight_find(struct idem *idem, struct uuid key)
{
	struct list *bucket = &idem->flights[key.b[15] % BUCKETS];
	LIST_FOR (n, tmp, bucket) {
		struct flight *f = LIST_ITEM(n, struct flight, node);
		if (uuid_eq(f->key, key))
			return f;
	}
	return NULL;
}

/* The leader is done: who waited goes on by itself, the first of them as the next leader. */
static void land(struct held *h)
{
	struct flight *f = h->flight;
	struct list waiting;
	h->flight = NULL;
	list_init(&waiting);
	for (struct list *n; (n = list_pop_front(&f->waiting));)
		list_push_back(&waiting, n);
	list_remove(&f->node);
	base_free(f);
	for (struct list *n; (n = list_pop_front(&waiting));)
		arrive(LIST_ITEM(n, struct held, node));
}

/* The call is an ordinary one from now on. */
static struct call *let_go(struct held *own_h)
{
	struct call *call = own_h->call;
	own_h->idem->n_held--;
	call->hold = NULL;
	call->held = NULL;
	base_free(own_h);
	return call;
}

static void fail(struct held *own_h, const struct err *err)
{
	land(own_h);
	call_reply_err(let_go(own_h), err);
}

/* ------------------------------------------------------------------ the answer that is there */

static void replay(struct held *own_h, const struct pg_idem_result *row)
{
	struct err err = {0};
	bool same = digest_eq(&own_h->bound, &row->bound);
	struct call *call = let_go(own_h);
	if (!same) {
		/* What it was used for is nobody else's business. */
		ad_metrics_add(METRIC_idem_refused, 1);
		err_set(&err, ST_BAD_REQUEST, "Idempotency-Key",
			"the key was used before, for another request");
		call_reply_err(call, &err);
		return;
	}
	ad_metrics_add(METRIC_idem_replayed, 1);
	if (row->answer.p) {
		uint8_t *copy = base_alloc(row->answer.n + 1);
		memcpy(copy, row->answer.p, row->answer.n);
		call_reply_json(call, row->http, (struct bytes){copy, row->answer.n});
	} else if (row->location.p && again[call->hit.route]) {
		again[call->hit.route](call, row->location);
	} else {
		call_reply_status(call, row->http);
	}
}

static void looked(void *ctx, const struct pg_idem_result *res)
{
	struct held *h = ctx;
	struct flight *f = h->flight;
	struct list waiting;
	if (res->err.st != ST_OK) {
		fail(h, &res->err);
		return;
	}
	if (!res->found) {
		h->fn(h->call);
		return;
	}
	/* Final: it is the answer of all who wait. */
	list_init(&waiting);
	for (struct list *n; (n = list_pop_front(&f->waiting));)
		list_push_back(&waiting, n);
	land(h);
	replay(h, res);
	for (struct list *n; (n = list_pop_front(&waiting));)
		replay(LIST_ITEM(n, struct held, node), res);
}

static void look(struct held *h)
{
	pg_idem_look(bind_cat(h->idem->app), h->key, looked, h);
}

static void arrive(struct held *h)
{
	struct flight *f = flight_find(h->idem, h->key);
	if (f) {
		/* Its deadline is the call's: the client is answered in time, the call waits on. */
		list_push_back(&f->waiting, &h->node);
		return;
	}
	f = base_calloc(1, sizeof *f);
	f->key = h->key;
	list_init(&f->node);
	list_init(&f->waiting);
	list_push_back(&h->idem->flights[h->key.b[15] % BUCKETS], &f->node);
	h->flight = f;
	look(h);
}

/* ------------------------------------------------------------------ the handler's answer */

/* Success, and refusals that another attempt would meet again (REST specification, "Finalization
 * rules"). Who the caller is may be judged otherwise next time. */
static bool is_final(const struct call_answer *a)
{
	return a->http < 300 || (a->http >= 400 && a->http < 500 && !a->again && a->http != 401 &&
				 a->http != 403);
}

static void give(struct held *own_h, const struct call_answer *own_answer)
{
	struct call_answer a = *own_answer;
	land(own_h);
	call_send(let_go(own_h), &a);
}

static void kept(void *ctx, const struct pg_idem_result *res)
{
	struct held *h = ctx;
	struct err err = {0};
	if (res->err.st == ST_OK && res->found) {
		ad_metrics_add(METRIC_idem_kept, 1);
		give(h, &h->answer);
		return;
	}
	/* Another attempt's answer is there, or it is not known whether one is: what this one found
	 * must not be told. */
	call_drop(h->call, &h->answer);
	if (res->err.st == ST_OK) {
		look(h);
		return;
	}
	err_set(&err, ST_TIMEOUT, "Idempotency-Key",
		"the answer could not be kept; repeat the request with the same key");
	fail(h, &err);
}

static void answered(struct call *own_call, const struct call_answer *own_answer)
{
	struct held *h = own_call->held;
	struct err err = {0};
	if (own_answer->http < 300 && h->decided) {
		ad_metrics_add(METRIC_idem_kept, 1);
		give(h, own_answer);
		return;
	}
	bool too_large = !h->file.p && own_answer->body.n > KEEP_MAX_BYTES;
	if (!is_final(own_answer) || too_large) {
		give(h, own_answer);
		return;
	}
	const struct sql_idem k = {
		.set = true, .http = (int16_t)own_answer->http, .key = h->key, .bound = h->bound};
	struct strv file = own_answer->http < 300 ? h->file : (struct strv){NULL, 0};
	struct bytes body = file.p ? (struct bytes){NULL, 0} : own_answer->body;
	h->answer = *own_answer;
	if (pg_idem_keep(bind_cat(h->idem->app), &k, file, body, kept, h, &err) != ST_OK) {
		const struct pg_idem_result res = {.err = err};
		kept(h, &res);
	}
}

static void decided(struct call *own_call)
{
	struct held *h = own_call->held;
	own_call->n_headers = 0;
	h->decided = false;
	h->file = (struct strv){NULL, 0};
	look(h);
}

static const struct call_hold hold = {answered, decided};

/* ------------------------------------------------------------------ for handlers */

static struct held *held_of(const struct call *call)
{
	return call->hold == &hold ? call->held : NULL;
}

struct sql_idem h_idem(const struct call *call, int http, bool file)
{
	const struct held *h = held_of(call);
	if (!h)
		return (struct sql_idem){0};
	return (struct sql_idem){.set = true,
				 .file = file,
				 .http = (int16_t)http,
				 .key = h->key,
				 .bound = h->bound};
}

void h_idem_decided(struct call *call)
{
	struct held *h = held_of(call);
	if (h)
		h->decided = true;
}

void h_idem_file(struct call *call, struct strv location)
{
	struct held *h = held_of(call);
	/* Without room for its name the answer is kept as bytes, or not. */
	if (h && !arena_strv(&call->arena, location, &h->file))
		h->file = (struct strv){NULL, 0};
}

/* ------------------------------------------------------------------ arrival */

static enum status bind_key(void *ctx, struct bytes body, struct arena *a, struct err *err)
{
	struct held *h = ctx;
	(void)a;
	(void)err;
	h->bound = h_idem_bound(h->call->principal, h->call->method, h->call->target, body);
	return ST_OK;
}

static void bound(void *ctx, enum status st, const struct err *err)
{
	struct held *h = ctx;
	if (st == ST_OK)
		arrive(h);
	else
		call_reply_err(let_go(h), err);
}

void h_idem_gate(struct call *own_call, route_fn fn)
{
	struct call *call = own_call;
	struct uuid key;
	struct err err = {0};
	if (call->app->conf->rest_idempotency_lifetime_ms == 0 || !is_keyed(call->hit.route)) {
		fn(call);
		return;
	}
	if (h_idem_parse(call->idempotency_key, &key, &err) != ST_OK) {
		call_reply_err(call, &err);
		return;
	}
	struct held *h = base_calloc(1, sizeof *h);
	h->idem = h_idem_of(call->app);
	h->call = call;
	h->fn = fn;
	h->key = key;
	list_init(&h->node);
	h->idem->n_held++;
	call->hold = &hold;
	call->held = h;
	call_parse(call, bind_key, bound, h);
}

/* ------------------------------------------------------------------ growth */

static void forget(struct loop_timer *timer);

static void set_timer(struct idem *idem)
{
	int64_t pause_us = idem->app->conf->cleaner_interval_ms * 1000;
	loop_timer_set(&idem->app->loop, &idem->timer, loop_mono_us(&idem->app->loop) + pause_us);
}

/* What went wrong passes or shows elsewhere; the next round tries again. */
static void forgot(void *ctx, const struct pg_idem_result *res)
{
	struct idem *idem = ctx;
	(void)res;
	idem->forgetting = false;
	if (idem->freed)
		base_free(idem);
	else
		set_timer(idem);
}

static void forget(struct loop_timer *timer)
{
	struct idem *idem = CONTAINER_OF(timer, struct idem, timer);
	struct err err = {0};
	if (pg_idem_forget(bind_cat(idem->app), idem->app->conf->rest_idempotency_lifetime_ms,
			   FORGET_MAX, forgot, idem, &err) == ST_OK)
		idem->forgetting = true;
	else
		set_timer(idem);
}

struct idem *h_idem_new(struct app *app)
{
	struct idem *idem = base_calloc(1, sizeof *idem);
	idem->app = app;
	for (size_t i = 0; i < BUCKETS; i++)
		list_init(&idem->flights[i]);
	loop_timer_init(&idem->timer, forget);
	set_timer(idem);
	return idem;
}

void h_idem_free(struct idem *own_idem)
{
	ASSERT(own_idem->n_held == 0);
	loop_timer_cancel(&own_idem->app->loop, &own_idem->timer);
	own_idem->freed = true;
	if (!own_idem->forgetting)
		base_free(own_idem);
}
