#include "proto/base/gzip.h"

#include <zlib.h>

#define STEP ((size_t)65536)
#define WINDOW_GZIP (15 + 16) /* zlib's way to ask for the gzip frame */

static enum status broken(struct err *err, const char *why)
{
	return err_set(err, ST_CORRUPT, "gzip", "not one gzip member: %s", why);
}

enum status gzip_read(struct bytes file, struct buf *out, struct err *err)
{
	z_stream z = {0};
	if (file.n > UINT32_MAX)
		return err_set(err, ST_LIMIT, "gzip", "the file is too large");
	if (inflateInit2(&z, WINDOW_GZIP) != Z_OK) {
		base_memory_note();
		return err_set(err, ST_LIMIT, "gzip", "no memory");
	}
	z.next_in = (Bytef *)(uintptr_t)file.p;
	z.avail_in = (uInt)file.n;
	int r = Z_OK;
	enum status st = ST_OK;
	while (r == Z_OK) {
		size_t room = out->max - out->n < STEP ? out->max - out->n : STEP;
		uint8_t *at = room ? buf_room(out, room) : NULL;
		if (!at) {
			st = err_set(err, ST_LIMIT, "gzip", "the content is too large");
			break;
		}
		z.next_out = at;
		z.avail_out = (uInt)room;
		r = inflate(&z, Z_NO_FLUSH);
		out->n -= z.avail_out;
		/* No progress without more input: the member is cut. */
		if (r == Z_BUF_ERROR || (r == Z_OK && z.avail_in == 0 && z.avail_out > 0))
			break;
	}
	if (st == ST_OK && r != Z_STREAM_END)
		st = broken(err, z.msg ? z.msg : "it ends early");
	else if (st == ST_OK && z.avail_in > 0)
		st = broken(err, "bytes follow it");
	inflateEnd(&z);
	return st;
}

/* ---- writing ---- */

struct gzip_part {
	uint32_t crc;
	size_t plain_n; /* bytes of the content */
	size_t n;
	uint8_t packed[]; /* whole bytes of blocks, none of them the last of a stream */
};

/* Packs what z has to read, and ends the block when a flush is asked for. */
static int pack(z_stream *z, int flush, struct buf *out)
{
	int r = Z_OK;
	do {
		uint8_t *at = buf_room(out, STEP);
		if (!at)
			return Z_MEM_ERROR;
		z->next_out = at;
		z->avail_out = (uInt)STEP;
		r = deflate(z, flush);
		out->n -= z->avail_out;
	} while (r == Z_OK && z->avail_out == 0);
	/* Nothing was left to do. */
	return r == Z_BUF_ERROR ? Z_OK : r;
}

void gzip_begin(struct gzip_writer *w, struct buf *out)
{
	/* No name, no time; packed for speed, by a Unix. */
	static const uint8_t head[] = {0x1f, 0x8b, Z_DEFLATED, 0, 0, 0, 0, 0, 4, 3};
	*w = (struct gzip_writer){.out = out, .z = base_calloc(1, sizeof *w->z)};
	w->ok = deflateInit2(w->z, Z_BEST_SPEED, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) == Z_OK;
	if (!w->ok)
		base_memory_note();
	buf_put(out, head, sizeof head);
}

void gzip_put(struct gzip_writer *w, struct bytes data)
{
	while (w->ok && data.n > 0) {
		size_t n = data.n < UINT32_MAX ? data.n : UINT32_MAX;
		w->z->next_in = (Bytef *)(uintptr_t)data.p;
		w->z->avail_in = (uInt)n;
		w->ok = pack(w->z, Z_NO_FLUSH, w->out) == Z_OK;
		w->crc = (uint32_t)crc32_z(w->crc, data.p, n);
		w->n += n;
		data.p += n;
		data.n -= n;
	}
}

void gzip_put_part(struct gzip_writer *w, const struct gzip_part *part)
{
	/* What comes behind the flush refers to nothing before it. */
	w->ok = w->ok && pack(w->z, Z_FULL_FLUSH, w->out) == Z_OK;
	buf_put(w->out, part->packed, part->n);
	w->crc = (uint32_t)crc32_combine(w->crc, part->crc, (z_off_t)part->plain_n);
	w->n += part->plain_n;
}

enum status gzip_end(struct gzip_writer *w, struct err *err)
{
	uint8_t tail[8];
	w->ok = w->ok && pack(w->z, Z_FINISH, w->out) == Z_STREAM_END;
	deflateEnd(w->z);
	base_free(w->z);
	put_u32le(tail, w->crc);
	put_u32le(tail + 4, (uint32_t)w->n);
	buf_put(w->out, tail, sizeof tail);
	if (w->ok && buf_ok(w->out) && w->n <= UINT32_MAX)
		return ST_OK;
	return err_set(err, ST_LIMIT, "gzip", "the content is too large");
}

enum status gzip_write(struct bytes data, struct buf *out, struct err *err)
{
	struct gzip_writer w;
	gzip_begin(&w, out);
	gzip_put(&w, data);
	return gzip_end(&w, err);
}

struct gzip_part *gzip_part_new(const struct pieces *content)
{
	struct gzip_writer w;
	struct buf out;
	struct gzip_part *p = NULL;
	buf_init(&out, SIZE_MAX);
	gzip_begin(&w, &out);
	buf_clear(&out);
	for (size_t i = 0; i < content->n; i++)
		gzip_put(&w, content->v[i]);
	w.ok = w.ok && pack(w.z, Z_FULL_FLUSH, &out) == Z_OK;
	deflateEnd(w.z);
	base_free(w.z);
	if (w.ok) {
		p = base_alloc(sizeof *p + out.n);
		*p = (struct gzip_part){.crc = w.crc, .plain_n = w.n, .n = out.n};
		memcpy(p->packed, out.p, out.n);
	}
	buf_fini(&out);
	return p;
}

size_t gzip_part_memory(const struct gzip_part *p)
{
	return sizeof *p + p->n;
}
