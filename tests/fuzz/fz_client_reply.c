/* Answers to the C client: the first byte is the message's number. Nothing may leak, although
 * avro-c itself does on malformed data, and what decodes must stay within the memory that was
 * allowed. */
#include "clients/c/fz_decode.h"

#define MEMORY ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Parsed once: the same client reads many answers. */
	static struct fz_schemas schemas;
	struct arena a;
	struct fz_decoded d;
	struct fz_error err;
	if (size == 0)
		return 0;
	arena_init(&a, MEMORY);
	if (fz_decode(&schemas, data[0] % 24, (struct bytes){data + 1, size - 1}, &a, &d, &err) ==
	    FZ_OK) {
		ASSERT(a.used <= MEMORY);
		if (d.outcome)
			for (size_t i = 0; i < d.outcome->n_files; i++)
				ASSERT(strlen(d.outcome->files[i].path) < size);
	}
	arena_fini(&a);
	return 0;
}
