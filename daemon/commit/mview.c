#include "daemon/commit/mview.h"

#include <stdlib.h>

#include "proto/base/digest.h"
#include "proto/iceberg/metadata.h"
#include "proto/iceberg/partition.h"

struct mkey mview_key(struct strv path)
{
	struct digest d = digest_sha256(strv_bytes(path));
	return (struct mkey){get_u64be(d.b), get_u64be(d.b + 8)};
}

int mview_key_cmp(struct mkey a, struct mkey b)
{
	if (a.hi != b.hi)
		return a.hi < b.hi ? -1 : 1;
	return a.lo < b.lo ? -1 : a.lo > b.lo;
}

static int by_key(const void *a, const void *b)
{
	const struct mfile *x = a, *y = b;
	int order = mview_key_cmp(x->key, y->key);
	return order ? order : (x->entry > y->entry) - (x->entry < y->entry);
}

/* ------------------------------------------------------------------ making one */

static bool is_vector(const struct manifest *m, const struct manifest_entry *e)
{
	return m->content == MANIFEST_DELETES && content_file_is_dv(&e->file);
}

/* The data file that an entry is about: itself, or the one that a vector belongs to. */
static struct strv path_of(const struct manifest *m, const struct manifest_entry *e)
{
	return is_vector(m, e) ? e->file.referenced_data_file : e->file.path;
}

static struct mkey key_of(const struct manifest *m, const struct manifest_entry *e)
{
	return m->content == MANIFEST_DATA || is_vector(m, e) ? mview_key(path_of(m, e))
							      : mview_delete_key(mview_key(e->file.path));
}

/* Types of partition fields are primitive; names and docs of the fields are not kept. */
static struct field *copy_types(struct arena *a, const struct field *in, size_t n)
{
	struct field *v = arena_calloc(a, n ? n : 1, sizeof *v);
	struct type *types = arena_calloc(a, n ? n : 1, sizeof *types);
	if (!v || !types)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		ASSERT(!type_is_nested(in[i].type));
		types[i] = *in[i].type;
		v[i] = (struct field){
			.id = in[i].id, .required = in[i].required, .type = &types[i]};
		bool ok = arena_strv(a, in[i].name, &v[i].name);
		if (types[i].crs.p)
			ok &= arena_strv(a, types[i].crs, &types[i].crs);
		if (types[i].algorithm.p)
			ok &= arena_strv(a, types[i].algorithm, &types[i].algorithm);
		if (!ok)
			return NULL;
	}
	return v;
}

/* Tuples seen so far, by hash: number + 1, 0 is empty. */
struct interned {
	struct arena arena;
	uint32_t *slots;
	size_t n_slots, cap;
};

static bool intern(struct mview *v, struct interned *in, const struct tuple *t, uint32_t *ret_no)
{
	size_t at = (size_t)tuple_hash(t) & (in->n_slots - 1);
	for (; in->slots[at]; at = (at + 1) & (in->n_slots - 1))
		if (tuple_eq(&v->tuples[in->slots[at] - 1], t)) {
			*ret_no = in->slots[at] - 1;
			return true;
		}
	void *items = v->tuples;
	if (!arena_grow(&v->arena, &items, &in->cap, v->n_tuples + 1, sizeof *v->tuples))
		return false;
	v->tuples = items;
	if (!tuple_copy(&v->arena, t, &v->tuples[v->n_tuples]))
		return false;
	*ret_no = (uint32_t)v->n_tuples++;
	in->slots[at] = *ret_no + 1;
	return true;
}

static void free_light(struct mview *v)
{
	arena_fini(&v->arena);
	base_free(v);
}

/* NULL when memory is gone, as pack. */
static struct mview *light_new(enum manifest_content content, int32_t spec_id,
			       const struct field *partition, size_t n_partition)
{
	struct mview *v = base_calloc(1, sizeof *v);
	v->refs = 1;
	v->content = content;
	v->spec_id = spec_id;
	/* What is copied is part of a manifest that was decoded within its own limit. */
	arena_init(&v->arena, SIZE_MAX);
	v->partition = copy_types(&v->arena, partition, n_partition);
	v->n_partition = n_partition;
	if (v->partition)
		return v;
	free_light(v);
	return NULL;
}

static void count(struct mview *v, const struct manifest *m)
{
	bool fits = true;
	for (size_t i = 0; i < m->n; i++) {
		const struct manifest_entry *e = &m->entries[i];
		if (e->status == ENTRY_DELETED)
			continue;
		v->n_live++;
		fits &= add_i64(v->rows, e->file.record_count, &v->rows);
		v->n_legacy += m->content == MANIFEST_DELETES && !is_vector(m, e) &&
			       e->file.content == CONTENT_POSITION_DELETES;
		v->n_equality += e->file.content == CONTENT_EQUALITY_DELETES;
	}
	if (!fits)
		v->rows = ROW_ID_NONE;
}

