/* Whole gzip members (RFC 1952), for metadata files whose name ends in .gz.metadata.json. */
#ifndef PROTO_BASE_GZIP_H
#define PROTO_BASE_GZIP_H

#include "proto/base/err.h"
#include "proto/base/pieces.h"

/* Appends the decompressed bytes; the buffer's maximum bounds them (ST_LIMIT). ST_CORRUPT, field
 * "gzip", for anything that is not exactly one member. */
MUST_CHECK enum status gzip_read(struct bytes file, struct buf *out, struct err *err);
/* Appends one member. ST_LIMIT when the buffer is full. */
MUST_CHECK enum status gzip_write(struct bytes data, struct buf *out, struct err *err);
MUST_CHECK enum status gzip_write_pieces(const struct pieces *data, struct buf *out,
					 struct err *err);

#endif
