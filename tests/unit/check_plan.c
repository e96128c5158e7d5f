/* The decision over a batch: order of lanes, who is taken, who is refused, what is waited for. */
#include "daemon/commit/plan.h"

#include "tests/unit/core_table.h"

static struct core_table *t;

static void up(void)
{
	static struct core_table table;
	t = &table;
	ct_open(t, 3, "");
	(void)ct_append(t, CT_MAIN, "a", 100);
	ct_commit(t);
	ct_batch(t);
}

static void down(void)
{
	ct_close(t);
}

/* Deletions, then row deltas, then appends; each lane builds on the one before. */
START_TEST(lanes_in_order)
{
	int64_t head = ct_head(t, CT_MAIN);
	struct plan_txn *append = ct_append(t, CT_MAIN, "b", 10);
	struct plan_txn *update = ct_update(t, CT_MAIN, "a", "5", "c");
	struct plan_txn *delete = ct_delete(t, CT_MAIN, "a", "6");
	struct plan_txn *again = ct_append(t, CT_MAIN, "d", 10);
	struct plan_txn *more = ct_delete(t, CT_MAIN, "a", "7");
	ct_commit(t);
	CT_COMMITTED(append);
	CT_COMMITTED(update);
	CT_COMMITTED(delete);
	CT_COMMITTED(again);
	CT_COMMITTED(more);
	ck_assert_uint_eq(t->plan->n_lanes, 3);
	ck_assert_int_eq(delete->lane, 0);
	ck_assert_int_eq(more->lane, 0);
	ck_assert_int_eq(update->lane, 1);
	ck_assert_int_eq(append->lane, 2);
	ck_assert_int_eq(again->lane, 2);
	int64_t parent = head;
	for (size_t i = 0; i < 3; i++) {
		ck_assert_int_eq(t->plan->lanes[i].rank, (int)i);
		const struct snapshot *s =
			metadata_snapshot(t->meta, t->plan->lanes[i].snapshot_id);
		ck_assert(s != NULL);
		ck_assert_int_eq(s->parent_id, parent);
		ck_assert_int_eq(s->sequence_number, 2 + (int64_t)i);
		parent = s->snapshot_id;
	}
	ck_assert_int_eq(ct_head(t, CT_MAIN), parent);
	/* In the first snapshot the update's row is still there, and its new file is not. */
	const struct ct_state *s = ct_look(t, t->plan->lanes[0].snapshot_id);
	ck_assert_int_eq(ct_find(t, s, MANIFEST_DELETES, "a", ENTRY_ADDED)->file.record_count, 2);
	ck_assert(!ct_find(t, s, MANIFEST_DATA, "c", ENTRY_ADDED));
	s = ct_look(t, t->plan->lanes[1].snapshot_id);
	ck_assert_int_eq(ct_find(t, s, MANIFEST_DELETES, "a", ENTRY_ADDED)->file.record_count, 3);
	ck_assert(ct_find(t, s, MANIFEST_DATA, "c", ENTRY_ADDED) != NULL);
	ck_assert(!ct_find(t, s, MANIFEST_DATA, "b", ENTRY_ADDED));
}
END_TEST

/* A transaction with a summary of its own has a snapshot of its own. What the next one deletes from
 * the same file is not in it. */
