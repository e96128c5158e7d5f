/* Commit requests: any bytes either parse whole or are refused with a typed error. */
#include <stddef.h>
#include <stdint.h>

#include "proto/rest/rb_commit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a;
	struct rb_commit r;
	struct err err = {0};
	arena_init(&a, 16 << 20);
	enum status st = rb_commit_parse((struct bytes){data, size}, &a, &r, &err);
	if (st == ST_OK) {
		ASSERT(r.n == 1);
		jdoc_free(r.doc);
	} else {
		ASSERT(err.st == st && status_info(st)->http == 400);
	}
	st = rb_commit_parse_many((struct bytes){data, size}, &a, &r, &err);
	if (st == ST_OK) {
		ASSERT(r.n >= 1);
		for (size_t i = 0; i < r.n; i++)
			ASSERT(r.changes[i].has_ident);
		jdoc_free(r.doc);
	}
	arena_fini(&a);
	return 0;
}
