/* A table of two files with a vector on one, an open transaction, and a fragment that touches both:
 * what the tests of fragments begin with. Included once by a program. */
#ifndef TESTS_UNIT_FRAG_CASE_H
#define TESTS_UNIT_FRAG_CASE_H

#include "daemon/commit/intake/intake.h"
#include "daemon/commit/state.h"
#include "proto/rpc/msg.h"
#include "tests/unit/core_table.h"

static struct core_table *t;
static struct table table;
static struct txn x;
static struct rpc_fragment in;
static struct rpc_data_file files[2];
static struct rpc_delete_vector vectors[2];

static inline struct bytes blob(const char *positions)
{
	struct buf b;
	struct bytes out;
	struct err err = {0};
	buf_init(&b, 65536);
	UNIT_OK(dv_blob_encode(ct_set(t, positions), &b, &err), &err);
	ck_assert(arena_bytes(&t->arena, buf_bytes(&b), &out));
	buf_fini(&b);
	return out;
}

static inline void digest(void)
{
	ck_assert(msg_fragment_digest(&in, &in.digest));
}

static inline void txn_is(int32_t kind)
{
	x.row.kind = kind;
	x.row.read_snapshot = ct_head(t, CT_MAIN);
	x.format_version = 3;
}

static inline void up(void)
{
	static struct core_table ct;
	t = &ct;
	ct_open(t, 3, "");
	(void)ct_append(t, CT_MAIN, "a", 100);
	(void)ct_append(t, CT_MAIN, "b", 100);
	ct_commit(t);
	ct_batch(t);
	(void)ct_delete(t, CT_MAIN, "a", "1-5");
	ct_commit(t);
	ct_batch(t);
	table = (struct table){.meta = t->meta};
	x = (struct txn){.table = &table};
	arena_init(&x.arena, (size_t)1 << 20);
	list_init(&x.frags);
	txn_is(RPC_KIND_ROW_DELTA);
	for (int i = 0; i < 2; i++) {
		files[i] = (struct rpc_data_file){.path = ct_path(t, i ? "y" : "x"),
						  .format = STRV("PARQUET"),
						  .record_count = 10,
						  .file_size = 100,
						  .new_row_count = 8,
						  .updated_row_count = 2,
						  .has_row_ids = true};
		vectors[i] = (struct rpc_delete_vector){.data_file = ct_path(t, i ? "b" : "a"),
							.vector = blob(i ? "7" : "4-8"),
							.cardinality = i ? 1 : 5,
							.provenance = RPC_PROVENANCE_ABSENT};
	}
	in = (struct rpc_fragment){.fragment_id = STRV("task-1"),
				   .attempt = 3,
				   .data_files = files,
				   .n_data_files = 2,
				   .deletes = vectors,
				   .n_deletes = 2};
	digest();
}

static inline void down(void)
{
	for (size_t i = 0; i < x.n_sets; i++)
		bitmap64_free(x.sets[i]);
	base_free(x.sets);
	base_free(x.frag_slots);
	arena_fini(&x.arena);
	ct_close(t);
}

static inline struct frag *decoded(void)
{
	struct frag *f = NULL;
	struct err err = {0};
	digest();
	UNIT_OK(frag_decode(t->meta, &x, &in, &f, &err), &err);
	return f;
}

static inline void refused(enum status want, const char *field)
{
	struct frag *f = NULL;
	struct err err = {0};
	digest();
	enum status st = frag_decode(t->meta, &x, &in, &f, &err);
	ck_assert_msg(st == want, "%s %s %s", status_info(st)->name, err.field, err.msg);
	ck_assert_str_eq(err.field, field);
	ck_assert(!f);
}

static inline void positions_are(const struct plan_delete *d, const char *positions)
{
	ck_assert(bitmap64_equal(d->positions, ct_set(t, positions)));
}

static inline enum cache_answer subtract(struct frag *f, struct err *err)
{
	static struct core core;
	struct needs needs = {0};
	core.cache = t->cache;
	core.conf.request_max_bytes = (size_t)1 << 20;
	enum cache_answer ans;
	while ((ans = frag_subtract(&core, &x, t->meta, f, &needs, err)) == CACHE_WAIT)
		ct_serve(t, &needs);
	needs_fini(&needs);
	return ans;
}

#endif
