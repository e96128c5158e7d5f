/* Frames: arbitrary bytes never read beyond the input, and what parses is written back the same. */
#include "proto/rpc/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = {data, size};
	struct err err = {0};
	while (in.n > 0) {
		struct frame f;
		size_t used = 0;
		if (frame_parse(in, 4096, &f, &used, &err) != ST_OK || used == 0)
			break;
		struct buf b;
		buf_init(&b, 8192);
		frame_put(&b, &f);
		ASSERT(bytes_eq(buf_bytes(&b), (struct bytes){in.p, used}));
		buf_fini(&b);
		in.p += used;
		in.n -= used;
	}
	/* Past the checksum, which random bytes seldom hit: the same payload framed properly. */
	struct buf b;
	struct frame f;
	size_t used;
	buf_init(&b, size + FRAME_HEADER);
	frame_put(&b, &(struct frame){1, 1, 7, {data, size}});
	ASSERT(frame_parse(buf_bytes(&b), FRAME_MAX, &f, &used, &err) == ST_OK && used == b.n);
	ASSERT(bytes_eq(f.payload, (struct bytes){data, size}));
	buf_fini(&b);
	return 0;
}
