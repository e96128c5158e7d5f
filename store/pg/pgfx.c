#include "store/pg/pgfx.h"

#include "store/pg/pg_batch.h"
#include "store/pg/pg_create.h"
#include "store/pg/pg_head.h"
#include "store/pg/pg_idem.h"
#include "store/pg/pg_object.h"
#include "store/pg/pg_tables.h"
#include "store/pg/pg_txn.h"
#include "store/pg/pgcat.h"

/* Items of one statement: bounded by bytes, and by count so that one turn's worth of a busy daemon
 * does not hold its row locks for long. */
#define CALL_BYTES_MAX (4u << 20)
#define CALL_ITEMS_MAX 1024
#define LANES_MAX 2
/* Statements of one kind on their way on one lane: one executes, one waits behind it. What comes
 * meanwhile is collected, so batches grow exactly when the server is the bottleneck. */
#define CALLS_PER_LANE 2
#define RESULT_BYTES_MAX (512u << 20)
#define FLUSH_ROUNDS 8

struct item {
	struct list node;
	struct sql_effect fx;
	pgfx_done done;
	void *ctx;
	size_t bytes;
	bool alone; /* its company failed as a whole: tried by itself */
	struct err err;
};

struct call {
	struct pgc_op op;
	struct pgfx *fx;
	enum sql_kind kind;
	int lane; /* -1: a single */
	struct list items;
	size_t n;
};

struct pgfx {
	struct pgpool *pool; /* not looked at after pgpool_free: only flush does */
	int lanes;
	struct list queue[SQL_KIND_COUNT][LANES_MAX]; /* kinds of items */
	int calls[SQL_KIND_COUNT][LANES_MAX];
	struct list singles; /* other kinds, in order */
	struct list refused; /* failed their check: answered by the next flush */
	size_t pending;
	struct pgargs args;
	struct pgfx_counter counters[SQL_KIND_COUNT];
	bool freed;
};

static bool is_items(enum sql_kind kind)
{
	return kind >= SQL_TXN_BEGIN && kind <= SQL_TXN_READ;
}

/* ------------------------------------------------------------------ answers */

static void answer(struct pgfx *fx, struct item *own_item, struct sql_result *res)
{
	struct pgfx_counter *c = &fx->counters[own_item->fx.kind];
	res->kind = own_item->fx.kind;
	if (res->err.st != ST_OK)
		res->item.st = res->err.st;
	if (!res->sent)
		c->unsent++;
	else if (res->lost)
		c->lost++;
	else if (res->err.st != ST_OK)
		c->rejected++;
	else if (res->verdict == SQL_REFUSED)
		c->refused++;
	fx->pending--;
	own_item->done(own_item->ctx, res);
	base_free(own_item);
}

static void answer_unsent(struct pgfx *fx, struct list *items, const struct err *err)
{
	struct list *n;
	while ((n = list_pop_front(items))) {
		struct item *it = LIST_ITEM(n, struct item, node);
		struct sql_result res = {.err = it->err.st != ST_OK ? it->err : *err};
		answer(fx, it, &res);
	}
}

/* Errors that our own functions raise. */
static bool own_refusal(const struct pgc_op *op, struct sql_result *res)
{
	if (!strcmp(op->sqlstate, PG_IDEM_TAKEN)) {
		res->verdict = SQL_KEY_TAKEN;
	} else if (res->kind == SQL_PUBLISH && !strcmp(op->sqlstate, "FZ001")) {
		res->verdict = SQL_REFUSED;
	} else if (res->kind == SQL_TABLE_CREATE && !strcmp(op->sqlstate, "FZ003")) {
		res->verdict = SQL_REFUSED;
		res->created = SQL_CREATE_UUID_LIVE;
	} else if (!strcmp(op->sqlstate, "FZ004")) {
		pgcat_place_taken(&res->err);
		return true;
	} else {
		return false;
	}
	memset(&res->err, 0, sizeof res->err);
	return true;
}

static bool decode(struct call *call, const struct pgres *rows, struct arena *arena,
		   struct sql_result *rets)
{
	const struct sql_effect *fx = &LIST_ITEM(call->items.next, struct item, node)->fx;
	if (is_items(call->kind))
		return pg_txn_results(call->kind, rows, arena, rets, call->n);
	switch (call->kind) {
	case SQL_BATCH_LOOK:
	case SQL_PUBLISH:
		return pg_batch_result(fx, rows, arena, rets);
	case SQL_LEDGER:
	case SQL_UNLEDGER:
	case SQL_CLEAN_DUE:
	case SQL_CLEAN_CLAIM:
	case SQL_CLEAN_LOOK:
	case SQL_CLEAN_DONE:
		return pg_object_result(fx, rows, arena, rets);
	case SQL_TABLE_CREATE:
	case SQL_TABLE_DROP:
		return pg_create_result(fx, rows, arena, rets);
	case SQL_TABLES_COMMIT:
		return pg_tables_result(fx, rows, rets);
	default:
		return pg_head_result(fx, rows, arena, rets);
	}
}

