/* Column metrics of a staged file: any ids, counts and bounds against a schema of every type. What
 * is taken must be in order, decode and keep its order. */
#include <stddef.h>
#include <stdint.h>

#include "daemon/commit/intake/colmetrics.h"
#include "proto/iceberg/value.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char json[] =
	"{\"type\":\"struct\",\"fields\":["
	"{\"id\":0,\"name\":\"a\",\"required\":false,\"type\":\"boolean\"},"
	"{\"id\":1,\"name\":\"b\",\"required\":false,\"type\":\"int\"},"
	"{\"id\":2,\"name\":\"c\",\"required\":false,\"type\":\"long\"},"
	"{\"id\":3,\"name\":\"d\",\"required\":false,\"type\":\"float\"},"
	"{\"id\":4,\"name\":\"e\",\"required\":false,\"type\":\"double\"},"
	"{\"id\":5,\"name\":\"f\",\"required\":false,\"type\":\"date\"},"
	"{\"id\":6,\"name\":\"g\",\"required\":false,\"type\":\"time\"},"
	"{\"id\":7,\"name\":\"h\",\"required\":false,\"type\":\"timestamptz_ns\"},"
	"{\"id\":8,\"name\":\"i\",\"required\":false,\"type\":\"string\"},"
	"{\"id\":9,\"name\":\"j\",\"required\":false,\"type\":\"uuid\"},"
	"{\"id\":10,\"name\":\"k\",\"required\":false,\"type\":\"fixed[9]\"},"
	"{\"id\":11,\"name\":\"l\",\"required\":false,\"type\":\"binary\"},"
	"{\"id\":12,\"name\":\"m\",\"required\":false,\"type\":\"decimal(38, 3)\"},"
	"{\"id\":13,\"name\":\"n\",\"required\":false,\"type\":\"decimal(4, 2)\"},"
	"{\"id\":14,\"name\":\"o\",\"required\":false,\"type\":\"unknown\"},"
	"{\"id\":15,\"name\":\"p\",\"required\":false,\"type\":\"variant\"},"
	"{\"id\":16,\"name\":\"q\",\"required\":false,\"type\":\"geometry\"},"
	"{\"id\":17,\"name\":\"r\",\"required\":false,\"type\":\"geography\"}]}";

#define MANY 24

struct input {
	const uint8_t *p;
	size_t n;
};

static uint8_t take(struct input *in)
{
	if (in->n == 0)
		return 0;
	in->n--;
	return *in->p++;
}

/* Most ids are columns. */
static int32_t take_id(struct input *in)
{
	uint8_t b = take(in);
	return b == 255 ? FIELD_ID_ROW_ID : b == 254 ? INT32_MIN : b % 20;
}

static size_t take_bounds(struct input *in, struct rpc_bound *v)
{
	size_t n = take(in) % MANY;
	for (size_t i = 0; i < n; i++) {
		v[i].field_id = take_id(in);
		size_t len = take(in) % 36;
		len = len < in->n ? len : in->n;
		v[i].value = (struct bytes){in->p, len};
		in->p += len;
		in->n -= len;
	}
	return n;
}

static size_t take_metrics(struct input *in, struct rpc_metric *v)
{
	size_t n = take(in) % MANY;
	for (size_t i = 0; i < n; i++) {
		int32_t id = take_id(in);
		v[i] = (struct rpc_metric){id, (int8_t)take(in)};
	}
	return n;
}

static void check(const struct schema *s, const struct bound *v, size_t n, struct arena *a)
{
	for (size_t i = 0; i < n; i++) {
		const struct schema_node *node = schema_find(s, v[i].field_id);
		struct value out;
		ASSERT(i == 0 || v[i - 1].field_id < v[i].field_id);
		if (!node || !value_has_order(node->type))
			continue;
		enum status st = value_read(node->type, v[i].b, true, ST_CORRUPT, a, &out, NULL);
		ASSERT(st == ST_OK && bytes_eq(out.b, v[i].b));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct arena kept;
	static struct schema s;
	struct input in = {data, size};
	struct rpc_bound lower[MANY], upper[MANY];
	struct rpc_metric values[MANY], nulls[MANY];
	struct rpc_data_file file = {.lower_bounds = lower,
				     .upper_bounds = upper,
				     .value_counts = values,
				     .null_counts = nulls};
	if (s.n == 0) {
		struct jdoc *doc = NULL;
		arena_init(&kept, 1 << 20);
		enum status st = jdoc_parse(strv_bytes(strv_of(json)), ST_CORRUPT, &doc, NULL);
		if (st == ST_OK)
			st = schema_parse(jdoc_root(doc), ST_CORRUPT, &kept, &s, NULL);
		ASSERT(st == ST_OK);
		jdoc_free(doc);
	}
	file.n_lower_bounds = take_bounds(&in, lower);
	file.n_upper_bounds = take_bounds(&in, upper);
	file.n_value_counts = take_metrics(&in, values);
	file.n_null_counts = take_metrics(&in, nulls);
	struct arena a;
	arena_init(&a, 1 << 20);
	struct content_file f = content_file_empty();
	if (colmetrics_check(&s, &file, &a, &f, NULL) == ST_OK) {
		check(&s, f.lower, f.n_lower, &a);
		check(&s, f.upper, f.n_upper, &a);
	}
	arena_fini(&a);
	return 0;
}
