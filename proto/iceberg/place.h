/* Places: the folders where a table or view keeps its files. They are its location and those that
 * properties name; nothing of another table or view belongs there. Text only. */
#ifndef PROTO_ICEBERG_PLACE_H
#define PROTO_ICEBERG_PLACE_H

#include "proto/base/err.h"
#include "proto/base/strv.h"

struct arena;
struct metadata;

/* Properties that name a folder; the last two are older names of the first. */
#define PLACE_KEYS 4
#define PLACE_MAX (1 + PLACE_KEYS)
extern const char *const place_keys[PLACE_KEYS];

/* Whether a property names a folder. */
MUST_CHECK bool place_is_key(struct strv key);
/* The places of a table, its location first; returns how many. They are the metadata's. */
size_t place_list(const struct metadata *m, struct strv ret[PLACE_MAX]);
/* The list in an arena; false when it is full. */
MUST_CHECK bool place_copy(struct arena *a, const struct strv *places, size_t n,
			   const struct strv **ret_places);
/* The name of place i of such a list, for errors. */
const char *place_field(const struct metadata *m, size_t i);

/* Whether a new place has a spelling that every reader takes for the same folder: no "." or ".."
 * part, no slash, backslash or NUL behind a percent sign, no control character, no backslash, no
 * white space at an end, and short enough for an index. ST_ILLEGAL_ARGUMENT; field is "path". */
MUST_CHECK enum status place_check(struct strv uri, struct err *err);

/* Whether a path lies truly beneath a folder, in whatever spelling of slashes, "." parts and the
 * scheme file:. A path with ".." lies beneath nothing. */
MUST_CHECK bool place_beneath(struct strv folder, struct strv path);

#endif
