#include "proto/iceberg/metapart.h"

/* One schema with ten thousand columns stays well below this. */
#define PART_MAX_BYTES ((size_t)64 << 20)

static enum status limit(struct err *err)
{
	return err_set(err, ST_LIMIT, "", "a part of the metadata exceeds the memory limit");
}

static struct metapart *fresh(void)
{
	struct metapart *p = base_calloc(1, sizeof *p);
	p->refs = 1;
	arena_init(&p->arena, PART_MAX_BYTES);
	return p;
}

void metapart_unref(struct metapart *own_p)
{
	if (!own_p || __atomic_sub_fetch(&own_p->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	arena_fini(&own_p->arena);
	base_free((void *)(uintptr_t)own_p->json.p);
	base_free(own_p);
}

/* The text becomes the part's own, cut to its size. */
static bool take_json(struct metapart *p, struct buf *b)
{
	size_t n;
	uint8_t *text = buf_take(b, &n);
	if (!text)
		return false;
	p->json = (struct strv){base_realloc_array(text, n, 1), n};
	return true;
}

enum part_kind { PART_SCHEMA, PART_SPEC, PART_ORDER };

static enum status parse(struct metapart *p, enum part_kind kind, const struct jval *v, int32_t id,
			 enum status bad, struct err *err)
{
	enum status st = ST_OK;
	switch (kind) {
	case PART_SCHEMA:
		st = schema_parse(v, bad, &p->arena, &p->u.schema, err);
		if (id >= 0)
			p->u.schema.schema_id = id;
		p->key = p->u.schema.schema_id;
		break;
	case PART_SPEC:
		st = jval_is_array(v) ? partition_parse_fields(v, bad, &p->arena, &p->u.spec, err)
				      : partition_parse(v, bad, &p->arena, &p->u.spec, err);
		if (id >= 0)
			p->u.spec.spec_id = id;
		p->key = p->u.spec.spec_id;
		break;
	case PART_ORDER:
		st = sort_parse(v, bad, &p->arena, &p->u.order, err);
		if (id >= 0)
			p->u.order.order_id = id;
		p->key = p->u.order.order_id;
		break;
	}
	return st;
}

static void write(struct jwrite *w, enum part_kind kind, const struct metapart *p)
{
	if (kind == PART_SCHEMA)
		schema_write(w, &p->u.schema);
	else if (kind == PART_SPEC)
		partition_write(w, &p->u.spec);
	else
		sort_write(w, &p->u.order);
}

static enum status from_json(struct strv json, enum part_kind kind, int32_t id, enum status bad,
			     struct metapart **ret_p, struct err *err)
{
	struct metapart *p = fresh();
	struct jdoc *doc = NULL;
	struct buf b;
	struct jwrite w;
	buf_init(&b, PART_MAX_BYTES);
	enum status st = jdoc_parse(strv_bytes(json), bad, &doc, err);
	if (st == ST_OK)
		st = parse(p, kind, jdoc_root(doc), id, bad, err);
	jdoc_free(doc);
	if (st == ST_OK && kind == PART_SPEC) {
		/* Old documents leave field ids out; they count from the first one. */
		int32_t last = PARTITION_FIELD_ID_FIRST - 1;
		st = partition_assign_ids(&p->u.spec, NULL, 0, 1, &last, err);
	}
	if (st == ST_OK) {
		jwrite_init(&w, &b);
		write(&w, kind, p);
		if (!take_json(p, &b))
			st = limit(err);
	}
	buf_fini(&b);
	if (st == ST_OK)
		*ret_p = p;
	else
		metapart_unref(p);
	return st;
}

enum status metapart_schema(struct strv json, int32_t id, enum status bad, struct metapart **ret_p,
			    struct err *err)
{
	return from_json(json, PART_SCHEMA, id, bad, ret_p, err);
}

enum status metapart_spec(struct strv json, int32_t id, enum status bad, struct metapart **ret_p,
			  struct err *err)
{
	return from_json(json, PART_SPEC, id, bad, ret_p, err);
}

enum status metapart_order(struct strv json, int32_t id, enum status bad, struct metapart **ret_p,
			   struct err *err)
{
	return from_json(json, PART_ORDER, id, bad, ret_p, err);
}

/* A deep copy by way of the canonical text: rare, and there is one reader to trust. */
static enum status copy(const struct metapart *like, enum part_kind kind, int32_t id,
			struct metapart **ret_p, struct err *err)
{
	struct buf b;
	struct jwrite w;
	buf_init(&b, PART_MAX_BYTES);
	jwrite_init(&w, &b);
	write(&w, kind, like);
	enum status st = buf_ok(&b) ? from_json(buf_strv(&b), kind, id, ST_VALIDATION, ret_p, err)
				    : limit(err);
	buf_fini(&b);
	return st;
}

enum status metapart_schema_copy(const struct schema *s, int32_t id, struct metapart **ret_p,
				 struct err *err)
{
	struct metapart like = {.u.schema = *s};
	return copy(&like, PART_SCHEMA, id, ret_p, err);
}

enum status metapart_spec_copy(const struct partition_spec *s, int32_t id, struct metapart **ret_p,
			       struct err *err)
{
	struct metapart like = {.u.spec = *s};
	return copy(&like, PART_SPEC, id, ret_p, err);
}

enum status metapart_order_copy(const struct sort_order *o, int32_t id, struct metapart **ret_p,
				struct err *err)
{
	struct metapart like = {.u.order = *o};
	return copy(&like, PART_ORDER, id, ret_p, err);
}

enum status metapart_text(struct strv json, int64_t key, struct strv name, struct metapart **ret_p,
			  struct err *err)
{
	struct metapart *p = fresh();
	struct buf b;
	buf_init(&b, json.n);
	buf_putv(&b, json);
	p->key = key;
	bool ok = take_json(p, &b) && (!name.p || arena_strv(&p->arena, name, &p->name));
	buf_fini(&b);
	if (!ok) {
		metapart_unref(p);
		return limit(err);
	}
	*ret_p = p;
	return ST_OK;
}

static bool grow(struct metapart_list *l, size_t need, struct arena *a)
{
	void *v = l->v;
	if (!arena_grow(a, &v, &l->cap, need, sizeof(struct metapart *)))
		return false;
	l->v = v;
	return true;
}

bool metapart_list_copy(struct metapart_list *to, const struct metapart_list *from, struct arena *a)
{
	struct metapart_list l = {0};
	if (from->n > 0 && !grow(&l, from->n, a))
		return false;
	for (size_t i = 0; i < from->n; i++) {
		__atomic_add_fetch(&from->v[i]->refs, 1, __ATOMIC_RELAXED);
		l.v[i] = from->v[i];
	}
	l.n = from->n;
	*to = l;
	return true;
}

void metapart_list_fini(struct metapart_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		metapart_unref(l->v[i]);
	*l = (struct metapart_list){0};
}

bool metapart_list_add(struct metapart_list *l, struct metapart *own_p, struct arena *a)
{
	if (!grow(l, l->n + 1, a)) {
		metapart_unref(own_p);
		return false;
	}
	l->v[l->n++] = own_p;
	return true;
}

void metapart_list_remove(struct metapart_list *l, size_t i)
{
	metapart_unref(l->v[i]);
	memmove(l->v + i, l->v + i + 1, (l->n - i - 1) * sizeof *l->v);
	l->n--;
}

size_t metapart_list_index(const struct metapart_list *l, int64_t key)
{
	size_t i = 0;
	while (i < l->n && l->v[i]->key != key)
		i++;
	return i;
}

struct metapart *metapart_list_find(const struct metapart_list *l, int64_t key)
{
	size_t i = metapart_list_index(l, key);
	return i < l->n ? l->v[i] : NULL;
}

void metapart_list_json(const struct metapart_list *l, struct buf *b)
{
	for (size_t i = 0; i < l->n; i++) {
		if (i > 0)
			buf_putc(b, ',');
		buf_putv(b, l->v[i]->json);
	}
}
