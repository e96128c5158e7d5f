#include "proto/dv/puffin.h"

#include <stdio.h>

#include "proto/base/json.h"
#include "proto/dv/dv_blob.h"
#include "proto/iceberg/ids.h"

#define FLAG_COMPRESSED 1u /* bit 0 of the first flag byte: the payload is an LZ4 frame */

static const uint8_t magic[4] = {'P', 'F', 'A', '1'};

bool puffin_prop(const struct puffin_prop *props, size_t n, const char *key, struct strv *ret_value)
{
	for (size_t i = 0; i < n; i++)
		if (strv_eq(props[i].key, strv_of(key))) {
			*ret_value = props[i].value;
			return true;
		}
	return false;
}

/* --- reading --- */

enum status puffin_footer_size(struct bytes trailer, uint64_t file_size, enum status bad,
			       size_t *ret_n, struct err *err)
{
	if (trailer.n != PUFFIN_TRAILER || file_size < sizeof magic + PUFFIN_FOOTER_FIXED)
		return err_set(err, bad, "size", "%llu bytes are too few for a Puffin file",
			       (unsigned long long)file_size);
	if (memcmp(trailer.p + 8, magic, sizeof magic) != 0)
		return err_set(err, bad, "magic", "the file does not end as a Puffin file");
	uint32_t flags = get_u32le(trailer.p + 4);
	if (flags & FLAG_COMPRESSED)
		return err_set(err, ST_UNSUPPORTED, "flags",
			       "a compressed Puffin footer (LZ4) is not supported");
	if (flags)
		return err_set(err, ST_UNSUPPORTED, "flags", "unknown Puffin flags %08x", flags);
	uint32_t payload = get_u32le(trailer.p);
	/* The sign bit would make it negative; either way it does not fit. */
	if (payload > file_size - sizeof magic - PUFFIN_FOOTER_FIXED)
		return err_set(err, bad, "footer-payload-size",
			       "a footer of %u bytes does not fit the file", payload);
	if (payload > PUFFIN_MAX_PAYLOAD)
		return err_set(err, ST_LIMIT, "footer-payload-size",
			       "the Puffin footer is longer than %zu bytes", PUFFIN_MAX_PAYLOAD);
	*ret_n = (size_t)payload + PUFFIN_FOOTER_FIXED;
	return ST_OK;
}

static enum status no_room(struct err *err)
{
	return err_set(err, ST_LIMIT, "footer", "the Puffin footer needs too much memory");
}

static enum status parse_props(const struct jval *o, enum status bad, struct arena *a,
			       const struct puffin_prop **ret_props, size_t *ret_n, struct err *err)
{
	size_t n = jval_count(o), i = 0;
	struct puffin_prop *props = arena_calloc(a, n, sizeof *props);
	if (!props)
		return no_room(err);
	for (struct jval_iter it = jval_iter(o); jval_next(&it); i++) {
		struct strv value;
		if (!jval_as_str(it.val, &value)) {
			enum status st = err_set(err, bad, "", "a property must be text");
			err_prefix(err, "properties.%.*s", STRV_ARG(it.key));
			return st;
		}
		ASSERT(i < n);
		if (!arena_strv(a, it.key, &props[i].key) || !arena_strv(a, value, &props[i].value))
			return no_room(err);
	}
	*ret_props = props;
	*ret_n = n;
	return ST_OK;
}

static enum status parse_fields(const struct jval *list, enum status bad, struct arena *a,
				struct puffin_blob *b, struct err *err)
{
	size_t n = jval_count(list);
	int32_t *fields = arena_calloc(a, n, sizeof *fields);
	if (!fields)
		return no_room(err);
	for (size_t i = 0; i < n; i++) {
		int64_t v;
		if (!jval_as_i64(jval_at(list, i), &v) || v < INT32_MIN || v > INT32_MAX) {
			enum status st = err_set(err, bad, "", "a field id must be an int");
			err_prefix(err, "fields[%zu]", i);
			return st;
		}
		fields[i] = (int32_t)v;
	}
	b->fields = fields;
	b->n_fields = n;
	return ST_OK;
}

