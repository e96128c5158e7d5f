/* Any bytes: the parser refuses them or gives a tree that can be walked to its end. */
#include "proto/base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static size_t walk(const struct jval *v, int depth)
{
	struct strv s;
	int64_t i;
	double r;
	bool b;
	size_t seen = 1;
	ASSERT(depth <= JDOC_MAX_DEPTH);
	if (jval_as_str(v, &s))
		ASSERT(strv_utf8(s));
	if (jval_as_i64(v, &i) || jval_as_real(v, &r) || jval_as_bool(v, &b))
		seen++;
	for (size_t k = 0; jval_is_array(v) && k < jval_count(v); k++)
		seen += walk(jval_at(v, k), depth + 1);
	size_t members = 0;
	for (struct jval_iter it = jval_iter(v); jval_next(&it); members++) {
		ASSERT(strv_utf8(it.key));
		seen += walk(it.val, depth + 1);
	}
	ASSERT(!jval_is_object(v) || members == jval_count(v));
	return seen;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct jdoc *doc = NULL;
	struct err err = {0};
	if (jdoc_parse((struct bytes){data, n}, ST_CORRUPT, &doc, &err) != ST_OK) {
		ASSERT(doc == NULL && err.st != ST_OK && err.msg[0]);
		return 0;
	}
	ASSERT(walk(jdoc_root(doc), 0) > 0);
	jdoc_free(doc);
	return 0;
}
