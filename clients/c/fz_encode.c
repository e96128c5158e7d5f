#include "clients/c/fz_encode.h"

#include "clients/c/fz_error.h"
#include "clients/c/fz_vector.h"

static void fail(struct fz_encode *e, const char *name, const char *field, const char *text)
{
	if (e->st == FZ_OK)
		e->st = fz_error_set(e->err, FZ_USAGE, name, field, "%s", text);
}

static void check(struct fz_encode *e, int rc, const char *field)
{
	if (rc)
		fail(e, "LIMIT", field, avro_strerror());
}

void fz_encode_open(struct fz_encode *e, struct fz_schemas *schemas, enum fz_msg msg, size_t max,
		    struct fz_error *err)
{
	*e = (struct fz_encode){.schemas = schemas, .max = max, .err = err};
	const struct fz_schema *s = fz_schemas_get(schemas, msg);
	if (!s) {
		fail(e, "LIMIT", "", "no memory for a schema");
		return;
	}
	check(e, avro_generic_value_new(s->generic, &e->root), "");
	e->have_root = e->st == FZ_OK;
}

static void write_value(struct fz_encode *e, avro_value_t *v, struct buf *out)
{
	size_t size = 0;
	if (e->st != FZ_OK)
		return;
	check(e, avro_value_sizeof(v, &size), "");
	if (e->st != FZ_OK || size == 0)
		return;
	uint8_t *p = size <= e->max ? buf_room(out, size) : NULL;
	if (!p) {
		fail(e, "TOO_LARGE", "", "the message passes the limit of its size");
		return;
	}
	avro_writer_t w = avro_writer_memory((const char *)p, (int64_t)size);
	check(e, w ? avro_value_write(w, v) : -1, "");
	if (w)
		avro_writer_free(w);
}

enum fz_status fz_encode_close(struct fz_encode *e, struct buf *out)
{
	write_value(e, &e->root, out);
	if (e->have_root)
		avro_value_decref(&e->root);
	e->have_root = false;
	return e->st;
}

/* ---- members ---- */

/* The member of a record; false when something failed before. */
static bool member(struct fz_encode *e, avro_value_t *rec, const char *name, avro_value_t *ret_v)
{
	if (e->st != FZ_OK)
		return false;
	check(e, avro_value_get_by_name(rec, name, ret_v, NULL), name);
	return e->st == FZ_OK;
}

static bool append(struct fz_encode *e, avro_value_t *list, avro_value_t *ret_v)
{
	if (e->st != FZ_OK)
		return false;
	check(e, avro_value_append(list, ret_v, NULL), "");
	return e->st == FZ_OK;
}

static void set_text(struct fz_encode *e, avro_value_t *v, const char *name, const char *text)
{
	struct strv s = strv_of(text ? text : "");
	if (e->st != FZ_OK)
		return;
	if (!strv_utf8(s))
		fail(e, "ILLEGAL_ARGUMENT", name, "text is not UTF-8");
	else
		check(e, avro_value_set_string_len(v, s.p, s.n + 1), name);
}

static void put_text(struct fz_encode *e, avro_value_t *rec, const char *name, const char *text)
{
	avro_value_t v;
	if (member(e, rec, name, &v))
		set_text(e, &v, name, text);
}

static void set_bytes(struct fz_encode *e, avro_value_t *v, const char *name, struct bytes b)
{
	/* avro-c copies, but takes no const, and no NULL even for nothing. */
	static const char nothing[1];
	check(e,
	      avro_value_set_bytes(v, (void *)(uintptr_t)(b.n ? (const void *)b.p : nothing), b.n),
	      name);
}

static void put_bytes(struct fz_encode *e, avro_value_t *rec, const char *name, struct bytes b)
{
	avro_value_t v;
	if (member(e, rec, name, &v))
		set_bytes(e, &v, name, b);
}

static void put_fixed(struct fz_encode *e, avro_value_t *rec, const char *name, const uint8_t *p,
		      size_t n)
{
	avro_value_t v;
	if (member(e, rec, name, &v))
		check(e, avro_value_set_fixed(&v, (void *)(uintptr_t)p, n), name);
}

static void put_long(struct fz_encode *e, avro_value_t *rec, const char *name, int64_t n)
{
	avro_value_t v;
	if (member(e, rec, name, &v))
		check(e, avro_value_set_long(&v, n), name);
}

