/* The second half of a read effect: bytes to the decoded object. Pure, so that the daemon may run
 * it in a job and the simulator inline. */
#ifndef DAEMON_COMMIT_DECODE_H
#define DAEMON_COMMIT_DECODE_H

#include "daemon/commit/port.h"

/* Decoded forms above this are refused (ST_LIMIT). */
#define DECODE_MAX_BYTES ((size_t)1 << 30)

/* Fills *ret_r: one reference of the object asked for, or err. A metadata file whose name says so
 * is gunzipped. */
void decode_run(const struct read_effect *read, struct bytes file, struct read_result *ret_r);

#endif