/* blobs_end: offset of the footer. */
static enum status parse_blob(const struct jval *o, uint64_t blobs_end, enum status bad,
			      struct arena *a, struct puffin_blob *b, struct err *err)
{
	if (!jval_is_object(o))
		return err_set(err, bad, "", "a blob must be an object");
	struct strv type, codec = {0};
	const struct jval *fields, *props = NULL;
	enum status st;
	if ((st = jval_need_str(o, "type", bad, &type, err)) != ST_OK ||
	    (st = jval_need_array(o, "fields", bad, &fields, err)) != ST_OK ||
	    (st = jval_need_i64(o, "snapshot-id", bad, &b->snapshot_id, err)) != ST_OK ||
	    (st = jval_need_i64(o, "sequence-number", bad, &b->sequence_number, err)) != ST_OK ||
	    (st = jval_need_i64(o, "offset", bad, &b->offset, err)) != ST_OK ||
	    (st = jval_need_i64(o, "length", bad, &b->length, err)) != ST_OK ||
	    (st = jval_opt_str(o, "compression-codec", bad, &codec, NULL, err)) != ST_OK ||
	    (st = jval_opt_object(o, "properties", bad, &props, err)) != ST_OK ||
	    (st = parse_fields(fields, bad, a, b, err)) != ST_OK)
		return st;
	if (props && (st = parse_props(props, bad, a, &b->props, &b->n_props, err)) != ST_OK)
		return st;
	if (b->offset < (int64_t)sizeof magic || (uint64_t)b->offset > blobs_end)
		return err_set(err, bad, "offset", "offset %lld lies outside the blobs",
			       (long long)b->offset);
	if (b->length < 0 || (uint64_t)b->length > blobs_end - (uint64_t)b->offset)
		return err_set(err, bad, "length", "length %lld at offset %lld passes the blobs",
			       (long long)b->length, (long long)b->offset);
	if (!arena_strv(a, type, &b->type) || !arena_strv(a, codec, &b->codec))
		return no_room(err);
	return ST_OK;
}

static enum status parse_json(const struct jval *root, uint64_t blobs_end, enum status bad,
			      struct arena *a, struct puffin_file *ret_file, struct err *err)
{
	if (!jval_is_object(root))
		return err_set(err, bad, "footer", "the Puffin footer must be an object");
	struct puffin_file f = {0};
	const struct jval *list, *props = NULL;
	enum status st;
	if ((st = jval_need_array(root, "blobs", bad, &list, err)) != ST_OK ||
	    (st = jval_opt_object(root, "properties", bad, &props, err)) != ST_OK)
		return st;
	if (props && (st = parse_props(props, bad, a, &f.props, &f.n_props, err)) != ST_OK)
		return st;
	f.n_blobs = jval_count(list);
	struct puffin_blob *blobs = arena_calloc(a, f.n_blobs, sizeof *blobs);
	if (!blobs)
		return no_room(err);
	for (size_t i = 0; i < f.n_blobs; i++) {
		st = parse_blob(jval_at(list, i), blobs_end, bad, a, &blobs[i], err);
		if (st != ST_OK) {
			err_prefix(err, "blobs[%zu]", i);
			return st;
		}
	}
	f.blobs = blobs;
	*ret_file = f;
	return ST_OK;
}

enum status puffin_parse(struct bytes footer, uint64_t file_size, enum status bad, struct arena *a,
			 struct puffin_file *ret_file, struct err *err)
{
	if (footer.n < PUFFIN_FOOTER_FIXED)
		return err_set(err, bad, "footer", "the Puffin footer is cut off");
	size_t n = 0;
	struct bytes trailer = {footer.p + footer.n - PUFFIN_TRAILER, PUFFIN_TRAILER};
	enum status st = puffin_footer_size(trailer, file_size, bad, &n, err);
	if (st != ST_OK)
		return st;
	if (n != footer.n)
		return err_set(err, bad, "footer-payload-size",
			       "the footer takes %zu bytes, %zu are given", n, footer.n);
	if (memcmp(footer.p, magic, sizeof magic) != 0)
		return err_set(err, bad, "magic",
			       "the Puffin footer does not begin with its magic");
	struct jdoc *doc = NULL;
	struct bytes text = {footer.p + sizeof magic, n - PUFFIN_FOOTER_FIXED};
	st = jdoc_parse(text, bad, &doc, err);
	if (st != ST_OK)
		return st;
	st = parse_json(jdoc_root(doc), file_size - n, bad, a, ret_file, err);
	jdoc_free(doc);
	return st;
}

enum status puffin_parse_file(struct bytes file, enum status bad, struct arena *a,
			      struct puffin_file *ret_file, struct err *err)
{
	if (file.n < sizeof magic + PUFFIN_FOOTER_FIXED)
		return err_set(err, bad, "size", "%zu bytes are too few for a Puffin file", file.n);
	if (memcmp(file.p, magic, sizeof magic) != 0)
		return err_set(err, bad, "magic", "the file does not begin as a Puffin file");
	size_t n = 0;
	struct bytes trailer = {file.p + file.n - PUFFIN_TRAILER, PUFFIN_TRAILER};
	enum status st = puffin_footer_size(trailer, file.n, bad, &n, err);
	if (st != ST_OK)
		return st;
	return puffin_parse((struct bytes){file.p + file.n - n, n}, file.n, bad, a, ret_file, err);
}

