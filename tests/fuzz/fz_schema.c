/* Schemas, partition specs and sort orders: whatever is taken must come back equal from its own
 * text, and the checks against a schema must hold for any pair. The input is a JSON object with the
 * members schema, spec and order. */
#include <stddef.h>
#include <stdint.h>

#include "proto/iceberg/partition.h"
#include "proto/iceberg/sort.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct jdoc *reparse(const struct buf *b)
{
	struct jdoc *doc = NULL;
	ASSERT(buf_ok(b));
	enum status st = jdoc_parse(buf_bytes(b), ST_CORRUPT, &doc, NULL);
	ASSERT(st == ST_OK);
	return doc;
}

static void schema_back(const struct schema *s, struct arena *a)
{
	struct buf b;
	struct jwrite w;
	struct schema again, fresh;
	buf_init(&b, 64 << 20);
	jwrite_init(&w, &b);
	schema_write(&w, s);
	struct jdoc *doc = reparse(&b);
	enum status st = schema_parse(jdoc_root(doc), ST_CORRUPT, a, &again, NULL);
	ASSERT(st == ST_OK && schema_same(s, &again));
	jdoc_free(doc);
	buf_fini(&b);
	for (size_t i = 0; i < s->n_nodes; i++) {
		ASSERT(schema_find(s, s->nodes[i].id) == &s->nodes[i]);
		ASSERT(schema_find_name(s, s->nodes[i].full_name) == &s->nodes[i]);
	}
	st = schema_check_version(s, 2, NULL);
	st = schema_fresh(s, 1, a, &fresh, NULL);
	if (st == ST_OK)
		ASSERT(fresh.n_nodes == s->n_nodes && fresh.highest_id == (int32_t)s->n_nodes);
}

static void spec_back(struct partition_spec *spec, const struct schema *s, struct arena *a)
{
	struct buf b;
	struct jwrite w;
	struct partition_spec again;
	struct field *fields;
	int32_t last = 999;
	buf_init(&b, 64 << 20);
	jwrite_init(&w, &b);
	partition_write(&w, spec);
	struct jdoc *doc = reparse(&b);
	enum status st = partition_parse(jdoc_root(doc), ST_CORRUPT, a, &again, NULL);
	ASSERT(st == ST_OK && partition_same(spec, &again));
	jdoc_free(doc);
	buf_clear(&b);
	const struct partition_spec *const specs[] = {&again};
	st = partition_assign_ids(spec, specs, 1, 2, &last, NULL);
	ASSERT(st != ST_OK || spec->n == 0 || partition_last_id(spec) <= last);
	if (s && partition_check(spec, s, 2, NULL) == ST_OK)
		ASSERT(partition_check_schema(spec, s, NULL) == ST_OK);
	if (s && partition_type(spec, s, a, &fields, NULL) == ST_OK) {
		struct tuple t = {arena_calloc(a, spec->n, sizeof *t.v), spec->n};
		for (size_t i = 0; t.v && i < t.n; i++)
			t.v[i] = VALUE_NULL;
		if (t.v)
			partition_path(&b, spec, fields, &t);
	}
	buf_fini(&b);
}

static void order_back(const struct sort_order *order, const struct schema *s, struct arena *a)
{
	struct buf b;
	struct jwrite w;
	struct sort_order again;
	buf_init(&b, 64 << 20);
	jwrite_init(&w, &b);
	sort_write(&w, order);
	struct jdoc *doc = reparse(&b);
	enum status st = sort_parse(jdoc_root(doc), ST_CORRUPT, a, &again, NULL);
	ASSERT(st == ST_OK && sort_same(order, &again));
	if (s)
		st = sort_check(order, s, NULL);
	jdoc_free(doc);
	buf_fini(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct jdoc *doc = NULL;
	struct arena a;
	struct err err;
	struct schema s;
	struct partition_spec spec;
	struct sort_order order;
	if (jdoc_parse((struct bytes){data, size}, ST_BAD_REQUEST, &doc, &err) != ST_OK)
		return 0;
	arena_init(&a, 16 << 20);
	const struct jval *root = jdoc_root(doc);
	bool has = schema_parse(jval_get(root, "schema"), ST_BAD_REQUEST, &a, &s, &err) == ST_OK;
	if (has)
		schema_back(&s, &a);
	if (partition_parse(jval_get(root, "spec"), ST_BAD_REQUEST, &a, &spec, &err) == ST_OK)
		spec_back(&spec, has ? &s : NULL, &a);
	if (sort_parse(jval_get(root, "order"), ST_BAD_REQUEST, &a, &order, &err) == ST_OK)
		order_back(&order, has ? &s : NULL, &a);
	arena_fini(&a);
	jdoc_free(doc);
	return 0;
}
