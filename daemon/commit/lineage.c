#include "daemon/commit/lineage.h"
#include "daemon/commit/mutant.h"

#include <inttypes.h>
#include <stdlib.h>

static bool rows_of(const struct manifest_file *row, const struct mview *view, int64_t *ret_n)
{
	if (row->has_row_counts)
		return row->existing_rows >= 0 && row->added_rows >= 0 &&
		       add_i64(row->existing_rows, row->added_rows, ret_n);
	if (!view || view->rows == ROW_ID_NONE)
		return false;
	*ret_n = view->rows;
	return true;
}

enum status lineage_assign(struct manifest_file *rows, struct mview *const *views, size_t n,
			   int64_t *next, struct err *err)
{
	int64_t running = *next;
	for (size_t i = 0; i < n; i++) {
		if (rows[i].content != MANIFEST_DATA || rows[i].first_row_id != ROW_ID_NONE)
			continue;
		int64_t count;
		rows[i].first_row_id = running;
		if (!rows_of(&rows[i], views[i], &count) || !add_i64(running, MUTANT("row-ids-overlap") ? count - 1 : count, &running))
			return err_set(err, ST_LIMIT, "next-row-id",
				       "row counts of manifest %.*s do not fit",
				       STRV_ARG(rows[i].path));
	}
	*next = running;
	return ST_OK;
}

struct range {
	int64_t from, to;
};

static int by_start(const void *a, const void *b)
{
	const struct range *x = a, *y = b;
	return x->from < y->from ? -1 : x->from > y->from;
}

struct known {
	struct strv path;
	int64_t first_row_id;
};

static int by_path(const void *a, const void *b)
{
	const struct known *x = a, *y = b;
	int order = strv_cmp(x->path, y->path);
	return order ? order
		     : (x->first_row_id > y->first_row_id) - (x->first_row_id < y->first_row_id);
}

/* Every number that a data manifest has in the known lists, ascending. */
static struct known *collect(const struct manifest_list *const *known, size_t n, size_t *ret_n)
{
	size_t most = 0, at = 0;
	for (size_t k = 0; k < n; k++)
		most += known[k]->n;
	struct known *v = base_calloc(most ? most : 1, sizeof *v);
	for (size_t k = 0; k < n; k++)
		for (size_t i = 0; i < known[k]->n; i++) {
			const struct manifest_file *row = &known[k]->rows[i];
			if (row->content == MANIFEST_DATA && row->first_row_id != ROW_ID_NONE)
				v[at++] = (struct known){row->path, row->first_row_id};
		}
	if (at > 1)
		qsort(v, at, sizeof *v, by_path);
	*ret_n = at;
	return v;
}

enum standing { STANDING_NEW, STANDING_SAME, STANDING_CHANGED };

static enum standing standing_of(const struct known *v, size_t n, const struct manifest_file *row)
{
	size_t low = 0, high = n;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (strv_cmp(v[mid].path, row->path) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	enum standing s = STANDING_NEW;
	for (; low < n && strv_eq(v[low].path, row->path); low++) {
		/* Branches of an upgraded table may have given it different ones. */
		if (v[low].first_row_id == row->first_row_id)
			return STANDING_SAME;
		s = STANDING_CHANGED;
	}
	return s;
}

enum status lineage_check(const struct manifest_list *list,
			  const struct manifest_list *const *known, size_t n_known, int64_t low,
			  int64_t end, struct err *err)
{
	struct arena a;
	arena_init(&a, (list->n + 1) * (sizeof(struct range) + 16));
	struct range *fresh = arena_calloc(&a, list->n ? list->n : 1, sizeof *fresh);
	ASSERT(fresh != NULL);
	size_t n = 0, n_olds;
	struct known *olds = collect(known, n_known, &n_olds);
	enum status st = ST_OK;
	for (size_t i = 0; i < list->n && st == ST_OK; i++) {
		const struct manifest_file *row = &list->rows[i];
		if (row->content != MANIFEST_DATA)
			continue;
		if (row->first_row_id == ROW_ID_NONE) {
			st = err_set(err, ST_VALIDATION, "snapshot.manifest-list",
				     "data manifest without first_row_id: %.*s",
				     STRV_ARG(row->path));
			break;
		}
		enum standing standing = standing_of(olds, n_olds, row);
		if (standing == STANDING_CHANGED) {
			st = err_set(err, ST_VALIDATION, "snapshot.manifest-list",
				     "first_row_id of a known manifest changed: %.*s",
				     STRV_ARG(row->path));
			break;
		}
		if (standing == STANDING_SAME && row->first_row_id < low)
			continue;
		int64_t count, to;
		if (!rows_of(row, NULL, &count) || !add_i64(row->first_row_id, count, &to) ||
		    row->first_row_id < low || to > end) {
			st = err_set(err, ST_VALIDATION, "snapshot.manifest-list",
				     "rows of manifest lie outside the snapshot's row ids: %.*s",
				     STRV_ARG(row->path));
			break;
		}
		if (count > 0)
			fresh[n++] = (struct range){row->first_row_id, to};
	}
	if (st == ST_OK && n > 1) {
		qsort(fresh, n, sizeof *fresh, by_start);
		for (size_t i = 1; i < n && st == ST_OK; i++)
			if (fresh[i].from < fresh[i - 1].to)
				st = err_set(err, ST_VALIDATION, "snapshot.manifest-list",
					     "two manifests share row id %" PRId64, fresh[i].from);
	}
	base_free(olds);
	arena_fini(&a);
	return st;
}
