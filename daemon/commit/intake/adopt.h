/* Finished manifests that workers wrote, listed as they are: what they must fulfil so that a reader
 * who inherits from a new row of the manifest list finds a correct table, and that row. Pure. */
#ifndef DAEMON_COMMIT_INTAKE_ADOPT_H
#define DAEMON_COMMIT_INTAKE_ADOPT_H

#include "daemon/commit/plan.h"
#include "proto/rpc/rpc.h"

/* A manifest that may be adopted: its data files as a worker would have staged them, without
 * metrics and split offsets, which nobody will ask for. On the heap; owns its memory. */
struct adopted {
	struct arena arena;
	int format_version;
	struct rpc_data_file *records;
	struct content_file *files; /* parallel */
	size_t n;
};

/* Reads and checks the whole file against the table: content data, the table's format version,
 * known spec and schema, every entry ADDED with nothing set that it inherits (Iceberg spec,
 * "Manifest Inheritance"), each data file as a staged one must be, counts as stated. limit: bytes
 * for the decoded form. ST_MANIFEST_UNFIT, ST_SIZE_MISMATCH, or what check_data_file says; the
 * field path begins inside the manifest's record. */
MUST_CHECK enum status adopt_read(struct bytes file, const struct rpc_manifest_ref *ref,
				  const struct metadata *m, size_t limit, struct adopted **ret_a,
				  struct err *err);
void adopt_free(struct adopted *own_a); /* NULL is allowed */

/* The row of an adopted manifest, with all that its entries will inherit left to the list. Bounds
 * point into the files' tuples, the rest lies in the arena. */
MUST_CHECK enum status adopt_row(const struct plan_adopted *ad, const struct content_file *files,
				 const struct metadata *m, struct arena *a,
				 struct manifest_file *ret_row, struct err *err);
/* Its light view, once the row has its numbers. A reference. */
MUST_CHECK enum status adopt_view(const struct plan_adopted *ad, const struct content_file *files,
				  const struct metadata *m, const struct manifest_file *row,
				  size_t limit, struct mview **ret_v, struct err *err);

#endif
