/* Immutable objects under URIs, whatever keeps them: the interface that every kind of object store
 * implements. A path is the exact text that stands in table metadata; nothing is decoded. All
 * functions are for the loop's thread. */
#ifndef STORE_OBJ_OBJ_H
#define STORE_OBJ_OBJ_H

#include "proto/base/pieces.h"
#include "store/op.h"

struct obj_store;

struct obj_op {
	struct op op; /* op_init once, before the first start */
	/* Results, valid in op.done after ST_OK. */
	struct bytes data; /* get: borrowed until done returns, or obj_take */
	uint64_t size;     /* get: of what was read; stat: of the object */
	bool existed;      /* put: an equal object was there already; delete: there was one */
	/* The store's own. */
	struct bytes whole; /* of obj_put: its one piece */
	struct obj_store *store;
	void *impl;
};

struct obj_range {
	uint64_t offset;
	uint64_t length;
};

/* Started operations, for metrics and measurements. */
struct obj_counts {
	uint64_t puts, gets, stats, deletes;
	uint64_t put_bytes, get_bytes;
	uint64_t failed; /* ended with any status but ST_OK and ST_NOT_FOUND */
	uint64_t in_flight;
};

/* Creates the object unless one is there: durable when done says ST_OK. An equal object that is
 * there already is success (a repeated write), another one ST_ALREADY_EXISTS. data is borrowed
 * until done. Statuses with effect UNKNOWN: the object may or may not exist. */
MUST_CHECK enum status obj_put(struct obj_store *s, struct strv path, struct bytes data,
			       struct obj_op *o, struct err *err);
/* The same of an object that lies in pieces; they, and their list, are borrowed until done. */
MUST_CHECK enum status obj_put_pieces(struct obj_store *s, struct strv path,
				      const struct pieces *content, struct obj_op *o,
				      struct err *err);
/* Reads the whole object, or exactly the range. More than max bytes is ST_LIMIT, an object too
 * short for the range ST_CORRUPT with field "range", a missing one ST_NOT_FOUND. range may be
 * NULL. */
MUST_CHECK enum status obj_get(struct obj_store *s, struct strv path, const struct obj_range *range,
			       size_t max, struct obj_op *o, struct err *err);
/* Asks the store itself, never a cache; ST_NOT_FOUND when there is none. */
MUST_CHECK enum status obj_stat(struct obj_store *s, struct strv path, struct obj_op *o,
				struct err *err);
/* A missing object is success. */
MUST_CHECK enum status obj_delete(struct obj_store *s, struct strv path, struct obj_op *o,
				  struct err *err);
/* o must be running. A write that was already sent ends as unknown, one without a deadline when the
 * store has answered. */
void obj_cancel(struct obj_op *o);
/* Inside done of a get: hands its bytes to the caller, who base_free()s them; NULL when empty. */
uint8_t *obj_take(struct obj_op *o, size_t *ret_n);
const struct obj_counts *obj_counts(const struct obj_store *s);

/* --- for implementations --- */

struct obj_ops {
	enum status (*put)(struct obj_store *s, struct strv path, const struct pieces *content,
			   struct obj_op *o, struct err *err);
	enum status (*get)(struct obj_store *s, struct strv path, const struct obj_range *range,
			   size_t max, struct obj_op *o, struct err *err);
	enum status (*stat)(struct obj_store *s, struct strv path, struct obj_op *o,
			    struct err *err);
	enum status (*del)(struct obj_store *s, struct strv path, struct obj_op *o,
			   struct err *err);
	void (*cancel)(struct obj_op *o);
	uint8_t *(*take)(struct obj_op *o, size_t *ret_n);
};

/* First member of an implementation's struct. */
struct obj_store {
	const struct obj_ops *ops;
	struct list running;
	struct obj_counts counts;
};

void obj_store_init(struct obj_store *s, const struct obj_ops *ops);
/* Ends a running operation: idle, counted, then its done. *o may be gone afterwards. */
void obj_done(struct obj_op *o, enum status st, const struct err *err);

#endif
