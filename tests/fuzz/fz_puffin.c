/* Puffin files: the footer's JSON is also tried with a frame around it. */
#include <stddef.h>
#include <stdint.h>

#include "proto/dv/puffin.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try(struct bytes file)
{
	struct arena a;
	struct puffin_file f;
	struct err err;
	arena_init(&a, 8 << 20);
	if (puffin_parse_file(file, ST_CORRUPT, &a, &f, &err) == ST_OK)
		for (size_t i = 0; i < f.n_blobs; i++) {
			ASSERT(f.blobs[i].offset >= 4 && f.blobs[i].length >= 0);
			ASSERT((uint64_t)f.blobs[i].offset + (uint64_t)f.blobs[i].length <= file.n);
			const struct puffin_blob *v;
			if (puffin_vector_at(&f, f.blobs[i].offset, f.blobs[i].length, STRV("a"), 1,
					     ST_CORRUPT, &v, &err) == ST_OK)
				ASSERT(v->codec.n == 0);
		}
	arena_fini(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	try((struct bytes){data, size});
	struct buf b;
	uint8_t tail[PUFFIN_TRAILER] = {0};
	buf_init(&b, 1 << 20);
	buf_puts(&b, "PFA1........PFA1");
	buf_put(&b, data, size);
	put_u32le(tail, (uint32_t)size);
	memcpy(tail + 8, "PFA1", 4);
	buf_put(&b, tail, sizeof tail);
	if (buf_ok(&b))
		try(buf_bytes(&b));
	buf_fini(&b);
	return 0;
}
