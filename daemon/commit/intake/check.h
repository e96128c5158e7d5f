/* What must hold of a data file that a worker staged, against the table it is staged for. */
#ifndef DAEMON_COMMIT_INTAKE_CHECK_H
#define DAEMON_COMMIT_INTAKE_CHECK_H

#include "proto/avro/content_file.h"
#include "proto/rpc/rpc.h"

struct metadata;

/* Spec and schema known, tuple complete, decodable and possible under the spec's transforms, counts
 * not negative, metrics sound (colmetrics.h), path beneath the table's roots. *ret_f lives in the arena. The field
 * path in err begins at the data file. */
MUST_CHECK enum status check_data_file(const struct metadata *m, const struct rpc_data_file *in,
				       struct arena *a, struct content_file *ret_f,
				       struct err *err);

/* ST_PATH_OUTSIDE, field "path", unless it is beneath the table's location or write.data.path. */
MUST_CHECK enum status check_path(const struct metadata *m, struct strv path, struct err *err);
/* The same of a file of position deletes: spec, tuple, path and counts as above, metrics of its
 * columns file_path and pos alone. ret_f->referenced_data_file is set when one data file is named;
 * the table's format version and the names are the caller's to look at. */
MUST_CHECK enum status check_delete_file(const struct metadata *m, const struct rpc_delete_file *in,
					 struct arena *a, struct content_file *ret_f,
					 struct err *err);

#endif
