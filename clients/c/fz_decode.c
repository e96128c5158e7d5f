#include "clients/c/fz_decode.h"

#include "clients/c/fz_error.h"
#include "clients/c/fz_scan.h"

/* The value has passed fz_scan, so that only memory can be missing; `failed` sticks. */
struct reader {
	struct arena *arena;
	bool failed;
};

static bool member(struct reader *r, avro_value_t *rec, const char *name, avro_value_t *ret_v)
{
	if (!r->failed && avro_value_get_by_name(rec, name, ret_v, NULL))
		r->failed = true;
	return !r->failed;
}

static const char *text_of(struct reader *r, avro_value_t *v)
{
	const char *p = NULL;
	size_t n = 0;
	struct strv copy;
	if (r->failed || avro_value_get_string(v, &p, &n) ||
	    !arena_strv(r->arena, (struct strv){p, n ? n - 1 : 0}, &copy)) {
		r->failed = true;
		return "";
	}
	return copy.p;
}

static const char *get_text(struct reader *r, avro_value_t *rec, const char *name)
{
	avro_value_t v;
	return member(r, rec, name, &v) ? text_of(r, &v) : "";
}

static void get_cut_text(struct reader *r, avro_value_t *rec, const char *name, char *dst,
			 size_t cap)
{
	avro_value_t v;
	const char *p = "";
	size_t n = 1;
	if (member(r, rec, name, &v) && avro_value_get_string(&v, &p, &n))
		r->failed = true;
	fz_error_text(dst, cap, (struct strv){p, n ? n - 1 : 0});
}

static int64_t get_long(struct reader *r, avro_value_t *rec, const char *name)
{
	avro_value_t v;
	int64_t n = 0;
	if (member(r, rec, name, &v) && avro_value_get_long(&v, &n))
		r->failed = true;
	return n;
}

static int32_t get_int(struct reader *r, avro_value_t *rec, const char *name)
{
	avro_value_t v;
	int32_t n = 0;
	if (member(r, rec, name, &v) && avro_value_get_int(&v, &n))
		r->failed = true;
	return n;
}

static int get_enum(struct reader *r, avro_value_t *rec, const char *name)
{
	avro_value_t v;
	int n = 0;
	if (member(r, rec, name, &v) && avro_value_get_enum(&v, &n))
		r->failed = true;
	return n;
}

static void fixed_of(struct reader *r, avro_value_t *v, uint8_t *dst, size_t want)
{
	const void *p = NULL;
	size_t n = 0;
	if (r->failed || avro_value_get_fixed(v, &p, &n) || n != want)
		r->failed = true;
	else
		memcpy(dst, p, n);
}

static void get_fixed(struct reader *r, avro_value_t *rec, const char *name, uint8_t *dst,
		      size_t want)
{
	avro_value_t v;
	if (member(r, rec, name, &v))
		fixed_of(r, &v, dst, want);
}

/* true when an optional member is present; *ret_v is then its value. */
static bool optional(struct reader *r, avro_value_t *rec, const char *name, avro_value_t *ret_v)
{
	avro_value_t u;
	int branch = 0;
	if (!member(r, rec, name, &u))
		return false;
	if (avro_value_get_discriminant(&u, &branch) ||
	    (branch == 1 && avro_value_get_current_branch(&u, ret_v)))
		r->failed = true;
	return !r->failed && branch == 1;
}

static bool optional_long(struct reader *r, avro_value_t *rec, const char *name, int64_t *ret_n)
{
	avro_value_t v;
	if (!optional(r, rec, name, &v))
		return false;
	if (avro_value_get_long(&v, ret_n))
		r->failed = true;
	return true;
}

/* The array and zeroed room for as many elements of `size`; *ret_n is 0 on failure. */
static void *list_of(struct reader *r, avro_value_t *rec, const char *name, size_t size,
		     avro_value_t *ret_list, size_t *ret_n)
{
	*ret_n = 0;
	size_t n = 0;
	if (!member(r, rec, name, ret_list) || avro_value_get_size(ret_list, &n)) {
		r->failed = true;
		return NULL;
	}
	void *p = arena_calloc(r->arena, n, size);
	if (!p)
		r->failed = true;
	else
		*ret_n = n;
	return p;
}

static bool item_at(struct reader *r, avro_value_t *list, size_t i, avro_value_t *ret_v)
{
	if (!r->failed && avro_value_get_by_index(list, i, ret_v, NULL))
		r->failed = true;
	return !r->failed;
}

static void *zeroed(struct reader *r, size_t size)
{
	void *p = arena_calloc(r->arena, 1, size);
	if (!p)
		r->failed = true;
	return p;
}