START_TEST(own_summaries)
{
	struct strv_pair pair = {STRV("owner"), STRV("me")};
	struct plan_txn *x = ct_delete(t, CT_MAIN, "a", "1");
	struct plan_txn *y = ct_delete(t, CT_MAIN, "a", "2 3");
	struct plan_txn *z = ct_delete(t, CT_MAIN, "a", "4");
	struct plan_txn *own = ct_append(t, CT_MAIN, "b", 10);
	struct plan_txn *other = ct_append(t, CT_MAIN, "c", 10);
	y->summary = own->summary = other->summary = &pair;
	y->n_summary = own->n_summary = other->n_summary = 1;
	ct_commit(t);
	ck_assert_uint_eq(t->plan->n_lanes, 5);
	ck_assert_int_eq(x->lane, 0);
	ck_assert_int_eq(y->lane, 1);
	ck_assert_int_eq(z->lane, 2);
	ck_assert_int_eq(own->lane, 3);
	ck_assert_int_eq(other->lane, 4);
	const int64_t want[3] = {1, 3, 4};
	for (int i = 0; i < 3; i++) {
		const struct ct_state *s = ct_look(t, t->plan->lanes[i].snapshot_id);
		const struct manifest_entry *e = ct_find(t, s, MANIFEST_DELETES, "a", ENTRY_ADDED);
		ck_assert(e != NULL);
		ck_assert_int_eq(e->file.record_count, want[i]);
		ct_summary(metadata_snapshot(t->meta, t->plan->lanes[i].snapshot_id), "owner",
			   i == 1 ? "me" : NULL);
	}
}
END_TEST

/* A lane that was closed before one that was then refused takes nobody any more. */
START_TEST(closed_lane)
{
	struct strv_pair pair = {STRV("owner"), STRV("me")};
	struct plan_txn *x = ct_delete(t, CT_MAIN, "a", "1");
	struct plan_txn *y = ct_delete(t, CT_MAIN, "nowhere", "2");
	struct plan_txn *z = ct_delete(t, CT_MAIN, "a", "3 4");
	y->summary = &pair;
	y->n_summary = 1;
	ct_commit(t);
	CT_COMMITTED(x);
	CT_REJECTED(y, ST_FILE_GONE);
	CT_COMMITTED(z);
	const struct ct_state *s = ct_look_ref(t, CT_MAIN);
	ck_assert_int_eq(ct_find(t, s, MANIFEST_DELETES, "a", ENTRY_ADDED)->file.record_count, 3);
}
END_TEST

/* An ordered transaction is not overtaken by the order of lanes: the batch ends before it. */
START_TEST(ordered)
{
	struct plan_txn *free_one = ct_append(t, CT_MAIN, "z", 10);
	struct plan_txn *x = ct_append(t, CT_MAIN, "b", 10);
	struct plan_txn *other = ct_delete(t, CT_MAIN, "a", "1");
	struct plan_txn *y = ct_delete(t, CT_MAIN, "a", "2");
	x->ordered = y->ordered = true;
	ct_commit(t);
	CT_COMMITTED(free_one);
	CT_COMMITTED(x);
	CT_COMMITTED(other);
	ck_assert(!y->taken);
	ck_assert_int_eq(y->lane, -1);
	/* The other way round both fit. */
	ct_batch(t);
	y = ct_delete(t, CT_MAIN, "a", "2");
	x = ct_append(t, CT_MAIN, "c", 10);
	x->ordered = y->ordered = true;
	ct_commit(t);
	CT_COMMITTED(x);
	CT_COMMITTED(y);
}
END_TEST

START_TEST(paths_once)
{
	struct plan_txn *x = ct_append(t, CT_MAIN, "b", 10);
	struct plan_txn *twice = ct_append(t, CT_MAIN, "b", 10);
	struct plan_txn *there = ct_append(t, CT_MAIN, "a", 10);
	struct plan_txn *y = ct_append(t, CT_MAIN, "c", 10);
	/* A refused transaction does not keep its other paths for itself. */
	ct_add(t, there, ct_data(t, "d", 10));
	struct plan_txn *z = ct_append(t, CT_MAIN, "d", 10);
	ct_commit(t);
	CT_COMMITTED(x);
	CT_REJECTED(twice, ST_DUPLICATE_PATH);
	CT_REJECTED(there, ST_DUPLICATE_PATH);
	CT_COMMITTED(y);
	CT_COMMITTED(z);
	const struct ct_state *s = ct_look_ref(t, CT_MAIN);
	ck_assert(ct_find(t, s, MANIFEST_DATA, "b", ENTRY_ADDED) != NULL);
	ck_assert(ct_find(t, s, MANIFEST_DATA, "d", ENTRY_ADDED) != NULL);
	ck_assert_int_eq(ct_find(t, s, MANIFEST_DATA, "a", ENTRY_ADDED)->file.record_count, 100);
}
END_TEST

