#include "proto/avro/avro_prog.h"

#include "proto/avro/avro_value.h"
#include "proto/base/json.h"

/* ---- the program ----
 *
 * Destinations are offsets from the current base: the datum's record, a list element, or the values
 * of a tuple. A list begins with OP_LIST, its body ends with OP_LOOP; a tuple is framed by OP_TUPLE
 * and OP_LEAVE. A union is followed by one OP_JUMP per branch. */
enum op_code {
	OP_END,
	OP_SKIP_LONG,
	OP_SKIP_BYTES,
	OP_SKIP_FIXED, /* n bytes */
	OP_I32,
	OP_I64,
	OP_BOOL,
	OP_STR,
	OP_BYTES,
	OP_VALUE,
	OP_NULL,  /* a null where col must have a value */
	OP_UNION, /* n branches */
	OP_JUMP,
	OP_LIST, /* to: behind the loop; col NULL skips */
	OP_LOOP,
	OP_TUPLE,
	OP_LEAVE
};

struct op {
	enum op_code code;
	uint32_t to;                /* target of a jump */
	size_t n;                   /* bytes, branches */
	size_t off;                 /* destination in the current base */
	size_t flag;                /* of a bool or a count there */
	const struct avro_col *col; /* for names, sub-tables, types */
	struct avro_form form;
};

struct avro_prog {
	struct op *ops;
	size_t n;
};

/* ---- compiling ---- */

struct named {
	struct strv ns, name;
	const struct jval *def;
	struct strv inner; /* namespace inside the definition */
};

struct comp {
	struct arena *a;
	struct op *ops;
	size_t n, cap;
	struct named *names;
	size_t n_names, cap_names;
	size_t steps; /* types visited: uses of named types can multiply without any instruction */
	struct err *err;
};

/* Where a type's values go: col NULL skips. */
struct dest {
	const struct avro_col *col;
	size_t off;
};

static enum status corrupt(struct comp *c, const struct avro_col *col, const char *why)
{
	return err_set(c->err, ST_CORRUPT, col ? col->name : "", "Avro schema: %s", why);
}

static enum status no_memory(struct err *err)
{
	return err_set(err, ST_LIMIT, "", "the Avro data exceeds the memory limit");
}

static enum status emit(struct comp *c, struct op op)
{
	if (c->n >= AVRO_PROG_OPS)
		return err_set(c->err, ST_LIMIT, "avro.schema", "the Avro schema is too large");
	void *items = c->ops;
	if (!arena_grow(c->a, &items, &c->cap, c->n + 1, sizeof op))
		return no_memory(c->err);
	c->ops = items;
	c->ops[c->n++] = op;
	return ST_OK;
}

/* "a.b.Name" → namespace and name; a name without dots takes the enclosing namespace. */
static void split_name(struct strv full, struct strv enclosing, struct strv *ret_ns,
		       struct strv *ret_name)
{
	size_t dot = full.n;
	while (dot > 0 && full.p[dot - 1] != '.')
		dot--;
	*ret_ns = dot ? strv_sub(full, 0, dot - 1) : enclosing;
	*ret_name = strv_sub(full, dot, full.n);
}

static const struct named *find_name(const struct comp *c, struct strv full, struct strv enclosing)
{
	struct strv ns, name;
	split_name(full, enclosing, &ns, &name);
	for (size_t i = 0; i < c->n_names; i++)
		if (strv_eq(c->names[i].name, name) && strv_eq(c->names[i].ns, ns))
			return &c->names[i];
	return NULL;
}

/* PyIceberg defines the fixed of a UUID or decimal anew for every partition field that uses it. */
static bool same_fixed(const struct jval *x, const struct jval *y)
{
	struct strv kx, ky;
	int64_t nx = 0, ny = 0;
	return jval_as_str(jval_get(x, "type"), &kx) && jval_as_str(jval_get(y, "type"), &ky) &&
	       strv_eq(kx, STRV("fixed")) && strv_eq(ky, kx) &&
	       jval_as_i64(jval_get(x, "size"), &nx) && jval_as_i64(jval_get(y, "size"), &ny) &&
	       nx == ny;
}

