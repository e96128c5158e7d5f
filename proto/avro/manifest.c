#include "proto/avro/manifest.h"

#include "proto/avro/avro_container.h"
#include "proto/avro/avro_prog.h"
#include "proto/avro/manifest_cols.h"
#include "proto/avro/manifest_list.h"
#include "proto/base/json.h"

/* Deletion vectors had their own content number in drafts of format version 3. */
#define CONTENT_LEGACY_DV 3

static enum status no_memory(struct err *err)
{
	return err_set(err, ST_LIMIT, "", "the manifest exceeds the memory limit");
}

struct manifest *manifest_ref(struct manifest *m)
{
	m->refs++;
	return m;
}

void manifest_unref(struct manifest *own_m)
{
	if (!own_m)
		return;
	ASSERT(own_m->refs > 0);
	if (--own_m->refs > 0)
		return;
	arena_fini(&own_m->arena);
	base_free(own_m);
}

/* ---- header ---- */

static enum status header_int(const struct avro_container *c, const char *key, int64_t absent,
			      int64_t *ret_v, struct err *err)
{
	struct strv text;
	int64_t v = absent;
	if (avro_container_meta(c, strv_of(key), &text) &&
	    (!strv_i64(text, &v) || v < INT32_MIN || v > INT32_MAX))
		return err_set(err, ST_CORRUPT, key, "the header value is no number");
	*ret_v = v;
	return ST_OK;
}

static enum status header_text(struct manifest *m, const struct avro_container *c, const char *key,
			       struct strv *ret_s, struct err *err)
{
	struct strv text = {"", 0};
	(void)!avro_container_meta(c, strv_of(key), &text);
	if (!strv_utf8(text))
		return err_set(err, ST_CORRUPT, key, "the header value is not UTF-8");
	return arena_strv(&m->arena, text, ret_s) ? ST_OK : no_memory(err);
}

/* The file must agree with its row; a version 1 writer names neither content nor, at first, ids. */
static enum status read_header(struct manifest *m, const struct avro_container *c,
			       const struct manifest_file *row, struct err *err)
{
	int64_t version = 1, spec = row->spec_id, schema = SCHEMA_ID_NONE;
	enum status st = header_int(c, "format-version", 1, &version, err);
	if (st == ST_OK)
		st = header_int(c, "partition-spec-id", row->spec_id, &spec, err);
	if (st == ST_OK)
		st = header_int(c, "schema-id", SCHEMA_ID_NONE, &schema, err);
	if (st == ST_OK)
		st = header_text(m, c, "schema", &m->schema, err);
	if (st == ST_OK)
		st = header_text(m, c, "partition-spec", &m->spec_fields, err);
	if (st != ST_OK)
		return st;
	if (version < 1 || version > 3)
		return err_set(err, ST_UNSUPPORTED, "format-version",
			       "manifest of format version %lld", (long long)version);
	if (spec != row->spec_id)
		return err_set(err, ST_CORRUPT, "partition-spec-id",
			       "the manifest has spec %lld, its list row %d", (long long)spec,
			       row->spec_id);
	struct strv content;
	if (avro_container_meta(c, STRV("content"), &content)) {
		bool deletes = strv_eq(content, STRV("deletes"));
		if ((!deletes && !strv_eq(content, STRV("data"))) ||
		    deletes != (row->content == MANIFEST_DELETES))
			return err_set(err, ST_CORRUPT, "content",
				       "the manifest's content is not that of its list row");
	}
	m->format_version = (int)version;
	m->content = row->content;
	m->spec_id = row->spec_id;
	m->schema_id = (int32_t)schema;
	return ST_OK;
}

/* ---- entries ---- */

struct reader {
	struct manifest *m;
	const struct manifest_file *row;
	struct avro_prog *prog;
	struct manifest_entry empty;
	bool unlisted;       /* nothing is inherited */
	int64_t next_row_id; /* ROW_ID_NONE when the row has none */
	size_t cap;
	struct err *err;
};

static enum status inherit_seq(const struct reader *r, struct manifest_entry *e)
{
	/* A row numbered 0 comes from version 1, whose entries have no numbers at all. */
	bool inherits = e->status == ENTRY_ADDED || r->row->seq == 0;
	if (e->seq == SEQ_NONE) {
		if (!inherits)
			return err_set(r->err, ST_CORRUPT, "sequence_number",
				       "only an added file may leave its number to the manifest");
		e->seq = r->row->seq;
	}
	if (e->file_seq == SEQ_NONE)
		e->file_seq = inherits ? r->row->seq : SEQ_UNKNOWN;
	if (e->snapshot_id == SNAPSHOT_NONE)
		e->snapshot_id = r->row->added_snapshot_id;
	return ST_OK;
}

