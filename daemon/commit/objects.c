#include "daemon/commit/objects.h"

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