/* Notes a definition; a second expansion of the same one is the same definition. */
static enum status define(struct comp *c, const struct jval *def, struct strv enclosing,
			  struct strv *ret_inner)
{
	struct named d = {.def = def};
	struct strv full;
	if (!jval_as_str(jval_get(def, "name"), &full) || full.n == 0)
		return corrupt(c, NULL, "a named type lacks its name");
	struct strv ns = enclosing;
	(void)!jval_as_str(jval_get(def, "namespace"), &ns);
	split_name(full, ns, &d.ns, &d.name);
	d.inner = d.ns;
	*ret_inner = d.inner;
	const struct named *old = find_name(c, d.name, d.ns);
	if (old)
		return old->def == def || same_fixed(old->def, def)
			       ? ST_OK
			       : corrupt(c, NULL, "a type name is defined twice");
	if (c->n_names >= AVRO_PROG_OPS / 16)
		return err_set(c->err, ST_LIMIT, "avro.schema", "too many named types");
	void *items = c->names;
	if (!arena_grow(c->a, &items, &c->cap_names, c->n_names + 1, sizeof d))
		return no_memory(c->err);
	c->names = items;
	c->names[c->n_names++] = d;
	return ST_OK;
}

static enum status comp_any(struct comp *c, const struct jval *t, struct strv ns, struct dest d,
			    int depth);

static enum status mismatch(struct comp *c, struct dest d)
{
	return corrupt(c, d.col, "the column has a type that it cannot have");
}

static enum status comp_value(struct comp *c, struct avro_form form, const struct jval *attrs,
			      struct dest d)
{
	enum status st = avro_value_accept(form, attrs, d.col->type, c->err);
	if (st != ST_OK) {
		err_prefix(c->err, "partition.%.*s", STRV_ARG(d.col->label));
		return st;
	}
	return emit(c, (struct op){.code = OP_VALUE, .off = d.off, .col = d.col, .form = form});
}

static enum status comp_skip(struct comp *c, struct avro_form form)
{
	switch (form.wire) {
	case AVRO_WIRE_NULL:
		return ST_OK;
	case AVRO_WIRE_BOOLEAN:
		return emit(c, (struct op){.code = OP_SKIP_FIXED, .n = 1});
	case AVRO_WIRE_INT:
	case AVRO_WIRE_LONG:
		return emit(c, (struct op){.code = OP_SKIP_LONG});
	case AVRO_WIRE_FLOAT:
		return emit(c, (struct op){.code = OP_SKIP_FIXED, .n = 4});
	case AVRO_WIRE_DOUBLE:
		return emit(c, (struct op){.code = OP_SKIP_FIXED, .n = 8});
	case AVRO_WIRE_BYTES:
	case AVRO_WIRE_STRING:
		return emit(c, (struct op){.code = OP_SKIP_BYTES});
	case AVRO_WIRE_FIXED:
		/* No instruction without a byte: running time is bounded by the data. */
		if (form.fixed == 0)
			return ST_OK;
		return emit(c, (struct op){.code = OP_SKIP_FIXED, .n = form.fixed});
	}
	ASSERT_NEVER("known wire form");
	return ST_INTERNAL;
}

