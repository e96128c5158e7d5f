/* Commit requests (REST spec: CommitTableRequest, CommitTransactionRequest). */
#ifndef PROTO_REST_RB_COMMIT_H
#define PROTO_REST_RB_COMMIT_H

#include "proto/iceberg/requirement.h"
#include "proto/iceberg/update.h"
#include "proto/rest/rb_ident.h"

struct rb_change {
	bool has_ident; /* optional where the path names the table */
	struct rb_ident ident;
	const struct requirement *requirements;
	size_t n_requirements;
	const struct update *updates;
	size_t n_updates;
	bool create; /* assert-create stands alone among the requirements */
};

/* Owns the document, from which the changes borrow; arrays and structs come from the arena. */
struct rb_commit {
	struct jdoc *doc;
	struct rb_change *changes;
	size_t n;
};

/* One table: POST …/tables/{table}. An unknown update or requirement is ST_BAD_REQUEST. */
MUST_CHECK enum status rb_commit_parse(struct bytes body, struct arena *a,
				       struct rb_commit *ret_req, struct err *err);
/* POST transactions/commit: at least one change, each with its identifier, no table twice. */
MUST_CHECK enum status rb_commit_parse_many(struct bytes body, struct arena *a,
					    struct rb_commit *ret_req, struct err *err);

#endif
