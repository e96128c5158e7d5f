#include "daemon/commit/objects.h"

#include "proto/iceberg/metadata.h"
#include "proto/iceberg/partition.h"

enum status mlist_read(struct bytes file, size_t limit, struct mlist **ret_l, struct err *err)
{
	struct mlist *l = base_calloc(1, sizeof *l);
	l->refs = 1;
	arena_init(&l->arena, limit);
	enum status st = manifest_list_read(file, &l->arena, &l->l, err);
	if (st != ST_OK) {
		mlist_unref(l);
		return st;
	}
	*ret_l = l;
	return ST_OK;
}

struct mlist *mlist_ref(struct mlist *l)
{
	ASSERT(l->refs > 0);
	l->refs++;
	return l;
}

void mlist_unref(struct mlist *own_l)
{
	if (!own_l || --own_l->refs > 0)
		return;
	arena_fini(&own_l->arena);
	base_free(own_l);
}

/* The path under which a live entry is found, or an empty view when it is not in the hash. */
static struct strv key_of(const struct manifest *m, const struct manifest_entry *e)
{
	if (e->status == ENTRY_DELETED)
		return (struct strv){NULL, 0};
	if (m->content == MANIFEST_DATA || !content_file_is_dv(&e->file))
		return e->file.path;
	return e->file.referenced_data_file;
}

struct mview *mview_new(struct manifest *own_m)
{
	struct mview *v = base_calloc(1, sizeof *v);
	v->refs = 1;
	v->m = own_m;
	size_t keyed = 0;
	for (size_t i = 0; i < own_m->n; i++) {
		const struct manifest_entry *e = &own_m->entries[i];
		if (e->status == ENTRY_DELETED)
			continue;
		v->n_live++;
		keyed += key_of(own_m, e).p != NULL;
		if (own_m->content == MANIFEST_DATA || content_file_is_dv(&e->file))
			continue;
		v->n_legacy += e->file.content == CONTENT_POSITION_DELETES;
		v->n_equality += e->file.content == CONTENT_EQUALITY_DELETES;
	}
	v->n_slots = 8;
	while (v->n_slots < keyed * 2)
		v->n_slots *= 2;
	v->slots = base_calloc(v->n_slots, sizeof *v->slots);
	for (size_t i = 0; i < own_m->n; i++) {
		struct strv key = key_of(own_m, &own_m->entries[i]);
		if (!key.p)
			continue;
		size_t at = (size_t)bytes_hash(strv_bytes(key)) & (v->n_slots - 1);
		while (v->slots[at])
			at = (at + 1) & (v->n_slots - 1);
		v->slots[at] = (uint32_t)i + 1;
	}
	return v;
}

enum status mview_read(struct bytes file, const struct manifest_file *row,
		       const struct metadata *meta, size_t limit, struct mview **ret_v,
		       struct err *err)
{
	const struct partition_spec *spec = metadata_spec_by_id(meta, row->spec_id);
	if (!spec)
		return err_set(err, ST_CORRUPT, "partition_spec_id",
			       "manifest list names spec %d, which the metadata lacks",
			       row->spec_id);
	struct arena a;
	arena_init(&a, (size_t)1 << 20);
	struct field *fields = NULL;
	struct manifest *m = NULL;
	enum status st = partition_type(spec, metadata_schema(meta), &a, &fields, err);
	if (st == ST_OK)
		st = manifest_read(file, row, fields, spec->n, limit, &m, err);
	arena_fini(&a);
	if (st == ST_OK)
		*ret_v = mview_new(m);
	return st;
}

struct mview *mview_ref(struct mview *v)
{
	ASSERT(v->refs > 0);
	v->refs++;
	return v;
}

void mview_unref(struct mview *own_v)
{
	if (!own_v || --own_v->refs > 0)
		return;
	manifest_unref(own_v->m);
	base_free(own_v->slots);
	base_free(own_v);
}

uint64_t mview_hash(struct strv path)
{
	return bytes_hash(strv_bytes(path));
}

const struct manifest_entry *mview_find(const struct mview *v, struct strv path)
{
	return mview_find_hash(v, path, mview_hash(path));
}

const struct manifest_entry *mview_find_hash(const struct mview *v, struct strv path, uint64_t hash)
{
	size_t at = (size_t)hash & (v->n_slots - 1);
	for (; v->slots[at]; at = (at + 1) & (v->n_slots - 1)) {
		const struct manifest_entry *e = &v->m->entries[v->slots[at] - 1];
		if (strv_eq(key_of(v->m, e), path))
			return e;
	}
	return NULL;
}

size_t mview_memory(const struct mview *v)
{
	return sizeof *v + v->n_slots * sizeof *v->slots + v->m->arena.used + sizeof *v->m;
}

struct vec *vec_new(struct bitmap64 *own_set)
{
	struct vec *v = base_calloc(1, sizeof *v);
	v->refs = 1;
	v->set = own_set;
	return v;
}

struct vec *vec_ref(struct vec *v)
{
	ASSERT(v->refs > 0);
	v->refs++;
	return v;
}

void vec_unref(struct vec *own_v)
{
	if (!own_v || --own_v->refs > 0)
		return;
	bitmap64_free(own_v->set);
	base_free(own_v);
}