static enum status comp_form(struct comp *c, struct avro_form form, const struct jval *attrs,
			     struct dest d)
{
	const struct avro_col *col = d.col;
	enum avro_wire w = form.wire;
	if (!col)
		return comp_skip(c, form);
	if (w == AVRO_WIRE_NULL)
		return col->must ? emit(c, (struct op){.code = OP_NULL, .col = col}) : ST_OK;
	struct op op = {.off = d.off, .flag = col->flag, .col = col};
	bool fits = false;
	switch (col->kind) {
	case AVRO_CONST:
		return comp_skip(c, form);
	case AVRO_VALUE:
		return comp_value(c, form, attrs, d);
	case AVRO_I32:
		/* The same bytes; the value's range is checked. PyIceberg has longs here. */
		fits = w == AVRO_WIRE_INT || w == AVRO_WIRE_LONG;
		op.code = OP_I32;
		break;
	case AVRO_I64:
		fits = w == AVRO_WIRE_INT || w == AVRO_WIRE_LONG;
		op.code = OP_I64;
		break;
	case AVRO_BOOL:
		fits = w == AVRO_WIRE_BOOLEAN;
		op.code = OP_BOOL;
		break;
	case AVRO_STR:
		fits = w == AVRO_WIRE_STRING || w == AVRO_WIRE_BYTES;
		op.code = OP_STR;
		break;
	case AVRO_BYTES:
		fits = w == AVRO_WIRE_BYTES || w == AVRO_WIRE_STRING;
		op.code = OP_BYTES;
		break;
	case AVRO_RECORD:
	case AVRO_TUPLE:
	case AVRO_LIST:
		break;
	}
	return fits ? emit(c, op) : mismatch(c, d);
}

static const struct avro_col *find_col(const struct avro_col *col, int64_t id, size_t *ret_i)
{
	for (size_t i = 0; i < col->n_sub; i++)
		if (col->sub[i].id == id) {
			*ret_i = i;
			return &col->sub[i];
		}
	return NULL;
}

static enum status comp_fields(struct comp *c, const struct jval *fields, struct strv ns,
			       struct dest d, int depth)
{
	bool *seen = d.col ? arena_calloc(c->a, d.col->n_sub, sizeof *seen) : NULL;
	if (d.col && !seen)
		return no_memory(c->err);
	for (size_t i = 0; i < jval_count(fields); i++) {
		const struct jval *f = jval_at(fields, i);
		struct dest sub = {NULL, 0};
		int64_t id = 0;
		size_t at = 0;
		if (!jval_is_object(f))
			return corrupt(c, d.col, "a record field is no object");
		if (d.col && jval_as_i64(jval_get(f, "field-id"), &id))
			sub.col = find_col(d.col, id, &at);
		if (sub.col) {
			if (seen[at])
				return corrupt(c, sub.col, "a field-id occurs twice in a record");
			seen[at] = true;
			sub.off = (d.col->kind == AVRO_TUPLE ? 0 : d.off) + sub.col->off;
		}
		enum status st = comp_any(c, jval_get(f, "type"), ns, sub, depth + 1);
		if (st != ST_OK)
			return st;
	}
	for (size_t i = 0; d.col && i < d.col->n_sub; i++)
		if (d.col->sub[i].must && !seen[i])
			return corrupt(c, &d.col->sub[i], "a required column is missing");
	return ST_OK;
}

static enum status comp_record(struct comp *c, const struct jval *t, struct strv ns, struct dest d,
			       int depth)
{
	const struct jval *fields = jval_get(t, "fields");
	if (!jval_is_array(fields))
		return corrupt(c, d.col, "a record lacks its fields");
	if (d.col && d.col->kind == AVRO_CONST)
		d.col = NULL;
	if (d.col && d.col->kind != AVRO_RECORD && d.col->kind != AVRO_TUPLE)
		return mismatch(c, d);
	bool tuple = d.col && d.col->kind == AVRO_TUPLE;
	enum status st = ST_OK;
	if (tuple)
		st = emit(c, (struct op){.code = OP_TUPLE, .off = d.off, .col = d.col});
	if (st == ST_OK)
		st = comp_fields(c, fields, ns, d, depth);
	if (st == ST_OK && tuple)
		st = emit(c, (struct op){.code = OP_LEAVE});
	return st;
}

