/* What the catalog's handlers share: warehouses, paths, pages, commits to the core, answers that
 * hold a table. */
#ifndef DAEMON_REST_H_REST_H
#define DAEMON_REST_H_REST_H

#include "daemon/bind/bind.h"
#include "daemon/bind/mcache.h"
#include "daemon/net/call.h"
#include "proto/rest/rb_ident.h"
#include "store/pg/pg_tabular.h"

/* Makes the configured warehouses known to PostgreSQL, then takes the catalog's routes. */
extern const struct app_step h_rest_step;

/* Each file's rows of the route table. */
void h_config_routes(struct route_table *t);
void h_ns_routes(struct route_table *t);
void h_table_routes(struct route_table *t);
void h_create_routes(struct route_table *t);
void h_commit_routes(struct route_table *t);
void h_view_routes(struct route_table *t);
void h_function_routes(struct route_table *t);
/* The token endpoint, and the door for all others; nothing unless clients are configured. */
void h_oauth_routes(struct app *app, struct route_table *t);

struct mcache *h_cache(const struct app *app);
struct idem;
struct idem *h_idem_of(const struct app *app);

/* A warehouse by name, or by its location in any spelling of a file: URI. *ret_i: 0 is the default.
 */
MUST_CHECK bool h_warehouse(const struct conf *c, struct strv asked, size_t *ret_i);

/* What a path names. The views live as long as the call. */
struct h_place {
	struct pg_path ns;
	struct strv root;  /* of the warehouse */
	struct strv name;  /* decoded second segment; n 0 when there is none */
	char dotted[160];  /* "ns.name", for messages */
	char ns_dotted[128];
};
/* The warehouse of the prefix, the namespace and, if there is one, the name behind it. Answers the
 * call and returns false when that fails: `missing` is the status for what cannot exist. */
MUST_CHECK bool h_place(struct call *own_call, enum status missing, struct h_place *ret_place);
/* The same for a namespace and name that came in a body. */
MUST_CHECK bool h_place_of(struct call *own_call, const struct rb_ident *ident,
			   struct h_place *ret_place);
/* Gives a place whose path named only the namespace its name. */
void h_place_name(struct h_place *place, struct strv name);
/* Warehouse only, for routes without a namespace. */
MUST_CHECK bool h_place_root(struct call *own_call, struct h_place *ret_place);

/* Where a new table or view lies: beneath the namespace's own location if it has one, else beneath
 * the warehouse by the namespace's levels. Characters that file systems or engines read in their
 * own way become '_'; the uuid makes it unique. false: too long. */
MUST_CHECK bool h_locate(struct call *call, const struct h_place *place, struct strv ns_location,
			 struct uuid uuid, struct strv *ret_location);
/* Whether a table or view of this place may keep files in a folder: well spelled, and beneath the
 * root of its warehouse or one of fs.roots. ILLEGAL_ARGUMENT, UNSUPPORTED, PATH_OUTSIDE; the field is
 * the one given, and ".path". */
MUST_CHECK enum status h_check_folder(const struct call *call, const struct h_place *place,
				      struct strv folder, const char *field, struct err *err);
/* The same for all folders of a table: its location and those that properties name. */
MUST_CHECK enum status h_check_folders(const struct call *call, const struct h_place *place,
				       const struct metadata *m, struct err *err);
/* Path of the first metadata file, or of the one after `before`: in write.metadata.path (`folder`,
 * may be empty), else in the location's folder "metadata"; gzip: by its name. */
MUST_CHECK enum status h_metadata_file(struct call *call, struct strv location, struct strv folder,
				       struct strv before, bool gzip, struct strv *ret_file,
				       struct err *err);

/* A page of the tables or views of a namespace, and a rename of one. */
void h_list(struct call *own_call, enum pg_tabular_kind kind);
void h_rename(struct call *own_call, enum pg_tabular_kind kind);

/* The page of a list that a client asks for: no pageToken asks for everything (limit 0). */
struct h_page {
	uint64_t list;
	struct strv after;
	size_t limit;
};
/* what: "tables", …: a token is good for the list that it was made for alone. Answers on a bad value. */
MUST_CHECK bool h_page(struct call *own_call, const struct h_place *place, struct strv what,
		       struct h_page *ret_page);
struct h_page_names {
	const struct strv *names;
	size_t n;
	bool more; /* another page follows */
};
/* rb_table_list_write, rb_ns_list_write */
typedef void (*h_page_write)(struct buf *b, const struct strv *levels, size_t n_levels,
			     const struct strv *names, size_t n, bool more, uint64_t list);
/* Answers with the names, which are borrowed; place lives until the answer. */
void h_page_reply(struct call *own_call, const struct h_page *page, const struct h_place *place,
		  h_page_write write, const struct h_page_names *what);
/* A query value that is true or false in any case; absent: false. Answers on a bad value. */
MUST_CHECK bool h_flag(struct call *own_call, const char *key, bool *ret_v);

/* Answers with a status and a message that may be longer than an error record holds. */
void h_refuse(struct call *own_call, enum status st, const char *before, struct strv text);
/* The file of a table's metadata is gone. */
void h_refuse_gone(struct call *own_call, struct strv location);
void h_no_table(struct call *own_call, const struct h_place *place);

/* Answers 200 with the table, all snapshots, and its entity tag. */
void h_reply_table(struct call *own_call, struct strv location, struct metadata *m);
/* The same from the file alone: an answer that was given before. Never an error that says that
 * nothing happened. */
void h_reply_file(struct call *own_call, struct strv location);
/* The same for a view. */
void h_reply_view_file(struct call *own_call, struct strv location);
/* Answers a load: 200 with the version in this file and its entity tag, or 304 to who has it. refs:
 * of a table's snapshots only those that a ref names. */
void h_load(struct call *own_call, struct strv location, bool view, bool refs);
/* Consumes the entry; rep has been waited for. */
void h_reply_entry(struct call *own_call, struct mcache_entry *own_entry, enum mcache_rep rep);

/* When the core must have answered: a little before the call's own time is over. */
int64_t h_deadline_us(const struct call *call);
/* Milliseconds for Iceberg timestamps: PostgreSQL's clock. */
int64_t h_now_ms(const struct app *app);

#endif
