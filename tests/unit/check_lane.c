/* Sequences of snapshots against those that the reference implementation made of the same
 * operations (tests/golden/make_snapshots.sh): summaries, row ids, sequence numbers, every entry.
 *
 * Differences that are meant:
 * - The summary says "iceberg-version" there and "frazil." keys here.
 * - manifests-created, -kept and -replaced are left out here when they are 0, like other counters.
 * - New manifests stand behind the old ones here and before them there. Where one snapshot gives
 *   numbers to several manifests (the first after an upgrade), files get others; their sum is the
 *   same and no two files share one. */
#include "daemon/commit/lane.h"

#include "proto/base/json.h"
#include "tests/unit/core_table.h"
#include "tests/unit/golden.h"

#define FILE_NAME "tests/golden/snapshots/snapshots.json"

static struct core_table *t;
static struct jdoc *doc;
static int64_t snapshots[64]; /* by step that made one */
static size_t n_snapshots;
static char where[96];

static void up(void)
{
	static struct core_table table;
	struct buf b;
	struct err err = {0};
	t = &table;
	n_snapshots = 0;
	buf_init(&b, (size_t)4 << 20);
	golden_read(FILE_NAME, &b);
	UNIT_OK(jdoc_parse(buf_bytes(&b), ST_CORRUPT, &doc, &err), &err);
	buf_fini(&b);
}

static void down(void)
{
	ct_close(t);
	jdoc_free(doc);
}

static struct strv text(const struct jval *o, const char *key)
{
	struct strv s;
	ck_assert_msg(jval_as_str(jval_get(o, key), &s), "%s: %s", where, key);
	return s;
}

/* Absent is null there and a named constant here. */
static int64_t number(const struct jval *o, const char *key, int64_t none)
{
	int64_t n;
	if (jval_is_null(jval_get(o, key)))
		return none;
	ck_assert_msg(jval_as_i64(jval_get(o, key), &n), "%s: %s", where, key);
	return n;
}

static void same(const struct jval *o, const char *key, int64_t none, int64_t ours)
{
	int64_t java = number(o, key, none);
	ck_assert_msg(java == ours, "%s: %s is %lld, not %lld", where, key, (long long)ours,
		      (long long)java);
}

static int64_t step_of(int64_t snapshot)
{
	for (size_t i = 0; i < n_snapshots; i++)
		if (snapshots[i] == snapshot)
			return (int64_t)i;
	return -1;
}

static const char *zero_ended(struct strv s)
{
	return ct_text(t, "%.*s", STRV_ARG(s)).p;
}

/* [name, value] */
static const char *name_of(const struct jval *pair)
{
	struct strv s;
	ck_assert(jval_as_str(jval_at(pair, 0), &s));
	return zero_ended(s);
}

static void run(const struct jval *step)
{
	struct strv op = text(step, "op"), ref = text(step, "ref"), positions;
	if (strv_eq(op, STRV("upgrade"))) {
		ct_upgrade(t);
		return;
	}
	if (strv_eq(op, STRV("branch"))) {
		ct_branch(t, ref, false);
		return;
	}
	int32_t kind = strv_eq(op, STRV("append"))   ? RPC_KIND_APPEND
		       : strv_eq(op, STRV("update")) ? RPC_KIND_ROW_DELTA
						     : RPC_KIND_DELETE;
	ct_batch(t);
	struct plan_txn *x = ct_txn(t, ref, kind);
	const struct jval *files = jval_get(step, "files"), *deletes = jval_get(step, "deletes");
	for (size_t i = 0; i < jval_count(files); i++) {
		int64_t records;
		ck_assert(jval_as_i64(jval_at(jval_at(files, i), 1), &records));
		ct_add(t, x, ct_data(t, name_of(jval_at(files, i)), records));
	}
	for (size_t i = 0; i < jval_count(deletes); i++) {
		ck_assert(jval_as_str(jval_at(jval_at(deletes, i), 1), &positions));
		ct_del(t, x, name_of(jval_at(deletes, i)), zero_ended(positions),
		       kind == RPC_KIND_DELETE);
	}
	ct_commit(t);
	CT_COMMITTED(x);
	snapshots[n_snapshots++] = ct_head(t, ref);
}

static void same_snapshot(const struct jval *o, const struct snapshot *s)
{
	same(o, "sequence-number", SEQ_NONE, s->sequence_number);
	same(o, "parent", -1, s->parent_id == SNAPSHOT_NONE ? -1 : step_of(s->parent_id));
	same(o, "first-row-id", ROW_ID_NONE, s->first_row_id);
	same(o, "added-rows", ROW_ID_NONE, s->added_rows);
	struct strv op = text(o, "operation");
	ck_assert_msg(strv_eq(op, s->operation), "%s: operation %.*s", where,
		      STRV_ARG(s->operation));
	const struct jval *summary = jval_get(o, "summary");
	for (struct jval_iter it = jval_iter(summary); jval_next(&it);) {
		struct strv want, got;
		ck_assert(jval_as_str(it.val, &want));
		if (strv_eq(it.key, STRV("iceberg-version")) ||
		    (strv_starts(it.key, STRV("manifests-")) && strv_eq(want, STRV("0"))))
			continue;
		got = snapshot_summary(s, zero_ended(it.key));
		ck_assert_msg(strv_eq(got, want), "%s: %.*s is %.*s, not %.*s", where,
			      STRV_ARG(it.key), STRV_ARG(got), STRV_ARG(want));
	}
	for (size_t i = 0; i < s->n_summary; i++)
		ck_assert_msg(strv_starts(s->summary[i].key, STRV("frazil.")) ||
				      jval_get(summary, zero_ended(s->summary[i].key)),
			      "%s: %.*s is only ours", where, STRV_ARG(s->summary[i].key));
}