/* Arrays, and maps with string keys, which are an array of key and value and are only skipped. */
static enum status comp_list(struct comp *c, const struct jval *items, bool map, struct strv ns,
			     struct dest d, int depth)
{
	const struct avro_col *col = d.col && d.col->kind != AVRO_CONST ? d.col : NULL;
	if (col && (map || col->kind != AVRO_LIST))
		return mismatch(c, d);
	size_t start = c->n;
	/* Offset of the list's count: relative to the record that holds the list. */
	size_t count = col ? d.off - col->off + col->flag : 0;
	enum status st =
		emit(c, (struct op){.code = OP_LIST, .off = d.off, .flag = count, .col = col});
	if (st == ST_OK && map)
		st = emit(c, (struct op){.code = OP_SKIP_BYTES});
	if (st != ST_OK)
		return st;
	struct dest sub = {NULL, 0};
	if (col) {
		struct avro_col *elem = arena_calloc(c->a, 1, sizeof *elem);
		if (!elem)
			return no_memory(c->err);
		*elem = (struct avro_col){.name = col->name,
					  .kind = col->elem,
					  .must = true,
					  .flag = AVRO_NO_FLAG,
					  .sub = col->sub,
					  .n_sub = col->n_sub};
		sub.col = elem;
	}
	st = comp_any(c, items, ns, sub, depth + 1);
	if (st == ST_OK)
		st = emit(c, (struct op){.code = OP_LOOP});
	if (st == ST_OK)
		c->ops[start].to = (uint32_t)c->n;
	return st;
}

static enum status comp_union(struct comp *c, const struct jval *t, struct strv ns, struct dest d,
			      int depth)
{
	size_t n = jval_count(t), jumps = c->n + 1, last = 0;
	enum status st = n == 0 ? corrupt(c, d.col, "a union without branches") : ST_OK;
	if (st == ST_OK)
		st = emit(c, (struct op){.code = OP_UNION, .n = n});
	for (size_t i = 0; st == ST_OK && i < n; i++)
		st = emit(c, (struct op){.code = OP_JUMP});
	/* Each branch ends with a jump to the end; until the end is known these jumps form a chain
	 * through `to`. */
	for (size_t i = 0; st == ST_OK && i < n; i++) {
		c->ops[jumps + i].to = (uint32_t)c->n;
		st = comp_any(c, jval_at(t, i), ns, d, depth + 1);
		if (st == ST_OK)
			st = emit(c, (struct op){.code = OP_JUMP, .to = (uint32_t)last});
		last = c->n - 1;
	}
	while (st == ST_OK && last) {
		size_t before = c->ops[last].to;
		c->ops[last].to = (uint32_t)c->n;
		last = before;
	}
	return st;
}

static enum status comp_fixed(struct comp *c, const struct jval *t, struct dest d)
{
	int64_t size = 0;
	if (!jval_as_i64(jval_get(t, "size"), &size) || size < 0 || size > INT32_MAX)
		return corrupt(c, d.col, "a fixed with a bad size");
	return comp_form(c, (struct avro_form){AVRO_WIRE_FIXED, (size_t)size}, t, d);
}

static enum status comp_object(struct comp *c, const struct jval *t, struct strv ns, struct dest d,
			       int depth)
{
	struct strv kind, inner = ns;
	enum avro_wire wire;
	if (!jval_as_str(jval_get(t, "type"), &kind))
		return comp_any(c, jval_get(t, "type"), ns, d, depth + 1);
	if (avro_value_wire(kind, &wire))
		return comp_form(c, (struct avro_form){wire, 0}, t, d);
	if (strv_eq(kind, STRV("array")))
		return comp_list(c, jval_get(t, "items"), false, ns, d, depth);
	if (strv_eq(kind, STRV("map")))
		return comp_list(c, jval_get(t, "values"), true, ns, d, depth);
	bool record = strv_eq(kind, STRV("record")), fixed = strv_eq(kind, STRV("fixed"));
	if (!record && !fixed && !strv_eq(kind, STRV("enum")))
		return comp_any(c, jval_get(t, "type"), ns, d, depth + 1);
	enum status st = define(c, t, ns, &inner);
	if (st != ST_OK)
		return st;
	if (record)
		return comp_record(c, t, inner, d, depth);
	if (fixed)
		return comp_fixed(c, t, d);
	if (d.col && d.col->kind != AVRO_CONST)
		return mismatch(c, d);
	return emit(c, (struct op){.code = OP_SKIP_LONG});
}