START_TEST(refusals)
{
	ct_branch(t, STRV("tag"), true);
	ct_batch(t);
	struct plan_txn *format = ct_txn(t, CT_MAIN, RPC_KIND_DELETE);
	(void)ct_del_file(t, format, "b", "a");
	struct plan_txn *spec = ct_txn(t, CT_MAIN, RPC_KIND_APPEND);
	struct content_file f = ct_data(t, "c", 10);
	f.spec_id = 7;
	ct_add(t, spec, f);
	struct plan_txn *schema = ct_append(t, CT_MAIN, "d", 10);
	schema->schema_ids = &(int32_t){7};
	struct plan_txn *ref = ct_append(t, STRV("nowhere"), "e", 10);
	struct plan_txn *tag = ct_append(t, STRV("tag"), "f", 10);
	struct plan_txn *before = ct_append(t, CT_MAIN, "g", 10);
	before->refused.st = ST_FILE_MISSING;
	struct plan_txn *aborted = ct_append(t, CT_MAIN, "h", 10);
	aborted->wish = PLAN_ABORT;
	struct plan_txn *expired = ct_append(t, CT_MAIN, "i", 10);
	expired->wish = PLAN_EXPIRE;
	struct plan_txn *unread = ct_delete(t, CT_MAIN, "a", "1");
	unread->has_read = false;
	struct plan_txn *strange = ct_delete(t, CT_MAIN, "a", "1");
	strange->read_snapshot = 4711;
	struct plan_txn *good = ct_append(t, CT_MAIN, "j", 10);
	ct_commit(t);
	CT_REJECTED(format, ST_FORMAT_CHANGED);
	CT_REJECTED(spec, ST_SPEC_UNKNOWN);
	CT_REJECTED(schema, ST_SCHEMA_UNKNOWN);
	CT_REJECTED(ref, ST_NO_SUCH_REF);
	CT_REJECTED(tag, ST_NO_SUCH_REF);
	CT_REJECTED(before, ST_FILE_MISSING);
	ct_is_state(aborted, TXN_DB_ABORTED, ST_OK);
	ct_is_state(expired, TXN_DB_EXPIRED, ST_OK);
	CT_REJECTED(unread, ST_SNAPSHOT_NOT_ANCESTOR);
	CT_REJECTED(strange, ST_SNAPSHOT_NOT_ANCESTOR);
	CT_COMMITTED(good);
	ck_assert_uint_eq(t->plan->n_lanes, 1);
	ck_assert_uint_eq(t->plan->lanes[0].n_txns, 1);
}
END_TEST

/* A column of a spec was promoted or dropped after the file was staged: its tuple fits no more. */
START_TEST(tuple_of_old_type)
{
	struct plan_txn *x = ct_txn(t, CT_MAIN, RPC_KIND_APPEND);
	ct_add(t, x, ct_in(t, ct_data(t, "p", 10), 7));
	struct plan_txn *y = ct_append(t, CT_MAIN, "b", 10);
	struct plan_txn *z = ct_txn(t, CT_MAIN, RPC_KIND_APPEND);
	struct content_file null = ct_in(t, ct_data(t, "q", 10), 7);
	null.partition.v[0] = VALUE_NULL;
	ct_add(t, z, null);
	if (_i == 1)
		ct_edit(t, "\"name\":\"p\",\"required\":false,\"type\":\"int\"",
			"\"name\":\"p\",\"required\":false,\"type\":\"long\"");
	struct update u = {.kind = UPDATE_SET_CURRENT_SCHEMA, .u.id = 1};
	if (_i == 2)
		ct_apply(t, &u, 1);
	ct_commit(t);
	if (_i)
		CT_REJECTED(x, ST_TUPLE_MISMATCH);
	else
		CT_COMMITTED(x);
	CT_COMMITTED(y);
	CT_COMMITTED(z);
}
END_TEST

