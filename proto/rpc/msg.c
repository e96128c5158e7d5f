#include "proto/rpc/msg.h"

/* Records nest as rpc.tbl says, a few levels and never in a circle: the functions below call each
 * other along the descriptors, so that input cannot drive their depth. */

/* Encoding */

static void put_long(struct buf *out, int64_t v)
{
	uint64_t z = (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
	uint8_t tmp[10];
	size_t n = 0;
	while (z >= 0x80) {
		tmp[n++] = (uint8_t)(z | 0x80);
		z >>= 7;
	}
	tmp[n++] = (uint8_t)z;
	buf_put(out, tmp, n);
}

static void put_value(const struct rpc_field *f, const void *at, struct buf *out)
{
	switch (f->type) {
	case RPC_TYPE_BOOL:
		buf_putc(out, *(const bool *)at ? 1 : 0);
		break;
	case RPC_TYPE_INT:
		put_long(out, *(const int32_t *)at);
		break;
	case RPC_TYPE_LONG:
		put_long(out, *(const int64_t *)at);
		break;
	case RPC_TYPE_STRING: {
		const struct strv *s = at;
		put_long(out, (int64_t)s->n);
		buf_put(out, s->p, s->n);
		break;
	}
	case RPC_TYPE_BYTES: {
		const struct bytes *b = at;
		put_long(out, (int64_t)b->n);
		buf_put(out, b->p, b->n);
		break;
	}
	case RPC_TYPE_UUID:
		buf_put(out, at, sizeof(struct uuid));
		break;
	case RPC_TYPE_DIGEST:
		buf_put(out, at, sizeof(struct digest));
		break;
	case RPC_TYPE_ENUM: {
		uint32_t v;
		memcpy(&v, at, sizeof v);
		ASSERT(v < f->list->n);
		put_long(out, v);
		break;
	}
	case RPC_TYPE_RECORD:
		msg_encode(f->record, at, out);
		break;
	}
}

static const void *array_of(const struct rpc_field *f, const uint8_t *base, size_t *ret_n)
{
	memcpy(ret_n, base + f->aux, sizeof *ret_n);
	const void *items;
	memcpy(&items, base + f->offset, sizeof items);
	return items;
}

static void put_array(const struct rpc_field *f, const uint8_t *base, struct buf *out)
{
	size_t n;
	const uint8_t *items = array_of(f, base, &n);
	if (n > 0)
		put_long(out, (int64_t)n);
	for (size_t i = 0; i < n && buf_ok(out); i++)
		put_value(f, items + i * rpc_value_size(f), out);
	put_long(out, 0);
}

static void put_optional(const struct rpc_field *f, const uint8_t *base, struct buf *out)
{
	const void *at = base + f->offset;
	if (f->type == RPC_TYPE_RECORD)
		memcpy(&at, base + f->offset, sizeof at);
	else if (!*(const bool *)(base + f->aux))
		at = NULL;
	put_long(out, at ? 1 : 0);
	if (at)
		put_value(f, at, out);
}

void msg_encode(const struct rpc_record *record, const void *value, struct buf *out)
{
	const uint8_t *base = value;
	for (size_t i = 0; i < record->n; i++) {
		const struct rpc_field *f = &record->fields[i];
		if (f->shape == RPC_ARRAY)
			put_array(f, base, out);
		else if (f->shape == RPC_OPTIONAL)
			put_optional(f, base, out);
		else
			put_value(f, base + f->offset, out);
	}
}

/* Feeds one array of records to the digest, item by item: a fragment may be large. */
static bool digest_array(struct digest_ctx *ctx, struct buf *tmp, const struct rpc_record *record,
			 const void *items, size_t n)
{
	buf_clear(tmp);
	if (n > 0)
		put_long(tmp, (int64_t)n);
	for (size_t i = 0; i < n; i++) {
		msg_encode(record, (const uint8_t *)items + i * record->size, tmp);
		if (tmp->n >= 65536 && buf_ok(tmp)) {
			digest_add(ctx, buf_bytes(tmp));
			buf_clear(tmp);
		}
	}
	put_long(tmp, 0);
	digest_add(ctx, buf_bytes(tmp));
	return buf_ok(tmp);
}

bool msg_fragment_digest(const struct rpc_fragment *f, struct digest *ret_d)
{
	struct digest_ctx ctx;
	struct buf tmp;
	digest_init(&ctx);
	buf_init(&tmp, SIZE_MAX);
	bool ok = digest_array(&ctx, &tmp, &rpc_record_data_file, f->data_files, f->n_data_files) &&
		  digest_array(&ctx, &tmp, &rpc_record_delete_vector, f->deletes, f->n_deletes) &&
		  digest_array(&ctx, &tmp, &rpc_record_delete_file, f->delete_files,
			       f->n_delete_files) &&
		  digest_array(&ctx, &tmp, &rpc_record_task_message, f->messages, f->n_messages) &&
		  digest_array(&ctx, &tmp, &rpc_record_manifest_ref, f->manifests, f->n_manifests);
	struct digest d = digest_fini(&ctx);
	buf_fini(&tmp);
	if (ok)
		*ret_d = d;
	return ok;
}

/* Decoding */

struct reader {
	const uint8_t *p;
	size_t n;
	struct arena *a;
	struct err *err;
};

static enum status bad(struct reader *r, const char *what)
{
	return err_set(r->err, ST_BAD_REQUEST, "", "%s", what);
}

static enum status too_large(struct reader *r, const char *what)
{
	return err_set(r->err, ST_TOO_LARGE, "", "%s", what);
}

static enum status get_long(struct reader *r, int64_t *ret_v)
{
	uint64_t z = 0;
	for (unsigned shift = 0, i = 0; i < 10; i++, shift += 7) {
		if (i == r->n)
			return bad(r, "the message ends inside a number");
		uint8_t c = r->p[i];
		if (i == 9 && c > 1)
			break;
		z |= (uint64_t)(c & 0x7f) << shift;
		if (!(c & 0x80)) {
			r->p += i + 1;
			r->n -= i + 1;
			*ret_v = (int64_t)(z >> 1 ^ (~(z & 1) + 1));
			return ST_OK;
		}
	}
	return bad(r, "a number has more than 64 bits");
}

static enum status get_blob(struct reader *r, size_t max, struct bytes *ret_b)
{
	int64_t n;
	enum status st = get_long(r, &n);
	if (st != ST_OK)
		return st;
	if (n < 0)
		return bad(r, "a length is negative");
	if ((uint64_t)n > r->n)
		return bad(r, "the message ends inside a value");
	if ((uint64_t)n > max)
		return too_large(r, "the value is longer than allowed");
	if (!arena_bytes(r->a, (struct bytes){r->p, (size_t)n}, ret_b))
		return too_large(r, "the message needs more memory than allowed");
	r->p += n;
	r->n -= (size_t)n;
	return ST_OK;
}

static enum status get_text(struct reader *r, struct strv *ret_s)
{
	struct bytes b;
	enum status st = get_blob(r, MSG_TEXT_MAX, &b);
	if (st != ST_OK)
		return st;
	struct strv s = bytes_strv(b);
	if (!strv_utf8(s))
		return bad(r, "the text is not UTF-8");
	if (strv_find(s, 0) < s.n)
		return bad(r, "the text holds U+0000");
	*ret_s = s;
	return ST_OK;
}

static enum status get_fixed(struct reader *r, void *at, size_t n)
{
	if (r->n < n)
		return bad(r, "the message ends inside a value");
	memcpy(at, r->p, n);
	r->p += n;
	r->n -= n;
	return ST_OK;
}

static enum status get_record(struct reader *r, const struct rpc_record *record, uint8_t *base);

static enum status get_value(struct reader *r, const struct rpc_field *f, void *at)
{
	int64_t v = 0;
	enum status st;
	switch (f->type) {
	case RPC_TYPE_BOOL:
		if (r->n == 0)
			return bad(r, "the message ends inside a value");
		if (*r->p > 1)
			return bad(r, "a boolean is neither 0 nor 1");
		*(bool *)at = *r->p == 1;
		r->p++;
		r->n--;
		return ST_OK;
	case RPC_TYPE_INT:
		st = get_long(r, &v);
		if (st != ST_OK)
			return st;
		if (v < INT32_MIN || v > INT32_MAX)
			return bad(r, "the number has more than 32 bits");
		*(int32_t *)at = (int32_t)v;
		return ST_OK;
	case RPC_TYPE_LONG:
		return get_long(r, at);
	case RPC_TYPE_STRING:
		return get_text(r, at);
	case RPC_TYPE_BYTES:
		return get_blob(r, MSG_BYTES_MAX, at);
	case RPC_TYPE_UUID:
		return get_fixed(r, at, sizeof(struct uuid));
	case RPC_TYPE_DIGEST:
		return get_fixed(r, at, sizeof(struct digest));
	case RPC_TYPE_ENUM: {
		st = get_long(r, &v);
		if (st != ST_OK)
			return st;
		if (v < 0 || (uint64_t)v >= f->list->n)
			return err_set(r->err, ST_BAD_REQUEST, "", "%s has no symbol %lld",
				       f->list->name, (long long)v);
		uint32_t symbol = (uint32_t)v;
		memcpy(at, &symbol, sizeof symbol);
		return ST_OK;
	}
	case RPC_TYPE_RECORD:
		return get_record(r, f->record, at);
	}
	ASSERT(false);
	return ST_INTERNAL;
}

/* The fewest bytes that one value can take: a count that promises more items than could follow is
 * refused before memory is taken for them. */
static size_t min_record(const struct rpc_record *record);

static size_t min_bytes(const struct rpc_field *f)
{
	if (f->shape != RPC_ONE)
		return 1;
	switch (f->type) {
	case RPC_TYPE_UUID:
		return sizeof(struct uuid);
	case RPC_TYPE_DIGEST:
		return sizeof(struct digest);
	case RPC_TYPE_RECORD:
		return min_record(f->record);
	default:
		return 1;
	}
}

static size_t min_record(const struct rpc_record *record)
{
	size_t n = 0;
	for (size_t i = 0; i < record->n; i++)
		n += min_bytes(&record->fields[i]);
	return n;
}

static enum status get_array(struct reader *r, const struct rpc_field *f, uint8_t *base)
{
	struct rpc_field item = *f;
	item.shape = RPC_ONE;
	size_t size = rpc_value_size(f), least = min_bytes(&item);
	void *items = NULL;
	size_t n = 0, cap = 0;
	for (;;) {
		int64_t count, block = -1;
		enum status st = get_long(r, &count);
		if (st != ST_OK)
			return st;
		if (count == 0)
			break;
		/* A negative count is followed by the size of the block in bytes. */
		if (count < 0) {
			st = get_long(r, &block);
			if (st != ST_OK)
				return st;
			if (block < 0 || (uint64_t)block > r->n)
				return bad(r, "the size of an array block is wrong");
		}
		uint64_t more = count < 0 ? -(uint64_t)count : (uint64_t)count;
		if (more > r->n / least)
			return bad(r, "an array has more items than bytes follow");
		if (more > MSG_ITEMS_MAX - n)
			return too_large(r, "an array has more items than allowed");
		if (!arena_grow(r->a, &items, &cap, n + (size_t)more, size))
			return too_large(r, "the message needs more memory than allowed");
		size_t before = r->n;
		for (size_t end = n + (size_t)more; n < end; n++) {
			uint8_t *at = (uint8_t *)items + n * size;
			memset(at, 0, size);
			st = get_value(r, f, at);
			if (st != ST_OK) {
				err_prefix(r->err, "[%zu]", n);
				return st;
			}
		}
		if (block >= 0 && before - r->n != (uint64_t)block)
			return bad(r, "the size of an array block is wrong");
	}
	memcpy(base + f->offset, &items, sizeof items);
	memcpy(base + f->aux, &n, sizeof n);
	return ST_OK;
}

static enum status get_optional(struct reader *r, const struct rpc_field *f, uint8_t *base)
{
	int64_t branch;
	enum status st = get_long(r, &branch);
	if (st != ST_OK)
		return st;
	if (branch != 0 && branch != 1)
		return bad(r, "the union has two branches");
	if (branch == 0)
		return ST_OK;
	if (f->type != RPC_TYPE_RECORD) {
		*(bool *)(base + f->aux) = true;
		return get_value(r, f, base + f->offset);
	}
	void *sub = arena_calloc(r->a, 1, f->record->size);
	if (!sub)
		return too_large(r, "the message needs more memory than allowed");
	memcpy(base + f->offset, &sub, sizeof sub);
	return get_value(r, f, sub);
}

static enum status get_record(struct reader *r, const struct rpc_record *record, uint8_t *base)
{
	for (size_t i = 0; i < record->n; i++) {
		const struct rpc_field *f = &record->fields[i];
		enum status st = f->shape == RPC_ARRAY      ? get_array(r, f, base)
				 : f->shape == RPC_OPTIONAL ? get_optional(r, f, base)
							    : get_value(r, f, base + f->offset);
		if (st != ST_OK) {
			err_prefix(r->err, "%s", f->name);
			return st;
		}
	}
	return ST_OK;
}

enum status msg_decode(const struct rpc_record *record, struct bytes in, struct arena *a,
		       const void **ret_value, struct err *err)
{
	struct reader r = {in.p, in.n, a, err};
	void *value = arena_calloc(a, 1, record->size);
	if (!value)
		return too_large(&r, "the message needs more memory than allowed");
	enum status st = get_record(&r, record, value);
	if (st != ST_OK)
		return st;
	if (r.n > 0)
		return bad(&r, "bytes follow the message");
	*ret_value = value;
	return ST_OK;
}
