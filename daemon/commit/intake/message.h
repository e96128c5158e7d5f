/* Reports of engines' tasks, one JSON text for each file that was written: Velox's data sink and
 * deletion vector sink, Presto's and Trino's commit tasks, content files as Apache Iceberg writes
 * them. Each becomes what a worker of our own would have staged. Pure. */
#ifndef DAEMON_COMMIT_INTAKE_MESSAGE_H
#define DAEMON_COMMIT_INTAKE_MESSAGE_H

#include "proto/base/arena.h"
#include "proto/rpc/rpc.h"

struct metadata;

enum message_kind {
	MESSAGE_DATA_FILE,   /* file */
	MESSAGE_VECTOR,      /* vector, with its bytes or a reference to them */
	MESSAGE_DELETE_FILE, /* delete_file: position deletes */
};

struct message {
	enum message_kind kind;
	struct rpc_data_file file;
	struct rpc_delete_vector vector;
	struct rpc_delete_file delete_file;
	/* The spec that the writer of a vector states. It may be that of its own plan and is not
	 * used: the data file's entry decides. */
	bool has_spec;
	int32_t spec_id;
};

/* Reads one message against the table it is for. Members that are known are taken by their type
 * only, null being absent; unknown ones are passed over, for engines add some with every release.
 * Paths stay as they are. A sort order is taken from Trino and Iceberg: the others state 0 always.
 * All rows of a data file count as new, since no message tells otherwise. What stands in the
 * records is not checked here beyond what the form demands; the caller does that as for any
 * worker's. *ret_m keeps no pointer into the text. Errors: ST_BAD_REQUEST, ST_SPEC_UNKNOWN,
 * ST_TUPLE_MISMATCH, ST_ENCRYPTED, ST_ROW_IDS, ST_UNSUPPORTED (equality deletes, rewritten files),
 * with the member's path in the message. */
MUST_CHECK enum status message_read(const struct metadata *m, const struct rpc_task_message *in,
				    struct arena *a, struct message *ret_m, struct err *err);

#endif
