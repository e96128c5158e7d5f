/* Tables of before the list of places: which they are, and what their metadata says. Each call: ST_OK =
 * done runs once, later, on the loop; anything else = never. */
#ifndef STORE_PG_PG_PLACE_H
#define STORE_PG_PG_PLACE_H

#include "store/pg/pgcat.h"

/* Valid until done returns. Statuses: UNAVAILABLE, COMMIT_UNKNOWN (a note without answer). */
struct pg_place_result {
	struct err err;
	bool found; /* next: there is one; note: the table was there in that version */
	struct table_id table;
	int64_t version;
	struct strv metadata_location;
};

typedef void (*pg_place_done)(void *ctx, const struct pg_place_result *res);

/* The table of lowest id above `after` whose places are not known. */
MUST_CHECK enum status pg_place_next(struct pgcat *cat, struct table_id after, pg_place_done done,
				     void *ctx, struct err *err);
/* Notes its places, unless it has another version by now; they are not judged. */
MUST_CHECK enum status pg_place_note(struct pgcat *cat, struct table_id table, int64_t version,
				     const struct strv *places, size_t n, pg_place_done done,
				     void *ctx, struct err *err);

#endif