static enum status inherit_row_id(struct reader *r, struct manifest_entry *e)
{
	struct content_file *f = &e->file;
	if (r->next_row_id == ROW_ID_NONE) {
		f->first_row_id = ROW_ID_NONE;
		return ST_OK;
	}
	if (f->first_row_id != ROW_ID_NONE || e->status == ENTRY_DELETED)
		return ST_OK;
	f->first_row_id = r->next_row_id;
	if (!add_i64(r->next_row_id, f->record_count, &r->next_row_id))
		return err_set(r->err, ST_CORRUPT, "first_row_id", "row ids pass 63 bits");
	return ST_OK;
}

static enum status legacy_content(struct content_file *f, struct err *err)
{
	uint32_t raw = f->content;
	if (raw != CONTENT_LEGACY_DV)
		return ST_OK;
	if (!f->referenced_data_file.p || f->content_offset == OFFSET_NONE ||
	    f->content_size == OFFSET_NONE)
		return err_set(err, ST_CORRUPT, "content",
			       "content 3 is read only as a complete deletion vector");
	f->content = CONTENT_POSITION_DELETES;
	return ST_OK;
}

static enum status finish_entry(struct reader *r, struct manifest_entry *e)
{
	uint32_t status = e->status;
	if (status > ENTRY_DELETED)
		return err_set(r->err, ST_CORRUPT, "status", "%u is not a status", status);
	struct content_file *f = &e->file;
	/* Deletes have no row ids, whatever a writer left in the column. */
	if (r->m->content == MANIFEST_DELETES)
		f->first_row_id = ROW_ID_NONE;
	enum status st = legacy_content(f, r->err);
	if (st == ST_OK)
		st = content_file_check(f, 3, ST_CORRUPT, r->err);
	if (st != ST_OK)
		return st;
	if ((f->content == CONTENT_DATA) != (r->m->content == MANIFEST_DATA))
		return err_set(r->err, ST_CORRUPT, "content",
			       "the file's content is not that of its manifest");
	if (r->unlisted)
		return ST_OK;
	st = inherit_seq(r, e);
	return st == ST_OK ? inherit_row_id(r, e) : st;
}

static enum status read_block(struct reader *r, int64_t count, struct bytes data)
{
	struct avro_in in = avro_bin_in(data);
	size_t items = data.n;
	for (int64_t i = 0; i < count; i++) {
		struct manifest *m = r->m;
		if (m->n == r->cap)
			return err_set(r->err, ST_CORRUPT, "",
				       "more entries than the blocks count");
		struct manifest_entry *e = &m->entries[m->n];
		*e = r->empty;
		enum status st = avro_prog_run(r->prog, &in, e, &items, &m->arena, r->err);
		if (st == ST_OK)
			st = finish_entry(r, e);
		if (st != ST_OK) {
			err_prefix(r->err, "entries[%zu]", m->n);
			return st;
		}
		m->n++;
	}
	if (avro_bin_left(&in))
		return err_set(r->err, ST_CORRUPT, "", "bytes are left over in a block");
	return ST_OK;
}

static enum status read_entries(struct reader *r, struct avro_container *c)
{
	struct manifest *m = r->m;
	enum status st = avro_container_count(c, &r->cap, r->err);
	if (st != ST_OK)
		return st;
	m->entries = arena_calloc(&m->arena, r->cap, sizeof *m->entries);
	if (!m->entries)
		return no_memory(r->err);
	for (bool more = true; st == ST_OK;) {
		int64_t count = 0;
		struct bytes data;
		st = avro_container_next(c, &m->arena, &more, &count, &data, r->err);
		if (st == ST_OK && !more)
			break;
		if (st == ST_OK)
			st = read_block(r, count, data);
	}
	return st;
}

/* The tuple's fields, kept with the manifest; types may have been completed from the file. */
static enum status keep_partition(struct manifest *m, const struct field *partition, size_t n,
				  struct type *types, struct err *err)
{
	m->partition = arena_calloc(&m->arena, n, sizeof *m->partition);
	if (!m->partition)
		return no_memory(err);
	m->n_partition = n;
	for (size_t i = 0; i < n; i++) {
		m->partition[i] = (struct field){.id = partition[i].id, .type = &types[i]};
		if (!arena_strv(&m->arena, partition[i].name, &m->partition[i].name))
			return no_memory(err);
	}
	return ST_OK;
}

