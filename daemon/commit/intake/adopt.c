#include "daemon/commit/intake/adopt.h"

#include "daemon/commit/intake/check.h"
#include "proto/avro/manifest_write.h"
#include "proto/iceberg/metadata.h"
#include "proto/iceberg/partition.h"

static enum status full(struct err *err)
{
	return err_set(err, ST_TOO_LARGE, "path", "the manifest exceeds the memory limit");
}

void adopt_free(struct adopted *own_a)
{
	if (!own_a)
		return;
	arena_fini(&own_a->arena);
	base_free(own_a);
}

static enum status unfit(struct err *err, const char *field, const char *why)
{
	return err_set(err, ST_MANIFEST_UNFIT, field, "%s", why);
}

/* ------------------------------------------------------------------ what it must fulfil */

static enum status check_head(const struct manifest_head *h, const struct metadata *m,
			      struct err *err)
{
	if (metadata_format_version(m) < 2)
		return err_set(err, ST_UNSUPPORTED, "format-version",
			       "finished manifests need format version 2");
	if (!h->data)
		return unfit(err, "content", "only manifests of data files are taken");
	if (h->format_version != metadata_format_version(m))
		return err_set(err, ST_MANIFEST_UNFIT, "format-version",
			       "a manifest of version %d for a table of version %d",
			       h->format_version, metadata_format_version(m));
	if (h->spec_id == SPEC_ID_NONE)
		return unfit(err, "partition-spec-id", "the manifest does not say its spec");
	if (!metadata_spec_by_id(m, h->spec_id))
		return err_set(err, ST_SPEC_UNKNOWN, "partition-spec-id",
			       "partition spec %d is not in the table", h->spec_id);
	if (h->schema_id == SCHEMA_ID_NONE)
		return unfit(err, "schema", "the manifest does not say the id of its schema");
	if (!metadata_schema_by_id(m, h->schema_id))
		return err_set(err, ST_SCHEMA_UNKNOWN, "schema",
			       "schema %d is not in the table", h->schema_id);
	return ST_OK;
}

/* Nothing may stand where a reader has to inherit: the numbers do not exist yet. */
static enum status check_entry(const struct manifest_entry *e, int version, struct err *err)
{
	const struct content_file *f = &e->file;
	if (e->status != ENTRY_ADDED)
		return unfit(err, "status", "only added files are taken");
	if (e->snapshot_id != SNAPSHOT_NONE)
		return unfit(err, "snapshot_id", "must be null: the snapshot is not known yet");
	if (e->seq != SEQ_NONE)
		return unfit(err, "sequence_number", "must be null: readers inherit it");
	if (e->file_seq != SEQ_NONE)
		return unfit(err, "file_sequence_number", "must be null: readers inherit it");
	if (f->first_row_id != ROW_ID_NONE)
		return unfit(err, "first_row_id", "must be null: readers inherit it");
	if (f->has_key_metadata)
		return err_set(err, ST_ENCRYPTED, "key_metadata", "the file is encrypted");
	return content_file_check(f, version, ST_MANIFEST_UNFIT, err);
}

static bool copy_metrics(struct arena *a, const struct metric *in, size_t n,
			 struct rpc_metric **ret_v, size_t *ret_n)
{
	struct rpc_metric *v = arena_calloc(a, n ? n : 1, sizeof *v);
	if (!v)
		return false;
	for (size_t i = 0; i < n; i++)
		v[i] = (struct rpc_metric){in[i].field_id, in[i].v};
	*ret_v = v;
	*ret_n = n;
	return true;
}

static bool copy_bounds(struct arena *a, const struct bound *in, size_t n,
			struct rpc_bound **ret_v, size_t *ret_n)
{
	struct rpc_bound *v = arena_calloc(a, n ? n : 1, sizeof *v);
	if (!v)
		return false;
	for (size_t i = 0; i < n; i++)
		v[i] = (struct rpc_bound){in[i].field_id, in[i].b};
	*ret_v = v;
	*ret_n = n;
	return true;
}

/* What is kept of an entry. */
static bool record_of(const struct manifest *m, const struct content_file *f, int32_t schema_id,
		      struct arena *a, struct rpc_data_file *ret_d)
{
	struct rpc_data_file d = {.spec_id = f->spec_id,
				  .record_count = f->record_count,
				  .file_size = f->file_size,
				  .schema_id = schema_id,
				  .has_sort_order_id = f->sort_order_id != SORT_ORDER_NONE,
				  .new_row_count = f->record_count,
				  .n_partition = m->n_partition};
	if (d.has_sort_order_id)
		d.sort_order_id = f->sort_order_id;
	d.partition = arena_calloc(a, d.n_partition ? d.n_partition : 1, sizeof *d.partition);
	if (!d.partition || !arena_strv(a, f->path, &d.path) ||
	    !arena_strv(a, f->format, &d.format))
		return false;
	for (size_t i = 0; i < d.n_partition; i++) {
		struct rpc_partition_value *v = &d.partition[i];
		v->field_id = m->partition[i].id;
		v->has_value = !f->partition.v[i].null;
		if (v->has_value && !arena_bytes(a, f->partition.v[i].b, &v->value))
			return false;
	}
	*ret_d = d;
	return true;
}