static void put_int(struct fz_encode *e, avro_value_t *rec, const char *name, int32_t n)
{
	avro_value_t v;
	if (member(e, rec, name, &v))
		check(e, avro_value_set_int(&v, n), name);
}

static void put_bool(struct fz_encode *e, avro_value_t *rec, const char *name, bool b)
{
	avro_value_t v;
	if (member(e, rec, name, &v))
		check(e, avro_value_set_boolean(&v, b), name);
}

static void put_enum(struct fz_encode *e, avro_value_t *rec, const char *name, int symbol,
		     int count)
{
	avro_value_t v;
	if (!member(e, rec, name, &v))
		return;
	if (symbol < 0 || symbol >= count)
		fail(e, "ILLEGAL_ARGUMENT", name, "no symbol has this number");
	else
		check(e, avro_value_set_enum(&v, symbol), name);
}

/* Chooses the branch of an optional member; true when it is present and *ret_v is to be set. */
static bool optional(struct fz_encode *e, avro_value_t *rec, const char *name, bool present,
		     avro_value_t *ret_v)
{
	avro_value_t u;
	if (!member(e, rec, name, &u))
		return false;
	check(e, avro_value_set_branch(&u, present ? 1 : 0, ret_v), name);
	if (e->st == FZ_OK && !present)
		check(e, avro_value_set_null(ret_v), name);
	return e->st == FZ_OK && present;
}

/* ---- records ---- */

static void put_metrics(struct fz_encode *e, avro_value_t *rec, const char *name,
			const struct fz_metric *m, size_t n)
{
	avro_value_t list, item;
	if (!member(e, rec, name, &list))
		return;
	for (size_t i = 0; i < n && append(e, &list, &item); i++) {
		put_int(e, &item, "field_id", m[i].field_id);
		put_long(e, &item, "value", m[i].value);
	}
}

static void put_bounds(struct fz_encode *e, avro_value_t *rec, const char *name,
		       const struct fz_bound *b, size_t n)
{
	avro_value_t list, item;
	if (!member(e, rec, name, &list))
		return;
	for (size_t i = 0; i < n && append(e, &list, &item); i++) {
		put_int(e, &item, "field_id", b[i].field_id);
		put_bytes(e, &item, "value", (struct bytes){b[i].value, b[i].size});
	}
}

static void put_partition(struct fz_encode *e, avro_value_t *rec, const struct fz_partition *p,
			  size_t n)
{
	avro_value_t list, item, v;
	if (!member(e, rec, "partition", &list))
		return;
	for (size_t i = 0; i < n && append(e, &list, &item); i++) {
		put_int(e, &item, "field_id", p[i].field_id);
		if (optional(e, &item, "value", p[i].value != NULL, &v))
			set_bytes(e, &v, "value", (struct bytes){p[i].value, p[i].size});
	}
}

static void put_data_file(struct fz_encode *e, avro_value_t *rec, const struct fz_data_file *f)
{
	avro_value_t list, item, v;
	if (!f->path || !*f->path)
		fail(e, "ILLEGAL_ARGUMENT", "path", "a data file has no path");
	put_text(e, rec, "path", f->path);
	put_text(e, rec, "format", f->format ? f->format : "PARQUET");
	put_int(e, rec, "spec_id", f->spec_id);
	put_partition(e, rec, f->partition, f->n_partition);
	put_long(e, rec, "record_count", f->record_count);
	put_long(e, rec, "file_size", f->file_size);
	put_int(e, rec, "schema_id", f->schema_id);
	put_metrics(e, rec, "column_sizes", f->column_sizes, f->n_column_sizes);
	put_metrics(e, rec, "value_counts", f->value_counts, f->n_value_counts);
	put_metrics(e, rec, "null_counts", f->null_counts, f->n_null_counts);
	put_metrics(e, rec, "nan_counts", f->nan_counts, f->n_nan_counts);
	put_bounds(e, rec, "lower_bounds", f->lower_bounds, f->n_lower_bounds);
	put_bounds(e, rec, "upper_bounds", f->upper_bounds, f->n_upper_bounds);
	if (member(e, rec, "split_offsets", &list))
		for (size_t i = 0; i < f->n_split_offsets && append(e, &list, &item); i++)
			check(e, avro_value_set_long(&item, f->split_offsets[i]), "split_offsets");
	if (optional(e, rec, "sort_order_id", f->has_sort_order, &v))
		check(e, avro_value_set_int(&v, f->sort_order_id), "sort_order_id");
	put_bool(e, rec, "has_row_ids", f->has_row_ids);
	put_long(e, rec, "new_row_count", f->new_row_count);
	put_long(e, rec, "updated_row_count", f->updated_row_count);
}

