/* Namespaces, names and table identifiers of REST bodies, and the page tokens of lists (REST spec:
 * Namespace, TableIdentifier, PageToken). */
#ifndef PROTO_REST_RB_IDENT_H
#define PROTO_REST_RB_IDENT_H

#include "proto/base/arena.h"
#include "proto/base/err.h"
#include "proto/base/json.h"
#include "proto/base/jwrite.h"

/* So that a whole namespace fits one row of a PostgreSQL index (a third of a page). */
#define RB_LEVELS_MAX 32
#define RB_NAME_BYTES_MAX 256
#define RB_LEVELS_BYTES_MAX 1600

/* Parses a request body, which must be an object. */
MUST_CHECK enum status rb_open(struct bytes body, struct jdoc **ret_doc, struct err *err);

struct rb_ident {
	const struct strv *levels;
	size_t n_levels;
	struct strv name;
};

bool rb_ident_eq(const struct rb_ident *a, const struct rb_ident *b);

/* Whether something of this name can exist: UTF-8, not empty, no U+0000, short enough; in a level
 * no 0x1F, which separates levels in paths. */
bool rb_name_possible(struct strv name);
bool rb_levels_possible(const struct strv *levels, size_t n);
/* The same as an error for requests that would create it. */
MUST_CHECK enum status rb_name_check(struct strv name, const char *field, struct err *err);
MUST_CHECK enum status rb_levels_check(const struct strv *levels, size_t n, const char *field,
				       struct err *err);

/* An array of text; what it holds is borrowed from the document, the array from the arena. */
MUST_CHECK enum status rb_texts_parse(const struct jval *array, const char *field, struct arena *a,
				      const struct strv **ret_v, size_t *ret_n, struct err *err);
/* An object whose values are all text; absent or null gives none. */
MUST_CHECK enum status rb_pairs_parse(const struct jval *object, const char *field,
				      struct arena *a, const struct strv_pair **ret_v,
				      size_t *ret_n, struct err *err);
/* "name" and the optional "location" (n 0: not given) of what a request creates. */
MUST_CHECK enum status rb_new_parse(const struct jval *root, struct strv *ret_name,
				    struct strv *ret_location, struct err *err);
/* {"namespace":[…],"name":"…"} */
MUST_CHECK enum status rb_ident_parse(const struct jval *v, const char *field, struct arena *a,
				      struct rb_ident *ret_ident, struct err *err);

void rb_levels_write(struct jwrite *w, const struct strv *levels, size_t n);
/* Levels and name joined by dots, as messages name a table; name may be empty for a namespace. Cut
 * at a character's edge to fit cap - 1 bytes, ended with NUL. */
void rb_dotted(const struct strv *levels, size_t n, struct strv name, char *out, size_t cap);

/* Stands for one list: what it has ("tables"), the warehouse, the namespace whose members they are. */
uint64_t rb_list_id(struct strv what, struct strv warehouse, const struct strv *levels, size_t n);
/* A token is opaque to clients: a version digit, the list that it is for, and the last name of the
 * page before in hex, so that it needs no escape in a query and stays right while names come and go.
 */
void rb_token_write(struct buf *b, uint64_t list, struct strv last_name);
/* The member "next-page-token" of a list: null when last_name is empty, the last page. */
void rb_next_write(struct jwrite *w, uint64_t list, struct strv last_name);
/* "" gives the start (n 0). BAD_REQUEST for the token of another list. */
MUST_CHECK enum status rb_token_parse(struct strv token, uint64_t list, struct arena *a,
				      struct strv *ret_after, struct err *err);

#endif
