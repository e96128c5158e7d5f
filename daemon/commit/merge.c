#include "daemon/commit/merge.h"

#include "proto/iceberg/metadata.h"

bool merge_touches(const struct plan_lane *lane, const struct mview *v)
{
	for (size_t i = 0; i < lane->n_changes; i++) {
		if (v->content == MANIFEST_DATA && !lane->changes[i].drop)
			continue;
		if (mview_look(v, lane->changes[i].file->key))
			return true;
	}
	return false;
}

bool merge_has_live(const struct manifest_file *f)
{
	return !f->has_file_counts || f->added_files > 0 || f->existing_files > 0;
}

size_t merge_pick(const struct metadata *m, const struct plan_lane *lane,
		  const struct merge_row *rows, size_t n_rows, bool *picked)
{
	int64_t target = metadata_property_i64(m, "commit.manifest.target-size-bytes", 8388608);
	int64_t least = metadata_property_i64(m, "commit.manifest.min-count-to-merge", 100);
	if (strv_ieq(metadata_property(m, "commit.manifest-merge.enabled"), STRV("false")) ||
	    least < 2 || n_rows < (size_t)least)
		return 0;
	for (size_t i = 0; i < n_rows; i++) {
		size_t n = 0;
		int64_t bytes = 0;
		for (size_t j = i; j < n_rows; j++) {
			const struct merge_row *r = &rows[j];
			bool same = r->f->content == rows[i].f->content &&
				    r->f->spec_id == rows[i].f->spec_id &&
				    mview_same_tuple(r->view, rows[i].view);
			picked[j] = same && merge_has_live(r->f) && r->view->n_live > 0 &&
				    r->f->length < target / 2 && bytes + r->f->length <= target &&
				    !merge_touches(lane, r->view);
			if (picked[j]) {
				n++;
				bytes += r->f->length;
			}
		}
		if (n >= (size_t)least)
			return n;
		memset(picked, 0, n_rows * sizeof *picked);
		/* Only the first row of each kind starts a search. */
		bool seen = true;
		while (seen && i + 1 < n_rows) {
			seen = false;
			for (size_t j = 0; j <= i && !seen; j++)
				seen = rows[j].f->content == rows[i + 1].f->content &&
				       rows[j].f->spec_id == rows[i + 1].f->spec_id;
			i += seen;
		}
	}
	return 0;
}