static void send_lane(struct pgfx *fx, enum sql_kind kind, int lane);

static void on_done(struct pgc_op *op, enum pgc_end end, const struct pgres *rows,
		    const struct err *err)
{
	struct call *call = CONTAINER_OF(op, struct call, op);
	struct pgfx *fx = call->fx;
	enum sql_kind kind = call->kind;
	int lane = call->lane;
	struct arena arena;
	arena_init(&arena, RESULT_BYTES_MAX);
	struct sql_result *rets = base_calloc(call->n, sizeof *rets);
	for (size_t i = 0; i < call->n; i++) {
		rets[i].kind = kind;
		rets[i].sent = true;
	}
	bool again = false;
	if (end == PGC_ROWS && !decode(call, rows, &arena, rets)) {
		/* It was done, but what was done cannot be read. */
		for (size_t i = 0; i < call->n; i++) {
			memset(&rets[i], 0, sizeof rets[i]);
			rets[i].sent = rets[i].lost = true;
			err_set(&rets[i].err, ST_INTERNAL, "",
				"PostgreSQL's answer does not decode");
		}
	} else if (end == PGC_REJECTED) {
		/* One bad item must not fail the others. */
		again = call->n > 1 && err->st != ST_UNAVAILABLE;
		for (size_t i = 0; i < call->n; i++) {
			rets[i].err = *err;
			(void)own_refusal(op, &rets[i]);
		}
	} else if (end == PGC_LOST) {
		for (size_t i = 0; i < call->n; i++) {
			rets[i].lost = true;
			rets[i].err = *err;
		}
	}
	if (lane >= 0)
		fx->calls[kind][lane]--;
	if (again) {
		/* In front of what came later, in their order. */
		while (!list_empty(&call->items)) {
			struct list *last = call->items.prev;
			list_remove(last);
			LIST_ITEM(last, struct item, node)->alone = true;
			list_push_front(&fx->queue[kind][lane], last);
		}
	} else {
		struct list *n;
		for (size_t i = 0; (n = list_pop_front(&call->items)); i++)
			answer(fx, LIST_ITEM(n, struct item, node), &rets[i]);
	}
	base_free(rets);
	arena_fini(&arena);
	base_free(call);
	if (lane >= 0 && end != PGC_LOST)
		send_lane(fx, kind, lane);
}

/* ------------------------------------------------------------------ sending */

static enum pgsql statement(enum sql_kind kind)
{
	static const enum pgsql map[SQL_KIND_COUNT] = {
		[SQL_RECOVER] = PGSQL_RECOVER,       [SQL_HEAD_READ] = PGSQL_HEAD_READ,
		[SQL_HEAD_BUMP] = PGSQL_HEAD_BUMP,   [SQL_QUEUE_READ] = PGSQL_QUEUE_READ,
		[SQL_BATCH_LOOK] = PGSQL_BATCH_LOOK, [SQL_TXN_BEGIN] = PGSQL_TXN_BEGIN,
		[SQL_TXN_STAGE] = PGSQL_TXN_STAGE,   [SQL_TXN_SEAL] = PGSQL_TXN_SEAL,
		[SQL_TXN_ONCE] = PGSQL_TXN_ONCE,     [SQL_TXN_REQUEST] = PGSQL_TXN_REQUEST,
		[SQL_TXN_END] = PGSQL_TXN_END,       [SQL_TXN_READ] = PGSQL_TXN_READ,
		[SQL_LEDGER] = PGSQL_LEDGER,         [SQL_PUBLISH] = PGSQL_PUBLISH,
		[SQL_UNLEDGER] = PGSQL_UNLEDGER,     [SQL_TABLE_CREATE] = PGSQL_TABLE_CREATE,
		[SQL_TABLE_DROP] = PGSQL_TABLE_DROP, [SQL_CLEAN_CLAIM] = PGSQL_CLEAN_CLAIM,
		[SQL_CLEAN_LOOK] = PGSQL_CLEAN_LOOK, [SQL_CLEAN_DONE] = PGSQL_CLEAN_DONE,
		[SQL_HORIZON] = PGSQL_HORIZON,       [SQL_HALT] = PGSQL_HALT,
		[SQL_TABLES_COMMIT] = PGSQL_TABLES_COMMIT, [SQL_CLEAN_DUE] = PGSQL_CLEAN_DUE,
	};
	return map[kind];
}

