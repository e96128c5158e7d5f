#include "proto/iceberg/sort.h"

static enum status no_memory(struct err *err)
{
	return err_set(err, ST_LIMIT, "", "the sort order is larger than this server's limit");
}

/* One of two words, as the JSON spells them; in any case, as the reference implementation reads. */
static enum status parse_choice(const struct jval *v, const char *key, const char *no,
				const char *yes, enum status bad, bool *ret_yes, struct err *err)
{
	struct strv text;
	enum status st = jval_need_str(v, key, bad, &text, err);
	if (st != ST_OK)
		return st;
	if (!strv_ieq(text, strv_of(yes)) && !strv_ieq(text, strv_of(no)))
		return err_set(err, bad, key, "\"%.*s\" is neither %s nor %s", STRV_ARG(text), no,
			       yes);
	*ret_yes = strv_ieq(text, strv_of(yes));
	return ST_OK;
}

static enum status parse_field(const struct jval *v, enum status bad, struct arena *a,
			       struct sort_field *f, struct err *err)
{
	static const char *const known[] = {"transform", "source-id",  "source-ids",
					    "direction", "null-order", NULL};
	struct strv text;
	enum status st;
	if (!jval_is_object(v))
		return err_set(err, bad, "", "not an object");
	if ((st = jval_need_str(v, "transform", bad, &text, err)) != ST_OK ||
	    (st = transform_parse(text, bad, a, &f->transform, err)) != ST_OK ||
	    (st = transform_sources_parse(v, bad, a, &f->transform, &f->source_id, &f->source_ids,
					  &f->n_source_ids, err)) != ST_OK ||
	    (st = parse_choice(v, "direction", "asc", "desc", bad, &f->descending, err)) != ST_OK ||
	    (st = parse_choice(v, "null-order", "nulls-first", "nulls-last", bad, &f->nulls_last,
			       err)) != ST_OK)
		return st;
	return type_extra_parse(v, known, a, &f->extra, err);
}

enum status sort_parse(const struct jval *v, enum status bad, struct arena *a,
		       struct sort_order *ret_order, struct err *err)
{
	static const char *const known[] = {"order-id", "fields", NULL};
	struct sort_order order = {.order_id = SORT_ORDER_NONE};
	const struct jval *array;
	enum status st;
	if (!jval_is_object(v))
		return err_set(err, bad, "", "a sort order is a JSON object");
	if ((st = jval_opt_i32(v, "order-id", bad, &order.order_id, NULL, err)) != ST_OK ||
	    (st = jval_need_array(v, "fields", bad, &array, err)) != ST_OK)
		return st;
	order.n = jval_count(array);
	order.fields = arena_calloc(a, order.n, sizeof *order.fields);
	if (!order.fields && order.n > 0)
		return no_memory(err);
	for (size_t i = 0; i < order.n; i++)
		if ((st = parse_field(jval_at(array, i), bad, a, &order.fields[i], err)) != ST_OK) {
			err_prefix(err, "fields[%zu]", i);
			return st;
		}
	if ((st = type_extra_parse(v, known, a, &order.extra, err)) != ST_OK)
		return st;
	*ret_order = order;
	return ST_OK;
}

void sort_write(struct jwrite *w, const struct sort_order *order)
{
	jwrite_object(w);
	if (order->order_id != SORT_ORDER_NONE)
		jwrite_ki64(w, "order-id", order->order_id);
	jwrite_key(w, "fields");
	jwrite_array(w);
	for (size_t i = 0; i < order->n; i++) {
		const struct sort_field *f = &order->fields[i];
		jwrite_object(w);
		jwrite_kstr(w, "transform", f->transform.text);
		transform_sources_write(w, f->source_id, f->source_ids, f->n_source_ids);
		jwrite_kstr(w, "direction", f->descending ? STRV("desc") : STRV("asc"));
		jwrite_kstr(w, "null-order",
			    f->nulls_last ? STRV("nulls-last") : STRV("nulls-first"));
		type_extra_write(w, &f->extra);
		jwrite_end_object(w);
	}
	jwrite_end_array(w);
	type_extra_write(w, &order->extra);
	jwrite_end_object(w);
}

bool sort_same(const struct sort_order *x, const struct sort_order *y)
{
	if (x->n != y->n)
		return false;
	for (size_t i = 0; i < x->n; i++) {
		const struct sort_field *f = &x->fields[i], *g = &y->fields[i];
		if (f->source_id != g->source_id || f->n_source_ids != g->n_source_ids ||
		    (f->n_source_ids > 0 && memcmp(f->source_ids, g->source_ids,
						   f->n_source_ids * sizeof *f->source_ids)) ||
		    !transform_eq(&f->transform, &g->transform) || f->descending != g->descending ||
		    f->nulls_last != g->nulls_last)
			return false;
	}
	return true;
}

enum status sort_check(const struct sort_order *order, const struct schema *schema, struct err *err)
{
	for (size_t i = 0; i < order->n; i++) {
		const struct sort_field *f = &order->fields[i];
		const char *why;
		const struct type *type = NULL;
		if (transform_sources_bind(schema, &f->transform, f->source_id, f->source_ids,
					   f->n_source_ids, &type, &why))
			continue;
		if (type)
			err_set(err, ST_VALIDATION, "", "%s: %s for transform %.*s", why,
				type_name(type).z, STRV_ARG(f->transform.text));
		else
			err_set(err, ST_VALIDATION, "", "%s: field id %d", why, (int)f->source_id);
		err_prefix(err, "fields[%zu]", i);
		return ST_VALIDATION;
	}
	return ST_OK;
}