static int64_t put_delete(struct fz_encode *e, avro_value_t *rec, const struct fz_delete *d)
{
	struct buf blob;
	struct err base = {0};
	int64_t cardinality = d->cardinality;
	struct bytes vector = {d->blob, d->blob_size};
	buf_init(&blob, e->max);
	avro_value_t v;
	if (d->blob && d->blob_path)
		fail(e, "ILLEGAL_ARGUMENT", "blob", "a vector has bytes or a path, not both");
	if (!d->blob && !d->blob_path) {
		if (fz_vector_put(&blob, d->positions, d->n_positions, &cardinality, &base) !=
			    ST_OK &&
		    e->st == FZ_OK)
			e->st = fz_error_base(e->err, &base);
		vector = buf_bytes(&blob);
	}
	if (!d->data_file || !*d->data_file)
		fail(e, "ILLEGAL_ARGUMENT", "data_file", "a deletion names no data file");
	put_text(e, rec, "data_file", d->data_file);
	put_bytes(e, rec, "vector", vector);
	put_long(e, rec, "cardinality", cardinality);
	put_enum(e, rec, "provenance", (int)d->provenance, FZ_MOVED + 1);
	put_bool(e, rec, "includes_existing", d->includes_existing);
	if (optional(e, rec, "blob", d->blob_path != NULL, &v)) {
		put_text(e, &v, "path", d->blob_path);
		put_long(e, &v, "offset", d->blob_offset);
		put_long(e, &v, "length", d->blob_length);
	}
	buf_fini(&blob);
	return cardinality;
}

static void put_delete_file(struct fz_encode *e, avro_value_t *rec, const struct fz_delete_file *f)
{
	avro_value_t list, item;
	if (!f->path || !*f->path)
		fail(e, "ILLEGAL_ARGUMENT", "path", "a file of deletes has no path");
	put_text(e, rec, "path", f->path);
	put_text(e, rec, "format", f->format ? f->format : "PARQUET");
	put_int(e, rec, "spec_id", f->spec_id);
	put_partition(e, rec, f->partition, f->n_partition);
	put_long(e, rec, "record_count", f->record_count);
	put_long(e, rec, "file_size", f->file_size);
	put_metrics(e, rec, "column_sizes", f->column_sizes, f->n_column_sizes);
	put_metrics(e, rec, "value_counts", f->value_counts, f->n_value_counts);
	put_metrics(e, rec, "null_counts", f->null_counts, f->n_null_counts);
	put_bounds(e, rec, "lower_bounds", f->lower_bounds, f->n_lower_bounds);
	put_bounds(e, rec, "upper_bounds", f->upper_bounds, f->n_upper_bounds);
	if (member(e, rec, "data_files", &list))
		for (size_t i = 0; i < f->n_data_files && append(e, &list, &item); i++)
			set_text(e, &item, "data_files", f->data_files[i]);
}

static void put_task_message(struct fz_encode *e, avro_value_t *rec,
			     const struct fz_task_message *m)
{
	put_enum(e, rec, "dialect", (int)m->dialect, FZ_ICEBERG + 1);
	put_bytes(e, rec, "json", (struct bytes){m->json, m->json_size});
}

static void put_manifest(struct fz_encode *e, avro_value_t *rec, const struct fz_manifest *m)
{
	if (!m->path || !*m->path)
		fail(e, "ILLEGAL_ARGUMENT", "path", "a manifest has no path");
	put_text(e, rec, "path", m->path);
	put_long(e, rec, "length", m->length);
	put_int(e, rec, "added_files", m->added_files);
	put_long(e, rec, "added_rows", m->added_rows);
}

/* The digest covers the arrays as they stand in the payload, in this order. */
enum { DATA_FILES, DELETES, DELETE_FILES, MESSAGES, MANIFESTS, N_ARRAYS };

