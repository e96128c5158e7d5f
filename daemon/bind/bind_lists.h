/* Operator routes that show what waits and what was decided: transactions, batches, findings. */
#ifndef DAEMON_BIND_BIND_LISTS_H
#define DAEMON_BIND_BIND_LISTS_H

#include "daemon/bind/bind.h"
#include "daemon/net/call.h"
#include "proto/base/jwrite.h"

/* A page under construction: {"<name>": [...], "next": "..."}. */
struct bind_page {
	struct call *call;
	struct bind *b;
	struct table_id table;
	struct uuid after;
	int64_t before;
	size_t limit;
	struct buf out;
	struct jwrite w;
	struct uuid last; /* cursors of what was written last */
	int64_t last_no;
};

/* Reads limit, table, after and before of the query; the segment {table-id} counts as table. false:
 * answered. */
MUST_CHECK bool bind_page_init(struct bind_page *p, struct call *call);
void bind_page_begin(struct bind_page *p, const char *name);
/* Ends the array; more: with the cursor of the next page. The object stays open. */
void bind_page_end(struct bind_page *p, bool more);
void bind_page_reply(struct bind_page *p);

void bind_page_uuid(struct bind_page *p, const char *key, struct uuid id);

void bind_lists_routes(struct app *app);

#endif