static bool fill(struct mview *v, const struct manifest *m, struct interned *in)
{
	size_t n = 0;
	for (size_t i = 0; i < m->n; i++) {
		const struct manifest_entry *e = &m->entries[i];
		if (e->status == ENTRY_DELETED)
			continue;
		struct mfile *f = &v->files[n++];
		*f = (struct mfile){.key = key_of(m, e),
				    .seq = e->seq,
				    .file_seq = e->file_seq,
				    .record_count = e->file.record_count,
				    .first_row_id = e->file.first_row_id,
				    .entry = (uint32_t)i};
		if (m->content == MANIFEST_DATA &&
		    !intern(v, in, &e->file.partition, &f->tuple))
			return false;
	}
	if (n > 1)
		qsort(v->files, n, sizeof *v->files, by_key);
	return true;
}

static struct mview *pack(const struct manifest *m)
{
	struct mview *v = light_new(m->content, m->spec_id, m->partition, m->n_partition);
	ASSERT(m->n <= UINT32_MAX);
	if (!v)
		return NULL;
	count(v, m);
	v->n_files = v->n_live;
	v->files = arena_calloc(&v->arena, v->n_files ? v->n_files : 1, sizeof *v->files);
	struct interned in = {.n_slots = 8};
	arena_init(&in.arena, SIZE_MAX);
	while (in.n_slots < v->n_files * 2)
		in.n_slots *= 2;
	in.slots = arena_calloc(&in.arena, in.n_slots, sizeof *in.slots);
	bool ok = v->files && in.slots && fill(v, m, &in);
	arena_fini(&in.arena);
	if (ok)
		return v;
	free_light(v);
	return NULL;
}

/* Shares what v has. */
static struct mview *copy_head(const struct mview *v)
{
	struct mview *c = base_calloc(1, sizeof *c);
	*c = *v;
	c->refs = 1;
	c->light = c->bare = NULL;
	arena_init(&c->arena, 0);
	return c;
}

struct mview *mview_new(struct manifest *own_m)
{
	struct mview *light = pack(own_m);
	if (!light) {
		manifest_unref(own_m);
		return NULL;
	}
	struct mview *v = copy_head(light);
	v->light = light;
	v->m = own_m;
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
	if (st != ST_OK)
		return st;
	struct mview *v = mview_new(m);
	if (!v)
		return err_set(err, ST_LIMIT, "manifest", "no memory for the index of its files");
	*ret_v = v;
	return ST_OK;
}

/* ------------------------------------------------------------------ sharing */

struct mview *mview_ref(struct mview *v)
{
	ASSERT(v->refs > 0);
	v->refs++;
	return v;
}

/* A bare view has nothing beneath it. */
static void unref_light(struct mview *v)
{
	if (--v->refs > 0)
		return;
	if (v->bare && --v->bare->refs == 0)
		free_light(v->bare);
	free_light(v);
}

void mview_unref(struct mview *own_v)
{
	if (own_v && !own_v->light) {
		unref_light(own_v);
	} else if (own_v && --own_v->refs == 0) {
		unref_light(own_v->light);
		manifest_unref(own_v->m);
		base_free(own_v);
	}
}

struct mview *mview_light(struct mview *v)
{
	return mview_ref(v->light ? v->light : v);
}

struct mview *mview_bare(struct mview *v)
{
	struct mview *light = v->light ? v->light : v;
	if (!light->bare) {
		struct mview *b = light_new(v->content, v->spec_id, v->partition, v->n_partition);
		ASSERT(b != NULL); /* as small as any structure */
		b->n_live = v->n_live;
		b->n_legacy = v->n_legacy;
		b->n_equality = v->n_equality;
		b->rows = v->rows;
		light->bare = b;
	}
	return mview_ref(light->bare);
}

/* ------------------------------------------------------------------ asking */

const struct mfile *mview_look(const struct mview *v, struct mkey key)
{
	size_t low = 0, high = v->n_files;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (mview_key_cmp(v->files[mid].key, key) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	bool found = low < v->n_files && mview_key_cmp(v->files[low].key, key) == 0;
	return found ? &v->files[low] : NULL;
}

const struct manifest_entry *mview_find(const struct mview *v, struct strv path)
{
	ASSERT(v->m != NULL);
	struct mkey key = mview_key(path);
	const struct mfile *f = mview_look(v, key);
	if (!f)
		f = mview_look(v, mview_delete_key(key));
	return f && strv_eq(path_of(v->m, &v->m->entries[f->entry]), path)
		       ? &v->m->entries[f->entry]
		       : NULL;
}

bool mview_same_tuple(const struct mview *a, const struct mview *b)
{
	if (a->n_partition != b->n_partition)
		return false;
	for (size_t i = 0; i < a->n_partition; i++)
		if (!type_eq(a->partition[i].type, b->partition[i].type))
			return false;
	return true;
}

static size_t light_memory(const struct mview *v)
{
	return sizeof *v + v->arena.used;
}

size_t mview_memory(const struct mview *v)
{
	const struct mview *light = v->light ? v->light : v;
	return light_memory(light) + (light->bare ? light_memory(light->bare) : 0) +
	       (v->light ? sizeof *v + sizeof *v->m + v->m->arena.used : 0);
}
