#include "daemon/bind/bind_metrics.h"

#include "daemon/admin/ad_metrics.h"
#include "daemon/bind/bind_store.h"
#include "daemon/commit/inspect.h"
#include "store/obj/obj.h"

/* Statement kinds in the order of enum sql_kind; the rows of metrics.tbl name them. */
static const enum metric statements[SQL_KIND_COUNT] = {
	[SQL_RECOVER] = METRIC_sql_recover,
	[SQL_HEAD_READ] = METRIC_sql_head_read,
	[SQL_HEAD_BUMP] = METRIC_sql_head_bump,
	[SQL_QUEUE_READ] = METRIC_sql_queue_read,
	[SQL_BATCH_LOOK] = METRIC_sql_batch_look,
	[SQL_TXN_BEGIN] = METRIC_sql_txn_begin,
	[SQL_TXN_STAGE] = METRIC_sql_txn_stage,
	[SQL_TXN_SEAL] = METRIC_sql_txn_seal,
	[SQL_TXN_ONCE] = METRIC_sql_txn_once,
	[SQL_TXN_REQUEST] = METRIC_sql_txn_request,
	[SQL_TXN_END] = METRIC_sql_txn_end,
	[SQL_TXN_READ] = METRIC_sql_txn_read,
	[SQL_LEDGER] = METRIC_sql_ledger,
	[SQL_PUBLISH] = METRIC_sql_publish,
	[SQL_UNLEDGER] = METRIC_sql_unledger,
	[SQL_TABLE_CREATE] = METRIC_sql_table_create,
	[SQL_TABLE_DROP] = METRIC_sql_table_drop,
	[SQL_CLEAN_DUE] = METRIC_sql_clean_due,
	[SQL_CLEAN_CLAIM] = METRIC_sql_clean_claim,
	[SQL_CLEAN_LOOK] = METRIC_sql_clean_look,
	[SQL_CLEAN_DONE] = METRIC_sql_clean_done,
	[SQL_HORIZON] = METRIC_sql_horizon,
	[SQL_HALT] = METRIC_sql_halt,
	[SQL_TABLES_COMMIT] = METRIC_sql_tables_commit,
};

static void collect(void *ctx)
{
	struct app *app = ctx;
	const struct bind_store *store = app->store;
	const struct core_counters *c = core_counters(bind_core(app->core));
	ad_metrics_copy(METRIC_batches, c->batches);
	ad_metrics_copy(METRIC_txns_committed, c->txns_committed);
	ad_metrics_copy(METRIC_txns_rejected, c->txns_rejected);
	ad_metrics_copy(METRIC_rest_commits, c->rest_commits);
	ad_metrics_copy(METRIC_commit_stale, c->rest_refused);
	ad_metrics_copy(METRIC_commit_conflicts, c->conflicts);
	ad_metrics_copy(METRIC_commit_unknown, c->unknown_outcomes);
	ad_metrics_copy(METRIC_commit_fenced, c->fenced);
	ad_metrics_copy(METRIC_commit_findings, c->findings);
	ad_metrics_copy(METRIC_cleaner_shared, c->cleaner_shared);
	ad_metrics_copy(METRIC_cleaner_waiting, c->cleaner_waiting);
	ad_metrics_copy(METRIC_purge_kept, c->purge_kept);
	ad_metrics_copy(METRIC_stale_tokens, c->stale_tokens);
	struct core_index_stats i = core_index_stats(bind_core(app->core));
	ad_metrics_set(METRIC_index_bytes, i.index_bytes);
	ad_metrics_set(METRIC_index_files, i.index_files);
	ad_metrics_set(METRIC_index_held, i.bytes);
	ad_metrics_copy(METRIC_index_hits, i.hits);
	ad_metrics_copy(METRIC_index_misses, i.misses);
	ad_metrics_copy(METRIC_index_dropped, i.dropped);
	int64_t lost = 0, rejected = 0, bytes = 0;
	for (int k = 0; k < SQL_KIND_COUNT; k++) {
		const struct pgfx_counter *n = pgfx_counters(store->fx, (enum sql_kind)k);
		ad_metrics_copy(statements[k], n->statements);
		lost += n->lost;
		rejected += n->rejected;
		bytes += n->bytes;
	}
	ad_metrics_copy(METRIC_sql_catalog, pgcat_statements(store->cat));
	ad_metrics_copy(METRIC_sql_lost, lost);
	ad_metrics_copy(METRIC_sql_errors, rejected);
	ad_metrics_copy(METRIC_sql_bytes, bytes);
	const struct obj_counts *o = obj_counts(bind_obj(app));
	ad_metrics_copy(METRIC_object_puts, (int64_t)o->puts);
	ad_metrics_copy(METRIC_object_gets, (int64_t)o->gets);
	ad_metrics_copy(METRIC_object_stats, (int64_t)o->stats);
	ad_metrics_copy(METRIC_object_deletes, (int64_t)o->deletes);
	ad_metrics_copy(METRIC_object_put_bytes, (int64_t)o->put_bytes);
	ad_metrics_copy(METRIC_object_get_bytes, (int64_t)o->get_bytes);
	ad_metrics_copy(METRIC_object_failed, (int64_t)o->failed);
	ad_metrics_set(METRIC_object_running, (int64_t)o->in_flight);
	struct inspect_totals t;
	inspect_count(bind_core(app->core), &t);
	ad_metrics_set(METRIC_tables_loading, (int64_t)t.loading);
	ad_metrics_set(METRIC_tables_ready, (int64_t)t.ready);
	ad_metrics_set(METRIC_tables_halted, (int64_t)t.halted);
	ad_metrics_set(METRIC_pending_open, (int64_t)t.open);
	ad_metrics_set(METRIC_pending_sealed, (int64_t)t.sealed);
	ad_metrics_set(METRIC_pending_queued, (int64_t)t.queued);
	ad_metrics_set(METRIC_pending_batched, (int64_t)t.batched);
	ad_metrics_set(METRIC_pending_batches, (int64_t)t.batches);
}

static enum status start(struct app *app, bool *ret_pending, struct err *err)
{
	(void)err;
	*ret_pending = false;
	ad_metrics_collect(collect, app);
	return ST_OK;
}

static bool stop(struct app *app)
{
	ad_metrics_drop(collect, app);
	return true;
}

const struct app_step bind_metrics_step = {"metrics", start, stop, NULL};
