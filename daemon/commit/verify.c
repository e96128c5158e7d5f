#include "daemon/commit/verify.h"

#include "daemon/commit/algebra.h"

static const char *text_of(enum verify_kind kind)
{
	switch (kind) {
	case VERIFY_TWO_VECTORS:
		return "two vectors of";
	case VERIFY_SMALLER:
		return "fewer deleted rows of";
	case VERIFY_DANGLING:
		return "vector without data file";
	case VERIFY_ROW_IDS:
		return "row ids changed of";
	case VERIFY_UNREADABLE:
		return "unreadable";
	}
	ASSERT_NEVER("unknown finding");
	return "";
}

const char *verify_word(enum verify_kind kind)
{
	static const char *const words[] = {
		[VERIFY_TWO_VECTORS] = "two-vectors", [VERIFY_SMALLER] = "smaller-vector",
		[VERIFY_DANGLING] = "dangling-vector", [VERIFY_ROW_IDS] = "row-ids-changed",
		[VERIFY_UNREADABLE] = "unreadable",
	};
	return words[kind];
}

void verify_err(const struct verify_finding *f, enum status st, struct err *err)
{
	size_t max = sizeof err->msg - 40, from = f->path.n > max ? f->path.n - max : 0;
	struct strv path = strv_sub(f->path, from, f->path.n);
	err_set(err, st, "snapshot", "%s %s%.*s", text_of(f->kind), from ? "..." : "",
		       STRV_ARG(path));
}

void verify_note(struct verify_out *out, enum verify_kind kind, struct strv path)
{
	out->total++;
	if (out->n < VERIFY_MAX)
		out->v[out->n++] = (struct verify_finding){kind, path};
}

static void vector(const struct verify_snapshot *s, size_t row, const struct manifest_entry *e,
		   struct verify_out *out)
{
	struct strv path = e->file.referenced_data_file;
	struct mkey key = mview_key(path);
	struct located now = algebra_locate(s->now, s->n_now, key);
	struct located before = algebra_locate(s->before, s->n_before, key);
	if (e->status == ENTRY_DELETED) {
		/* Replaced, or gone with its data file; anything else revives rows. */
		if (now.data && !now.dv && before.dv)
			verify_note(out, VERIFY_SMALLER, path);
		return;
	}
	if (!now.data)
		verify_note(out, VERIFY_DANGLING, path);
	else if (now.n_dvs > 1 && now.dv_row == row &&
		 &s->now[row]->m->entries[now.dv->entry] == e)
		verify_note(out, VERIFY_TWO_VECTORS, path); /* told at the last one only */
	else if (before.dv && e->file.record_count < before.dv->record_count)
		verify_note(out, VERIFY_SMALLER, path);
}

static void data_file(const struct verify_snapshot *s, const struct manifest_entry *e,
		      struct verify_out *out)
{
	struct strv path = e->file.path;
	if (e->status == ENTRY_DELETED) {
		struct located now = algebra_locate(s->now, s->n_now, mview_key(path));
		if (!now.data && now.dv)
			verify_note(out, VERIFY_DANGLING, path);
	} else if (e->status == ENTRY_EXISTING) {
		struct located before = algebra_locate(s->before, s->n_before, mview_key(path));
		if (before.data && before.data->first_row_id != ROW_ID_NONE &&
		    before.data->first_row_id != e->file.first_row_id)
			verify_note(out, VERIFY_ROW_IDS, path);
	}
}

void verify_run(const struct verify_snapshot *s, struct verify_out *out)
{
	for (size_t i = 0; i < s->n_now; i++) {
		const struct manifest *m = s->now[i]->m;
		ASSERT(m || !s->fresh[i]);
		for (size_t k = 0; s->fresh[i] && k < m->n; k++) {
			const struct manifest_entry *e = &m->entries[k];
			if (m->content == MANIFEST_DATA)
				data_file(s, e, out);
			else if (content_file_is_dv(&e->file))
				vector(s, i, e, out);
		}
	}
}
