#include "proto/avro/avro_container.h"

static const uint8_t magic[4] = {'O', 'b', 'j', 1};

static enum status corrupt(struct err *err, const char *why)
{
	return err_set(err, ST_CORRUPT, "", "Avro file: %s", why);
}

static enum status no_memory(struct err *err)
{
	return err_set(err, ST_LIMIT, "", "the Avro file exceeds the memory limit");
}

/* One block of the header's map. A negative count is followed by the block's length in bytes, which
 * a reader of everything does not need. */
static enum status open_block(struct avro_container *c, int64_t count, struct arena *a, size_t *cap,
			      struct err *err)
{
	if (count > AVRO_META_MAX - (int64_t)c->n_meta)
		return err_set(err, ST_LIMIT, "", "more than %d entries in an Avro header",
			       AVRO_META_MAX);
	for (; count > 0; count--) {
		struct bytes key, value;
		if (!avro_bin_get_bytes(&c->in, &key) || !avro_bin_get_bytes(&c->in, &value))
			return corrupt(err, "the header is cut");
		struct avro_meta m = {bytes_strv(key), bytes_strv(value)};
		struct strv seen;
		if (avro_container_meta(c, m.key, &seen))
			return err_set(err, ST_CORRUPT, "", "Avro file: %.*s occurs twice",
				       STRV_ARG(m.key));
		void *items = c->meta;
		if (!arena_grow(a, &items, cap, c->n_meta + 1, sizeof m))
			return no_memory(err);
		c->meta = items;
		c->meta[c->n_meta++] = m;
	}
	return ST_OK;
}

enum status avro_container_open(struct bytes file, struct arena *a, struct avro_container *ret_c,
				struct err *err)
{
	struct bytes b;
	struct avro_container c = {.in = avro_bin_in(file), .codec = CODEC_NULL};
	if (!avro_bin_get_fixed(&c.in, sizeof magic, &b) || memcmp(b.p, magic, sizeof magic) != 0)
		return corrupt(err, "it does not begin with the magic bytes");
	size_t cap = 0;
	for (;;) {
		int64_t count = 0, skip = 0;
		if (!avro_bin_get_long(&c.in, &count) || count == INT64_MIN)
			return corrupt(err, "the header is cut");
		if (count == 0)
			break;
		if (count < 0) {
			count = -count;
			if (!avro_bin_get_long(&c.in, &skip) || skip < 0)
				return corrupt(err, "the header is cut");
		}
		enum status st = open_block(&c, count, a, &cap, err);
		if (st != ST_OK)
			return st;
	}
	if (!avro_bin_get_fixed(&c.in, AVRO_SYNC_LEN, &b))
		return corrupt(err, "the header is cut");
	c.sync = b.p;
	struct strv codec;
	if (avro_container_meta(&c, STRV("avro.codec"), &codec) &&
	    !codec_from_name(codec, &c.codec))
		return err_set(err, ST_UNSUPPORTED, "avro.codec", "codec %.*s is not supported",
			       STRV_ARG(strv_sub(codec, 0, 40)));
	*ret_c = c;
	return ST_OK;
}

bool avro_container_meta(const struct avro_container *c, struct strv key, struct strv *ret_value)
{
	for (size_t i = 0; i < c->n_meta; i++)
		if (strv_eq(c->meta[i].key, key)) {
			*ret_value = c->meta[i].value;
			return true;
		}
	return false;
}

/* Head, bytes and sync marker of one block. */
static enum status next_block(struct avro_container *c, int64_t *ret_count, struct bytes *ret_data,
			      struct err *err)
{
	struct bytes sync;
	if (!avro_bin_get_long(&c->in, ret_count) || *ret_count < 0 ||
	    !avro_bin_get_bytes(&c->in, ret_data) ||
	    !avro_bin_get_fixed(&c->in, AVRO_SYNC_LEN, &sync))
		return corrupt(err, "a block is cut");
	if (memcmp(sync.p, c->sync, AVRO_SYNC_LEN) != 0)
		return corrupt(err, "a sync marker differs");
	return ST_OK;
}

