#include "daemon/commit/lane.h"

#include <inttypes.h>
#include <stdlib.h>

#include "daemon/commit/intake/adopt.h"
#include "daemon/commit/lineage.h"
#include "daemon/commit/merge.h"
#include "daemon/commit/posdel.h"
#include "daemon/commit/tally.h"
#include "proto/dv/dv_blob.h"
#include "proto/dv/puffin.h"
#include "proto/iceberg/metadata.h"

#define CREATED_BY STRV("frazil")

static enum status full(struct err *err)
{
	return err_set(err, ST_LIMIT, "", "the batch exceeds the memory limit of one snapshot");
}

/* ------------------------------------------------------------------ vectors */

/* One Puffin file for one data file: when the vector is replaced later, nobody else's goes. */
static enum status write_vector(struct lane_work *k, const struct plan_change *c,
				struct manifest_entry *ret_e, struct err *err)
{
	struct encode_out *out = k->w.out;
	const struct plan_file *data = c->file;
	const struct mview *of = k->plan->refs[data->ref].views[data->data_row];
	int64_t cardinality = (int64_t)bitmap64_cardinality(c->result);
	struct buf blob, file;
	buf_init(&blob, k->w.in->max_bytes);
	buf_init(&file, k->w.in->max_bytes);
	int64_t offset = 0;
	struct bytes framed = {NULL, 0};
	enum status st = dv_blob_encode(c->result, &blob, err);
	if (st == ST_OK) {
		framed = buf_bytes(&blob);
		struct puffin_writer pw;
		puffin_begin(&pw, &file);
		st = puffin_add_vector(&pw, framed, data->path, cardinality, &offset, err);
		if (st == ST_OK)
			st = puffin_finish(&pw, CREATED_BY, err);
		puffin_writer_fini(&pw);
	}
	char uuid[UUID_TEXT_LEN + 1];
	uuid_text(k->w.in->commit_uuid, uuid);
	char *path = arena_printf(&out->arena, "%.*s/dv-%s-%d.puffin", STRV_ARG(k->data_dir), uuid,
				  k->n_vectors);
	void *items = out->vecs;
	if (st == ST_OK && (!path || !arena_grow(&out->arena, &items, &out->cap_vecs,
						 out->n_vecs + 1, sizeof *out->vecs)))
		st = full(err);
	if (st == ST_OK) {
		out->vecs = items;
		k->n_vectors++;
		size_t blob_bytes = framed.n, file_bytes = file.n;
		st = rewrite_object(out, strv_of(path), &file, NULL, err);
		if (st == ST_OK) {
			out->vecs[out->n_vecs++] = (struct encode_vec){
				strv_of(path), offset, vec_new(bitmap64_clone(c->result))};
			*ret_e = (struct manifest_entry){.status = ENTRY_ADDED,
							 .snapshot_id = k->w.snapshot_id,
							 .seq = SEQ_NONE,
							 .file_seq = SEQ_NONE,
							 .file = content_file_empty()};
			struct content_file *f = &ret_e->file;
			f->content = CONTENT_POSITION_DELETES;
			f->path = strv_of(path);
			f->format = STRV("PUFFIN");
			f->spec_id = of->spec_id;
			f->partition = *mview_tuple(of, data->data);
			f->record_count = cardinality;
			f->file_size = (int64_t)file_bytes;
			f->referenced_data_file = data->path;
			f->content_offset = offset;
			f->content_size = (int64_t)blob_bytes;
		}
	}
	buf_fini(&blob);
	buf_fini(&file);
	return st;
}

/* ------------------------------------------------------------------ one snapshot */

struct fresh {
	struct rewrite_row row;
	struct bytes file;
	bool is_new; /* first listed by this snapshot: the view is made once the numbers are fixed */
	const struct plan_adopted *adopted; /* not written here */
	const struct content_file *files;   /* with it: the transaction's */
};

struct next {
	struct fresh *v;
	size_t n;
};

