/* Container framing and codecs: headers, blocks, decompression. Datums are not looked into. */
#include <stddef.h>
#include <stdint.h>

#include "proto/avro/avro_container.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a;
	struct avro_container c;
	struct err err;
	arena_init(&a, (size_t)8 << 20);
	if (avro_container_open((struct bytes){data, size}, &a, &c, &err) == ST_OK) {
		size_t n = 0, seen = 0;
		enum status counted = avro_container_count(&c, &n, &err);
		for (bool more = true; more;) {
			int64_t count = 0;
			struct bytes plain;
			if (avro_container_next(&c, &a, &more, &count, &plain, &err) != ST_OK)
				break;
			if (more)
				seen += (size_t)count;
			else
				/* Counts of empty blocks may sum up to more than a size holds. */
				ASSERT(counted != ST_OK || seen == n);
		}
	}
	arena_fini(&a);
	return 0;
}