static void put_fragment(struct fz_encode *e, avro_value_t *rec, const struct fz_fragment *f,
			 struct digest *ret_digest, struct fz_totals *ret_totals)
{
	static const char *const names[N_ARRAYS] = {
		[DATA_FILES] = "data_files",     [DELETES] = "deletes",
		[DELETE_FILES] = "delete_files", [MESSAGES] = "messages",
		[MANIFESTS] = "manifests",
	};
	avro_value_t list[N_ARRAYS], item;
	struct fz_totals t = {.files = (int64_t)f->n_data_files, .unknown = f->n_messages > 0};
	bool fits = true;
	put_text(e, rec, "fragment_id", f->fragment_id);
	put_int(e, rec, "attempt", f->attempt);
	for (size_t i = 0; i < N_ARRAYS; i++)
		if (!member(e, rec, names[i], &list[i]))
			return;
	for (size_t i = 0; i < f->n_data_files && append(e, &list[DATA_FILES], &item); i++) {
		put_data_file(e, &item, &f->data_files[i]);
		fits &= add_i64(t.rows, f->data_files[i].record_count, &t.rows);
	}
	for (size_t i = 0; i < f->n_deletes && append(e, &list[DELETES], &item); i++)
		fits &= add_i64(t.deleted, put_delete(e, &item, &f->deletes[i]), &t.deleted);
	for (size_t i = 0; i < f->n_delete_files && append(e, &list[DELETE_FILES], &item); i++) {
		put_delete_file(e, &item, &f->delete_files[i]);
		fits &= add_i64(t.deleted, f->delete_files[i].record_count, &t.deleted);
	}
	for (size_t i = 0; i < f->n_messages && append(e, &list[MESSAGES], &item); i++)
		put_task_message(e, &item, &f->messages[i]);
	for (size_t i = 0; i < f->n_manifests && append(e, &list[MANIFESTS], &item); i++) {
		put_manifest(e, &item, &f->manifests[i]);
		fits &= add_i64(t.files, f->manifests[i].added_files, &t.files) &&
			add_i64(t.rows, f->manifests[i].added_rows, &t.rows);
	}
	if (!fits)
		fail(e, "ILLEGAL_ARGUMENT", "record_count", "a sum has more than 64 bits");
	struct buf canonical;
	buf_init(&canonical, e->max);
	for (size_t i = 0; i < N_ARRAYS; i++)
		write_value(e, &list[i], &canonical);
	struct digest d = digest_sha256(buf_bytes(&canonical));
	buf_fini(&canonical);
	put_fixed(e, rec, "digest", d.b, sizeof d.b);
	*ret_digest = d;
	*ret_totals = t;
}

static void put_begin(struct fz_encode *e, avro_value_t *rec, struct uuid txn_id,
		      const struct fz_begin *b)
{
	avro_value_t list, item, v;
	put_fixed(e, rec, "txn_id", txn_id.b, sizeof txn_id.b);
	put_text(e, rec, "warehouse", b->warehouse);
	if (member(e, rec, "namespace", &list))
		for (size_t i = 0; i < b->n_levels && append(e, &list, &item); i++)
			set_text(e, &item, "namespace", b->namespace_levels[i]);
	put_text(e, rec, "table", b->table);
	put_text(e, rec, "ref", b->ref ? b->ref : "main");
	put_enum(e, rec, "kind", (int)b->kind, FZ_TRUNCATE + 1);
	put_enum(e, rec, "isolation", (int)b->isolation, FZ_SERIALIZABLE + 1);
	if (optional(e, rec, "read_snapshot_id", b->has_read_snapshot, &v))
		check(e, avro_value_set_long(&v, b->read_snapshot_id), "read_snapshot_id");
	if (optional(e, rec, "filter", b->filter != NULL, &v))
		set_text(e, &v, "filter", b->filter);
	put_bool(e, rec, "ordered", b->ordered);
	if (optional(e, rec, "source", b->source != NULL, &v)) {
		put_text(e, &v, "source_id", b->source->source_id);
		put_long(e, &v, "epoch", b->source->epoch);
		put_long(e, &v, "seq_from", b->source->seq_from);
		put_long(e, &v, "seq_to", b->source->seq_to);
	}
	put_long(e, rec, "ttl_ms", b->ttl_ms);
}

static void put_lease(struct fz_encode *e, avro_value_t *rec, const struct fz_lease *lease)
{
	put_fixed(e, rec, "txn_id", lease->txn_id.b, sizeof lease->txn_id.b);
	put_bytes(e, rec, "lease_token", lease->token);
}

