/* Block compression of Avro container files ("Required Codecs" and "Optional Codecs" of the Avro
 * spec). The only file of the tree that uses snappy and zstd; deflate is raw RFC 1951. */
#ifndef PROTO_AVRO_CODEC_H
#define PROTO_AVRO_CODEC_H

#include "proto/base/buf.h"
#include "proto/base/err.h"

enum codec { CODEC_NULL, CODEC_DEFLATE, CODEC_SNAPPY, CODEC_ZSTD };

/* The name in avro.codec; "zstandard" for zstd. */
const char *codec_name(enum codec c);
/* false for a name we do not know. */
MUST_CHECK bool codec_from_name(struct strv name, enum codec *ret_c);
/* Appends the compressed bytes to out. Only null and deflate (level 1) are written; another codec
 * is an assertion. ST_LIMIT when out is full. */
MUST_CHECK enum status codec_compress(enum codec c, struct bytes in, struct buf *out,
				      struct err *err);
/* Appends the decompressed bytes to out, never past out's maximum (ST_LIMIT). ST_CORRUPT when the
 * input breaks its format, has bytes left over (four are overlooked behind deflate), or fails
 * snappy's CRC-32. */
MUST_CHECK enum status codec_decompress(enum codec c, struct bytes in, struct buf *out,
					struct err *err);

#endif
