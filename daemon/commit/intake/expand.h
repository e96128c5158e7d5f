/* A fragment with what its task messages report put beside what the worker staged itself. Pure. */
#ifndef DAEMON_COMMIT_INTAKE_EXPAND_H
#define DAEMON_COMMIT_INTAKE_EXPAND_H

#include "proto/base/arena.h"
#include "proto/rpc/rpc.h"

struct metadata;

/* The spec that a message states of a vector; it is compared, never used. */
struct expand_spec {
	bool has;
	int32_t id;
};

struct expand {
	/* In each array first what the fragment had, then what messages reported, in their order.
	 * messages is empty. */
	struct rpc_fragment all;
	const struct expand_spec *specs; /* one for each of all.deletes; NULL without messages */
	/* How many the fragment had, and the messages of those that follow. */
	size_t own_files, own_deletes, own_delete_files;
	const size_t *file_message, *delete_message, *delete_file_message;
};

/* The records of messages live in the arena, the others where they did. An error's field begins
 * with "messages[i]". */
MUST_CHECK enum status expand_fragment(const struct metadata *m, const struct rpc_fragment *in,
				       struct arena *a, struct expand *ret_e, struct err *err);
/* Prefixes an error with the place of entry i of an array: its own, or the message that brought
 * it. */
void expand_blame_file(const struct expand *e, size_t i, struct err *err);
void expand_blame_delete(const struct expand *e, size_t i, struct err *err);
void expand_blame_delete_file(const struct expand *e, size_t i, struct err *err);

#endif
