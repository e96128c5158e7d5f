/* Any bytes: refused, or decompressed within the limit; what was read can be packed and read again. */
#include "proto/base/gzip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct buf out, packed, again;
	struct err err = {0};
	buf_init(&out, 1 << 20);
	buf_init(&packed, 2 << 20);
	buf_init(&again, 1 << 20);
	if (gzip_read((struct bytes){data, n}, &out, &err) == ST_OK) {
		ASSERT(out.n <= out.max);
		ASSERT(gzip_write(buf_bytes(&out), &packed, &err) == ST_OK);
		ASSERT(gzip_read(buf_bytes(&packed), &again, &err) == ST_OK);
		ASSERT(bytes_eq(buf_bytes(&again), buf_bytes(&out)));
	} else {
		ASSERT(err.st == ST_CORRUPT || err.st == ST_LIMIT);
	}
	buf_fini(&out);
	buf_fini(&packed);
	buf_fini(&again);
	return 0;
}
