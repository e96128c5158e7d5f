/* Begin: what may be begun, the row, the answer; all of it the same for a repeated Begin. */
#include "daemon/commit/state.h"

#include "proto/base/jwrite.h"
#include "proto/iceberg/metadata.h"
#include "proto/iceberg/partition.h"

enum status begin_check(const struct table *t, const struct rpc_begin *m, struct err *err)
{
	if (uuid_version(m->txn_id) != 7)
		return err_set(err, ST_BAD_REQUEST, "txn_id", "must be a version 7 UUID");
	if (m->kind != RPC_KIND_APPEND && m->kind != RPC_KIND_DELETE &&
	    m->kind != RPC_KIND_ROW_DELTA)
		return err_set(err, ST_UNSUPPORTED, "kind", "%s is not implemented",
			       rpc_symbol_name(&rpc_list_kind, m->kind));
	if (m->isolation != RPC_ISOLATION_SNAPSHOT)
		return err_set(err, ST_UNSUPPORTED, "isolation",
			       "SERIALIZABLE is not implemented: the filter is not checked");
	if (m->has_filter)
		return err_set(err, ST_UNSUPPORTED, "filter", "conflict filters are not checked");
	if (m->source)
		return err_set(err, ST_UNSUPPORTED, "source", "stream sources are not implemented");
	if (m->ttl_ms < 0)
		return err_set(err, ST_BAD_REQUEST, "ttl_ms", "must not be negative");
	if (m->ref.n == 0)
		return err_set(err, ST_BAD_REQUEST, "ref", "must not be empty");
	if (metadata_format_version(t->meta) < 2)
		return err_set(err, ST_UNSUPPORTED, "format-version",
			       "staged commits need format version 2 or 3");
	if (metadata_encryption_key_id(t->meta).p)
		return err_set(err, ST_ENCRYPTED, "", "the table is encrypted");
	const struct snapshot_ref *ref = metadata_ref_by_name(t->meta, m->ref);
	if (ref ? ref->tag : !strv_eq(m->ref, SNAPSHOT_REF_MAIN))
		return err_set(err, ST_NO_SUCH_REF, "ref", "%.*s is %s", STRV_ARG(m->ref),
			       ref ? "a tag" : "no branch of the table");
	if (m->kind == RPC_KIND_APPEND)
		return ST_OK;
	if (!m->has_read_snapshot_id)
		return m->kind == RPC_KIND_ROW_DELTA && !ref
			       ? ST_OK
			       : err_set(err, ST_BAD_REQUEST, "read_snapshot_id",
					 "kinds that delete must name what they read");
	if (!metadata_snapshot(t->meta, m->read_snapshot_id))
		return err_set(err, ST_SNAPSHOT_TOO_OLD, "read_snapshot_id",
			       "the table has no snapshot %lld", (long long)m->read_snapshot_id);
	return ST_OK;
}

static bool json_of_schema(const struct metadata *m, struct arena *a, struct strv *ret_s)
{
	struct buf b;
	struct jwrite w;
	buf_init(&b, a->limit);
	jwrite_init(&w, &b);
	schema_write(&w, metadata_schema(m));
	bool ok = buf_ok(&b) && arena_strv(a, buf_strv(&b), ret_s);
	buf_fini(&b);
	return ok;
}

static bool json_of_spec(const struct metadata *m, struct arena *a, struct strv *ret_s)
{
	struct buf b;
	struct jwrite w;
	buf_init(&b, a->limit);
	jwrite_init(&w, &b);
	partition_write(&w, metadata_spec(m));
	bool ok = buf_ok(&b) && arena_strv(a, buf_strv(&b), ret_s);
	buf_fini(&b);
	return ok;
}

static void begin_reply(struct core *c, struct request *r, const struct txn *x)
{
	struct metadata *m = x->table->meta;
	struct rpc_begin_reply *out = arena_calloc(&r->arena, 1, sizeof *out);
	bool ok = out != NULL;
	if (ok) {
		*out = (struct rpc_begin_reply){
			.txn_id = x->id.u,
			.table_uuid = x->table->id.u,
			.incarnation = x->row.incarnation,
			.ttl_ms = x->row.ttl_ms,
			.format_version = metadata_format_version(m),
			.schema_id = metadata_current_schema_id(m),
			.spec_id = metadata_default_spec_id(m),
			.sort_order_id = metadata_default_sort_order_id(m),
			.has_read_snapshot_id = x->row.has_read_snapshot,
			.read_snapshot_id = x->row.read_snapshot,
		};
		/* Copies: the metadata may be replaced before the reply is encoded. */
		ok = arena_bytes(&r->arena, (struct bytes){x->token.b, sizeof x->token.b},
				 &out->lease_token) &&
		     arena_strv(&r->arena, metadata_location(m), &out->location) &&
		     metadata_data_folder(m, &r->arena, &out->data_location) &&
		     arena_strv(&r->arena, out->data_location, &out->data_location) &&
		     json_of_schema(m, &r->arena, &out->schema_json) &&
		     json_of_spec(m, &r->arena, &out->spec_json);
	}
	if (!ok)
		request_status(c, r, ST_TOO_LARGE, "", "the schema exceeds the reply's limit");
	else
		request_rpc(c, r, out);
}

static void begin_send(struct core *c, struct txn *x);

static void begin_again(struct core *c, struct timer *timer)
{
	begin_send(c, CONTAINER_OF(timer, struct txn, timer));
}

