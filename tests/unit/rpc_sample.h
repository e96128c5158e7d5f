/* Fills any record of the worker protocol with values that differ by field and seed, along its
 * descriptor: for tests that must reach every field of every message. */
#ifndef TESTS_UNIT_RPC_SAMPLE_H
#define TESTS_UNIT_RPC_SAMPLE_H

#include "proto/base/arena.h"
#include "proto/rpc/rpc.h"

struct rpc_sample {
	struct arena *a;
	uint64_t state;
};

static inline uint64_t rpc_sample_next(struct rpc_sample *s)
{
	s->state = s->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return s->state >> 17;
}

static inline void rpc_sample_record(struct rpc_sample *s, const struct rpc_record *r, void *value);

static inline void rpc_sample_value(struct rpc_sample *s, const struct rpc_field *f, void *at)
{
	static const int64_t edges[] = {0,   -1,        1,         63,        64,        -64, -65,
					127, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, 8191};
	static const char *const texts[] = {"", "a", "caf\xc3\xa9", "\"\\\n\t",
					    "\xf0\x9f\x90\xa7 x"};
	uint64_t v = rpc_sample_next(s);
	switch (f->type) {
	case RPC_TYPE_BOOL:
		*(bool *)at = v & 1;
		break;
	case RPC_TYPE_INT:
		*(int32_t *)at = (int32_t)edges[v % 10];
		break;
	case RPC_TYPE_LONG:
		*(int64_t *)at = edges[v % ARRAY_SIZE(edges)];
		break;
	case RPC_TYPE_STRING:
		*(struct strv *)at = strv_of(texts[v % ARRAY_SIZE(texts)]);
		break;
	case RPC_TYPE_BYTES:
	case RPC_TYPE_UUID:
	case RPC_TYPE_DIGEST: {
		size_t n = f->type == RPC_TYPE_UUID ? 16 : f->type == RPC_TYPE_DIGEST ? 32 : v % 40;
		uint8_t tmp[40];
		for (size_t i = 0; i < n; i++)
			tmp[i] = (uint8_t)rpc_sample_next(s);
		if (f->type == RPC_TYPE_BYTES)
			ASSERT(arena_bytes(s->a, (struct bytes){tmp, n}, at));
		else
			memcpy(at, tmp, n);
		break;
	}
	case RPC_TYPE_ENUM: {
		uint32_t e = (uint32_t)(v % f->list->n);
		memcpy(at, &e, sizeof e);
		break;
	}
	case RPC_TYPE_RECORD:
		rpc_sample_record(s, f->record, at);
		break;
	}
}

static inline void rpc_sample_record(struct rpc_sample *s, const struct rpc_record *r, void *value)
{
	uint8_t *base = value;
	for (size_t i = 0; i < r->n; i++) {
		const struct rpc_field *f = &r->fields[i];
		if (f->shape == RPC_ONE) {
			rpc_sample_value(s, f, base + f->offset);
		} else if (f->shape == RPC_ARRAY) {
			size_t n = rpc_sample_next(s) % 4, size = rpc_value_size(f);
			uint8_t *items = n ? arena_calloc(s->a, n, size) : NULL;
			ASSERT(n == 0 || items);
			for (size_t k = 0; k < n; k++)
				rpc_sample_value(s, f, items + k * size);
			memcpy(base + f->offset, &items, sizeof items);
			memcpy(base + f->aux, &n, sizeof n);
		} else if (rpc_sample_next(s) & 1) {
			void *at = base + f->offset;
			if (f->type == RPC_TYPE_RECORD) {
				void *sub = arena_calloc(s->a, 1, f->record->size);
				ASSERT(sub);
				memcpy(at, &sub, sizeof sub);
				at = sub;
			} else {
				*(bool *)(base + f->aux) = true;
			}
			rpc_sample_value(s, f, at);
		}
	}
}

#endif