enum status puffin_vector_at(const struct puffin_file *file, int64_t offset, int64_t length,
			     struct strv data_file, int64_t cardinality, enum status bad,
			     const struct puffin_blob **ret_blob, struct err *err)
{
	const struct puffin_blob *b = NULL;
	for (size_t i = 0; i < file->n_blobs && !b; i++)
		if (file->blobs[i].offset == offset && file->blobs[i].length == length)
			b = &file->blobs[i];
	if (!b)
		return err_set(err, bad, "content_offset", "no blob of %lld bytes at offset %lld",
			       (long long)length, (long long)offset);
	if (!strv_eq(b->type, STRV(DV_BLOB_TYPE)))
		return err_set(err, bad, "type", "the blob is not a deletion vector");
	if (b->codec.n)
		return err_set(err, bad, "compression-codec",
			       "a deletion vector must not be compressed");
	struct strv value;
	if (!puffin_prop(b->props, b->n_props, "referenced-data-file", &value) ||
	    !strv_eq(value, data_file))
		return err_set(err, bad, "referenced-data-file",
			       "the blob does not name the manifest's data file");
	int64_t n;
	if (!puffin_prop(b->props, b->n_props, "cardinality", &value) || !strv_i64(value, &n) ||
	    n != cardinality)
		return err_set(err, bad, "cardinality",
			       "the blob does not state the manifest's %lld positions",
			       (long long)cardinality);
	*ret_blob = b;
	return ST_OK;
}

/* --- writing --- */

void puffin_begin(struct puffin_writer *w, struct buf *out)
{
	ASSERT(out->n == 0);
	w->out = out;
	buf_put(out, magic, sizeof magic);
	buf_init(&w->json, PUFFIN_MAX_PAYLOAD);
	jwrite_init(&w->w, &w->json);
	jwrite_object(&w->w);
	jwrite_key(&w->w, "blobs");
	jwrite_array(&w->w);
}

void puffin_writer_fini(struct puffin_writer *w)
{
	buf_fini(&w->json);
}

static void write_props(struct jwrite *w, const struct puffin_prop *props, size_t n)
{
	if (n == 0)
		return;
	jwrite_key(w, "properties");
	jwrite_object(w);
	for (size_t i = 0; i < n; i++) {
		jwrite_keyv(w, props[i].key);
		jwrite_str(w, props[i].value);
	}
	jwrite_end_object(w);
}

static enum status full(struct err *err)
{
	return err_set(err, ST_LIMIT, "size", "the Puffin file would be too large");
}

enum status puffin_add(struct puffin_writer *w, const struct puffin_blob *blob, struct bytes data,
		       int64_t *ret_offset, struct err *err)
{
	size_t offset = w->out->n;
	struct jwrite *j = &w->w;
	buf_put(w->out, data.p, data.n);
	/* Members in the order of the reference implementation. */
	jwrite_object(j);
	jwrite_kstr(j, "type", blob->type);
	jwrite_key(j, "fields");
	jwrite_array(j);
	for (size_t i = 0; i < blob->n_fields; i++)
		jwrite_i64(j, blob->fields[i]);
	jwrite_end_array(j);
	jwrite_ki64(j, "snapshot-id", blob->snapshot_id);
	jwrite_ki64(j, "sequence-number", blob->sequence_number);
	jwrite_ki64(j, "offset", (int64_t)offset);
	jwrite_ki64(j, "length", (int64_t)data.n);
	if (blob->codec.n)
		jwrite_kstr(j, "compression-codec", blob->codec);
	write_props(j, blob->props, blob->n_props);
	jwrite_end_object(j);
	if (!buf_ok(w->out) || !buf_ok(&w->json))
		return full(err);
	*ret_offset = (int64_t)offset;
	return ST_OK;
}

enum status puffin_add_vector(struct puffin_writer *w, struct bytes dv_blob, struct strv data_file,
			      int64_t cardinality, int64_t *ret_offset, struct err *err)
{
	static const int32_t row_pos = FIELD_ID_POS;
	char digits[24];
	int n = snprintf(digits, sizeof digits, "%lld", (long long)cardinality);
	struct puffin_prop props[] = {
		{STRV("referenced-data-file"), data_file},
		{STRV("cardinality"), {digits, (size_t)n}},
	};
	struct puffin_blob blob = {
		.type = STRV(DV_BLOB_TYPE),
		.fields = &row_pos,
		.n_fields = 1,
		.snapshot_id = -1,
		.sequence_number = -1,
		.props = props,
		.n_props = ARRAY_SIZE(props),
	};
	return puffin_add(w, &blob, dv_blob, ret_offset, err);
}

enum status puffin_finish(struct puffin_writer *w, struct strv created_by, struct err *err)
{
	struct puffin_prop prop = {STRV("created-by"), created_by};
	jwrite_end_array(&w->w);
	write_props(&w->w, &prop, created_by.n ? 1 : 0);
	jwrite_end_object(&w->w);
	uint8_t tail[PUFFIN_TRAILER] = {0};
	put_u32le(tail, (uint32_t)w->json.n);
	memcpy(tail + 8, magic, sizeof magic);
	buf_put(w->out, magic, sizeof magic);
	buf_put(w->out, w->json.p, w->json.n);
	buf_put(w->out, tail, sizeof tail);
	if (!buf_ok(w->out) || !buf_ok(&w->json))
		return full(err);
	return ST_OK;
}
