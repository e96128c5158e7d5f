/* What a reader sees in a snapshot: its live files with their vectors and position deletes. Whatever no
 * reader could make sense of fails the run. */
#include "tests/sim/world.h"

#include <inttypes.h>

#include "proto/dv/dv_blob.h"

/* What a file of position deletes says of one data file. */
struct o_rows {
	struct o_rows *next;
	struct strv path, data_file;
	struct bitmap64 *rows;
};

struct scans {
	struct scan *seen;
	struct o_rows *delete_files;
};

void scans_init(struct world *w)
{
	w->scans = world_alloc(w, sizeof *w->scans);
}

void scans_fini(struct world *w)
{
	struct scans *all = w->scans;
	if (!all)
		return;
	for (struct scan *s = all->seen; s; s = s->next)
		for (size_t i = 0; i < s->n; i++) {
			bitmap64_free(s->files[i].dv);
			bitmap64_free(s->files[i].old);
		}
	for (struct o_rows *r = all->delete_files; r; r = r->next)
		bitmap64_free(r->rows);
}

void scans_delete_file(struct world *w, struct strv path, struct strv data_file,
			const struct bitmap64 *rows)
{
	struct o_rows *r = world_alloc(w, sizeof *r);
	*r = (struct o_rows){.next = w->scans->delete_files,
			     .path = path,
			     .data_file = data_file,
			     .rows = bitmap64_clone(rows)};
	w->scans->delete_files = r;
}

void scans_check_object(struct world *w, struct strv path, int64_t size)
{
	const struct object *o = store_find(w, path);
	const struct m_obj *row = pg_obj(w, path);
	if (!o)
		world_fail(w, "a referenced object is missing: %.*s", STRV_ARG(path));
	if (size >= 0 && o->size != size)
		world_fail(w, "a referenced object has %" PRId64 " bytes, not %" PRId64 ": %.*s",
			   o->size, size, STRV_ARG(path));
	/* What a drop has queued may come back with its table: a look saves it. */
	bool back = row && w->conf.comeback && row->state != OBJ_LEDGER;
	if (row && !o->restaged && !back)
		world_fail(w, "a referenced object is in the ledger or the delete queue (%d): %.*s",
			   (int)row->state, STRV_ARG(path));
}

static struct scan_file *scan_find(const struct scan *s, struct strv path)
{
	for (size_t i = 0; i < s->n; i++)
		if (strv_eq(s->files[i].path, path))
			return &s->files[i];
	return NULL;
}

static void scan_vector(struct world *w, struct scan *s, const struct manifest_entry *e)
{
	struct scan_file *f = scan_find(s, e->file.referenced_data_file);
	struct err err = {0};
	if (!f)
		world_fail(w, "a vector of a file that is not live: %.*s",
			   STRV_ARG(e->file.referenced_data_file));
	if (f->dv)
		world_fail(w, "two vectors for %.*s", STRV_ARG(f->path));
	if (f->spec_id != e->file.spec_id || !tuple_eq(&f->partition, &e->file.partition))
		world_fail(w, "vector and data file differ in their partition: %.*s",
			   STRV_ARG(f->path));
	scans_check_object(w, e->file.path, e->file.file_size);
	const struct object *o = store_find(w, e->file.path);
	if (e->file.content_offset + e->file.content_size > (int64_t)o->data.n)
		world_fail(w, "a vector lies beyond its file");
	struct bytes blob = {o->data.p + e->file.content_offset, (size_t)e->file.content_size};
	if (dv_blob_decode(blob, &f->dv, &err) != ST_OK ||
	    dv_blob_check_count(f->dv, e->file.record_count, &err) != ST_OK ||
	    dv_blob_check_range(f->dv, f->records, &err) != ST_OK)
		world_fail(w, "vector of %.*s: %s: %s", STRV_ARG(f->path), err.field, err.msg);
	f->dv_path = world_strv(w, e->file.path);
}

