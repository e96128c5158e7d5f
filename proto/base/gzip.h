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

/* A member that is appended to `out` bit by bit; what goes wrong on the way gzip_end tells (ST_LIMIT:
 * the buffer is full). Each begin needs its end. */
struct gzip_writer {
	struct buf *out;
	struct z_stream_s *z;
	uint32_t crc;
	uint64_t n; /* bytes of the content */
	bool ok;
};
void gzip_begin(struct gzip_writer *w, struct buf *out);
void gzip_put(struct gzip_writer *w, struct bytes data);
MUST_CHECK enum status gzip_end(struct gzip_writer *w, struct err *err);

/* Content that was packed once, to stand in any number of members. Immutable. */
struct gzip_part;
/* NULL: no memory. The caller base_free()s it. */
struct gzip_part *gzip_part_new(const struct pieces *content);
void gzip_put_part(struct gzip_writer *w, const struct gzip_part *part);
size_t gzip_part_memory(const struct gzip_part *p); /* bytes */

#endif