static void begun(struct core *c, void *ctx, const struct event *ev)
{
	struct request *r = ctx;
	const struct sql_result *q = ev->u.done.sql;
	struct txn *x = request_txn(r);
	if (!x) { /* the table was forgotten meanwhile */
		request_let(r);
		return;
	}
	if (txn_ask_failed(x, q)) {
		/* The row may be there, and then nobody else would ever end it: repeated until it
		 * is answered. */
		core_timer(c, &x->timer, c->now_us + c->conf.retry_us, begin_again);
		return;
	}
	x->asker = NULL;
	bool fine = !q->lost && !core_sql_clean_failure(q) && q->item.st == ST_OK;
	if (fine && q->item.row.state == TXN_DB_OPEN) {
		x->row.expires_pg_ms = q->item.row.expires_pg_ms;
		x->row.created_pg_ms = q->item.row.created_pg_ms;
		x->row.ttl_ms = q->item.row.ttl_ms;
		txn_move(c, x, TXN_OPEN);
		begin_reply(c, r, x);
		r->txn = NULL;
		txn_turn(c, x);
		request_let(r);
		return;
	}
	if (stage_settled(c, r, q)) {
		if (!fine) {
			stage_item_error(c, r, &q->item);
		} else {
			/* The id was used before and has gone on; rows know more than memory. The
			 * reply of a repeated Begin is still the same. */
			x->row.incarnation = q->item.row.incarnation;
			x->token = txn_token(c, x->id, x->table->id, x->row.incarnation);
			begin_reply(c, r, x);
		}
	}
	r->txn = NULL;
	struct list late;
	list_init(&late);
	for (struct list *n; (n = list_pop_front(&x->turn));)
		list_push_back(&late, n);
	txn_free(c, x);
	for (struct list *n; (n = list_pop_front(&late));)
		request_run(c, LIST_ITEM(n, struct request, wait));
	request_let(r);
}

static void begin_send(struct core *c, struct txn *x)
{
	x->ask_paused = false;
	struct effect *e = core_emit(c, FX_SQL, begun, x->asker);
	e->u.sql.kind = SQL_TXN_BEGIN;
	e->u.sql.u.begin = &x->row;
}

/* A Begin that would be refused now may be the repeat of one that was not: its row answers. */
static void late_read(struct core *c, void *ctx, const struct event *ev)
{
	struct request *r = ctx;
	const struct sql_result *q = ev->u.done.sql;
	struct table *t = r->table;
	if (r->answered || !t || !stage_settled(c, r, q)) {
		request_let(r);
		return;
	}
	if (q->item.st != ST_OK || !q->item.has_row) {
		request_fail(c, r, &r->late_err);
		request_let(r);
		return;
	}
	struct err err = {0};
	struct txn probe = {.table = t, .id = {r->in.u.begin->txn_id}};
	arena_init(&probe.arena, c->conf.request_max_bytes);
	enum status st = txn_fill(c, &probe, r->in.u.begin, r->in.principal, &err);
	if (st == ST_OK && uuid_eq(q->item.row.table.u, t->id.u) &&
	    digest_eq(&probe.row.params, &q->item.row.params)) {
		probe.row.incarnation = q->item.row.incarnation;
		probe.token = txn_token(c, probe.id, t->id, probe.row.incarnation);
		begin_reply(c, r, &probe);
	} else {
		request_status(c, r, ST_DIGEST_CONFLICT, "txn_id",
			       "the id was used before with other parameters");
	}
	arena_fini(&probe.arena);
	request_let(r);
}

static void begin_late(struct core *c, struct request *r, const struct err *err)
{
	r->late_err = *err;
	request_hold(r);
	struct effect *e = core_emit(c, FX_SQL, late_read, r);
	e->u.sql.kind = SQL_TXN_READ;
	e->u.sql.u.txn = (struct txn_id){r->in.u.begin->txn_id};
}

void begin_start(struct core *c, struct request *r)
{
	const struct rpc_begin *m = r->in.u.begin;
	struct table *t = r->table;
	struct err err = {0};
	struct txn_id id = {m->txn_id};
	if (t->state == TABLE_HALTED) {
		request_status(c, r, ST_TABLE_HALTED, "", t->halt.msg);
		return;
	}
	if (!table_is(c, t, r->in.incarnation, &err)) {
		if (err.st == ST_NO_SUCH_TABLE)
			err_set(&err, ST_TABLE_GONE, "table", "the table was replaced");
		begin_late(c, r, &err);
		return;
	}
	struct txn *x = txn_find(c, id);
	if (x && x->state == TXN_NEW) {
		list_push_back(&x->turn, &r->wait);
		return;
	}
	if (x) {
		/* Known: the same Begin gets the same answer. */
		struct txn probe = {.table = t, .id = id};
		arena_init(&probe.arena, c->conf.request_max_bytes);
		enum status st = txn_fill(c, &probe, m, r->in.principal, &err);
		bool same = st == ST_OK && x->table == t &&
			    digest_eq(&probe.row.params, &x->row.params);
		arena_fini(&probe.arena);
		if (same)
			begin_reply(c, r, x);
		else
			request_status(c, r, ST_DIGEST_CONFLICT, "txn_id",
				       "the id was used before with other parameters");
		return;
	}
	enum status st = begin_check(t, m, &err);
	if (st != ST_OK) {
		begin_late(c, r, &err);
		return;
	}
	if (c->n_txns >= c->conf.txn_max || txn_full(c)) {
		request_status(c, r, ST_OVERLOADED, "",
			       txn_full(c) ? "open transactions hold too much memory"
					   : "too many transactions are open");
		return;
	}
	x = txn_new(c, t, id);
	st = txn_fill(c, x, m, r->in.principal, &err);
	if (st != ST_OK) {
		txn_free(c, x);
		request_fail(c, r, &err);
		return;
	}
	txn_weigh(c, x);
	r->txn = x;
	r->sent = true;
	request_hold_txn(r, x);
	x->asker = r;
	x->ask_lost = false;
	begin_send(c, x);
}
