/* Drives the commit core with the real world: requests and completions in as events, effects out to
 * PostgreSQL, the object store and jobs. Loop thread only. */
#ifndef DAEMON_BIND_BIND_H
#define DAEMON_BIND_BIND_H

#include "daemon/app.h"
#include "daemon/commit/port.h"

struct bind;
struct fs;
struct obj_store;
struct pgcat;
struct pgfx;
struct pgpool;

/* PostgreSQL, the object store and the core; before the steps whose handlers use them. */
extern const struct app_step bind_store_step;
extern const struct app_step bind_core_step;

/* The app's; NULL before bind_core_step has started. */
struct bind *bind_of(const struct app *app);

/* The reply is valid until return. */
typedef void (*bind_done)(void *ctx, const struct reply *reply);
/* Submits a request: kind and u.req of ev, whose req is given here and whose deadline_us counts on
 * the loop's clock. Everything that the request points at must stay valid until done, which runs
 * exactly once, later. */
void bind_request(struct bind *b, const struct event *ev, bind_done done, void *ctx);

/* News of every metadata that this daemon makes current; one listener. */
void bind_on_head(struct bind *b,
		  void (*fn)(void *ctx, struct table_id table, struct strv location,
			     struct metadata *m),
		  void *ctx);

struct obj_store *bind_obj(const struct app *app);
struct fs *bind_fs(const struct app *app);
struct pgpool *bind_pool(const struct app *app);
/* For catalog statements (pg_ns, pg_tabular); what is asked for now goes out with this turn. */
struct pgcat *bind_cat(const struct app *app);
struct core *bind_core(struct bind *b);
/* The store's state changed: the core is told at the end of the turn. */
void bind_reconfigure(struct app *app);
/* Estimate of PostgreSQL's clock, milliseconds; 0 before the first reply. */
int64_t bind_pg_ms(const struct bind *b);

#endif