static void single_args(const struct sql_effect *e, struct pgargs *args)
{
	switch (e->kind) {
	case SQL_BATCH_LOOK:
	case SQL_PUBLISH:
		pg_batch_args(e, args);
		break;
	case SQL_LEDGER:
	case SQL_UNLEDGER:
	case SQL_CLEAN_DUE:
	case SQL_CLEAN_CLAIM:
	case SQL_CLEAN_LOOK:
	case SQL_CLEAN_DONE:
		pg_object_args(e, args);
		break;
	case SQL_TABLE_CREATE:
	case SQL_TABLE_DROP:
		pg_create_args(e, args);
		break;
	case SQL_TABLES_COMMIT:
		pg_tables_args(e, args);
		break;
	default:
		pg_head_args(e, args);
		break;
	}
}

/* All statements of one table take one connection, which no lane uses if there are enough. */
static uint64_t route_of(const struct pgfx *fx, const struct sql_effect *e)
{
	struct table_id t;
	switch (e->kind) {
	case SQL_HEAD_READ:
	case SQL_QUEUE_READ:
		t = e->u.table;
		break;
	case SQL_HEAD_BUMP:
		t = e->u.bump.table;
		break;
	case SQL_HALT:
		t = e->u.halt.table;
		break;
	case SQL_BATCH_LOOK:
		t = e->u.look.table;
		break;
	case SQL_LEDGER:
		t = e->u.ledger.table;
		break;
	case SQL_PUBLISH:
		t = e->u.publish->row.table;
		break;
	case SQL_UNLEDGER:
		t = e->u.unledger.table;
		break;
	case SQL_TABLE_CREATE:
		t = e->u.create->table;
		break;
	case SQL_TABLES_COMMIT:
		t = e->u.tables->n_parts ? e->u.tables->parts[0]->row.table
					 : e->u.tables->creates[0]->table;
		break;
	case SQL_TABLE_DROP:
		t = e->u.drop.table;
		break;
	case SQL_CLEAN_CLAIM:
		t = e->u.claim.table;
		break;
	default:
		return PGPOOL_ANY;
	}
	uint64_t h = bytes_hash((struct bytes){t.u.b, sizeof t.u.b});
	uint64_t size = (uint64_t)pgpool_size(fx->pool), lanes = (uint64_t)fx->lanes;
	return size > lanes ? lanes + h % (size - lanes) : h % size;
}

static void send_call(struct pgfx *fx, struct call *own_call, uint64_t route)
{
	struct call *call = own_call;
	struct err err = {0};
	err_set(&err, ST_UNAVAILABLE, "", "PostgreSQL cannot be reached");
	call->fx = fx;
	call->op.done = on_done;
	bool fits = pgargs_ok(&fx->args);
	if (!fits)
		err_set(&err, ST_LIMIT, "", "one statement may take %u bytes", PGARGS_BYTES_MAX);
	if (fits && pgpool_send(fx->pool, route, statement(call->kind), &fx->args, &call->op)) {
		fx->counters[call->kind].statements++;
		fx->counters[call->kind].bytes += (int64_t)fx->args.buf.n;
		if (call->lane >= 0)
			fx->calls[call->kind][call->lane]++;
		return;
	}
	answer_unsent(fx, &call->items, &err);
	base_free(call);
}

static struct call *call_new(enum sql_kind kind, int lane)
{
	struct call *call = base_calloc(1, sizeof *call);
	call->kind = kind;
	call->lane = lane;
	list_init(&call->items);
	return call;
}

/* Only what is queued now: answers may queue more. */
static void send_lane(struct pgfx *fx, enum sql_kind kind, int lane)
{
	struct list *q = &fx->queue[kind][lane];
	while (!fx->freed && !list_empty(q) && fx->calls[kind][lane] < CALLS_PER_LANE) {
		struct call *call = call_new(kind, lane);
		const struct sql_effect *fxs[CALL_ITEMS_MAX];
		size_t bytes = 0;
		while (!list_empty(q) && call->n < CALL_ITEMS_MAX) {
			struct item *it = LIST_ITEM(q->next, struct item, node);
			if (call->n && (it->alone || bytes + it->bytes > CALL_BYTES_MAX))
				break;
			list_remove(&it->node);
			list_push_back(&call->items, &it->node);
			fxs[call->n++] = &it->fx;
			bytes += it->bytes;
			if (it->alone)
				break;
		}
		pgargs_clear(&fx->args);
		pg_txn_args(kind, fxs, call->n, &fx->args);
		send_call(fx, call, (uint64_t)lane);
	}
}