/* The entry as a worker would have staged it, judged by the same rules. */
static enum status check_file(const struct metadata *m, const struct rpc_data_file *d,
			      const struct content_file *f, struct arena *scratch,
			      struct adopted *ad, size_t at, struct err *err)
{
	struct rpc_data_file whole = *d;
	struct content_file checked;
	bool ok = copy_metrics(scratch, f->column_sizes, f->n_column_sizes, &whole.column_sizes,
			       &whole.n_column_sizes) &&
		  copy_metrics(scratch, f->value_counts, f->n_value_counts, &whole.value_counts,
			       &whole.n_value_counts) &&
		  copy_metrics(scratch, f->null_counts, f->n_null_counts, &whole.null_counts,
			       &whole.n_null_counts) &&
		  copy_metrics(scratch, f->nan_counts, f->n_nan_counts, &whole.nan_counts,
			       &whole.n_nan_counts) &&
		  copy_bounds(scratch, f->lower, f->n_lower, &whole.lower_bounds,
			      &whole.n_lower_bounds) &&
		  copy_bounds(scratch, f->upper, f->n_upper, &whole.upper_bounds,
			      &whole.n_upper_bounds);
	if (!ok)
		return full(err);
	whole.split_offsets = f->split_offsets;
	whole.n_split_offsets = f->n_split_offsets;
	enum status st = check_data_file(m, &whole, scratch, &checked, err);
	/* Once more without what is not kept, so that the result lies in its own memory. */
	if (st == ST_OK)
		st = check_data_file(m, d, &ad->arena, &ad->files[at], err);
	return st;
}

static enum status take(const struct manifest *mf, const struct rpc_manifest_ref *ref,
			const struct manifest_head *h, const struct metadata *m,
			struct adopted *ad, struct err *err)
{
	int64_t rows = 0;
	ad->format_version = h->format_version;
	ad->records = arena_calloc(&ad->arena, mf->n ? mf->n : 1, sizeof *ad->records);
	ad->files = arena_calloc(&ad->arena, mf->n ? mf->n : 1, sizeof *ad->files);
	if (!ad->records || !ad->files)
		return full(err);
	for (size_t i = 0; i < mf->n; i++) {
		const struct manifest_entry *e = &mf->entries[i];
		struct arena scratch;
		arena_init(&scratch, ad->arena.limit);
		enum status st = check_entry(e, h->format_version, err);
		if (st == ST_OK && !record_of(mf, &e->file, h->schema_id, &ad->arena,
					      &ad->records[i]))
			st = full(err);
		if (st == ST_OK)
			st = check_file(m, &ad->records[i], &e->file, &scratch, ad, i, err);
		arena_fini(&scratch);
		if (st == ST_OK && !add_i64(rows, e->file.record_count, &rows))
			st = unfit(err, "record_count", "the rows have more than 63 bits");
		if (st != ST_OK) {
			err_prefix(err, "entries[%zu]", i);
			return st;
		}
		ad->n++;
	}
	if (ref->added_files < 0 || ad->n != (size_t)ref->added_files)
		return err_set(err, ST_MANIFEST_UNFIT, "added_files", "stated %d, the manifest has %zu",
			       ref->added_files, ad->n);
	if (rows != ref->added_rows)
		return err_set(err, ST_MANIFEST_UNFIT, "added_rows",
			       "stated %lld, the manifest has %lld", (long long)ref->added_rows,
			       (long long)rows);
	return ST_OK;
}

/* The file is the request's: what breaks the format there is no damage of ours. */
static void blame(struct err *err)
{
	if (err->st == ST_CORRUPT || err->st == ST_UNSUPPORTED)
		err->st = ST_MANIFEST_UNFIT;
	else if (err->st == ST_LIMIT)
		err->st = ST_TOO_LARGE;
}

