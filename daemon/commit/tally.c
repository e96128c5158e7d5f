#include "daemon/commit/tally.h"
#include "daemon/commit/mutant.h"

#include <inttypes.h>

#include "proto/iceberg/snapshot.h"

struct tally_part {
	int32_t spec_id;
	const struct tuple *tuple;
	uint64_t hash;
};

void tally_init(struct tally *t, struct arena *a)
{
	*t = (struct tally){.arena = a};
}

static bool touch(struct tally *t, const struct content_file *f)
{
	uint64_t h = tuple_hash(&f->partition) ^ (uint64_t)(uint32_t)f->spec_id * 0x9e3779b97f4a7c15u;
	/* Open addressing once there are many; the array is the table. */
	if (t->n_parts * 2 >= t->cap_parts) {
		size_t cap = t->cap_parts ? t->cap_parts * 2 : 16;
		struct tally_part *p = arena_calloc(t->arena, cap, sizeof *p);
		if (!p)
			return false;
		for (size_t i = 0; i < t->cap_parts; i++) {
			if (!t->parts[i].tuple)
				continue;
			size_t at = (size_t)t->parts[i].hash & (cap - 1);
			while (p[at].tuple)
				at = (at + 1) & (cap - 1);
			p[at] = t->parts[i];
		}
		t->parts = p;
		t->cap_parts = cap;
	}
	size_t at = (size_t)h & (t->cap_parts - 1);
	for (; t->parts[at].tuple; at = (at + 1) & (t->cap_parts - 1))
		if (t->parts[at].hash == h && t->parts[at].spec_id == f->spec_id &&
		    tuple_eq(t->parts[at].tuple, &f->partition))
			return true;
	t->parts[at] = (struct tally_part){f->spec_id, &f->partition, h};
	t->n_parts++;
	return true;
}

bool tally_add(struct tally *t, const struct content_file *f)
{
	if (content_file_is_dv(f)) {
		t->added_dvs++;
		t->added_positions += f->record_count;
		t->added_size += f->content_size;
	} else if (f->content == CONTENT_POSITION_DELETES) {
		t->added_pos_files++;
		t->added_positions += f->record_count;
		t->added_size += f->file_size;
	} else {
		t->added_data_files++;
		t->added_records += f->record_count;
		t->added_size += f->file_size;
	}
	return touch(t, f);
}

bool tally_remove(struct tally *t, const struct content_file *f)
{
	if (MUTANT("tally-forgets"))
		return true;
	if (content_file_is_dv(f)) {
		t->removed_dvs++;
		t->removed_positions += f->record_count;
		t->removed_size += f->content_size;
	} else if (f->content == CONTENT_POSITION_DELETES) {
		t->removed_pos_files++;
		t->removed_positions += f->record_count;
		t->removed_size += f->file_size;
	} else {
		t->deleted_data_files++;
		t->deleted_records += f->record_count;
		t->removed_size += f->file_size;
	}
	return touch(t, f);
}

struct strv tally_operation(const struct tally *t)
{
	bool deletes = t->added_dvs > 0 || t->added_pos_files > 0 || t->deleted_data_files > 0;
	if (t->added_data_files == 0)
		return STRV("delete");
	return deletes ? STRV("overwrite") : STRV("append");
}

struct pairs {
	struct strv_pair *v;
	size_t n;
	struct arena *a;
	bool ok;
};

static void put(struct pairs *p, const char *key, int64_t n)
{
	char *text = arena_printf(p->a, "%" PRId64, n);
	if (!text) {
		p->ok = false;
		return;
	}
	p->v[p->n++] = (struct strv_pair){strv_of(key), strv_of(text)};
}

static void counter(struct pairs *p, const char *key, int64_t n)
{
	if (n > 0)
		put(p, key, n);
}

static void total(struct pairs *p, const struct snapshot *parent, const char *key, int64_t added,
		  int64_t removed)
{
	int64_t before = 0;
	if (parent) {
		struct strv text = snapshot_summary(parent, key);
		if (!text.p || !strv_i64(text, &before) || before < 0)
			return;
	}
	int64_t after;
	if (!add_i64(before, added - removed, &after) || after < 0)
		return;
	put(p, key, after);
}

bool tally_summary(const struct tally *t, const struct snapshot *parent,
		   const struct strv_pair *more, size_t n_more,
		   const struct strv_pair **ret_pairs, size_t *ret_n)
{
	struct pairs p = {.a = t->arena, .ok = true};
	p.v = arena_calloc(t->arena, 32 + n_more, sizeof *p.v);
	if (!p.v)
		return false;
	counter(&p, "added-data-files", t->added_data_files);
	counter(&p, "deleted-data-files", t->deleted_data_files);
	int64_t added = t->added_dvs + t->added_pos_files;
	int64_t removed = t->removed_dvs + t->removed_pos_files;
	counter(&p, "added-delete-files", added);
	counter(&p, "removed-delete-files", removed);
	counter(&p, "added-position-delete-files", t->added_pos_files);
	counter(&p, "removed-position-delete-files", t->removed_pos_files);
	counter(&p, "added-dvs", t->added_dvs);
	counter(&p, "removed-dvs", t->removed_dvs);
	counter(&p, "added-records", t->added_records);
	counter(&p, "deleted-records", t->deleted_records);
	counter(&p, "added-files-size", t->added_size);
	counter(&p, "removed-files-size", t->removed_size);
	counter(&p, "added-position-deletes", t->added_positions);
	counter(&p, "removed-position-deletes", t->removed_positions);
	put(&p, "changed-partition-count", (int64_t)t->n_parts);
	counter(&p, "manifests-created", t->created);
	counter(&p, "manifests-kept", t->kept);
	counter(&p, "manifests-replaced", t->replaced);
	total(&p, parent, "total-records", t->added_records, t->deleted_records);
	total(&p, parent, "total-files-size", t->added_size, t->removed_size);
	total(&p, parent, "total-data-files", t->added_data_files, t->deleted_data_files);
	total(&p, parent, "total-delete-files", added, removed);
	total(&p, parent, "total-position-deletes", t->added_positions, t->removed_positions);
	total(&p, parent, "total-equality-deletes", 0, 0);
	if (!p.ok)
		return false;
	for (size_t i = 0; i < n_more; i++) {
		/* A client's property never replaces a counter. */
		bool taken = strv_eq(more[i].key, STRV("operation"));
		for (size_t k = 0; k < p.n; k++)
			taken |= strv_eq(p.v[k].key, more[i].key);
		if (!taken)
			p.v[p.n++] = more[i];
	}
	*ret_pairs = p.v;
	*ret_n = p.n;
	return true;
}
