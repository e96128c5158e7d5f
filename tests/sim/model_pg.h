/* The parts of the model of PostgreSQL among themselves: rows, what an effect does to them at one
 * instant, and the way of a statement there and back. */
#ifndef TESTS_SIM_MODEL_PG_H
#define TESTS_SIM_MODEL_PG_H

#include "tests/sim/world.h"

/* --- model_rows.c: finding, adding and copying rows --- */
void rows_obj_add(struct world *w, struct m_obj o);
struct batch_row *rows_batch_by_id(struct world *w, struct batch_id id);
void rows_obj_remove(struct world *w, struct m_obj *o);
void rows_obj_to(struct world *w, struct m_obj *o, enum obj_state to);
struct m_txn *rows_txn_add(struct world *w, const struct txn_row *row);
void rows_copy_effect(struct world *w, struct sql_effect *e);

/* --- model_pg.c: the decision, its ledger and keys; runs statements --- */
/* Whether head and transactions are as the publish says. */
bool model_guard(struct world *w, const struct sql_publish *p, struct head_row *h);
/* Whether all objects of the batch are in the ledger; otherwise its statement is undone. */
bool model_listed(struct world *w, struct batch_id batch, const struct strv *objects, size_t n);
/* They are in use now, and what else the ledger has of the batch is garbage. */
void model_settle(struct world *w, struct batch_id batch, const struct strv *objects, size_t n);
bool model_taken(struct world *w, const struct sql_idem *k);
/* location: the metadata file that the answer is made from, if it is made from one. */
void model_remember(struct world *w, const struct sql_idem *k, struct strv location);
void model_batch_add(struct world *w, const struct batch_row *row);
/* After its guard held. */
void model_publish(struct world *w, const struct sql_publish *p, struct sql_result *r);
void model_execute(struct world *w, struct flight *fl);
/* For traces. */
const char *model_kind_name(enum sql_kind kind);

/* --- model_txns.c: rows of transactions --- */
void txns_begin(struct world *w, const struct txn_row *r, struct sql_item_result *it);
void txns_stage(struct world *w, const struct sql_stage_item *s, struct sql_item_result *it);
void txns_seal(struct world *w, const struct sql_seal_item *s, struct sql_item_result *it);
void txns_once(struct world *w, const struct sql_once_item *o, struct sql_item_result *it);
void txns_request(struct world *w, const struct sql_request_item *q, struct sql_item_result *it);
void txns_end(struct world *w, const struct sql_end_item *e, struct sql_item_result *it);
void txns_read(struct world *w, const struct m_txn *t, struct sql_item_result *it);
void txns_queue_read(struct world *w, struct table_id table, struct sql_result *r);
/* What it staged is garbage. */
void txns_queue_staged(struct world *w, struct txn_id id);

/* --- model_tables.c: names, places, halts --- */
struct m_tab *tables_find(struct world *w, struct table_id table);
/* Whether nothing of another table, the one that it replaces left aside, lies in, around or at a new
 * place; otherwise the error that undoes the statement. */
bool tables_places_free(struct world *w, struct table_id table, struct table_id replaced,
			const struct strv *places, size_t n, struct sql_result *r);
void tables_halt(struct world *w, const struct sql_halt *k, struct sql_result *r);
void tables_create(struct world *w, const struct sql_table_create *k, struct sql_result *r);
/* All at one instant, or nothing. */
void tables_commit(struct world *w, const struct sql_tables_commit *k, struct sql_result *r);
void tables_drop(struct world *w, const struct sql_table_drop *d, struct sql_result *r);

/* --- model_cleaner.c --- */
void cleaner_due(struct world *w, const struct sql_clean_due *k, struct sql_result *r);
void cleaner_claim(struct world *w, const struct sql_clean_claim *k, struct sql_result *r);
void cleaner_look(struct world *w, const struct sql_clean_look *l, struct sql_result *r);
void cleaner_done(struct world *w, const struct sql_clean_done *k);

#endif
