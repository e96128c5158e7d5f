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

enum status gzip_write(struct bytes data, struct buf *out, struct err *err)
{
	struct pieces whole = {.v = &data, .n = 1};
	return gzip_write_pieces(&whole, out, err);
}

enum status gzip_write_pieces(const struct pieces *data, struct buf *out, struct err *err)
{
	z_stream z = {0};
	size_t size = pieces_size(data);
	if (size > UINT32_MAX)
		return err_set(err, ST_LIMIT, "gzip", "the content is too large");
	if (deflateInit2(&z, Z_BEST_SPEED, Z_DEFLATED, WINDOW_GZIP, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
		base_memory_note();
		return err_set(err, ST_LIMIT, "gzip", "no memory");
	}
	uLong most = deflateBound(&z, (uLong)size);
	uint8_t *at = buf_room(out, most);
	int r = at ? Z_OK : Z_MEM_ERROR;
	z.next_out = at;
	z.avail_out = (uInt)most;
	for (size_t i = 0; r == Z_OK && i < data->n; i++) {
		if (data->v[i].n == 0)
			continue; /* the library takes that for a fault */
		z.next_in = (Bytef *)(uintptr_t)data->v[i].p;
		z.avail_in = (uInt)data->v[i].n;
		r = deflate(&z, Z_NO_FLUSH);
	}
	if (r == Z_OK)
		r = deflate(&z, Z_FINISH);
	if (at)
		out->n -= z.avail_out;
	deflateEnd(&z);
	return r == Z_STREAM_END ? ST_OK
				 : err_set(err, ST_LIMIT, "gzip", "the content is too large");
}