static struct fz_error *error_of(struct reader *r, avro_value_t *rec)
{
	struct fz_error *e = zeroed(r, sizeof *e);
	if (!e)
		return NULL;
	e->code = get_int(r, rec, "code");
	get_cut_text(r, rec, "name", e->name, sizeof e->name);
	get_cut_text(r, rec, "field", e->field, sizeof e->field);
	get_cut_text(r, rec, "message", e->message, sizeof e->message);
	e->retry = (enum fz_retry)get_enum(r, rec, "retry");
	e->effect = (enum fz_effect)get_enum(r, rec, "effect");
	e->status = fz_error_class(e);
	return e;
}

static struct fz_hello *hello_of(struct reader *r, avro_value_t *rec)
{
	struct fz_hello *h = zeroed(r, sizeof *h);
	if (!h)
		return NULL;
	h->version = get_int(r, rec, "version");
	h->server = get_text(r, rec, "server");
	get_fixed(r, rec, "daemon_id", h->daemon_id, sizeof h->daemon_id);
	h->max_frame_bytes = get_long(r, rec, "max_frame_bytes");
	return h;
}

static struct fz_info *info_of(struct reader *r, avro_value_t *rec, struct bytes *ret_token)
{
	avro_value_t v;
	const void *p = NULL;
	size_t n = 0;
	struct fz_info *i = zeroed(r, sizeof *i);
	if (!i)
		return NULL;
	get_fixed(r, rec, "txn_id", i->txn_id, sizeof i->txn_id);
	get_fixed(r, rec, "table_uuid", i->table_uuid, sizeof i->table_uuid);
	i->incarnation = get_long(r, rec, "incarnation");
	if (member(r, rec, "lease_token", &v) &&
	    (avro_value_get_bytes(&v, &p, &n) ||
	     !arena_bytes(r->arena, (struct bytes){p, n}, ret_token)))
		r->failed = true;
	i->ttl_ms = get_long(r, rec, "ttl_ms");
	i->location = get_text(r, rec, "location");
	i->data_location = get_text(r, rec, "data_location");
	i->format_version = get_int(r, rec, "format_version");
	i->schema_id = get_int(r, rec, "schema_id");
	i->schema_json = get_text(r, rec, "schema_json");
	i->spec_id = get_int(r, rec, "spec_id");
	i->spec_json = get_text(r, rec, "spec_json");
	i->sort_order_id = get_int(r, rec, "sort_order_id");
	i->has_read_snapshot = optional_long(r, rec, "read_snapshot_id", &i->read_snapshot_id);
	return i;
}

static struct fz_staged *staged_of(struct reader *r, avro_value_t *rec)
{
	avro_value_t list, item;
	struct fz_staged *s = zeroed(r, sizeof *s);
	if (!s)
		return NULL;
	s->fragment_id = get_text(r, rec, "fragment_id");
	s->attempt = get_int(r, rec, "attempt");
	get_fixed(r, rec, "digest", s->digest, sizeof s->digest);
	s->doomed = (enum fz_doomed)get_enum(r, rec, "doomed");
	const char **warnings =
		list_of(r, rec, "warnings", sizeof *warnings, &list, &s->n_warnings);
	for (size_t i = 0; i < s->n_warnings && item_at(r, &list, i, &item); i++)
		warnings[i] = text_of(r, &item);
	s->warnings = warnings;
	return s;
}

static void outcome_lists(struct reader *r, avro_value_t *rec, struct fz_outcome *o)
{
	avro_value_t list, item;
	struct fz_file_outcome *files = list_of(r, rec, "files", sizeof *files, &list, &o->n_files);
	for (size_t i = 0; i < o->n_files && item_at(r, &list, i, &item); i++) {
		files[i].path = get_text(r, &item, "path");
		files[i].has_first_row_id =
			optional_long(r, &item, "first_row_id", &files[i].first_row_id);
		files[i].record_count = get_long(r, &item, "record_count");
	}
	o->files = files;
	struct fz_delete_outcome *deletes =
		list_of(r, rec, "deletes", sizeof *deletes, &list, &o->n_deletes);
	for (size_t i = 0; i < o->n_deletes && item_at(r, &list, i, &item); i++) {
		deletes[i].data_file = get_text(r, &item, "data_file");
		deletes[i].deleted = get_long(r, &item, "deleted");
		deletes[i].overlap = get_long(r, &item, "overlap");
	}
	o->deletes = deletes;
}

