/* Avro object container files ("Object Container Files" of the Avro spec): header with its string
 * metadata, then blocks of datums. Works on memory, knows nothing of schemas. */
#ifndef PROTO_AVRO_AVRO_CONTAINER_H
#define PROTO_AVRO_AVRO_CONTAINER_H

#include "proto/avro/avro_bin.h"
#include "proto/avro/codec.h"
#include "proto/base/arena.h"

#define AVRO_SYNC_LEN 16
/* Header entries beyond this are refused; Iceberg writes about ten. */
#define AVRO_META_MAX 1024
/* A block is closed once it holds this many bytes before compression. */
#define AVRO_BLOCK_BYTES ((size_t)64 << 10)

struct avro_meta {
	struct strv key;
	struct strv value;
};

/* A file being read. Borrows the file's bytes; the array of metadata lies in the arena. */
struct avro_container {
	struct avro_in in;
	const uint8_t *sync;
	enum codec codec;
	struct avro_meta *meta;
	size_t n_meta;
};

/* Reads the header. ST_CORRUPT on a breach (also a key that occurs twice), ST_UNSUPPORTED for a
 * codec we lack, ST_LIMIT. */
MUST_CHECK enum status avro_container_open(struct bytes file, struct arena *a,
					   struct avro_container *ret_c, struct err *err);
/* false when the key is absent. */
MUST_CHECK bool avro_container_meta(const struct avro_container *c, struct strv key,
				    struct strv *ret_value);
/* Datums of all blocks that follow, counted from the blocks' heads without looking inside; a lie
 * shows when they are decoded. ST_CORRUPT when a block is cut. */
MUST_CHECK enum status avro_container_count(const struct avro_container *c, size_t *ret_n,
					    struct err *err);
/* The next block: its number of datums and its plain bytes, copied into the arena. *ret_more is
 * false at the end of the file, and the others are then untouched. */
MUST_CHECK enum status avro_container_next(struct avro_container *c, struct arena *a,
					   bool *ret_more, int64_t *ret_count,
					   struct bytes *ret_data, struct err *err);

/* A file being written into a buf. The encoder appends each datum to `block`, then calls
 * avro_container_datum. */
struct avro_writer {
	struct buf *out;
	struct buf block;
	enum codec codec;
	int64_t count;
	uint8_t sync[AVRO_SYNC_LEN];
};

/* Writes the header: the given entries, then avro.codec. w needs avro_container_fini in any case.
 */
MUST_CHECK enum status avro_container_begin(struct avro_writer *w, struct buf *out,
					    enum codec codec, const uint8_t sync[AVRO_SYNC_LEN],
					    const struct avro_meta *meta, size_t n,
					    struct err *err);
/* Counts the datum just appended to w->block; writes the block when it is long enough. ST_LIMIT
 * when a buf is full. */
MUST_CHECK enum status avro_container_datum(struct avro_writer *w, struct err *err);
/* Writes the last block. */
MUST_CHECK enum status avro_container_end(struct avro_writer *w, struct err *err);
void avro_container_fini(struct avro_writer *w);

#endif