/* Descends at most AVRO_PROG_DEPTH levels. */
static enum status comp_any(struct comp *c, const struct jval *t, struct strv ns, struct dest d,
			    int depth)
{
	struct strv name;
	enum avro_wire wire;
	if (depth > AVRO_PROG_DEPTH)
		return corrupt(c, d.col, "types are nested too deeply");
	if (++c->steps > (size_t)4 * AVRO_PROG_OPS)
		return err_set(c->err, ST_LIMIT, "avro.schema", "the Avro schema is too large");
	if (jval_is_array(t))
		return comp_union(c, t, ns, d, depth);
	if (jval_is_object(t))
		return comp_object(c, t, ns, d, depth);
	if (!jval_as_str(t, &name))
		return corrupt(c, d.col, "a type is missing");
	if (avro_value_wire(name, &wire))
		return comp_form(c, (struct avro_form){wire, 0}, NULL, d);
	const struct named *def = find_name(c, name, ns);
	if (!def)
		return err_set(c->err, ST_CORRUPT, d.col ? d.col->name : "",
			       "Avro schema: unknown type %.*s", STRV_ARG(strv_sub(name, 0, 60)));
	/* The definition may lie inside another namespace; copies, because names may move. */
	struct strv def_ns = def->inner;
	return comp_object(c, def->def, def_ns, d, depth + 1);
}

enum status avro_prog_compile(struct strv schema, const struct avro_col *cols, size_t n,
			      struct arena *a, struct avro_prog **ret_prog, struct err *err)
{
	struct jdoc *doc = NULL;
	enum status st = jdoc_parse(strv_bytes(schema), ST_CORRUPT, &doc, err);
	if (st != ST_OK) {
		err_prefix(err, "avro.schema");
		return st;
	}
	struct avro_col top = {
		.name = "", .kind = AVRO_RECORD, .must = true, .sub = cols, .n_sub = n};
	struct comp c = {.a = a, .err = err};
	st = comp_any(&c, jdoc_root(doc), STRV(""), (struct dest){&top, 0}, 0);
	if (st == ST_OK)
		st = emit(&c, (struct op){.code = OP_END});
	jdoc_free(doc);
	if (st != ST_OK)
		return st;
	struct avro_prog *p = arena_alloc(a, sizeof *p);
	if (!p)
		return no_memory(err);
	/* An instruction that points at `top` outlives it only for the name of a null record. */
	for (size_t i = 0; i < c.n; i++)
		if (c.ops[i].col == &top)
			c.ops[i].col = NULL;
	*p = (struct avro_prog){c.ops, c.n};
	*ret_prog = p;
	return ST_OK;
}

/* ---- running ---- */

struct frame {
	uint8_t *base;         /* to return to */
	const struct op *list; /* NULL for a tuple */
	size_t body;           /* first instruction of the list's body */
	int64_t left;          /* items left in the current block */
	uint8_t *items;
	size_t n, cap;
};

struct run {
	struct avro_in *in;
	uint8_t *base;
	struct arena *a;
	size_t *io_items;
	struct frame frames[AVRO_PROG_DEPTH + 2];
	int depth;
	struct err *err;
};

static enum status bad_data(struct run *r, const struct avro_col *col, const char *why)
{
	return err_set(r->err, ST_CORRUPT, col ? col->name : "", "Avro data: %s", why);
}

static enum status cut(struct run *r, const struct avro_col *col)
{
	return bad_data(r, col, "a length or number passes the end of the data");
}

static enum status list_grow(struct run *r, struct frame *f)
{
	const struct avro_col *col = f->list->col;
	size_t need = f->n + (size_t)f->left, cap = need, bytes;
	if (f->cap && cap < f->cap * 2)
		cap = f->cap * 2;
	if (!mul_size(cap, col->elem_size, &bytes))
		return no_memory(r->err);
	uint8_t *items = arena_alloc(r->a, bytes);
	if (!items)
		return no_memory(r->err);
	if (f->n)
		memcpy(items, f->items, f->n * col->elem_size);
	f->items = items;
	f->cap = cap;
	return ST_OK;
}

