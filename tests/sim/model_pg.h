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

/* --- model_pg.c: judges and writes --- */
void model_queue_staged(struct world *w, struct txn_id id);
void model_execute(struct world *w, struct flight *fl);
/* For traces. */
const char *model_kind_name(enum sql_kind kind);

#endif