enum status avro_container_count(const struct avro_container *c, size_t *ret_n, struct err *err)
{
	struct avro_container walk = *c;
	size_t n = 0;
	while (avro_bin_left(&walk.in)) {
		int64_t count = 0;
		struct bytes data;
		enum status st = next_block(&walk, &count, &data, err);
		if (st != ST_OK)
			return st;
		if (!add_size(n, (size_t)count, &n))
			return no_memory(err);
	}
	*ret_n = n;
	return ST_OK;
}

enum status avro_container_next(struct avro_container *c, struct arena *a, bool *ret_more,
				int64_t *ret_count, struct bytes *ret_data, struct err *err)
{
	if (avro_bin_left(&c->in) == 0) {
		*ret_more = false;
		return ST_OK;
	}
	int64_t count = 0;
	struct bytes data, plain;
	enum status st = next_block(c, &count, &data, err);
	if (st != ST_OK)
		return st;
	if (c->codec == CODEC_NULL) {
		if (!arena_bytes(a, data, &plain))
			return no_memory(err);
	} else {
		struct buf b;
		buf_init(&b, a->limit - a->used);
		st = codec_decompress(c->codec, data, &b, err);
		bool fits = st == ST_OK && arena_bytes(a, buf_bytes(&b), &plain);
		buf_fini(&b);
		if (st != ST_OK)
			return st;
		if (!fits)
			return no_memory(err);
	}
	*ret_more = true;
	*ret_count = count;
	*ret_data = plain;
	return ST_OK;
}

enum status avro_container_begin(struct avro_writer *w, struct buf *out, enum codec codec,
				 const uint8_t sync[AVRO_SYNC_LEN], const struct avro_meta *meta,
				 size_t n, struct err *err)
{
	*w = (struct avro_writer){.out = out, .codec = codec};
	buf_init(&w->block, out->max);
	memcpy(w->sync, sync, AVRO_SYNC_LEN);
	buf_put(out, magic, sizeof magic);
	avro_bin_put_long(out, (int64_t)n + 1);
	for (size_t i = 0; i < n; i++) {
		avro_bin_put_bytes(out, strv_bytes(meta[i].key));
		avro_bin_put_bytes(out, strv_bytes(meta[i].value));
	}
	avro_bin_put_bytes(out, strv_bytes(STRV("avro.codec")));
	avro_bin_put_bytes(out, strv_bytes(strv_of(codec_name(codec))));
	avro_bin_put_long(out, 0);
	buf_put(out, sync, AVRO_SYNC_LEN);
	return buf_ok(out) ? ST_OK : no_memory(err);
}

static enum status flush(struct avro_writer *w, struct err *err)
{
	struct buf packed;
	buf_init(&packed, w->out->max);
	struct bytes data = buf_bytes(&w->block);
	enum status st = ST_OK;
	if (w->codec != CODEC_NULL) {
		/* The length stands before the bytes and has no fixed size: hence the detour. */
		st = codec_compress(w->codec, data, &packed, err);
		data = buf_bytes(&packed);
	}
	if (st == ST_OK) {
		avro_bin_put_long(w->out, w->count);
		avro_bin_put_bytes(w->out, data);
		buf_put(w->out, w->sync, AVRO_SYNC_LEN);
		if (!buf_ok(w->out))
			st = no_memory(err);
	}
	buf_fini(&packed);
	buf_clear(&w->block);
	w->count = 0;
	return st;
}

enum status avro_container_datum(struct avro_writer *w, struct err *err)
{
	if (!buf_ok(&w->block))
		return no_memory(err);
	w->count++;
	return w->block.n < AVRO_BLOCK_BYTES ? ST_OK : flush(w, err);
}

enum status avro_container_end(struct avro_writer *w, struct err *err)
{
	return w->count ? flush(w, err) : ST_OK;
}

void avro_container_fini(struct avro_writer *w)
{
	buf_fini(&w->block);
}