static enum status read_file(struct manifest *m, struct bytes file, const struct manifest_file *row,
			     bool unlisted, const struct field *partition, size_t n,
			     struct err *err)
{
	struct avro_container c;
	struct manifest_cols cols;
	struct type *types = NULL;
	struct strv schema = {"", 0};
	enum status st = avro_container_open(file, &m->arena, &c, err);
	if (st == ST_OK)
		st = read_header(m, &c, row, err);
	if (st != ST_OK)
		return st;
	if (!manifest_cols_entry(partition, n, &m->arena, &cols, &types))
		return no_memory(err);
	st = keep_partition(m, partition, n, types, err);
	if (st != ST_OK)
		return st;
	struct reader r = {.m = m,
			   .row = row,
			   .err = err,
			   .unlisted = unlisted,
			   .next_row_id = ROW_ID_NONE};
	if (row->content == MANIFEST_DATA)
		r.next_row_id = row->first_row_id;
	r.empty = (struct manifest_entry){
		.snapshot_id = SNAPSHOT_NONE,
		.seq = SEQ_NONE,
		.file_seq = SEQ_NONE,
		.file = content_file_empty(),
	};
	r.empty.file.spec_id = row->spec_id;
	(void)!avro_container_meta(&c, STRV("avro.schema"), &schema);
	st = avro_prog_compile(schema, cols.cols, cols.n, &m->arena, &r.prog, err);
	return st == ST_OK ? read_entries(&r, &c) : st;
}

/* Messages that reach clients name the file, not its bucket. */
static void name_file(struct strv path, struct err *err)
{
	size_t at = path.n;
	while (at && path.p[at - 1] != '/' && path.n - at < 60)
		at--;
	if (path.n)
		err_prefix(err, "%.*s", STRV_ARG(strv_sub(path, at, path.n)));
	err_detail(err, "manifest %.*s", STRV_ARG(path));
}

enum status manifest_read(struct bytes file, const struct manifest_file *row,
			  const struct field *partition, size_t n_partition, size_t limit,
			  struct manifest **ret_m, struct err *err)
{
	struct manifest *m = base_calloc(1, sizeof *m);
	m->refs = 1;
	arena_init(&m->arena, limit);
	enum status st = read_file(m, file, row, false, partition, n_partition, err);
	if (st != ST_OK) {
		name_file(row->path, err);
		manifest_unref(m);
		return st;
	}
	*ret_m = m;
	return ST_OK;
}

/* ---- manifests without a row ---- */

/* The schema in the header names itself. */
static int32_t schema_id_in(struct strv schema)
{
	struct jdoc *doc = NULL;
	struct err ignored;
	int64_t id = SCHEMA_ID_NONE;
	if (jdoc_parse(strv_bytes(schema), ST_CORRUPT, &doc, &ignored) != ST_OK)
		return SCHEMA_ID_NONE;
	const struct jval *root = jdoc_root(doc);
	if (!jval_is_object(root) || !jval_as_i64(jval_get(root, "schema-id"), &id) || id < 0 ||
	    id > INT32_MAX)
		id = SCHEMA_ID_NONE;
	jdoc_free(doc);
	return (int32_t)id;
}

static enum status read_head(struct bytes file, struct arena *a, struct manifest_head *ret_h,
			     struct err *err)
{
	struct avro_container c;
	struct strv content, schema;
	int64_t version = 1, spec = SPEC_ID_NONE, id = SCHEMA_ID_NONE;
	enum status st = avro_container_open(file, a, &c, err);
	if (st == ST_OK)
		st = header_int(&c, "format-version", 1, &version, err);
	if (st == ST_OK)
		st = header_int(&c, "partition-spec-id", SPEC_ID_NONE, &spec, err);
	if (st == ST_OK)
		st = header_int(&c, "schema-id", SCHEMA_ID_NONE, &id, err);
	if (st != ST_OK)
		return st;
	if (id == SCHEMA_ID_NONE && avro_container_meta(&c, STRV("schema"), &schema))
		id = schema_id_in(schema);
	*ret_h = (struct manifest_head){
		.format_version = (int)version,
		.data = !avro_container_meta(&c, STRV("content"), &content) ||
			strv_eq(content, STRV("data")),
		.spec_id = (int32_t)spec,
		.schema_id = (int32_t)id,
	};
	return ST_OK;
}

enum status manifest_read_head(struct bytes file, size_t limit, struct manifest_head *ret_h,
			       struct err *err)
{
	struct arena a;
	arena_init(&a, limit);
	enum status st = read_head(file, &a, ret_h, err);
	arena_fini(&a);
	return st;
}

enum status manifest_read_unlisted(struct bytes file, int32_t spec_id,
				   const struct field *partition, size_t n_partition, size_t limit,
				   struct manifest **ret_m, struct err *err)
{
	struct manifest *m = base_calloc(1, sizeof *m);
	struct manifest_file row = manifest_file_empty();
	row.spec_id = spec_id;
	row.content = MANIFEST_DATA;
	m->refs = 1;
	arena_init(&m->arena, limit);
	enum status st = read_file(m, file, &row, true, partition, n_partition, err);
	if (st != ST_OK) {
		manifest_unref(m);
		return st;
	}
	*ret_m = m;
	return ST_OK;
}
