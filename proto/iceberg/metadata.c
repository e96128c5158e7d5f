/* Lifetime, accessors and text of a metadata version. */
#include "proto/iceberg/metadata.h"

#include "proto/base/gzip.h"
#include "proto/base/jwrite.h"
#include "proto/iceberg/metadata_int.h"

enum status metadata_limit(struct err *err)
{
	return err_set(err, ST_LIMIT, "", "the table metadata exceeds %zu bytes",
		       METADATA_MAX_BYTES);
}

struct metadata *metadata_blank(void)
{
	struct metadata *m = base_calloc(1, sizeof *m);
	m->refs = 1;
	m->current_snapshot_id = SNAPSHOT_NONE;
	m->last_partition_id = PARTITION_FIELD_ID_FIRST - 1;
	m->current_schema_id = m->default_spec_id = m->default_order_id = -1;
	arena_init(&m->arena, METADATA_MAX_BYTES);
	return m;
}

struct metadata *metadata_ref(const struct metadata *m)
{
	struct metadata *own = (struct metadata *)(uintptr_t)m;
	__atomic_add_fetch(&own->refs, 1, __ATOMIC_RELAXED);
	return own;
}

void metadata_unref(const struct metadata *own_m)
{
	struct metadata *m = (struct metadata *)(uintptr_t)own_m;
	if (!m || __atomic_sub_fetch(&m->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	metapart_list_fini(&m->schemas);
	metapart_list_fini(&m->specs);
	metapart_list_fini(&m->orders);
	metapart_list_fini(&m->stats);
	metapart_list_fini(&m->pstats);
	metapart_list_fini(&m->keys);
	metasnap_fini(&m->snapshots);
	arena_fini(&m->arena);
	base_free(m);
}

/* Room for one more element of an arena array of m; NULL when the arena is full. */
static void *room(struct metadata *m, void *items, size_t *n, size_t *cap, size_t size, void **ret)
{
	if (!arena_grow(&m->arena, &items, cap, *n + 1, size))
		return NULL;
	*ret = items;
	return (char *)items + (*n)++ * size;
}

/* Up to here a walk is faster than an index. */
#define FEW_PROPERTIES 32

static size_t property_slot(const struct metadata *m, struct strv key)
{
	size_t mask = m->cap_property_slots - 1;
	size_t at = (size_t)bytes_hash(strv_bytes(key)) & mask;
	while (m->property_slots[at] &&
	       !strv_eq(m->properties[m->property_slots[at] - 1].key, key))
		at = (at + 1) & mask;
	return at;
}

/* Requests may bring a million of them: a walk for each would take hours. */
static void index_properties(struct metadata *m)
{
	if (m->property_slots && m->n_properties * 2 < m->cap_property_slots)
		return;
	m->property_slots = NULL;
	if (m->n_properties < FEW_PROPERTIES || m->n_properties > UINT32_MAX / 8)
		return;
	size_t cap = 128;
	while (cap < m->n_properties * 4)
		cap *= 2;
	m->property_slots = arena_calloc(&m->arena, cap, sizeof *m->property_slots);
	m->cap_property_slots = cap;
	for (size_t i = 0; m->property_slots && i < m->n_properties; i++)
		m->property_slots[property_slot(m, m->properties[i].key)] = (uint32_t)i + 1;
}

size_t metadata_property_index(struct metadata *m, struct strv key)
{
	size_t i = 0;
	index_properties(m);
	if (m->property_slots) {
		uint32_t at = m->property_slots[property_slot(m, key)];
		return at ? at - 1 : m->n_properties;
	}
	while (i < m->n_properties && !strv_eq(m->properties[i].key, key))
		i++;
	return i;
}

bool metadata_put_property(struct metadata *m, struct strv key, struct strv value)
{
	struct strv_pair kv;
	void *items;
	if (!arena_strv(&m->arena, value, &kv.value))
		return false;
	size_t i = metadata_property_index(m, key);
	if (i < m->n_properties) {
		m->properties[i].value = kv.value;
		return true;
	}
	if (!arena_strv(&m->arena, key, &kv.key))
		return false;
	struct strv_pair *at =
		room(m, m->properties, &m->n_properties, &m->cap_properties, sizeof kv, &items);
	if (!at)
		return false;
	*at = kv;
	m->properties = items;
	if (m->property_slots)
		m->property_slots[property_slot(m, kv.key)] = (uint32_t)m->n_properties;
	return true;
}

void metadata_drop_properties(struct metadata *m, const struct strv *keys, size_t n, bool *ret_some)
{
	bool some = false;
	for (size_t i = 0; i < n; i++) {
		size_t k = metadata_property_index(m, keys[i]);
		if (k == m->n_properties || !m->properties[k].value.p)
			continue;
		/* Its key stays: the index looks at it, and it may come again. */
		m->properties[k].value.p = NULL;
		some = true;
	}
	*ret_some = some;
}

void metadata_settle_properties(struct metadata *m)
{
	size_t kept = 0;
	for (size_t i = 0; i < m->n_properties; i++)
		if (m->properties[i].value.p)
			m->properties[kept++] = m->properties[i];
	if (kept < m->n_properties)
		m->property_slots = NULL;
	m->n_properties = kept;
}

size_t metadata_ref_index(const struct metadata *m, struct strv name)
{
	size_t i = 0;
	while (i < m->n_refs && !strv_eq(m->snapshot_refs[i].name, name))
		i++;
	return i;
}

bool metadata_put_ref(struct metadata *m, const struct snapshot_ref *r)
{
	struct snapshot_ref own = *r;
	void *items;
	size_t i = metadata_ref_index(m, r->name);
	if (i < m->n_refs) {
		own.name = m->snapshot_refs[i].name;
		m->snapshot_refs[i] = own;
		return true;
	}
	if (!arena_strv(&m->arena, r->name, &own.name))
		return false;
	struct snapshot_ref *at =
		room(m, m->snapshot_refs, &m->n_refs, &m->cap_refs, sizeof own, &items);
	if (!at)
		return false;
	*at = own;
	m->snapshot_refs = items;
	return true;
}

bool metadata_put_slog(struct metadata *m, int64_t timestamp_ms, int64_t snapshot_id)
{
	void *items;
	struct metadata_snapshot_log_entry *at =
		room(m, m->slog, &m->n_slog, &m->cap_slog, sizeof *at, &items);
	if (!at)
		return false;
	*at = (struct metadata_snapshot_log_entry){timestamp_ms, snapshot_id};
	m->slog = items;
	return true;
}

bool metadata_put_mlog(struct metadata *m, int64_t timestamp_ms, struct strv file)
{
	void *items;
	struct metadata_log_entry own = {.timestamp_ms = timestamp_ms};
	if (!arena_strv(&m->arena, file, &own.file))
		return false;
	struct metadata_log_entry *at =
		room(m, m->mlog, &m->n_mlog, &m->cap_mlog, sizeof *at, &items);
	if (!at)
		return false;
	*at = own;
	m->mlog = items;
	return true;
}

bool metadata_put_location(struct metadata *m, struct strv location)
{
	return arena_strv(&m->arena, metadata_strip(location), &m->location);
}

/* The arrays of small members. Text is copied too: a version must not keep its base alive. */
static bool copy_small(struct metadata *m, const struct metadata *base)
{
	for (size_t i = 0; i < base->n_properties; i++)
		if (!metadata_put_property(m, base->properties[i].key, base->properties[i].value))
			return false;
	for (size_t i = 0; i < base->n_refs; i++)
		if (!metadata_put_ref(m, &base->snapshot_refs[i]))
			return false;
	for (size_t i = 0; i < base->n_mlog; i++)
		if (!metadata_put_mlog(m, base->mlog[i].timestamp_ms, base->mlog[i].file))
			return false;
	if (base->n_slog > 0) {
		void *slog = NULL;
		if (!arena_grow(&m->arena, &slog, &m->cap_slog, base->n_slog + 1, sizeof *m->slog))
			return false;
		m->slog = slog;
		m->n_slog = base->n_slog;
		memcpy(m->slog, base->slog, base->n_slog * sizeof *m->slog);
	}
	return arena_strv(&m->arena, base->location, &m->location) &&
	       arena_strv(&m->arena, base->extra, &m->extra);
}

enum status metadata_copy(const struct metadata *base, struct metadata **ret_m, struct err *err)
{
	struct metadata *m = metadata_blank();
	m->format_version = base->format_version;
	m->has_uuid = base->has_uuid;
	m->uuid = base->uuid;
	m->last_sequence_number = base->last_sequence_number;
	m->last_updated_ms = base->last_updated_ms;
	m->next_row_id = base->next_row_id;
	m->current_snapshot_id = base->current_snapshot_id;
	m->last_column_id = base->last_column_id;
	m->last_partition_id = base->last_partition_id;
	m->current_schema_id = base->current_schema_id;
	m->default_spec_id = base->default_spec_id;
	m->default_order_id = base->default_order_id;
	if (!metapart_list_copy(&m->schemas, &base->schemas, &m->arena) ||
	    !metapart_list_copy(&m->specs, &base->specs, &m->arena) ||
	    !metapart_list_copy(&m->orders, &base->orders, &m->arena) ||
	    !metapart_list_copy(&m->stats, &base->stats, &m->arena) ||
	    !metapart_list_copy(&m->pstats, &base->pstats, &m->arena) ||
	    !metapart_list_copy(&m->keys, &base->keys, &m->arena) ||
	    !metasnap_copy(&m->snapshots, &base->snapshots, &m->arena) || !copy_small(m, base)) {
		metadata_unref(m);
		return metadata_limit(err);
	}
	*ret_m = m;
	return ST_OK;
}

/* ---- text ---- */

static void write_parts(struct jwrite *w, const char *key, const struct metapart_list *l)
{
	jwrite_key(w, key);
	jwrite_raw(w, STRV("["));
	metapart_list_json(l, w->b);
	buf_putc(w->b, ']');
}

static void write_head(struct jwrite *w, const struct metadata *m)
{
	jwrite_ki64(w, "format-version", m->format_version);
	if (m->has_uuid) {
		char text[UUID_TEXT_LEN + 1];
		uuid_text(m->uuid, text);
		jwrite_kstr(w, "table-uuid", strv_of(text));
	}
	jwrite_kstr(w, "location", m->location);
	if (m->format_version >= 2)
		jwrite_ki64(w, "last-sequence-number", m->last_sequence_number);
	jwrite_ki64(w, "last-updated-ms", m->last_updated_ms);
	jwrite_ki64(w, "last-column-id", m->last_column_id);
	if (m->format_version == 1) {
		jwrite_key(w, "schema");
		jwrite_raw(w, metapart_list_find(&m->schemas, m->current_schema_id)->json);
	}
	jwrite_ki64(w, "current-schema-id", m->current_schema_id);
	write_parts(w, "schemas", &m->schemas);
	if (m->format_version == 1) {
		jwrite_key(w, "partition-spec");
		partition_write_fields(w, metadata_spec(m));
	}
	jwrite_ki64(w, "default-spec-id", m->default_spec_id);
	write_parts(w, "partition-specs", &m->specs);
	jwrite_ki64(w, "last-partition-id", m->last_partition_id);
	jwrite_ki64(w, "default-sort-order-id", m->default_order_id);
	write_parts(w, "sort-orders", &m->orders);
	jwrite_key(w, "properties");
	jwrite_object(w);
	for (size_t i = 0; i < m->n_properties; i++) {
		jwrite_keyv(w, m->properties[i].key);
		jwrite_str(w, m->properties[i].value);
	}
	jwrite_end_object(w);
	/* Old readers take -1 for "no snapshot"; version 3 has a proper null. */
	jwrite_key(w, "current-snapshot-id");
	if (m->current_snapshot_id != SNAPSHOT_NONE)
		jwrite_i64(w, m->current_snapshot_id);
	else if (m->format_version < 3)
		jwrite_i64(w, -1);
	else
		jwrite_null(w);
	if (m->format_version >= 3)
		jwrite_ki64(w, "next-row-id", m->next_row_id);
	if (m->keys.n > 0)
		write_parts(w, "encryption-keys", &m->keys);
	jwrite_key(w, "refs");
	jwrite_object(w);
	for (size_t i = 0; i < m->n_refs; i++) {
		jwrite_keyv(w, m->snapshot_refs[i].name);
		snapshot_ref_write(w, &m->snapshot_refs[i]);
	}
	jwrite_end_object(w);
}

static void write_tail(struct jwrite *w, const struct metadata *m)
{
	write_parts(w, "statistics", &m->stats);
	write_parts(w, "partition-statistics", &m->pstats);
	jwrite_key(w, "snapshot-log");
	jwrite_array(w);
	for (size_t i = 0; i < m->n_slog; i++) {
		jwrite_object(w);
		jwrite_ki64(w, "timestamp-ms", m->slog[i].timestamp_ms);
		jwrite_ki64(w, "snapshot-id", m->slog[i].snapshot_id);
		jwrite_end_object(w);
	}
	jwrite_end_array(w);
	jwrite_key(w, "metadata-log");
	jwrite_array(w);
	for (size_t i = 0; i < m->n_mlog; i++) {
		jwrite_object(w);
		jwrite_ki64(w, "timestamp-ms", m->mlog[i].timestamp_ms);
		jwrite_kstr(w, "metadata-file", m->mlog[i].file);
		jwrite_end_object(w);
	}
	jwrite_end_array(w);
	if (m->extra.n > 0)
		jwrite_raw(w, m->extra);
}

/* What stands before the snapshots, and behind them. */
static void write_before(struct jwrite *w, const struct metadata *m, struct buf *b)
{
	jwrite_init(w, b);
	jwrite_object(w);
	write_head(w, m);
	jwrite_key(w, "snapshots");
	jwrite_raw(w, STRV("["));
}

static void write_behind(struct jwrite *w, const struct metadata *m)
{
	buf_putc(w->b, ']');
	write_tail(w, m);
	jwrite_end_object(w);
}

static void write_all(const struct metadata *m, bool only_refs, struct buf *b)
{
	struct jwrite w;
	buf_reserve(b,
		    only_refs ? metadata_json_size(m) - m->snapshots.bytes : metadata_json_size(m));
	write_before(&w, m, b);
	if (only_refs)
		metadata_refs_json(m, b);
	else
		metasnap_json(&m->snapshots, b);
	write_behind(&w, m);
}

bool metadata_pieces(const struct metadata *m, struct buf *text, struct arena *a,
		     struct pieces *ret_p)
{
	struct jwrite w;
	struct pieces p = {0};
	ASSERT(text->n == 0);
	buf_reserve(text, metadata_json_size(m) - m->snapshots.bytes);
	write_before(&w, m, text);
	size_t before = text->n;
	write_behind(&w, m);
	if (!buf_ok(text) || !pieces_add(&p, a, (struct bytes){text->p, before}) ||
	    !metasnap_pieces(&m->snapshots, a, &p) ||
	    !pieces_add(&p, a, (struct bytes){text->p + before, text->n - before}))
		return false;
	*ret_p = p;
	return true;
}

void metadata_json(const struct metadata *m, struct buf *b)
{
	write_all(m, false, b);
}

void metadata_json_refs(const struct metadata *m, struct buf *b)
{
	write_all(m, true, b);
}

void metadata_gzip(const struct metadata *m, struct gzip_writer *z)
{
	struct buf text;
	struct jwrite w;
	buf_init(&text, METADATA_MAX_BYTES);
	write_before(&w, m, &text);
	gzip_put(z, buf_bytes(&text));
	metasnap_gzip(&m->snapshots, z);
	z->ok &= buf_ok(&text);
	text.n = 0;
	write_behind(&w, m);
	gzip_put(z, buf_bytes(&text));
	z->ok &= buf_ok(&text);
	buf_fini(&text);
}

static size_t parts_size(const struct metapart_list *l)
{
	size_t n = 0;
	for (size_t i = 0; i < l->n; i++)
		n += l->v[i]->json.n + 1;
	return n;
}

size_t metadata_json_size(const struct metadata *m)
{
	size_t n = 4096 + m->snapshots.bytes + m->n_slog * 80 + m->extra.n + 6 * m->location.n;
	n += parts_size(&m->schemas) * (m->format_version == 1 ? 2 : 1);
	n += parts_size(&m->specs) * (m->format_version == 1 ? 2 : 1);
	n += parts_size(&m->orders) + parts_size(&m->stats) + parts_size(&m->pstats);
	n += parts_size(&m->keys);
	for (size_t i = 0; i < m->n_properties; i++)
		n += m->properties[i].key.n + m->properties[i].value.n + 8;
	for (size_t i = 0; i < m->n_refs; i++)
		n += m->snapshot_refs[i].name.n + 200;
	for (size_t i = 0; i < m->n_mlog; i++)
		n += m->mlog[i].file.n + 64;
	return n;
}

static size_t parts_memory(const struct metapart_list *l)
{
	size_t n = 0;
	for (size_t i = 0; i < l->n; i++)
		n += sizeof **l->v + l->v[i]->json.n + l->v[i]->arena.used;
	return n;
}

size_t metadata_memory(const struct metadata *m)
{
	return sizeof *m + m->arena.used + metasnap_memory(&m->snapshots) +
	       parts_memory(&m->schemas) + parts_memory(&m->specs) + parts_memory(&m->orders) +
	       parts_memory(&m->stats) + parts_memory(&m->pstats) + parts_memory(&m->keys);
}

/* ---- accessors ---- */

int metadata_format_version(const struct metadata *m)
{
	return m->format_version;
}

bool metadata_uuid(const struct metadata *m, struct uuid *ret_u)
{
	if (m->has_uuid)
		*ret_u = m->uuid;
	return m->has_uuid;
}

struct strv metadata_location(const struct metadata *m)
{
	return m->location;
}

int64_t metadata_last_sequence_number(const struct metadata *m)
{
	return m->last_sequence_number;
}

int64_t metadata_next_row_id(const struct metadata *m)
{
	return m->next_row_id;
}

int64_t metadata_last_updated_ms(const struct metadata *m)
{
	return m->last_updated_ms;
}

int32_t metadata_last_column_id(const struct metadata *m)
{
	return m->last_column_id;
}

int32_t metadata_last_partition_id(const struct metadata *m)
{
	return m->last_partition_id;
}

int32_t metadata_current_schema_id(const struct metadata *m)
{
	return m->current_schema_id;
}

int32_t metadata_default_spec_id(const struct metadata *m)
{
	return m->default_spec_id;
}

int32_t metadata_default_sort_order_id(const struct metadata *m)
{
	return m->default_order_id;
}

const struct schema *metadata_schema_by_id(const struct metadata *m, int32_t id)
{
	const struct metapart *p = metapart_list_find(&m->schemas, id);
	return p ? &p->u.schema : NULL;
}

const struct schema *metadata_schema(const struct metadata *m)
{
	return metadata_schema_by_id(m, m->current_schema_id);
}

size_t metadata_schema_count(const struct metadata *m)
{
	return m->schemas.n;
}

const struct schema *metadata_schema_at(const struct metadata *m, size_t i)
{
	ASSERT(i < m->schemas.n);
	return &m->schemas.v[i]->u.schema;
}

const struct partition_spec *metadata_spec_by_id(const struct metadata *m, int32_t id)
{
	const struct metapart *p = metapart_list_find(&m->specs, id);
	return p ? &p->u.spec : NULL;
}

const struct partition_spec *metadata_spec(const struct metadata *m)
{
	return metadata_spec_by_id(m, m->default_spec_id);
}

size_t metadata_spec_count(const struct metadata *m)
{
	return m->specs.n;
}

const struct partition_spec *metadata_spec_at(const struct metadata *m, size_t i)
{
	ASSERT(i < m->specs.n);
	return &m->specs.v[i]->u.spec;
}

const struct sort_order *metadata_sort_order_by_id(const struct metadata *m, int32_t id)
{
	const struct metapart *p = metapart_list_find(&m->orders, id);
	return p ? &p->u.order : NULL;
}

const struct sort_order *metadata_sort_order(const struct metadata *m)
{
	return metadata_sort_order_by_id(m, m->default_order_id);
}

size_t metadata_sort_order_count(const struct metadata *m)
{
	return m->orders.n;
}

const struct sort_order *metadata_sort_order_at(const struct metadata *m, size_t i)
{
	ASSERT(i < m->orders.n);
	return &m->orders.v[i]->u.order;
}

const struct strv_pair *metadata_properties(const struct metadata *m, size_t *ret_n)
{
	*ret_n = m->n_properties;
	return m->properties;
}

struct strv metadata_property(const struct metadata *m, const char *key)
{
	struct strv want = strv_of(key);
	for (size_t i = 0; i < m->n_properties; i++)
		if (strv_eq(m->properties[i].key, want))
			return m->properties[i].value;
	return (struct strv){NULL, 0};
}

int64_t metadata_property_i64(const struct metadata *m, const char *key, int64_t missing)
{
	int64_t v;
	return strv_i64(metadata_property(m, key), &v) ? v : missing;
}

struct strv metadata_encryption_key_id(const struct metadata *m)
{
	return metadata_property(m, "encryption.key-id");
}

const struct metadata_log_entry *metadata_log(const struct metadata *m, size_t *ret_n)
{
	*ret_n = m->n_mlog;
	return m->mlog;
}

const struct metadata_snapshot_log_entry *metadata_snapshot_log(const struct metadata *m,
								size_t *ret_n)
{
	*ret_n = m->n_slog;
	return m->slog;
}

size_t metadata_statistics_count(const struct metadata *m)
{
	return m->stats.n + m->pstats.n;
}

struct strv metadata_statistics_path(const struct metadata *m, size_t i)
{
	ASSERT(i < m->stats.n + m->pstats.n);
	return i < m->stats.n ? m->stats.v[i]->name : m->pstats.v[i - m->stats.n]->name;
}
