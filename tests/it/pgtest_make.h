/* Ids, rows and effects for the PostgreSQL tests. */
#ifndef TESTS_IT_PGTEST_MAKE_H
#define TESTS_IT_PGTEST_MAKE_H

#include "tests/it/pgtest.h"

struct made {
	struct table_id table;
	int64_t incarnation;
	struct daemon_id holder;
	struct batch_id batch;
	char name[32], location[64], metadata[64];
};

int64_t make_now_ms(void);
/* Warehouse wh with namespaces ns1 and ns2, if they are not there. */
void make_catalog(struct admin *a);
struct sql_table_create make_create(struct made *m, const char *ns, const char *name, int batch);
void make_table(struct pgtest *t, struct admin *a, struct made *m, const char *ns,
		const char *name);
/* The ids and locations that a name stands for. */
void make_ids(struct made *m, const char *name);
/* As make_table, or finds the one that another process made. */
void make_shared(struct pgtest *t, struct made *m, const char *name);
struct txn_row make_txn(const struct made *m, int number);
struct txn_row make_txn_at(const struct made *m, int number, int64_t id_ms);
struct sql_stage_item make_stage(struct txn_id txn, const char *fragment, int attempt,
				 const struct strv *paths, size_t n);
struct sql_once_item make_once(const struct txn_row *row, const struct sql_stage_item *stages,
			       size_t n);
struct batch_id make_batch_id(const struct made *m, int number);
struct sql_effect make_ledger(const struct made *m, int batch, int64_t epoch,
			      const struct strv *paths, size_t n);
struct sql_publish make_publish(const struct made *m, int batch_no, const struct txn_id *txns,
				const uint8_t *states, size_t n, const struct strv *objects,
				size_t n_objects);

/* Sends the effect while `change`, which names the table as %s, is not committed yet, commits, and wants
 * a refusal that changed nothing else. */
void races_refused(struct pgtest *t, struct admin *a, struct admin *b, const struct sql_effect *e,
		   const char *change, const struct made *m);

#endif