/* Below version 3 there are no vectors. */
START_TEST(version_2)
{
	ct_close(t);
	ct_open(t, 2, "");
	(void)ct_append(t, CT_MAIN, "a", 100);
	ct_commit(t);
	ct_batch(t);
	struct plan_txn *x = ct_delete(t, CT_MAIN, "a", "1");
	struct plan_txn *y = ct_append(t, CT_MAIN, "b", 100);
	ct_commit(t);
	CT_REJECTED(x, ST_UNSUPPORTED);
	CT_COMMITTED(y);
}
END_TEST

/* The read snapshot counts on its own branch only. */
START_TEST(not_an_ancestor)
{
	ct_branch(t, STRV("b"), false);
	int64_t read = ct_head(t, CT_MAIN);
	(void)ct_append(t, STRV("b"), "b", 10);
	ct_commit(t);
	ct_batch(t);
	struct plan_txn *x = ct_delete(t, CT_MAIN, "a", "1");
	x->read_snapshot = ct_head(t, STRV("b"));
	struct plan_txn *y = ct_delete(t, STRV("b"), "a", "1");
	y->read_snapshot = read;
	ct_commit(t);
	CT_REJECTED(x, ST_SNAPSHOT_NOT_ANCESTOR);
	CT_COMMITTED(y);
	/* An expired ancestor that was seen still counts. */
	int64_t gone[2];
	for (int i = 0; i < 2; i++) {
		ct_batch(t);
		gone[i] = ct_head(t, STRV("b"));
		(void)ct_append(t, STRV("b"), i ? "d" : "c", 10);
		ct_commit(t);
	}
	struct update u = {.kind = UPDATE_REMOVE_SNAPSHOTS, .u.snapshot_ids = {gone, 2}};
	ct_apply(t, &u, 1);
	ck_assert(!metadata_is_ancestor(t->meta, gone[0], ct_head(t, STRV("b"))));
	ct_batch(t);
	x = ct_delete(t, STRV("b"), "a", "2");
	x->read_snapshot = gone[0];
	ct_commit(t);
	CT_COMMITTED(x);
}
END_TEST

/* Deletions on one branch say nothing of the other's copy of the file. */
START_TEST(branches)
{
	ct_branch(t, STRV("b"), false);
	struct plan_txn *x = ct_update(t, CT_MAIN, "a", "1", "b");
	struct plan_txn *y = ct_update(t, STRV("b"), "a", "1", "c");
	ct_commit(t);
	CT_COMMITTED(x);
	CT_COMMITTED(y);
	ck_assert_uint_eq(t->plan->n_refs, 2);
	const struct ct_state *s = ct_look_ref(t, CT_MAIN);
	ck_assert(ct_find(t, s, MANIFEST_DATA, "b", ENTRY_ADDED) &&
		  !ct_find(t, s, MANIFEST_DATA, "c", ENTRY_ADDED));
	s = ct_look_ref(t, STRV("b"));
	ck_assert(ct_find(t, s, MANIFEST_DATA, "c", ENTRY_ADDED) &&
		  !ct_find(t, s, MANIFEST_DATA, "b", ENTRY_ADDED));
}
END_TEST

