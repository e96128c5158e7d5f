#include "proto/rest/rb_table.h"

#include "proto/base/gzip.h"
#include "proto/iceberg/metadata.h"
#include "proto/iceberg/partition.h"
#include "proto/iceberg/schema.h"
#include "proto/iceberg/sort.h"

static enum status too_large(struct err *err)
{
	return err_set(err, ST_LIMIT, "", "the request is too large");
}

/* Schema, spec and order; the latter two may be missing. */
static enum status parse_shape(const struct jval *root, struct arena *a, struct rb_table_create *r,
			       struct err *err)
{
	const struct jval *schema, *spec = NULL, *order = NULL;
	struct schema *s = arena_calloc(a, 1, sizeof *s);
	struct partition_spec *p = arena_calloc(a, 1, sizeof *p);
	struct sort_order *o = arena_calloc(a, 1, sizeof *o);
	if (!s || !p || !o)
		return too_large(err);
	enum status st = jval_need_object(root, "schema", ST_BAD_REQUEST, &schema, err);
	if (st != ST_OK)
		return st;
	st = schema_parse(schema, ST_BAD_REQUEST, a, s, err);
	if (st != ST_OK) {
		err_prefix(err, "schema");
		return st;
	}
	r->schema = s;
	st = jval_opt_object(root, "partition-spec", ST_BAD_REQUEST, &spec, err);
	if (st == ST_OK && spec) {
		st = partition_parse(spec, ST_BAD_REQUEST, a, p, err);
		if (st != ST_OK)
			err_prefix(err, "partition-spec");
		r->spec = p;
	}
	if (st != ST_OK)
		return st;
	st = jval_opt_object(root, "write-order", ST_BAD_REQUEST, &order, err);
	if (st == ST_OK && order) {
		st = sort_parse(order, ST_BAD_REQUEST, a, o, err);
		if (st != ST_OK)
			err_prefix(err, "write-order");
		r->order = o;
	}
	return st;
}

enum status rb_table_create_parse(struct bytes body, struct arena *a,
				  struct rb_table_create *ret_req, struct err *err)
{
	struct rb_table_create r = {0};
	enum status st = rb_open(body, &r.doc, err);
	if (st != ST_OK)
		return st;
	const struct jval *root = jdoc_root(r.doc);
	st = rb_new_parse(root, &r.name, &r.location, err);
	if (st == ST_OK)
		st = jval_opt_bool(root, "stage-create", ST_BAD_REQUEST, &r.stage, NULL, err);
	if (st == ST_OK)
		st = rb_pairs_parse(jval_get(root, "properties"), "properties", a, &r.properties,
				    &r.n_properties, err);
	if (st == ST_OK)
		st = parse_shape(root, a, &r, err);
	if (st != ST_OK) {
		jdoc_free(r.doc);
		return st;
	}
	*ret_req = r;
	return ST_OK;
}

enum status rb_table_register_parse(struct bytes body, struct rb_table_register *ret_req,
				    struct err *err)
{
	struct rb_table_register r = {0};
	enum status st = rb_open(body, &r.doc, err);
	if (st != ST_OK)
		return st;
	const struct jval *root = jdoc_root(r.doc);
	st = jval_need_str(root, "name", ST_BAD_REQUEST, &r.name, err);
	if (st == ST_OK)
		st = rb_name_check(r.name, "name", err);
	if (st == ST_OK)
		st = jval_need_str(root, "metadata-location", ST_BAD_REQUEST, &r.metadata_location,
				   err);
	if (st == ST_OK && r.metadata_location.n == 0)
		st = err_set(err, ST_BAD_REQUEST, "metadata-location", "must not be empty");
	if (st == ST_OK)
		st = jval_opt_bool(root, "overwrite", ST_BAD_REQUEST, &r.overwrite, NULL, err);
	if (st != ST_OK) {
		jdoc_free(r.doc);
		return st;
	}
	*ret_req = r;
	return ST_OK;
}

enum status rb_rename_parse(struct bytes body, struct arena *a, struct rb_rename *ret_req,
			    struct err *err)
{
	struct rb_rename r = {0};
	enum status st = rb_open(body, &r.doc, err);
	if (st != ST_OK)
		return st;
	const struct jval *root = jdoc_root(r.doc);
	st = rb_ident_parse(jval_get(root, "source"), "source", a, &r.source, err);
	if (st == ST_OK)
		st = rb_ident_parse(jval_get(root, "destination"), "destination", a, &r.destination,
				    err);
	if (st != ST_OK) {
		jdoc_free(r.doc);
		return st;
	}
	*ret_req = r;
	return ST_OK;
}

enum status rb_report_check(struct bytes body, struct err *err)
{
	struct jdoc *doc = NULL;
	struct strv type;
	enum status st = rb_open(body, &doc, err);
	if (st != ST_OK)
		return st;
	st = jval_need_str(jdoc_root(doc), "report-type", ST_BAD_REQUEST, &type, err);
	jdoc_free(doc);
	return st;
}

void rb_table_list_write(struct buf *b, const struct strv *levels, size_t n_levels,
			 const struct strv *names, size_t n, bool more, uint64_t list)
{
	struct jwrite w;
	jwrite_init(&w, b);
	jwrite_object(&w);
	jwrite_key(&w, "identifiers");
	jwrite_array(&w);
	for (size_t i = 0; i < n; i++) {
		jwrite_object(&w);
		jwrite_key(&w, "namespace");
		rb_levels_write(&w, levels, n_levels);
		jwrite_kstr(&w, "name", names[i]);
		jwrite_end_object(&w);
	}
	jwrite_end_array(&w);
	rb_next_write(&w, list, more && n ? names[n - 1] : (struct strv){NULL, 0});
	jwrite_end_object(&w);
}

#define LOAD_BEHIND ",\"config\":{}}"

static void load_before(struct buf *b, struct strv location)
{
	buf_putc(b, '{');
	if (location.n) {
		buf_puts(b, "\"metadata-location\":");
		jwrite_quote(b, location);
		buf_putc(b, ',');
	}
	buf_puts(b, "\"metadata\":");
}

void rb_table_load_write(struct buf *b, struct strv location, const struct metadata *m, bool refs)
{
	load_before(b, location);
	/* Straight into the answer: the document may be hundreds of megabytes. */
	if (refs)
		metadata_json_refs(m, b);
	else
		metadata_json(m, b);
	buf_puts(b, LOAD_BEHIND);
}

enum status rb_table_load_gzip(struct buf *b, struct strv location, const struct metadata *m,
			       bool refs, struct err *err)
{
	struct gzip_writer z;
	struct buf text;
	buf_init(&text, METADATA_MAX_BYTES);
	gzip_begin(&z, b);
	load_before(&text, location);
	if (refs)
		metadata_json_refs(m, &text);
	gzip_put(&z, buf_bytes(&text));
	if (!refs)
		metadata_gzip(m, &z);
	gzip_put(&z, strv_bytes(STRV(LOAD_BEHIND)));
	z.ok &= buf_ok(&text);
	buf_fini(&text);
	return gzip_end(&z, err);
}