static bool is_changed(void *ctx, const struct manifest_entry *e)
{
	const struct lane_work *k = ctx;
	bool data = e->file.content == CONTENT_DATA;
	if (!data && !content_file_is_dv(&e->file))
		return false;
	struct strv path = data ? e->file.path : e->file.referenced_data_file;
	size_t low = 0, high = k->n_changes;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int order = strv_cmp(path, k->changes[mid]->file->path);
		if (order == 0)
			/* A changed file loses its old vector; a dropped one also itself. */
			return !data || k->changes[mid]->drop;
		if (order < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return false;
}

static int by_path(const void *a, const void *b)
{
	const struct plan_change *x = *(const struct plan_change *const *)a;
	const struct plan_change *y = *(const struct plan_change *const *)b;
	return strv_cmp(x->file->path, y->file->path);
}

static bool sort_changes(struct lane_work *k, const struct plan_lane *lane)
{
	k->n_changes = lane->n_changes;
	k->changes = arena_calloc(&k->w.out->arena, lane->n_changes ? lane->n_changes : 1,
				  sizeof(struct plan_change *));
	if (!k->changes)
		return false;
	for (size_t i = 0; i < lane->n_changes; i++)
		k->changes[i] = &lane->changes[i];
	if (k->n_changes > 1)
		qsort(k->changes, k->n_changes, sizeof(struct plan_change *), by_path);
	return true;
}

static enum status merge_small(struct lane_work *k, const struct plan_lane *lane,
			       const struct lane_line *line, bool *picked, struct next *next,
			       struct tally *tally, struct err *err)
{
	struct merge_row *rows = arena_calloc(&k->w.out->arena, line->n ? line->n : 1, sizeof *rows);
	if (!rows)
		return full(err);
	/* Those that the plan has not loaded stay as they are; it loads what the first lane takes. */
	size_t whole = 0, at = 0;
	for (size_t i = 0; i < line->n; i++) {
		whole += line->rows[i].view->m != NULL;
		rows[i] = (struct merge_row){&line->rows[i].f, line->rows[i].view};
	}
	size_t n = whole ? merge_pick(k->w.meta, lane, rows, line->n, picked) : 0;
	for (size_t i = 0; i < line->n; i++)
		if (picked[i] && !line->rows[i].view->m) {
			memset(picked, 0, line->n * sizeof *picked);
			n = 0;
		}
	if (n == 0)
		return ST_OK;
	const struct rewrite_row **olds =
		arena_calloc(&k->w.out->arena, n, sizeof(struct rewrite_row *));
	if (!olds)
		return full(err);
	for (size_t i = 0; i < line->n; i++)
		if (picked[i])
			olds[at++] = &line->rows[i];
	struct fresh *f = &next->v[next->n];
	*f = (struct fresh){.is_new = true};
	enum status st = rewrite_merge(&k->w, olds, n, &f->row.f, &f->file, err);
	if (st != ST_OK)
		return st;
	next->n++;
	tally->created++;
	tally->replaced += (int64_t)n;
	return ST_OK;
}

/* Old manifests: kept, rewritten where an entry goes, left out when nothing in them is alive. */
static enum status old_rows(struct lane_work *k, const struct plan_lane *lane, const struct lane_line *line,
			    struct next *next, struct tally *tally, struct err *err)
{
	bool *picked = arena_calloc(&k->w.out->arena, line->n ? line->n : 1, sizeof *picked);
	if (!picked)
		return full(err);
	enum status st = merge_small(k, lane, line, picked, next, tally, err);
	for (size_t i = 0; st == ST_OK && i < line->n; i++) {
		const struct rewrite_row *r = &line->rows[i];
		if (picked[i] || !merge_has_live(&r->f))
			continue;
		struct fresh *f = &next->v[next->n];
		if (!merge_touches(lane, r->view)) {
			*f = (struct fresh){.row = *r};
			next->n++;
			tally->kept++;
			continue;
		}
		ASSERT(r->view->m != NULL);
		for (size_t e = 0; e < r->view->m->n; e++) {
			const struct manifest_entry *entry = &r->view->m->entries[e];
			if (entry->status != ENTRY_DELETED &&
			    is_changed(k, entry) &&
			    !tally_remove(tally, &entry->file))
				return full(err);
		}
		*f = (struct fresh){.is_new = true};
		st = rewrite_copy(&k->w, r, is_changed, k, &f->row.f, &f->file, err);
		next->n++;
		tally->created++;
		tally->replaced++;
	}
	return st;
}

/* Entries grouped by spec, one manifest each, in the order in which specs first appear. likes: for
 * each entry the manifest that its tuple was taken from, or NULL for new tuples. */
static enum status new_rows(struct lane_work *k, enum manifest_content content,
			    const struct manifest_entry *const *entries,
			    const struct mview *const *likes, size_t n,
			    struct next *next, struct tally *tally, struct err *err)
{
	const struct manifest_entry **group =
		arena_calloc(&k->w.out->arena, n ? n : 1, sizeof(struct manifest_entry *));
	bool *done = arena_calloc(&k->w.out->arena, n ? n : 1, sizeof *done);
	if (!group || !done)
		return full(err);
	for (size_t i = 0; i < n; i++) {
		if (done[i])
			continue;
		size_t m = 0;
		for (size_t j = i; j < n; j++)
			if (!done[j] && entries[j]->file.spec_id == entries[i]->file.spec_id &&
			    (!likes || mview_same_tuple(likes[i], likes[j]))) {
				done[j] = true;
				group[m++] = entries[j];
			}
		struct fresh *f = &next->v[next->n];
		*f = (struct fresh){.is_new = true};
		enum status st = rewrite_manifest(&k->w, content, entries[i]->file.spec_id,
						  likes ? likes[i] : NULL, group, m, &f->row.f,
						  &f->file, err);
		if (st != ST_OK)
			return st;
		next->n++;
		tally->created++;
	}
	return ST_OK;
}

static enum status lane_adopt(struct lane_work *k, const struct plan_txn *t,
			      const struct plan_adopted *ad, struct next *next,
			      struct tally *tally, struct err *err)
{
	struct fresh *f = &next->v[next->n];
	*f = (struct fresh){.is_new = true, .adopted = ad, .files = t->files};
	enum status st =
		adopt_row(ad, t->files, k->w.meta, &k->w.out->arena, &f->row.f, err);
	if (st != ST_OK)
		return st;
	f->row.f.seq = f->row.f.min_seq = k->w.seq;
	f->row.f.added_snapshot_id = k->w.snapshot_id;
	for (size_t i = 0; i < ad->n; i++)
		if (!tally_add(tally, &t->files[ad->first + i]))
			return full(err);
	next->n++;
	tally->created++;
	return ST_OK;
}

static enum status lane_data(struct lane_work *k, const struct plan_lane *lane, struct next *next,
			     struct tally *tally, struct err *err)
{
	struct arena *a = &k->w.out->arena;
	size_t n = 0;
	struct manifest_entry *all = arena_calloc(a, lane->n_files ? lane->n_files : 1, sizeof *all);
	const struct manifest_entry **v =
		arena_calloc(a, lane->n_files ? lane->n_files : 1, sizeof(struct manifest_entry *));
	if (!all || !v)
		return full(err);
	for (size_t i = 0; i < lane->n_txns; i++) {
		const struct plan_txn *t = lane->txns[i];
		size_t adopted = 0;
		for (size_t j = 0; j < t->n_files; j++) {
			if (adopted < t->n_adopted && t->adopted[adopted].first == j) {
				const struct plan_adopted *ad = &t->adopted[adopted++];
				enum status st = lane_adopt(k, t, ad, next, tally, err);
				if (st != ST_OK)
					return st;
				j += ad->n - 1;
				continue;
			}
			all[n] = (struct manifest_entry){.status = ENTRY_ADDED,
							 .snapshot_id = k->w.snapshot_id,
							 .seq = SEQ_NONE,
							 .file_seq = SEQ_NONE,
							 .file = t->files[j]};
			v[n] = &all[n];
			if (!tally_add(tally, &all[n].file))
				return full(err);
			n++;
		}
	}
	return n ? new_rows(k, MANIFEST_DATA, v, NULL, n, next, tally, err) : ST_OK;
}

static enum status lane_vectors(struct lane_work *k, const struct plan_lane *lane, struct next *next,
				struct tally *tally, struct err *err)
{
	struct arena *a = &k->w.out->arena;
	size_t n = 0;
	struct manifest_entry *all =
		arena_calloc(a, lane->n_changes ? lane->n_changes : 1, sizeof *all);
	const struct manifest_entry **v = arena_calloc(a, lane->n_changes ? lane->n_changes : 1,
						       sizeof(struct manifest_entry *));
	const struct mview **likes = arena_calloc(a, lane->n_changes ? lane->n_changes : 1,
						  sizeof(struct mview *));
	if (!all || !v || !likes)
		return full(err);
	for (size_t i = 0; i < lane->n_changes; i++) {
		if (lane->changes[i].drop)
			continue;
		enum status st = write_vector(k, &lane->changes[i], &all[n], err);
		if (st != ST_OK)
			return st;
		v[n] = &all[n];
		const struct plan_file *f = lane->changes[i].file;
		likes[n] = k->plan->refs[f->ref].views[f->data_row];
		if (!tally_add(tally, &all[n].file))
			return full(err);
		n++;
	}
	return n ? new_rows(k, MANIFEST_DELETES, v, likes, n, next, tally, err) : ST_OK;
}

/* Files of position deletes, as their workers described them; version 2 only. Like data files they
 * inherit the snapshot's sequence number. */
static enum status lane_delete_files(struct lane_work *k, const struct plan_lane *lane,
				     struct next *next, struct tally *tally, struct err *err)
{
	struct arena *a = &k->w.out->arena;
	size_t n = 0, most = lane->n_delete_files ? lane->n_delete_files : 1;
	struct manifest_entry *all = arena_calloc(a, most, sizeof *all);
	const struct manifest_entry **v = arena_calloc(a, most, sizeof(struct manifest_entry *));
	if (!all || !v)
		return full(err);
	for (size_t i = 0; i < lane->n_txns; i++)
		for (size_t j = 0; j < lane->txns[i]->n_delete_files; j++) {
			all[n] = (struct manifest_entry){.status = ENTRY_ADDED,
							 .snapshot_id = k->w.snapshot_id,
							 .seq = SEQ_NONE,
							 .file_seq = SEQ_NONE,
							 .file = lane->txns[i]->delete_files[j].file};
			v[n] = &all[n];
			if (!tally_add(tally, &all[n].file))
				return full(err);
			n++;
		}
	return n ? new_rows(k, MANIFEST_DELETES, v, NULL, n, next, tally, err) : ST_OK;
}

/* Decodes what was just written, as any reader would: the next lane and the cache use that. */
static enum status make_views(struct lane_work *k, struct next *next, struct err *err)
{
	struct encode_out *out = k->w.out;
	for (size_t i = 0; i < next->n; i++) {
		struct fresh *f = &next->v[i];
		if (!f->is_new)
			continue;
		void *items = out->views;
		if (!arena_grow(&out->arena, &items, &out->cap_views, out->n_views + 1,
				sizeof *out->views))
			return full(err);
		out->views = items;
		struct mview *view = NULL;
		enum status st =
			f->adopted ? adopt_view(f->adopted, f->files, k->w.meta, &f->row.f,
						k->w.in->max_bytes, &view, err)
				   : mview_read(f->file, &f->row.f, k->w.meta, k->w.in->max_bytes,
						&view, err);
		if (st != ST_OK)
			return st;
		f->row.view = view;
		out->views[out->n_views++] = (struct encode_view){.path = f->row.f.path,
								  .first_row_id =
									  f->row.f.first_row_id,
							  .seq = f->row.f.seq,
								  .view = view};
	}
	return ST_OK;
}

static enum status write_list(struct lane_work *k, const struct plan_lane *lane,
			      const struct lane_line *line, const struct manifest_file *rows, size_t n,
			      int64_t first_row_id, struct strv *ret_path, struct err *err)
{
	struct encode_out *out = k->w.out;
	char uuid[UUID_TEXT_LEN + 1];
	uuid_text(k->w.in->commit_uuid, uuid);
	char *path = arena_printf(&out->arena, "%.*s/snap-%" PRId64 "-1-%s.avro",
				  STRV_ARG(k->w.metadata_dir), lane->snapshot_id, uuid);
	void *items = out->lists;
	if (!path || !arena_grow(&out->arena, &items, &out->cap_lists, out->n_lists + 1,
				 sizeof *out->lists))
		return full(err);
	out->lists = items;
	struct manifest_list_params params = {
		.format_version = k->w.version,
		.snapshot_id = lane->snapshot_id,
		.parent_snapshot_id = line->head ? line->head->snapshot_id : SNAPSHOT_NONE,
		.seq = k->w.seq,
		.first_row_id = first_row_id,
		.codec = CODEC_DEFLATE,
	};
	memcpy(params.sync, k->w.in->sync, sizeof params.sync);
	struct buf b;
	buf_init(&b, k->w.in->max_bytes);
	struct bytes file = {NULL, 0};
	struct mlist *list = NULL;
	enum status st = manifest_list_write(&params, rows, n, &b, err);
	if (st == ST_OK)
		st = rewrite_object(out, strv_of(path), &b, &file, err);
	buf_fini(&b);
	if (st == ST_OK)
		st = mlist_read(file, k->w.in->max_bytes, &list, err);
	if (st != ST_OK)
		return st;
	out->lists[out->n_lists++] = (struct encode_list){strv_of(path), list};
	*ret_path = strv_of(path);
	return ST_OK;
}

/* First row ids of the lane's files: by the running count inside each new data manifest. */
static bool row_ids(struct lane_work *k, const struct plan_lane *lane, const struct next *next)
{
	for (size_t i = 0; i < lane->n_txns; i++) {
		const struct plan_txn *t = lane->txns[i];
		struct encode_txn *e = &k->w.out->txns[t - k->plan->txns];
		e->snapshot_id = lane->snapshot_id;
		e->seq = k->w.seq;
		e->first_row_ids =
			arena_calloc(&k->w.out->arena, t->n_files ? t->n_files : 1, sizeof(int64_t));
		if (!e->first_row_ids)
			return false;
		for (size_t j = 0; j < t->n_files; j++) {
			e->first_row_ids[j] = ROW_ID_NONE;
			for (size_t r = 0; r < next->n; r++) {
				const struct fresh *f = &next->v[r];
				if (!f->is_new || f->row.view->content != MANIFEST_DATA)
					continue;
				const struct mfile *found =
					mview_look(f->row.view, mview_key(t->files[j].path));
				if (found)
					e->first_row_ids[j] = found->first_row_id;
			}
		}
	}
	return true;
}

static bool moves(const struct plan_lane *lane)
{
	for (size_t i = 0; i < lane->n_txns; i++)
		for (size_t k = 0; k < lane->txns[i]->n_deletes; k++)
			if (!lane->txns[i]->deletes[k].dead && lane->txns[i]->deletes[k].deleted > 0)
				return true;
	return false;
}

enum status lane_encode(struct lane_work *k, int index, struct err *err)
{
	const struct plan_lane *lane = &k->plan->lanes[index];
	struct lane_line *line = &k->lines[lane->ref];
	struct encode_out *out = k->w.out;
	struct tally tally;
	tally_init(&tally, &out->arena);
	k->w.snapshot_id = lane->snapshot_id;
	k->w.seq = 0;
	/* A client may have left nothing above the one it took. */
	if (k->w.version >= 2 &&
	    !add_i64(metadata_last_sequence_number(k->w.meta), 1 + index, &k->w.seq))
		return err_set(err, ST_LIMIT, "last-sequence-number", "sequence numbers are used up");
	struct next next = {0};
	/* Every old manifest, at most once; new ones: at most one per file or vector. */
	size_t most = line->n + 1 + lane->n_files + lane->n_changes + lane->n_delete_files;
	next.v = arena_calloc(&out->arena, most ? most : 1, sizeof *next.v);
	if (!next.v || !sort_changes(k, lane))
		return full(err);
	enum status st = old_rows(k, lane, line, &next, &tally, err);
	if (st == ST_OK)
		st = lane_data(k, lane, &next, &tally, err);
	if (st == ST_OK)
		st = lane_vectors(k, lane, &next, &tally, err);
	if (st == ST_OK)
		st = lane_delete_files(k, lane, &next, &tally, err);
	struct manifest_file *rows = arena_calloc(&out->arena, next.n ? next.n : 1, sizeof *rows);
	struct mview **views = arena_calloc(&out->arena, next.n ? next.n : 1, sizeof(struct mview *));
	if (st == ST_OK && (!rows || !views))
		st = full(err);
	int64_t first = k->next_row_id;
	if (st == ST_OK) {
		for (size_t i = 0; i < next.n; i++) {
			rows[i] = next.v[i].row.f;
			views[i] = next.v[i].row.view;
		}
		if (k->w.version >= 3)
			st = lineage_assign(rows, views, next.n, &k->next_row_id, err);
	}
	if (st != ST_OK)
		return st;
	for (size_t i = 0; i < next.n; i++)
		next.v[i].row.f = rows[i];
	st = make_views(k, &next, err);
	struct snapshot *s = &k->snapshots[index];
	bool v3 = k->w.version >= 3;
	*s = (struct snapshot){
		.snapshot_id = lane->snapshot_id,
		.parent_id = line->head ? line->head->snapshot_id : SNAPSHOT_NONE,
		.sequence_number = k->w.seq,
		.timestamp_ms = k->timestamp_ms,
		.schema_id = metadata_current_schema_id(k->w.meta),
		.first_row_id = v3 ? first : ROW_ID_NONE,
		.added_rows = v3 ? k->next_row_id - first : ROW_ID_NONE,
	};
	if (st == ST_OK)
		st = write_list(k, lane, line, rows, next.n, s->first_row_id, &s->manifest_list,
				err);
	if (st == ST_OK && !row_ids(k, lane, &next))
		st = full(err);
	if (st != ST_OK)
		return st;
	struct strv_pair *more = arena_calloc(&out->arena, lane->n_summary + 3, sizeof *more);
	char *batch = arena_alloc(&out->arena, UUID_TEXT_LEN + 1);
	char *count = arena_printf(&out->arena, "%zu", lane->n_txns);
	if (!more || !batch || !count)
		return full(err);
	uuid_text(k->w.in->batch.u, batch);
	if (lane->n_summary)
		memcpy(more, lane->summary, lane->n_summary * sizeof *more);
	more[lane->n_summary] = (struct strv_pair){STRV("frazil.batch-id"), strv_of(batch)};
	more[lane->n_summary + 1] =
		(struct strv_pair){STRV("frazil.transactions"), strv_of(count)};
	size_t n_more = lane->n_summary + 2;
	/* Durable, so that whoever takes the table over knows which deletions were moves. */
	if (moves(lane) || posdel_moves(lane))
		more[n_more++] = (struct strv_pair){STRV("frazil.rows-moved"), STRV("true")};
	s->operation = tally_operation(&tally);
	if (!tally_summary(&tally, line->head, more, n_more, &s->summary, &s->n_summary))
		return full(err);
	struct rewrite_row *grown = arena_calloc(&out->arena, next.n ? next.n : 1, sizeof *grown);
	if (!grown)
		return full(err);
	for (size_t i = 0; i < next.n; i++)
		grown[i] = next.v[i].row;
	*line = (struct lane_line){grown, next.n, s};
	out->snapshots[out->n_snapshots++] = lane->snapshot_id;
	return ST_OK;
}
