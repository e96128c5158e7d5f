/* The published schemas of the messages, parsed for one client. avro-c counts references without
 * locks on some machines, so that clients share none. */
#ifndef CLIENTS_C_FZ_SCHEMAS_H
#define CLIENTS_C_FZ_SCHEMAS_H

#include <avro.h>

#include "proto/base/base.h"

/* Type numbers of messages, as in a frame's header and in the schemas' "frazil-type". */
enum fz_msg {
	FZ_MSG_HELLO = 1,
	FZ_MSG_HELLO_REPLY = 2,
	FZ_MSG_BEGIN = 3,
	FZ_MSG_BEGIN_REPLY = 4,
	FZ_MSG_STAGE = 5,
	FZ_MSG_STAGE_REPLY = 6,
	FZ_MSG_SEAL = 7,
	FZ_MSG_SEAL_REPLY = 8,
	FZ_MSG_COMMIT = 9,
	FZ_MSG_OUTCOME = 10,
	FZ_MSG_COMMIT_ONCE = 11,
	FZ_MSG_STATUS = 13,
	FZ_MSG_ABORT = 15,
	FZ_MSG_HEARTBEAT = 17,
	FZ_MSG_HEARTBEAT_REPLY = 18,
	FZ_MSG_ERROR = 20,
	FZ_MSG__COUNT
};

/* The only version whose schemas are built in. */
#define FZ_PROTOCOL_VERSION 1

struct fz_schema {
	const char *name;            /* NULL for numbers without a message */
	enum fz_msg reply;           /* 0 for answers */
	avro_schema_t schema;        /* parsed when first asked for */
	avro_value_iface_t *generic; /* likewise */
};
struct fz_schemas {
	struct fz_schema of[FZ_MSG__COUNT];
};

void fz_schemas_init(struct fz_schemas *s);
void fz_schemas_fini(struct fz_schemas *s);
/* Parses on first use; NULL when avro-c has no memory. */
MUST_CHECK const struct fz_schema *fz_schemas_get(struct fz_schemas *s, enum fz_msg msg);
/* Name of a message, NULL when the number is none; its answer's number. */
const char *fz_schemas_name(int msg);
enum fz_msg fz_schemas_reply(enum fz_msg msg);

#endif
