/* Bodies of the table routes but for commits (REST spec: CreateTableRequest, RegisterTableRequest,
 * RenameTableRequest, ListTablesResponse, LoadTableResult). A parsed request owns its document;
 * text is borrowed from it, arrays and structs come from the arena. */
#ifndef PROTO_REST_RB_TABLE_H
#define PROTO_REST_RB_TABLE_H

#include "proto/rest/rb_ident.h"

struct metadata;
struct partition_spec;
struct schema;
struct sort_order;

struct rb_table_create {
	struct jdoc *doc;
	struct strv name;
	struct strv location; /* p NULL when not given */
	const struct schema *schema;
	const struct partition_spec *spec; /* NULL: unpartitioned */
	const struct sort_order *order;    /* NULL: unsorted */
	const struct strv_pair *properties;
	size_t n_properties;
	bool stage;
};
MUST_CHECK enum status rb_table_create_parse(struct bytes body, struct arena *a,
					     struct rb_table_create *ret_req, struct err *err);

struct rb_table_register {
	struct jdoc *doc;
	struct strv name;
	struct strv metadata_location;
	bool overwrite;
};
MUST_CHECK enum status rb_table_register_parse(struct bytes body,
					       struct rb_table_register *ret_req, struct err *err);

struct rb_rename {
	struct jdoc *doc;
	struct rb_ident source, destination;
};
MUST_CHECK enum status rb_rename_parse(struct bytes body, struct arena *a,
				       struct rb_rename *ret_req, struct err *err);

/* Checks what every metrics report has, its "report-type"; kinds that nobody knows yet are fine. */
MUST_CHECK enum status rb_report_check(struct bytes body, struct err *err);

/* Tables or views; more: another page follows the last name. */
void rb_table_list_write(struct buf *b, const struct strv *levels, size_t n_levels,
			 const struct strv *names, size_t n, bool more, uint64_t list);
/* LoadTableResult, also the answer to a commit. location n 0: a staged table, which has no file. */
void rb_table_load_write(struct buf *b, struct strv location, const struct metadata *m, bool refs);
/* The same as a gzip member. ST_LIMIT when the buffer is full. */
MUST_CHECK enum status rb_table_load_gzip(struct buf *b, struct strv location,
					  const struct metadata *m, bool refs, struct err *err);

#endif