static void same_entries(const struct jval *list, const struct ct_state *s, bool renumbered)
{
	static const char *names[] = {[ENTRY_EXISTING] = "EXISTING",
				      [ENTRY_ADDED] = "ADDED",
				      [ENTRY_DELETED] = "DELETED"};
	size_t ours = 0;
	for (size_t i = 0; i < s->list->l.n; i++)
		ours += s->views[i]->m->n;
	ck_assert_msg(ours == jval_count(list), "%s: %zu entries, not %zu", where, ours,
		      jval_count(list));
	for (size_t i = 0; i < jval_count(list); i++) {
		const struct jval *o = jval_at(list, i);
		bool data = strv_eq(text(o, "content"), STRV("data"));
		const char *name = zero_ended(text(o, "name"));
		const struct manifest_entry *e = NULL;
		for (int st = 0; st < 3; st++)
			if (strv_eq(text(o, "status"), strv_of(names[st])))
				e = ct_find(t, s, data ? MANIFEST_DATA : MANIFEST_DELETES, name,
					    (enum entry_status)st);
		ck_assert_msg(e != NULL, "%s: no entry %s %.*s", where, name,
			      STRV_ARG(text(o, "status")));
		same(o, "snapshot", -1, step_of(e->snapshot_id));
		same(o, "seq", SEQ_NONE, e->seq);
		same(o, "file-seq", SEQ_NONE, e->file_seq);
		same(o, "records", 0, e->file.record_count);
		if (!data)
			same(o, "blob", 0, e->file.content_size);
		else if (!renumbered)
			same(o, "first-row-id", ROW_ID_NONE, e->file.first_row_id);
		else
			ck_assert_int_ge(e->file.first_row_id, 0);
	}
}

/* In any order. */
static void same_manifests(const struct jval *list, const struct ct_state *s, bool renumbered)
{
	bool taken[256] = {false};
	ck_assert_msg(s->list->l.n == jval_count(list), "%s: %zu manifests", where, s->list->l.n);
	for (size_t i = 0; i < jval_count(list); i++) {
		const struct jval *o = jval_at(list, i);
		bool data = strv_eq(text(o, "content"), STRV("data"));
		size_t k = 0;
		for (; k < s->list->l.n; k++) {
			const struct manifest_file *r = &s->list->l.rows[k];
			if (!taken[k] && (r->content == MANIFEST_DATA) == data &&
			    r->seq == number(o, "seq", 0) &&
			    r->min_seq == number(o, "min-seq", 0) &&
			    step_of(r->added_snapshot_id) == number(o, "snapshot", -1) &&
			    r->added_rows == number(o, "added-rows", -1) &&
			    r->existing_rows == number(o, "existing-rows", -1) &&
			    r->deleted_rows == number(o, "deleted-rows", -1) &&
			    (renumbered ||
			     r->first_row_id == number(o, "first-row-id", ROW_ID_NONE)))
				break;
		}
		ck_assert_msg(k < s->list->l.n, "%s: no manifest like number %zu", where, i);
		taken[k] = true;
	}
}

static void disjoint(const struct ct_state *s)
{
	for (size_t i = 0; i < s->list->l.n; i++)
		for (size_t k = 0; k < s->views[i]->m->n; k++)
			for (size_t j = 0; j < s->list->l.n; j++)
				for (size_t l = 0; l < s->views[j]->m->n; l++) {
					const struct content_file *a =
						&s->views[i]->m->entries[k].file;
					const struct content_file *b =
						&s->views[j]->m->entries[l].file;
					if (a == b || a->content != CONTENT_DATA ||
					    b->content != CONTENT_DATA ||
					    a->first_row_id > b->first_row_id)
						continue;
					ck_assert_int_le(a->first_row_id + a->record_count,
							 b->first_row_id);
				}
}

START_TEST(sequences)
{
	const struct jval *q = jval_at(jdoc_root(doc), (size_t)_i);
	struct strv name = text(q, "name");
	ct_open(t, (int)number(q, "version", 0), "");
	const struct jval *steps = jval_get(q, "steps");
	bool upgraded = false;
	for (size_t i = 0; i < jval_count(steps); i++) {
		const struct jval *step = jval_at(steps, i);
		snprintf(where, sizeof where, "%.*s, step %zu", STRV_ARG(name), i);
		run(step);
		upgraded |= strv_eq(text(step, "op"), STRV("upgrade"));
		if (!jval_get(step, "snapshot"))
			continue;
		same(step, "last-sequence-number", 0, metadata_last_sequence_number(t->meta));
		same(step, "next-row-id", 0, metadata_next_row_id(t->meta));
		const struct ct_state *s = ct_look_ref(t, text(step, "ref"));
		same_snapshot(jval_get(step, "snapshot"), ct_snapshot(t, text(step, "ref")));
		same_entries(jval_get(step, "entries"), s, upgraded);
		same_manifests(jval_get(step, "manifests"), s, upgraded);
		if (metadata_format_version(t->meta) >= 3)
			disjoint(s);
	}
}
END_TEST

#define SEQUENCES 7

START_TEST(all_of_them)
{
	ct_open(t, 3, "");
	ck_assert_uint_eq(jval_count(jdoc_root(doc)), SEQUENCES);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("lane");
	TCase *c = tcase_create("lane");
	tcase_add_checked_fixture(c, up, down);
	tcase_add_loop_test(c, sequences, 0, SEQUENCES);
	tcase_add_test(c, all_of_them);
	suite_add_tcase(s, c);
	return s;
}

UNIT_MAIN(suite)
