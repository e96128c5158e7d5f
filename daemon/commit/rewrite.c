#include "daemon/commit/rewrite.h"

#include "proto/avro/manifest_write.h"
#include "proto/base/jwrite.h"
#include "proto/iceberg/metadata.h"
#include "proto/iceberg/partition.h"

static enum status full(struct err *err)
{
	return err_set(err, ST_LIMIT, "", "the batch exceeds the memory limit of one snapshot");
}

enum status rewrite_init(struct rewrite *w, const struct encode_in *in, struct encode_out *out,
			 const struct metadata *meta, struct err *err)
{
	*w = (struct rewrite){
		.in = in, .out = out, .meta = meta, .version = metadata_format_version(meta)};
	struct buf b;
	struct jwrite jw;
	buf_init(&b, in->max_bytes);
	jwrite_init(&jw, &b);
	schema_write(&jw, metadata_schema(meta));
	bool ok = buf_ok(&b) && arena_strv(&out->arena, buf_strv(&b), &w->schema_json) &&
		  metadata_folder(meta, &out->arena, &w->metadata_dir);
	buf_fini(&b);
	return ok ? ST_OK : full(err);
}

enum status rewrite_pieces(struct encode_out *out, struct strv path, const struct pieces *content,
			   struct buf *b, struct err *err)
{
	void *items = out->objects;
	if (!buf_ok(b) || !arena_grow(&out->arena, &items, &out->cap_objects, out->n_objects + 1,
				      sizeof *out->objects))
		return full(err);
	out->objects = items;
	struct encode_object *o = &out->objects[out->n_objects++];
	*o = (struct encode_object){.path = path, .content = *content};
	o->data.p = buf_take(b, &o->data.n);
	return ST_OK;
}

enum status rewrite_object(struct encode_out *out, struct strv path, struct buf *b,
			   struct bytes *ret_data, struct err *err)
{
	struct pieces whole = {0};
	struct bytes data = buf_bytes(b);
	if (!buf_ok(b) || !pieces_add(&whole, &out->arena, data))
		return full(err);
	enum status st = rewrite_pieces(out, path, &whole, b, err);
	if (st == ST_OK && ret_data)
		*ret_data = data;
	return st;
}

/* Entries of a manifest that was read before a column of the spec was promoted (spec "Schema
 * Evolution"): their tuples get the types that the manifest is written with. A source that is gone
 * keeps the type of the old file. */
static enum status widen(struct rewrite *w, const struct partition_spec *spec,
			 const struct mview *like, struct field **ret_types,
			 const struct manifest_entry *const **io_entries, size_t n, struct err *err)
{
	struct arena *a = &w->out->arena;
	struct field *now;
	bool changed = false;
	enum status st = partition_type(spec, metadata_schema(w->meta), a, &now, err);
	*ret_types = like->partition;
	if (st != ST_OK || like->n_partition != spec->n)
		return st;
	for (size_t i = 0; i < spec->n; i++) {
		bool wider = !type_eq(like->partition[i].type, now[i].type) &&
			     type_promotes(like->partition[i].type, now[i].type, w->version);
		if (!wider)
			now[i].type = like->partition[i].type;
		changed |= wider;
	}
	if (!changed)
		return ST_OK;
	struct manifest_entry *copies = arena_calloc(a, n, sizeof *copies);
	const struct manifest_entry **list = arena_calloc(a, n, sizeof *list);
	if (!copies || !list)
		return full(err);
	for (size_t e = 0; e < n; e++) {
		copies[e] = *(*io_entries)[e];
		list[e] = &copies[e];
		struct tuple *t = &copies[e].file.partition;
		const struct value *old = t->v;
		if (!(t->v = arena_calloc(a, t->n ? t->n : 1, sizeof *t->v)))
			return full(err);
		for (size_t i = 0; i < t->n; i++) {
			t->v[i] = old[i];
			if (!old[i].null && now[i].type != like->partition[i].type)
				st = value_read(now[i].type, old[i].b, true, ST_CORRUPT, a,
						&t->v[i], err);
			if (st != ST_OK)
				return st;
		}
	}
	*ret_types = now;
	*io_entries = list;
	return ST_OK;
}