static void put_summary(struct fz_encode *e, const struct fz_property *summary, size_t n)
{
	avro_value_t list, item;
	if (!member(e, &e->root, "summary", &list))
		return;
	for (size_t i = 0; i < n && append(e, &list, &item); i++) {
		put_text(e, &item, "key", summary[i].key);
		put_text(e, &item, "value", summary[i].value);
	}
}

/* ---- messages ---- */

void fz_encode_hello(struct fz_encode *e, int min_version, int max_version, const char *client,
		     bool provenance)
{
	avro_value_t list, item;
	put_int(e, &e->root, "min_version", min_version);
	put_int(e, &e->root, "max_version", max_version);
	put_text(e, &e->root, "client", client);
	if (member(e, &e->root, "capabilities", &list) && provenance && append(e, &list, &item))
		set_text(e, &item, "capabilities", "provenance");
}

void fz_encode_begin(struct fz_encode *e, struct uuid txn_id, const struct fz_begin *begin)
{
	put_begin(e, &e->root, txn_id, begin);
}

void fz_encode_stage(struct fz_encode *e, const struct fz_lease *lease,
		     const struct fz_fragment *fragment, struct digest *ret_digest,
		     struct fz_totals *ret_totals)
{
	avro_value_t v;
	put_lease(e, &e->root, lease);
	if (member(e, &e->root, "fragment", &v))
		put_fragment(e, &v, fragment, ret_digest, ret_totals);
}

void fz_encode_seal(struct fz_encode *e, const struct fz_lease *lease, const struct fz_ref *refs,
		    size_t n_refs, const struct fz_totals *totals)
{
	avro_value_t list, item;
	put_lease(e, &e->root, lease);
	if (member(e, &e->root, "fragments", &list))
		for (size_t i = 0; i < n_refs && append(e, &list, &item); i++) {
			put_text(e, &item, "fragment_id", refs[i].fragment_id);
			put_int(e, &item, "attempt", refs[i].attempt);
			put_fixed(e, &item, "digest", refs[i].digest.b, sizeof refs[i].digest.b);
		}
	put_long(e, &e->root, "expected_files", totals->unknown ? -1 : totals->files);
	put_long(e, &e->root, "expected_rows", totals->unknown ? -1 : totals->rows);
	put_long(e, &e->root, "expected_deleted", totals->unknown ? -1 : totals->deleted);
}

void fz_encode_commit(struct fz_encode *e, const struct fz_lease *lease, int64_t max_wait_ms,
		      const struct fz_property *summary, size_t n_summary)
{
	put_lease(e, &e->root, lease);
	put_long(e, &e->root, "max_wait_ms", max_wait_ms);
	put_summary(e, summary, n_summary);
}

void fz_encode_commit_once(struct fz_encode *e, struct uuid txn_id, const struct fz_begin *begin,
			   const struct fz_fragment *fragments, size_t n_fragments,
			   int64_t max_wait_ms, const struct fz_property *summary, size_t n_summary)
{
	avro_value_t v, list, item;
	struct digest digest;
	struct fz_totals totals;
	if (member(e, &e->root, "begin", &v))
		put_begin(e, &v, txn_id, begin);
	if (member(e, &e->root, "fragments", &list))
		for (size_t i = 0; i < n_fragments && append(e, &list, &item); i++)
			put_fragment(e, &item, &fragments[i], &digest, &totals);
	put_summary(e, summary, n_summary);
	put_long(e, &e->root, "max_wait_ms", max_wait_ms);
}

void fz_encode_status(struct fz_encode *e, struct uuid txn_id)
{
	put_fixed(e, &e->root, "txn_id", txn_id.b, sizeof txn_id.b);
}

void fz_encode_abort(struct fz_encode *e, const struct fz_lease *lease, const char *reason)
{
	put_lease(e, &e->root, lease);
	put_text(e, &e->root, "reason", reason);
}

void fz_encode_heartbeat(struct fz_encode *e, const struct fz_lease *leases, size_t n_leases)
{
	avro_value_t list, item;
	if (member(e, &e->root, "items", &list))
		for (size_t i = 0; i < n_leases && append(e, &list, &item); i++)
			put_lease(e, &item, &leases[i]);
}
