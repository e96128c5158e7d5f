#include "daemon/rest/h_unplaced.h"

#include "conf/log.h"
#include "daemon/admin/ad_metrics.h"
#include "daemon/rest/h_rest.h"
#include "proto/iceberg/metadata.h"
#include "proto/iceberg/place.h"
#include "store/pg/pg_place.h"

/* Tables that could not be read are tried again after this time: the cleaner waits for them. */
#define AGAIN_US INT64_C(60000000)
/* Commits that may come between the look at a table and its note, in a row. */
#define TRIES_MAX 8

struct unplaced {
	struct app *app;
	struct loop_timer timer;
	struct mcache_wait wait;
	struct arena arena; /* of the table at hand */
	struct table_id before; /* the one that was done last */
	struct table_id table;
	int tries; /* of it */
	int64_t version;
	struct strv location;
	size_t failed; /* of this pass */
	bool busy;     /* a completion is to come */
	bool stopping;
};

static void next(struct unplaced *u);

static void over(struct unplaced *u)
{
	struct app *app = u->app;
	loop_timer_cancel(&app->loop, &u->timer);
	arena_fini(&u->arena);
	app->unplaced = NULL;
	base_free(u);
}

/* After each completion: true when the daemon stops. */
static bool is_over(struct unplaced *u)
{
	struct app *app = u->app;
	u->busy = false;
	if (!u->stopping)
		return false;
	over(u);
	app_step_stopped(app);
	return true;
}

static void wait_a_while(struct unplaced *u)
{
	u->before = (struct table_id){0};
	u->tries = 0;
	u->failed = 0;
	loop_timer_set(&u->app->loop, &u->timer, loop_mono_us(&u->app->loop) + AGAIN_US);
}

static void next_table(struct unplaced *u)
{
	u->before = u->table;
	u->tries = 0;
	next(u);
}

static void unread(struct unplaced *u, const struct err *err)
{
	char id[UUID_TEXT_LEN + 1];
	uuid_text(u->table.u, id);
	u->failed++;
	LOG(LOG_WARN, "places.unread", LOG_WITH(.table = strv_of(id), .st = err->st), "%s", err->msg);
}

static void noted(void *ctx, const struct pg_place_result *res)
{
	struct unplaced *u = ctx;
	if (is_over(u))
		return;
	if (res->err.st != ST_OK) {
		unread(u, &res->err);
	} else if (!res->found) {
		/* It was committed to, or dropped, since it was looked at. */
		if (++u->tries < TRIES_MAX) {
			next(u);
			return;
		}
		u->failed++;
	}
	next_table(u);
}

static void metadata_read(struct mcache_wait *wait, struct mcache_entry *own_entry,
			  const struct err *err)
{
	struct unplaced *u = CONTAINER_OF(wait, struct unplaced, wait);
	struct err e = {0};
	if (!own_entry)
		e = *err;
	if (is_over(u)) {
		if (own_entry)
			mcache_unref(own_entry);
		return;
	}
	if (own_entry) {
		struct strv places[PLACE_MAX];
		size_t n = place_list(mcache_metadata(own_entry), places);
		u->busy = pg_place_note(bind_cat(u->app), u->table, u->version, places, n, noted, u,
					&e) == ST_OK;
		mcache_unref(own_entry);
	}
	if (u->busy)
		return;
	unread(u, &e);
	next_table(u);
}

static void found(void *ctx, const struct pg_place_result *res)
{
	struct unplaced *u = ctx;
	if (is_over(u))
		return;
	if (res->err.st != ST_OK) {
		wait_a_while(u);
		return;
	}
	if (!res->found) {
		ad_metrics_set(METRIC_places_unread, (int64_t)u->failed);
		if (u->failed)
			wait_a_while(u);
		return;
	}
	if (!uuid_eq(u->table.u, res->table.u))
		u->tries = 0;
	u->table = res->table;
	u->version = res->version;
	arena_fini(&u->arena);
	arena_init(&u->arena, 65536);
	if (!arena_strv(&u->arena, res->metadata_location, &u->location)) {
		u->failed++;
		next_table(u);
		return;
	}
	u->busy = true;
	u->wait.rep = MCACHE_METADATA;
	u->wait.done = metadata_read;
	mcache_load(h_cache(u->app), u->location, &u->wait);
}

static void next(struct unplaced *u)
{
	struct err err = {0};
	u->busy = true;
	if (pg_place_next(bind_cat(u->app), u->before, found, u, &err) == ST_OK)
		return;
	u->busy = false;
	wait_a_while(u);
}

static void tick(struct loop_timer *timer)
{
	next(CONTAINER_OF(timer, struct unplaced, timer));
}

static enum status start(struct app *app, bool *ret_pending, struct err *err)
{
	struct unplaced *u = base_calloc(1, sizeof *u);
	(void)ret_pending;
	(void)err;
	u->app = app;
	app->unplaced = u;
	arena_init(&u->arena, 65536);
	loop_timer_init(&u->timer, tick);
	next(u);
	return ST_OK;
}

static bool stop(struct app *app)
{
	struct unplaced *u = app->unplaced;
	u->stopping = true;
	if (u->busy)
		return false;
	over(u);
	return true;
}

const struct app_step h_unplaced_step = {"places", start, stop, NULL};