enum status adopt_read(struct bytes file, const struct rpc_manifest_ref *ref,
		       const struct metadata *m, size_t limit, struct adopted **ret_a,
		       struct err *err)
{
	struct manifest_head h;
	struct manifest *mf = NULL;
	struct field *fields = NULL;
	struct arena a;
	if (ref->length < 0 || file.n != (uint64_t)ref->length)
		return err_set(err, ST_SIZE_MISMATCH, "length", "stated %lld bytes, the file has %zu",
			       (long long)ref->length, file.n);
	enum status st = manifest_read_head(file, limit, &h, err);
	if (st == ST_OK)
		st = check_head(&h, m, err);
	if (st != ST_OK) {
		blame(err);
		return err->st;
	}
	/* Tuples have the types that the columns had then; check_data_file knows what became of
	 * those. */
	const struct partition_spec *spec = metadata_spec_by_id(m, h.spec_id);
	arena_init(&a, limit);
	st = partition_type(spec, metadata_schema_by_id(m, h.schema_id), &a, &fields, err);
	if (st == ST_OK)
		st = manifest_read_unlisted(file, h.spec_id, fields, spec->n, limit, &mf, err);
	arena_fini(&a);
	if (st != ST_OK) {
		blame(err);
		return err->st;
	}
	struct adopted *ad = base_calloc(1, sizeof *ad);
	arena_init(&ad->arena, limit);
	st = take(mf, ref, &h, m, ad, err);
	manifest_unref(mf);
	if (st != ST_OK)
		adopt_free(ad);
	else
		*ret_a = ad;
	return st;
}

/* ------------------------------------------------------------------ its place in a list */

/* Of a batch, which is then made smaller; no single request is at fault. */
static enum status batch_full(struct err *err)
{
	return err_set(err, ST_LIMIT, "", "the batch exceeds the memory limit of one snapshot");
}

static enum status entries_of(const struct plan_adopted *ad, const struct content_file *files,
			      struct arena *a, struct manifest_entry **ret_e, struct err *err)
{
	struct manifest_entry *e = arena_calloc(a, ad->n ? ad->n : 1, sizeof *e);
	if (!e)
		return batch_full(err);
	for (size_t i = 0; i < ad->n; i++)
		e[i] = (struct manifest_entry){.status = ENTRY_ADDED,
					       .snapshot_id = SNAPSHOT_NONE,
					       .seq = SEQ_NONE,
					       .file_seq = SEQ_NONE,
					       .file = files[ad->first + i]};
	*ret_e = e;
	return ST_OK;
}

static enum status tuple_type(const struct metadata *m, int32_t spec_id, struct arena *a,
			      struct field **ret_fields, size_t *ret_n, struct err *err)
{
	const struct partition_spec *spec = metadata_spec_by_id(m, spec_id);
	ASSERT(spec); /* looked at when the batch was planned */
	*ret_n = spec->n;
	return partition_type(spec, metadata_schema(m), a, ret_fields, err);
}

enum status adopt_row(const struct plan_adopted *ad, const struct content_file *files,
		      const struct metadata *m, struct arena *a, struct manifest_file *ret_row,
		      struct err *err)
{
	struct manifest_params p = {.content = MANIFEST_DATA,
				    .spec_id = files[ad->first].spec_id,
				    .snapshot_id = SNAPSHOT_NONE};
	struct manifest_entry *e = NULL;
	struct field *fields = NULL;
	enum status st = tuple_type(m, p.spec_id, a, &fields, &p.n_partition, err);
	if (st == ST_OK)
		st = entries_of(ad, files, a, &e, err);
	const struct manifest_entry **v = arena_calloc(a, ad->n ? ad->n : 1, sizeof(void *));
	if (st == ST_OK && !v)
		st = batch_full(err);
	if (st != ST_OK)
		return st;
	p.partition = fields;
	for (size_t i = 0; i < ad->n; i++)
		v[i] = &e[i];
	st = manifest_describe(&p, v, ad->n, a, ret_row, err);
	if (st == ST_OK) {
		ret_row->path = ad->path;
		ret_row->length = ad->length;
	}
	return st;
}

enum status adopt_view(const struct plan_adopted *ad, const struct content_file *files,
		       const struct metadata *m, const struct manifest_file *row, size_t limit,
		       struct mview **ret_v, struct err *err)
{
	struct manifest *mf = base_calloc(1, sizeof *mf);
	mf->refs = 1;
	arena_init(&mf->arena, limit);
	mf->format_version = metadata_format_version(m);
	mf->content = MANIFEST_DATA;
	mf->spec_id = row->spec_id;
	mf->schema_id = SCHEMA_ID_NONE;
	enum status st =
		tuple_type(m, row->spec_id, &mf->arena, &mf->partition, &mf->n_partition, err);
	if (st == ST_OK)
		st = entries_of(ad, files, &mf->arena, &mf->entries, err);
	if (st != ST_OK) {
		manifest_unref(mf);
		return st;
	}
	mf->n = ad->n;
	int64_t next = row->first_row_id;
	for (size_t i = 0; i < mf->n; i++) {
		struct manifest_entry *e = &mf->entries[i];
		e->snapshot_id = row->added_snapshot_id;
		e->seq = e->file_seq = row->seq;
		e->file.first_row_id = next;
		if (next != ROW_ID_NONE)
			next += e->file.record_count; /* counted before: lineage_assign */
	}
	struct mview *whole = mview_new(mf);
	*ret_v = mview_light(whole);
	mview_unref(whole);
	return ST_OK;
}
