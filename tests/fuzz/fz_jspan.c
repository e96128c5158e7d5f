/* Arbitrary bytes through the span scanner; what it accepts must survive compaction unchanged in
 * structure. */
#include "proto/base/jspan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a;
	const struct jspan *v, *again;
	arena_init(&a, (size_t)16 << 20);
	if (jspan_parse((struct bytes){data, size}, ST_CORRUPT, &a, &v, NULL) == ST_OK) {
		struct buf b;
		buf_init(&b, size);
		jspan_compact(v, &b);
		ASSERT(buf_ok(&b));
		enum status st = jspan_parse(buf_bytes(&b), ST_CORRUPT, &a, &again, NULL);
		ASSERT(st == ST_LIMIT || (st == ST_OK && again->skip == v->skip));
		for (uint32_t i = 0; i < v->skip; i++) {
			struct strv s;
			int64_t n;
			if (v[i].kind == JSPAN_STRING && jspan_str(&v[i], &a, &s))
				ASSERT(strv_utf8(s) && s.n <= v[i].n - 2);
			if (jspan_i64(&v[i], &n))
				ASSERT(v[i].n <= 20);
		}
		buf_fini(&b);
	}
	arena_fini(&a);
	return 0;
}