enum status rewrite_manifest(struct rewrite *w, enum manifest_content content, int32_t spec_id,
			     const struct mview *like,
			     const struct manifest_entry *const *entries, size_t n,
			     struct manifest_file *ret_row, struct bytes *ret_file, struct err *err)
{
	struct arena *a = &w->out->arena;
	const struct partition_spec *spec = metadata_spec_by_id(w->meta, spec_id);
	if (!spec)
		return err_set(err, ST_CORRUPT, "partition_spec_id", "spec %d is not in the table",
			       spec_id);
	struct field *types;
	enum status st = like ? widen(w, spec, like, &types, &entries, n, err)
			      : partition_type(spec, metadata_schema(w->meta), a, &types, err);
	if (st != ST_OK)
		return st;
	struct buf b;
	struct jwrite jw;
	struct strv spec_json;
	buf_init(&b, w->in->max_bytes);
	jwrite_init(&jw, &b);
	partition_write_fields(&jw, spec);
	bool ok = buf_ok(&b) && arena_strv(a, buf_strv(&b), &spec_json);
	buf_clear(&b);
	char uuid[UUID_TEXT_LEN + 1];
	uuid_text(w->in->commit_uuid, uuid);
	char *path = arena_printf(a, "%.*s/%s-m%d.avro", STRV_ARG(w->metadata_dir), uuid,
				  w->n_manifests);
	if (!ok || !path) {
		buf_fini(&b);
		return full(err);
	}
	w->n_manifests++;
	struct manifest_params params = {
		.format_version = w->version,
		.content = content,
		.schema = w->schema_json,
		.schema_id = metadata_current_schema_id(w->meta),
		.spec_id = spec_id,
		.spec_fields = spec_json,
		.partition = types,
		.n_partition = like ? like->n_partition : spec->n,
		.snapshot_id = w->snapshot_id,
		.codec = CODEC_DEFLATE,
	};
	memcpy(params.sync, w->in->sync, sizeof params.sync);
	st = manifest_write(&params, entries, n, &b, a, ret_row, err);
	if (st == ST_OK) {
		ret_row->path = strv_of(path);
		ret_row->seq = w->version >= 2 ? w->seq : 0;
		if (ret_row->min_seq == SEQ_NONE)
			ret_row->min_seq = ret_row->seq;
		ret_row->added_snapshot_id = w->snapshot_id;
		st = rewrite_object(w->out, ret_row->path, &b, ret_file, err);
	}
	buf_fini(&b);
	return st;
}

/* A live entry goes into another manifest: what it inherited here, it must state there. A manifest
 * gets its first-row-id when a list first names it in version 3; an earlier view has none yet. */
static enum status carry(const struct rewrite_row *old, struct manifest_entry *e, int64_t *next,
			 struct err *err)
{
	if (*next == ROW_ID_NONE || e->file.first_row_id != ROW_ID_NONE)
		return ST_OK;
	e->file.first_row_id = *next;
	if (!add_i64(*next, e->file.record_count, next))
		return err_set(err, ST_CORRUPT, "first_row_id", "row ids of %.*s pass 63 bits",
			       STRV_ARG(old->f.path));
	return ST_OK;
}

static int64_t first_of(const struct rewrite *w, const struct rewrite_row *old)
{
	return w->version >= 3 && old->f.content == MANIFEST_DATA ? old->f.first_row_id
								  : ROW_ID_NONE;
}

enum status rewrite_copy(struct rewrite *w, const struct rewrite_row *old,
			 bool (*gone)(void *ctx, const struct manifest_entry *e), void *ctx,
			 struct manifest_file *ret_row, struct bytes *ret_file, struct err *err)
{
	const struct manifest *m = old->view->m;
	struct arena *a = &w->out->arena;
	struct manifest_entry *copies = arena_calloc(a, m->n ? m->n : 1, sizeof *copies);
	const struct manifest_entry **entries =
		arena_calloc(a, m->n ? m->n : 1, sizeof(struct manifest_entry *));
	if (!copies || !entries)
		return full(err);
	size_t n = 0;
	int64_t next = first_of(w, old);
	for (size_t i = 0; i < m->n; i++) {
		const struct manifest_entry *e = &m->entries[i];
		if (e->status == ENTRY_DELETED)
			continue;
		copies[n] = *e;
		copies[n].status = ENTRY_EXISTING;
		enum status st = carry(old, &copies[n], &next, err);
		if (st != ST_OK)
			return st;
		if (gone(ctx, e)) {
			copies[n].status = ENTRY_DELETED;
			copies[n].snapshot_id = w->snapshot_id;
		}
		entries[n] = &copies[n];
		n++;
	}
	return rewrite_manifest(w, m->content, old->f.spec_id, old->view, entries, n, ret_row, ret_file,
				err);
}

enum status rewrite_merge(struct rewrite *w, const struct rewrite_row *const *olds, size_t n,
			  struct manifest_file *ret_row, struct bytes *ret_file, struct err *err)
{
	struct arena *a = &w->out->arena;
	size_t most = 0, at = 0;
	for (size_t i = 0; i < n; i++)
		most += olds[i]->view->n_live;
	struct manifest_entry *copies = arena_calloc(a, most ? most : 1, sizeof *copies);
	const struct manifest_entry **entries =
		arena_calloc(a, most ? most : 1, sizeof(struct manifest_entry *));
	if (!copies || !entries)
		return full(err);
	for (size_t i = 0; i < n; i++) {
		int64_t next = first_of(w, olds[i]);
		for (size_t k = 0; k < olds[i]->view->m->n; k++) {
			const struct manifest_entry *e = &olds[i]->view->m->entries[k];
			if (e->status == ENTRY_DELETED)
				continue;
			copies[at] = *e;
			copies[at].status = ENTRY_EXISTING;
			enum status st = carry(olds[i], &copies[at], &next, err);
			if (st != ST_OK)
				return st;
			entries[at] = &copies[at];
			at++;
		}
	}
	return rewrite_manifest(w, olds[0]->view->content, olds[0]->f.spec_id, olds[0]->view,
				entries, at, ret_row, ret_file, err);
}