START_TEST(first_snapshot)
{
	ct_close(t);
	ct_open(t, 3, "");
	struct plan_txn *x = ct_delete(t, CT_MAIN, "a", "1");
	struct plan_txn *y = ct_append(t, CT_MAIN, "a", 10);
	ct_commit(t);
	CT_REJECTED(x, ST_SNAPSHOT_NOT_ANCESTOR);
	CT_COMMITTED(y);
	ck_assert_int_eq(ct_snapshot(t, CT_MAIN)->parent_id, SNAPSHOT_NONE);
	/* Two at once: the second descends from the first. */
	ct_close(t);
	ct_open(t, 3, "");
	struct strv_pair pair = {STRV("owner"), STRV("me")};
	for (int i = 0; i < 2; i++) {
		x = ct_append(t, CT_MAIN, i ? "b" : "a", 10);
		x->summary = &pair;
		x->n_summary = 1;
	}
	ct_commit(t);
	ck_assert_uint_eq(metadata_snapshot_count(t->meta), 2);
	ck_assert_int_eq(ct_snapshot(t, CT_MAIN)->parent_id, t->plan->lanes[0].snapshot_id);
	ct_summary(ct_snapshot(t, CT_MAIN), "total-records", "20");
}
END_TEST

static struct plan_in input(void)
{
	return (struct plan_in){.base = t->meta,
				.txns = t->txns,
				.n_txns = t->n,
				.log_of = ct_log_of,
				.new_snapshot_id = ct_new_id,
				.ctx = t,
				.max_bytes = t->plan_bytes};
}

/* What is missing is asked for all at once, level by level: lists, manifests, vectors. */
START_TEST(waiting)
{
	(void)ct_append(t, CT_MAIN, "b", 10);
	ct_commit(t);
	ct_batch(t);
	(void)ct_delete(t, CT_MAIN, "a", "1");
	(void)ct_delete(t, CT_MAIN, "b", "1");
	ct_commit(t);
	ct_branch(t, STRV("x"), false);
	ct_batch(t);
	(void)ct_append(t, STRV("x"), "c", 10);
	ct_commit(t);
	cache_free(t->cache);
	t->cache = cache_new(CT_MAX);
	ct_batch(t);
	struct plan_txn *x = ct_delete(t, CT_MAIN, "a", "2");
	struct plan_txn *y = ct_delete(t, CT_MAIN, "b", "2");
	struct plan_txn *z = ct_append(t, STRV("x"), "d", 10);
	struct plan_in in = input();
	struct needs needs = {0};
	struct plan *p = NULL;
	struct err err = {0};
	/* Two lists; indexes of two data manifests and one of vectors, which both have, and one more
	 * of x; the vectors' manifest, for their places; two vectors. */
	const size_t want[4] = {2, 4, 1, 2};
	const enum read_as as[4] = {READ_MANIFEST_LIST, READ_INDEX, READ_MANIFEST, READ_VECTOR};
	for (int i = 0; i < 4; i++) {
		ck_assert_int_eq(plan_run(&in, t->cache, &needs, &p, &err), PLAN_WAIT);
		ck_assert_uint_eq(needs.n, want[i]);
		for (size_t k = 0; k < needs.n; k++)
			ck_assert_int_eq(cache_item_read(needs.v[k])->as, as[i]);
		ck_assert(!x->taken && !y->taken && !z->taken && !p);
		/* Asking again before the answer records the same. */
		ck_assert_int_eq(plan_run(&in, t->cache, &needs, &p, &err), PLAN_WAIT);
		ck_assert_uint_eq(needs.n, want[i]);
		ct_serve(t, &needs);
	}
	int64_t ids = t->last_snapshot;
	ck_assert_int_eq(plan_run(&in, t->cache, &needs, &p, &err), PLAN_DONE);
	ck_assert_uint_eq(needs.n, 0);
	CT_COMMITTED(x);
	CT_COMMITTED(y);
	CT_COMMITTED(z);
	ck_assert_int_eq(t->last_snapshot, ids + 2); /* drawn once, when it is decided */
	plan_free(p);
	needs_fini(&needs);
}
END_TEST

