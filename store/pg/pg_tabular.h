/* Names of tables and views (one name space), and the rows of views. Tables come and go by the
 * effects of the commit log. Each call: ST_OK = done runs once, later, on the loop; anything else =
 * never. */
#ifndef STORE_PG_PG_TABULAR_H
#define STORE_PG_PG_TABULAR_H

#include "store/pg/pg_idem.h"

enum pg_tabular_kind {
	PG_TABULAR_TABLE = 0,
	PG_TABULAR_VIEW = 1,
};

struct pg_tabular_row {
	struct table_id table; /* a view's uuid too */
	enum pg_tabular_kind kind;
	struct strv location;
	struct strv metadata_location;
	int64_t version;
	/* Tables only */
	int64_t incarnation, epoch;
	struct daemon_id holder;
};

/* Valid until done returns. Statuses: NO_SUCH_NAMESPACE, NO_SUCH_TABLE, NO_SUCH_VIEW,
 * ALREADY_EXISTS, COMMIT_FAILED, PATH_CONDEMNED, UNAVAILABLE (nothing happened), COMMIT_UNKNOWN, KEY_DECIDED (nothing
 * happened: the row of the key, which may be NULL for none, was there). */
struct pg_tabular_result {
	struct err err;
	bool found;                    /* resolve: the namespace is there and the name in it */
	struct pg_tabular_row row;     /* resolve */
	struct strv ns_location;       /* resolve: the namespace's property "location", or empty */
	enum pg_tabular_kind taken_by; /* with ALREADY_EXISTS */
	const struct strv *names;      /* list, ascending by bytes */
	size_t n_names;
	bool more;
};

typedef void (*pg_tabular_done)(void *ctx, const struct pg_tabular_result *res);

/* Tables or views of a namespace behind `after`, at most limit; limit 0: all. */
MUST_CHECK enum status pg_tabular_list(struct pgcat *cat, struct pg_path ns,
				       enum pg_tabular_kind kind, struct strv after, size_t limit,
				       pg_tabular_done done, void *ctx, struct err *err);
/* What a name stands for, of either kind. NO_SUCH_NAMESPACE, or found false with ST_OK when only
 * the name is missing. The names that wait share a statement, sent by pgcat_flush when the one before
 * it has been answered; a name stands in it once, however often it is asked for. */
MUST_CHECK enum status pg_tabular_resolve(struct pgcat *cat, struct pg_path ns, struct strv name,
					  pg_tabular_done done, void *ctx, struct err *err);
MUST_CHECK enum status pg_tabular_rename(struct pgcat *cat, struct pg_path from,
					 struct strv from_name, struct pg_path to,
					 struct strv to_name, enum pg_tabular_kind kind,
					 const struct pg_idem *idem, pg_tabular_done done, void *ctx, struct err *err);
/* Before a view's metadata file is written: its name goes on the ledger for this attempt, and to the
 * cleaner unless the attempt's create or replace takes it. */
MUST_CHECK enum status pg_tabular_view_ledger(struct pgcat *cat, struct uuid view,
					      struct uuid attempt, struct strv file,
					      pg_tabular_done done, void *ctx, struct err *err);
/* attempt: what wrote the file, nil for one that was there before. PATH_CONDEMNED: the file has been
 * given up meanwhile; nothing happened. */
MUST_CHECK enum status pg_tabular_view_create(struct pgcat *cat, struct pg_path ns,
					      struct strv name, struct uuid view,
					      struct uuid attempt,
					      const struct strv *places, size_t n_places,
					      struct strv metadata_location,
					      const struct pg_idem *idem, pg_tabular_done done, void *ctx, struct err *err);
/* places: where the view keeps its files, its location first; PLACE_TAKEN when another one's are there.
 * Compare-and-swap on the version that resolve gave: COMMIT_FAILED when it is another by now. */
MUST_CHECK enum status pg_tabular_view_replace(struct pgcat *cat, struct uuid view, int64_t version,
					       struct uuid attempt,
					       const struct strv *places, size_t n_places,
					       struct strv metadata_location, const struct pg_idem *idem, pg_tabular_done done,
					       void *ctx, struct err *err);
MUST_CHECK enum status pg_tabular_view_drop(struct pgcat *cat, struct uuid view,
					    const struct pg_idem *idem, pg_tabular_done done, void *ctx, struct err *err);

/* For pgcat */
bool pg_tabular_resolve_flush(struct pgcat *cat);
void pg_tabular_resolve_fail(struct pgcat *cat, const struct err *err);

#endif
