/* Warehouses and namespaces. Each call: ST_OK = done runs once, later, on the loop; anything else =
 * never. Statuses in the result: ALREADY_EXISTS, NO_SUCH_NAMESPACE, NO_SUCH_WAREHOUSE,
 * NAMESPACE_NOT_EMPTY, UNAVAILABLE (nothing happened), COMMIT_UNKNOWN (a write without answer),
 * KEY_DECIDED (nothing happened: the key's row was there). idem: NULL without a key. */
#ifndef STORE_PG_PG_NS_H
#define STORE_PG_PG_NS_H

#include "store/pg/pg_idem.h"

/* Valid until done returns. */
struct pg_ns_result {
	struct err err;
	const struct strv_pair *properties; /* load, by key */
	size_t n_properties;
	const struct strv *names; /* list: last levels of the children, ascending by bytes */
	size_t n_names;
	bool more;                                      /* there are names after the last one */
	const struct strv *updated, *removed, *missing; /* update */
	size_t n_updated, n_removed, n_missing;
	struct bytes answer; /* update with a key: what was remembered, to be sent as it is */
};

typedef void (*pg_ns_done)(void *ctx, const struct pg_ns_result *res);

/* Makes the warehouse if it is not there. An existing one with namespaces keeps its location:
 * ALREADY_EXISTS when it is another than the one given. overlap: its tables may share folders. */
MUST_CHECK enum status pg_ns_warehouse(struct pgcat *cat, struct strv name, struct strv location,
				       bool overlap, pg_ns_done done, void *ctx, struct err *err);
/* The parent must exist (NO_SUCH_NAMESPACE). */
MUST_CHECK enum status pg_ns_create(struct pgcat *cat, struct pg_path path,
				    const struct strv_pair *properties, size_t n,
				    const struct pg_idem *idem, pg_ns_done done, void *ctx,
				    struct err *err);
MUST_CHECK enum status pg_ns_load(struct pgcat *cat, struct pg_path path, pg_ns_done done,
				  void *ctx, struct err *err);
MUST_CHECK enum status pg_ns_drop(struct pgcat *cat, struct pg_path path,
				  const struct pg_idem *idem, pg_ns_done done, void *ctx,
				  struct err *err);
/* Direct children of path (of the warehouse when it has no levels) behind `after`, at most limit;
 * limit 0: all. */
MUST_CHECK enum status pg_ns_list(struct pgcat *cat, struct pg_path path, struct strv after,
				  size_t limit, pg_ns_done done, void *ctx, struct err *err);
/* A key in both lists is the caller's to refuse. */
MUST_CHECK enum status pg_ns_update(struct pgcat *cat, struct pg_path path,
				    const struct strv *removals, size_t n_removals,
				    const struct strv_pair *updates, size_t n_updates,
				    const struct pg_idem *idem, pg_ns_done done, void *ctx,
				    struct err *err);

#endif