/* A file of the head that is gone or damaged stops the table, not one transaction. */
START_TEST(unreadable)
{
	(void)ct_delete(t, CT_MAIN, "a", "1");
	ct_commit(t);
	const struct ct_state *s = ct_look_ref(t, CT_MAIN);
	struct strv paths[3] = {ct_snapshot(t, CT_MAIN)->manifest_list, s->list->l.rows[0].path,
				ct_find(t, s, MANIFEST_DELETES, "a", ENTRY_ADDED)->file.path};
	ct_batch(t);
	struct plan_txn *x = ct_delete(t, CT_MAIN, "a", "2");
	struct plan_txn *y = ct_append(t, CT_MAIN, "b", 2);
	for (int i = 0; i < 3; i++) {
		struct err err = {0};
		cache_free(t->cache);
		t->cache = cache_new(CT_MAX);
		struct ct_object *o = (struct ct_object *)(uintptr_t)ct_object(t, paths[i]);
		ck_assert(o != NULL);
		o->path.n--;
		ck_assert_int_eq(ct_plan(t, &err), PLAN_FAIL);
		ck_assert_int_eq(err.st, ST_NOT_FOUND);
		ck_assert(!x->taken && !y->taken);
		o->path.n++;
		/* The next attempt reads it again. */
		ck_assert_int_eq(ct_plan(t, NULL), PLAN_DONE);
		CT_COMMITTED(x);
		cache_free(t->cache);
		t->cache = cache_new(CT_MAX);
		/* The last sync marker; in the vector. */
		uint8_t *byte = (uint8_t *)(uintptr_t)o->data.p + (i < 2 ? o->data.n - 1 : 16);
		*byte ^= 0xff;
		ck_assert_int_eq(ct_plan(t, &err), PLAN_FAIL);
		ck_assert_int_eq(err.st, ST_CORRUPT);
		*byte ^= 0xff;
	}
}
END_TEST

/* Every limit of memory ends as ST_LIMIT and never as a wrong answer; the core then halves the
 * batch. */
START_TEST(limits)
{
	(void)ct_delete(t, CT_MAIN, "a", "1");
	ct_commit(t);
	ct_batch(t);
	struct plan_txn *x[6];
	for (int i = 0; i < 3; i++) {
		char name[16];
		snprintf(name, sizeof name, "n%d", i);
		x[2 * i] = ct_append(t, CT_MAIN, name, 10);
		snprintf(name, sizeof name, "%d", 10 + i);
		x[2 * i + 1] = ct_delete(t, CT_MAIN, "a", name);
	}
	ct_add(t, x[4], ct_in(t, ct_data(t, "p", 10), 7));
	bool fits = false;
	size_t limit = 0, failed = 0;
	for (; !fits && limit < 65536; limit += 16) {
		struct err err = {0};
		t->plan_bytes = limit;
		if (ct_plan(t, &err) == PLAN_DONE) {
			fits = true;
		} else {
			ck_assert_int_eq(err.st, ST_LIMIT);
			ck_assert(!x[0]->taken);
			failed++;
		}
	}
	ck_assert(fits && failed > 5);
	for (int i = 0; i < 6; i++)
		CT_COMMITTED(x[i]);
	fits = false;
	for (limit = 0; !fits && limit < 1048576; limit += 1024) {
		encode_out_free(t->out);
		t->out = NULL;
		enum status st = ct_encode(t, limit);
		fits = st == ST_OK;
		if (!fits)
			ck_assert_int_eq(st, ST_LIMIT);
	}
	ck_assert(fits && limit > 2048);
}
END_TEST

/* A batch that is too large because of a finished manifest is halved, like any other. */
START_TEST(limits_of_adopted)
{
	struct plan_txn *x = ct_append(t, CT_MAIN, "n", 10);
	for (char i = 'a'; i <= 'z'; i++)
		ct_add(t, x, ct_data(t, (const char[]){'w', i, 0}, 10));
	struct plan_adopted whole = {
		.path = ct_path(t, "m"), .length = 100, .format_version = 3, .n = x->n_files};
	x->adopted = &whole;
	x->n_adopted = 1;
	(void)ct_plan(t, NULL);
	bool fits = false;
	for (size_t limit = 0; !fits && limit < 1048576; limit += 512) {
		encode_out_free(t->out);
		t->out = NULL;
		enum status st = ct_encode(t, limit);
		fits = st == ST_OK;
		if (!fits)
			ck_assert_int_eq(st, ST_LIMIT);
	}
	ck_assert(fits);
}
END_TEST

