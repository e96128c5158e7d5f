/* Framed vectors. The fuzzer cannot guess a CRC, so the frame is also put around its input. */
#include <stddef.h>
#include <stdint.h>

#include "proto/base/digest.h"
#include "proto/dv/dv_blob.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try(struct bytes blob)
{
	struct bitmap64 *s = NULL, *back = NULL;
	struct err err;
	if (dv_blob_decode(blob, &s, &err) != ST_OK) {
		ASSERT(s == NULL);
		return;
	}
	struct buf out;
	buf_init(&out, 256 << 20);
	ASSERT(dv_blob_encode(s, &out, &err) == ST_OK);
	ASSERT(dv_blob_decode(buf_bytes(&out), &back, &err) == ST_OK);
	ASSERT(bitmap64_equal(s, back));
	buf_fini(&out);
	bitmap64_free(s);
	bitmap64_free(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	try((struct bytes){data, size});
	struct buf b;
	uint8_t word[4];
	buf_init(&b, 1 << 20);
	put_u32be(word, (uint32_t)size + 4);
	buf_put(&b, word, 4);
	buf_put(&b, "\xd1\xd3\x39\x64", 4);
	buf_put(&b, data, size);
	if (buf_ok(&b)) {
		put_u32be(word, digest_crc32(0, (struct bytes){b.p + 4, b.n - 4}));
		buf_put(&b, word, 4);
	}
	if (buf_ok(&b))
		try(buf_bytes(&b));
	buf_fini(&b);
	return 0;
}
