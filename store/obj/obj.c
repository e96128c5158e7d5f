#include "store/obj/obj.h"

void obj_store_init(struct obj_store *s, const struct obj_ops *ops)
{
	*s = (struct obj_store){.ops = ops};
	list_init(&s->running);
}

static void prepare(struct obj_store *s, struct obj_op *o)
{
	ASSERT(o->op.state == OP_IDLE && o->op.done);
	o->data = (struct bytes){0};
	o->size = 0;
	o->existed = false;
	o->store = s;
	o->impl = NULL;
}

/* What every start ends with; `count` is the counter of its kind. */
static enum status started(struct obj_op *o, enum status st, uint64_t *count)
{
	if (st != ST_OK)
		return st;
	o->op.state = OP_RUNNING;
	list_push_back(&o->store->running, &o->op.node);
	o->store->counts.in_flight++;
	(*count)++;
	return ST_OK;
}

enum status obj_put(struct obj_store *s, struct strv path, struct bytes data, struct obj_op *o,
		    struct err *err)
{
	o->whole = data;
	return obj_put_pieces(s, path, &(struct pieces){.v = &o->whole, .n = 1}, o, err);
}

enum status obj_put_pieces(struct obj_store *s, struct strv path, const struct pieces *content,
			   struct obj_op *o, struct err *err)
{
	prepare(s, o);
	enum status st = started(o, s->ops->put(s, path, content, o, err), &s->counts.puts);
	if (st == ST_OK)
		s->counts.put_bytes += pieces_size(content);
	return st;
}

enum status obj_get(struct obj_store *s, struct strv path, const struct obj_range *range,
		    size_t max, struct obj_op *o, struct err *err)
{
	prepare(s, o);
	return started(o, s->ops->get(s, path, range, max, o, err), &s->counts.gets);
}

enum status obj_stat(struct obj_store *s, struct strv path, struct obj_op *o, struct err *err)
{
	prepare(s, o);
	return started(o, s->ops->stat(s, path, o, err), &s->counts.stats);
}

enum status obj_delete(struct obj_store *s, struct strv path, struct obj_op *o, struct err *err)
{
	prepare(s, o);
	return started(o, s->ops->del(s, path, o, err), &s->counts.deletes);
}

void obj_cancel(struct obj_op *o)
{
	ASSERT(o->op.state == OP_RUNNING);
	o->store->ops->cancel(o);
}

uint8_t *obj_take(struct obj_op *o, size_t *ret_n)
{
	return o->store->ops->take(o, ret_n);
}

const struct obj_counts *obj_counts(const struct obj_store *s)
{
	return &s->counts;
}

void obj_done(struct obj_op *o, enum status st, const struct err *err)
{
	ASSERT(o->op.state == OP_RUNNING && err && err->st == st);
	struct obj_counts *c = &o->store->counts;
	o->op.state = OP_IDLE;
	list_remove(&o->op.node);
	c->in_flight--;
	c->get_bytes += o->data.n;
	if (st != ST_OK && st != ST_NOT_FOUND)
		c->failed++;
	o->op.done(&o->op, st, err);
}