/* Both in one manifest: deleting more by one of them would bring back what the other deleted. */
START_TEST(two_vectors_in_one_manifest)
{
	struct manifest_entry d =
		ct_entry(ENTRY_ADDED, ct_data(t, "a", 100), SNAPSHOT_NONE, SEQ_NONE);
	struct manifest_entry v[2] = {
		ct_entry(ENTRY_ADDED, ct_vector(t, "a", "0-4"), SNAPSHOT_NONE, SEQ_NONE),
		ct_entry(ENTRY_ADDED, ct_vector(t, "a", "50-54"), SNAPSHOT_NONE, SEQ_NONE)};
	struct manifest_file rows[2] = {ct_manifest(t, 3, 0, MANIFEST_DATA, &d, 1),
					ct_manifest(t, 3, 0, MANIFEST_DELETES, v, 2)};
	(void)ct_foreign(t, CT_MAIN, rows, 2, false);
	struct plan_txn *x = ct_delete(t, CT_MAIN, "a", "70-74");
	ct_commit(t);
	ck_assert_int_eq(x->reject.st, ST_TABLE_INCONSISTENT);
}
END_TEST

/* What the log is told when a plan was published. */
START_TEST(published)
{
	struct plan_txn *x = ct_update(t, CT_MAIN, "a", "1 2", "b");
	(void)ct_delete(t, CT_MAIN, "a", "3");
	int64_t read = ct_head(t, CT_MAIN);
	(void)ct_plan(t, NULL);
	const struct reflog *log = t->logs[0];
	ck_assert(!reflog_moved_of(log, ct_path(t, "a")));
	ck_assert_int_eq(reflog_head(log), read);
	ct_commit(t);
	CT_COMMITTED(x);
	const struct bitmap64 *moved = reflog_moved_of(log, ct_path(t, "a"));
	ck_assert(moved && bitmap64_equal(moved, x->deletes[0].positions));
	ck_assert(reflog_knows(log, read));
	ck_assert_int_eq(reflog_head(log), ct_head(t, CT_MAIN));
	for (size_t i = 0; i < t->plan->n_lanes; i++)
		ck_assert(reflog_saw(log, t->plan->lanes[i].snapshot_id));
	ck_assert(!reflog_was_emptied(log, ct_path(t, "a")));
	ct_batch(t);
	(void)ct_delete(t, CT_MAIN, "b", "0 1");
	ct_commit(t);
	ck_assert(reflog_was_emptied(log, ct_path(t, "b")));
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("plan");
	TCase *c = tcase_create("plan");
	tcase_set_timeout(c, 60);
	tcase_add_checked_fixture(c, up, down);
	tcase_add_test(c, lanes_in_order);
	tcase_add_test(c, own_summaries);
	tcase_add_test(c, closed_lane);
	tcase_add_test(c, ordered);
	tcase_add_test(c, paths_once);
	tcase_add_test(c, refusals);
	tcase_add_loop_test(c, tuple_of_old_type, 0, 3);
	tcase_add_test(c, version_2);
	tcase_add_test(c, not_an_ancestor);
	tcase_add_test(c, branches);
	tcase_add_test(c, first_snapshot);
	tcase_add_test(c, waiting);
	tcase_add_test(c, unreadable);
	tcase_add_test(c, limits);
	tcase_add_test(c, limits_of_adopted);
	tcase_add_test(c, two_vectors_in_one_manifest);
	tcase_add_test(c, published);
	suite_add_tcase(s, c);
	return s;
}

UNIT_MAIN(suite)