/* Reads the head of a list's next block; left is 0 at its end. A negative count is followed by the
 * block's length, which only says what could be skipped. */
static enum status list_block(struct run *r, struct frame *f)
{
	const struct avro_col *col = f->list->col;
	int64_t count = 0, size = 0;
	if (!avro_bin_get_long(r->in, &count) || count == INT64_MIN)
		return cut(r, col);
	if (count < 0) {
		count = -count;
		if (!avro_bin_get_long(r->in, &size) || size < 0 ||
		    (uint64_t)size > avro_bin_left(r->in))
			return cut(r, col);
	}
	/* Items that we keep take a byte at least, so that a larger count is a lie. */
	if (col && (uint64_t)count > avro_bin_left(r->in))
		return cut(r, col);
	if (!col) {
		if ((uint64_t)count > avro_bin_left(r->in) + *r->io_items)
			return cut(r, col);
	}
	f->left = count;
	return col && count && f->n + (size_t)count > f->cap ? list_grow(r, f) : ST_OK;
}

/* Enters the next item or leaves the list; *io_pc moves. */
static enum status list_next(struct run *r, size_t *io_pc)
{
	struct frame *f = &r->frames[r->depth - 1];
	const struct avro_col *col = f->list->col;
	if (f->left == 0) {
		enum status st = list_block(r, f);
		if (st != ST_OK)
			return st;
	}
	if (f->left == 0) {
		r->base = f->base;
		if (col) {
			/* An empty list is told from an absent one by its pointer. */
			if (col->keep_empty && !f->items)
				f->items = arena_alloc(r->a, 1);
			if (col->keep_empty && !f->items)
				return no_memory(r->err);
			memcpy(r->base + f->list->off, &f->items, sizeof f->items);
			memcpy(r->base + f->list->flag, &f->n, sizeof f->n);
		}
		*io_pc = f->list->to;
		r->depth--;
		return ST_OK;
	}
	f->left--;
	if (col) {
		r->base = f->items + f->n++ * col->elem_size;
		if (col->elem_init)
			memcpy(r->base, col->elem_init, col->elem_size);
		else
			memset(r->base, 0, col->elem_size);
	}
	*io_pc = f->body;
	return ST_OK;
}

static struct frame *push(struct run *r)
{
	ASSERT(r->depth < (int)ARRAY_SIZE(r->frames));
	struct frame *f = &r->frames[r->depth++];
	*f = (struct frame){.base = r->base};
	return f;
}

static enum status tuple_enter(struct run *r, const struct op *op)
{
	size_t n = op->col->n_sub;
	struct value *v = arena_calloc(r->a, n, sizeof *v);
	if (!v)
		return no_memory(r->err);
	for (size_t i = 0; i < n; i++)
		v[i].null = true;
	struct tuple t = {v, n};
	memcpy(r->base + op->off, &t, sizeof t);
	push(r);
	r->base = (uint8_t *)v;
	return ST_OK;
}

static enum status run_value(struct run *r, const struct op *op)
{
	struct value v = VALUE_NULL;
	enum status st = avro_value_get(r->in, op->form, op->col->type, r->a, &v, r->err);
	if (st != ST_OK) {
		err_prefix(r->err, "partition.%.*s", STRV_ARG(op->col->label));
		return st;
	}
	memcpy(r->base + op->off, &v, sizeof v);
	return ST_OK;
}

static enum status run_text(struct run *r, const struct op *op, struct bytes b)
{
	if (op->code == OP_STR) {
		struct strv s = bytes_strv(b);
		if (!strv_utf8(s))
			return bad_data(r, op->col, "text is not UTF-8");
		memcpy(r->base + op->off, &s, sizeof s);
	} else {
		memcpy(r->base + op->off, &b, sizeof b);
	}
	return ST_OK;
}