bool pgfx_flush(struct pgfx *fx)
{
	struct err none = {0};
	for (int round = 0; round < FLUSH_ROUNDS; round++) {
		struct list now;
		list_init(&now);
		struct list *n;
		while ((n = list_pop_front(&fx->refused)))
			list_push_back(&now, n);
		answer_unsent(fx, &now, &none);
		while ((n = list_pop_front(&fx->singles)))
			list_push_back(&now, n);
		while ((n = list_pop_front(&now))) {
			struct item *it = LIST_ITEM(n, struct item, node);
			struct call *call = call_new(it->fx.kind, -1);
			list_push_back(&call->items, &it->node);
			call->n = 1;
			pgargs_clear(&fx->args);
			single_args(&it->fx, &fx->args);
			send_call(fx, call, route_of(fx, &it->fx));
		}
		for (int k = SQL_TXN_BEGIN; k <= SQL_TXN_READ; k++)
			for (int lane = 0; lane < fx->lanes; lane++)
				send_lane(fx, (enum sql_kind)k, lane);
		if (list_empty(&fx->singles) && list_empty(&fx->refused))
			return false;
	}
	return true;
}

/* ------------------------------------------------------------------ the outside */

static enum status check(const struct sql_effect *e, struct err *err)
{
	if (is_items(e->kind))
		return pg_txn_check(e, err);
	switch (e->kind) {
	case SQL_PUBLISH:
		return pg_batch_check(e, err);
	case SQL_LEDGER:
		return pg_object_check(e, err);
	case SQL_TABLE_CREATE:
	case SQL_TABLE_DROP:
		return pg_create_check(e, err);
	case SQL_TABLES_COMMIT:
		return pg_tables_check(e, err);
	default:
		return ST_OK;
	}
}

void pgfx_submit(struct pgfx *fx, const struct sql_effect *effect, pgfx_done done, void *ctx)
{
	ASSERT(!fx->freed && effect->kind < SQL_KIND_COUNT);
	struct item *it = base_calloc(1, sizeof *it);
	it->fx = *effect;
	it->done = done;
	it->ctx = ctx;
	list_init(&it->node);
	fx->pending++;
	fx->counters[effect->kind].effects++;
	if (check(effect, &it->err) != ST_OK) {
		list_push_back(&fx->refused, &it->node);
	} else if (is_items(effect->kind)) {
		struct txn_id t = pg_txn_id(effect);
		uint64_t h = bytes_hash((struct bytes){t.u.b, sizeof t.u.b});
		it->bytes = pg_txn_size(effect);
		list_push_back(&fx->queue[effect->kind][h % (uint64_t)fx->lanes], &it->node);
	} else {
		list_push_back(&fx->singles, &it->node);
	}
}

struct pgfx *pgfx_new(struct pgpool *pool)
{
	struct pgfx *fx = base_calloc(1, sizeof *fx);
	fx->pool = pool;
	fx->lanes = pgpool_size(pool) >= 2 * LANES_MAX ? LANES_MAX : 1;
	for (int k = 0; k < SQL_KIND_COUNT; k++)
		for (int lane = 0; lane < LANES_MAX; lane++)
			list_init(&fx->queue[k][lane]);
	list_init(&fx->singles);
	list_init(&fx->refused);
	pgargs_init(&fx->args);
	return fx;
}

void pgfx_free(struct pgfx *own_fx)
{
	struct pgfx *fx = own_fx;
	struct err err = {0};
	err_set(&err, ST_UNAVAILABLE, "", "the daemon is stopping");
	fx->freed = true;
	answer_unsent(fx, &fx->refused, &err);
	answer_unsent(fx, &fx->singles, &err);
	for (int k = 0; k < SQL_KIND_COUNT; k++)
		for (int lane = 0; lane < LANES_MAX; lane++)
			answer_unsent(fx, &fx->queue[k][lane], &err);
	ASSERT(fx->pending == 0);
	pgargs_fini(&fx->args);
	base_free(fx);
}

size_t pgfx_pending(const struct pgfx *fx)
{
	return fx->pending;
}

const struct pgfx_counter *pgfx_counters(const struct pgfx *fx, enum sql_kind kind)
{
	return &fx->counters[kind];
}