/* As a reader applies it: to data that is not younger, by name or by spec and partition. */
static void scan_delete_file(struct world *w, struct scan *s, const struct manifest_entry *e)
{
	const struct strv *only = &e->file.referenced_data_file;
	int64_t rows = 0;
	struct err err;
	if (e->file.content != CONTENT_POSITION_DELETES)
		world_fail(w, "deletes that nobody wrote: %.*s", STRV_ARG(e->file.path));
	scans_check_object(w, e->file.path, e->file.file_size);
	for (struct o_rows *r = w->scans->delete_files; r; r = r->next) {
		if (!strv_eq(r->path, e->file.path))
			continue;
		rows += (int64_t)bitmap64_cardinality(r->rows);
		struct scan_file *f = scan_find(s, r->data_file);
		if (!f || f->seq > e->seq || (only->p && !strv_eq(*only, f->path)) ||
		    f->spec_id != e->file.spec_id || !tuple_eq(&f->partition, &e->file.partition))
			continue;
		if (!f->old)
			f->old = bitmap64_new();
		ASSERT(bitmap64_union(f->old, (const struct bitmap64 *const *)&r->rows, 1, &err) ==
		       ST_OK);
	}
	if (rows != e->file.record_count)
		world_fail(w, "a delete file has %" PRId64 " rows, its entry says %" PRId64, rows,
			   e->file.record_count);
}

static void check_total(struct world *w, const struct snapshot *s, const char *key, int64_t want)
{
	struct strv text = snapshot_summary(s, key);
	int64_t got;
	if (!text.p || !strv_i64(text, &got) || got != want)
		world_fail(w, "summary %s of snapshot %" PRId64 " is %.*s, a scan gives %" PRId64,
			   key, s->snapshot_id, STRV_ARG(text), want);
}

static void check_totals(struct world *w, const struct scan *s, const struct snapshot *sn,
			 int64_t bytes, int64_t dv_bytes, int64_t old_files, int64_t old_rows)
{
	int64_t records = 0, positions = old_rows, dvs = old_files;
	for (size_t i = 0; i < s->n; i++) {
		records += s->files[i].records;
		if (!s->files[i].dv)
			continue;
		dvs++;
		positions += (int64_t)bitmap64_cardinality(s->files[i].dv);
	}
	check_total(w, sn, "total-data-files", (int64_t)s->n);
	check_total(w, sn, "total-records", records);
	check_total(w, sn, "total-delete-files", dvs);
	check_total(w, sn, "total-position-deletes", positions);
	check_total(w, sn, "total-files-size", bytes + dv_bytes);
}

const struct scan *scans_of(struct world *w, struct table_id table, const struct metadata *m,
			       const struct snapshot *sn)
{
	for (struct scan *s = w->scans->seen; s; s = s->next)
		if (s->snapshot_id == sn->snapshot_id && uuid_eq(s->table.u, table.u))
			return s;
	struct scan *s = world_alloc(w, sizeof *s);
	s->snapshot_id = sn->snapshot_id;
	s->table = table;
	struct mlist *l = store_list(w, sn->manifest_list);
	int64_t bytes = 0, dv_bytes = 0, old_files = 0, old_rows = 0;
	scans_check_object(w, sn->manifest_list, -1);
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < l->l.n; i++) {
			const struct manifest_file *row = &l->l.rows[i];
			if ((row->content == MANIFEST_DATA) != (pass == 0))
				continue;
			scans_check_object(w, row->path, row->length);
			const struct mview *v = store_view(w, row, m);
			for (size_t k = 0; k < v->m->n; k++) {
				const struct manifest_entry *e = &v->m->entries[k];
				if (e->status == ENTRY_DELETED)
					continue;
				if (e->seq > sn->sequence_number)
					world_fail(w, "an entry is newer than its snapshot");
				if (pass == 1 && !content_file_is_dv(&e->file)) {
					scan_delete_file(w, s, e);
					bytes += e->file.file_size;
					old_rows += e->file.record_count;
					old_files++;
					continue;
				}
				if (pass == 1) {
					scan_vector(w, s, e);
					dv_bytes += e->file.content_size;
					continue;
				}
				if (scan_find(s, e->file.path))
					world_fail(w, "a data file is live twice: %.*s",
						   STRV_ARG(e->file.path));
				scans_check_object(w, e->file.path, e->file.file_size);
				bytes += e->file.file_size;
				s->files = world_grow(w, s->files, &s->cap, s->n + 1,
						      sizeof *s->files);
				struct scan_file *f = &s->files[s->n++];
				*f = (struct scan_file){.path = world_strv(w, e->file.path),
							.records = e->file.record_count,
							.first_row_id = e->file.first_row_id,
							.seq = e->seq,
							.spec_id = e->file.spec_id};
				ASSERT(tuple_copy(&w->mem, &e->file.partition, &f->partition));
			}
		}
	mlist_unref(l);
	check_totals(w, s, sn, bytes, dv_bytes, old_files, old_rows);
	s->next = w->scans->seen;
	w->scans->seen = s;
	return s;
}