/* A flag stands in the same record as its member. */
static void set_flag(struct run *r, const struct op *op)
{
	if (op->flag != AVRO_NO_FLAG)
		*(bool *)(r->base + op->off - op->col->off + op->flag) = true;
}

static enum status run_prim(struct run *r, const struct op *op)
{
	struct bytes b;
	int32_t i = 0;
	int64_t l = 0;
	bool ok = true;
	enum status st = ST_OK;
	switch (op->code) {
	case OP_I32:
		ok = avro_bin_get_int(r->in, &i);
		memcpy(r->base + op->off, &i, sizeof i);
		break;
	case OP_I64:
		ok = avro_bin_get_long(r->in, &l);
		memcpy(r->base + op->off, &l, sizeof l);
		break;
	case OP_BOOL:
		ok = avro_bin_get_fixed(r->in, 1, &b);
		if (ok && b.p[0] > 1)
			return bad_data(r, op->col, "a boolean is neither 0 nor 1");
		if (ok)
			*(bool *)(r->base + op->off) = b.p[0];
		break;
	default:
		ok = avro_bin_get_bytes(r->in, &b);
		if (ok)
			st = run_text(r, op, b);
		break;
	}
	if (!ok)
		return cut(r, op->col);
	set_flag(r, op);
	return st;
}

static enum status run_skip(struct run *r, const struct op *op)
{
	struct bytes b;
	int64_t l = 0;
	bool ok = op->code == OP_SKIP_LONG    ? avro_bin_get_long(r->in, &l)
		  : op->code == OP_SKIP_BYTES ? avro_bin_get_bytes(r->in, &b)
					      : avro_bin_get_fixed(r->in, op->n, &b);
	return ok ? ST_OK : cut(r, NULL);
}

static enum status run_loop(struct run *r, size_t *io_pc)
{
	struct frame *f = &r->frames[r->depth - 1];
	/* A skipped item may have no bytes at all; such items are counted, so that a short input
	 * cannot ask for 2^60 of them. */
	if (!f->list->col) {
		if (*r->io_items == 0)
			return bad_data(r, NULL, "too many items");
		(*r->io_items)--;
	}
	return list_next(r, io_pc);
}

enum status avro_prog_run(const struct avro_prog *prog, struct avro_in *in, void *dst,
			  size_t *io_items, struct arena *a, struct err *err)
{
	struct run r = {.in = in, .base = dst, .a = a, .io_items = io_items, .err = err};
	size_t pc = 0;
	int64_t branch = 0;
	enum status st = ST_OK;
	while (st == ST_OK) {
		const struct op *op = &prog->ops[pc++];
		switch (op->code) {
		case OP_END:
			return ST_OK;
		case OP_SKIP_LONG:
		case OP_SKIP_BYTES:
		case OP_SKIP_FIXED:
			st = run_skip(&r, op);
			break;
		case OP_I32:
		case OP_I64:
		case OP_BOOL:
		case OP_STR:
		case OP_BYTES:
			st = run_prim(&r, op);
			break;
		case OP_VALUE:
			st = run_value(&r, op);
			break;
		case OP_NULL:
			st = bad_data(&r, op->col, "a required column is null");
			break;
		case OP_UNION:
			if (!avro_bin_get_long(in, &branch) || branch < 0 ||
			    (uint64_t)branch >= op->n)
				st = bad_data(&r, NULL, "a union has no such branch");
			else
				pc += (size_t)branch;
			break;
		case OP_JUMP:
			pc = op->to;
			break;
		case OP_LIST: {
			struct frame *f = push(&r);
			f->list = op;
			f->body = pc;
			st = list_next(&r, &pc);
			break;
		}
		case OP_LOOP:
			st = run_loop(&r, &pc);
			break;
		case OP_TUPLE:
			st = tuple_enter(&r, op);
			break;
		case OP_LEAVE:
			r.base = r.frames[--r.depth].base;
			break;
		}
	}
	return st;
}