static struct fz_outcome *outcome_of(struct reader *r, avro_value_t *rec)
{
	avro_value_t v;
	struct fz_outcome *o = zeroed(r, sizeof *o);
	if (!o)
		return NULL;
	get_fixed(r, rec, "txn_id", o->txn_id, sizeof o->txn_id);
	o->state = (enum fz_state)get_enum(r, rec, "state");
	o->has_snapshot = optional_long(r, rec, "snapshot_id", &o->snapshot_id);
	o->has_sequence_number = optional_long(r, rec, "sequence_number", &o->sequence_number);
	o->has_batch_no = optional_long(r, rec, "batch_no", &o->batch_no);
	o->has_batch_id = optional(r, rec, "batch_id", &v);
	if (o->has_batch_id)
		fixed_of(r, &v, o->batch_id, sizeof o->batch_id);
	o->metadata_location = get_text(r, rec, "metadata_location");
	o->rows_inserted = get_long(r, rec, "rows_inserted");
	o->rows_updated = get_long(r, rec, "rows_updated");
	o->rows_deleted = get_long(r, rec, "rows_deleted");
	outcome_lists(r, rec, o);
	if (optional(r, rec, "reject", &v))
		o->reject = error_of(r, &v);
	o->has_queue_position = optional(r, rec, "queue_position", &v);
	if (o->has_queue_position && avro_value_get_int(&v, &o->queue_position))
		r->failed = true;
	o->note = get_text(r, rec, "note");
	return o;
}

static struct fz_lease_state *leases_of(struct reader *r, avro_value_t *rec, size_t *ret_n)
{
	avro_value_t list, item, v;
	struct fz_lease_state *l = list_of(r, rec, "items", sizeof *l, &list, ret_n);
	for (size_t i = 0; i < *ret_n && item_at(r, &list, i, &item); i++) {
		get_fixed(r, &item, "txn_id", l[i].txn_id, sizeof l[i].txn_id);
		l[i].state = (enum fz_state)get_enum(r, &item, "state");
		if (optional(r, &item, "error", &v))
			l[i].error = error_of(r, &v);
	}
	return l;
}

static void read_message(struct reader *r, int msg, avro_value_t *v, struct fz_decoded *d)
{
	switch (msg) {
	case FZ_MSG_HELLO_REPLY:
		d->hello = hello_of(r, v);
		break;
	case FZ_MSG_BEGIN_REPLY:
		d->info = info_of(r, v, &d->token);
		break;
	case FZ_MSG_STAGE_REPLY:
		d->staged = staged_of(r, v);
		break;
	case FZ_MSG_SEAL_REPLY:
		get_fixed(r, v, "set_digest", d->set_digest.b, sizeof d->set_digest.b);
		break;
	case FZ_MSG_OUTCOME:
		d->outcome = outcome_of(r, v);
		break;
	case FZ_MSG_HEARTBEAT_REPLY:
		d->leases = leases_of(r, v, &d->n_leases);
		break;
	case FZ_MSG_ERROR:
		d->error = error_of(r, v);
		break;
	default:
		ASSERT_NEVER("judged by the caller");
	}
}

enum fz_status fz_decode(struct fz_schemas *schemas, int msg, struct bytes payload,
			 struct arena *arena, struct fz_decoded *ret_d, struct fz_error *err)
{
	const char *name = fz_schemas_name(msg);
	if (!name || msg >= FZ_MSG__COUNT || fz_schemas_reply((enum fz_msg)msg) != 0)
		return fz_error_set(err, FZ_PROTOCOL, "", "frame.type", "%d is no answer", msg);
	const struct fz_schema *s = fz_schemas_get(schemas, (enum fz_msg)msg);
	if (!s)
		return fz_error_set(err, FZ_PROTOCOL, "", "", "no memory for a schema");
	size_t items = 0, need = 0;
	const char *why = "";
	if (!fz_scan(s->schema, payload, &items, &why))
		return fz_error_set(err, FZ_PROTOCOL, "", name, "malformed answer: %s", why);
	if (!mul_size(items, FZ_DECODE_ITEM_BYTES, &need) || !add_size(need, payload.n, &need) ||
	    need > arena->limit)
		return fz_error_set(err, FZ_PROTOCOL, "TOO_LARGE", name,
				    "the answer has %zu items, which pass the limit of memory",
				    items);
	avro_value_t v;
	struct reader r = {.arena = arena};
	struct fz_decoded d = {0};
	if (avro_generic_value_new(s->generic, &v))
		return fz_error_set(err, FZ_PROTOCOL, "", name, "no memory for the answer");
	avro_reader_t in = avro_reader_memory((const char *)payload.p, (int64_t)payload.n);
	r.failed = !in || avro_value_read(in, &v) != 0;
	if (in)
		avro_reader_free(in);
	if (!r.failed)
		read_message(&r, msg, &v, &d);
	avro_value_decref(&v);
	if (r.failed)
		return fz_error_set(err, FZ_PROTOCOL, "TOO_LARGE", name,
				    "no memory for the answer");
	*ret_d = d;
	return FZ_OK;
}
