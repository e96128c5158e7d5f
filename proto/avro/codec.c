#include "proto/avro/codec.h"

#include <snappy-c.h>
#include <zlib.h>
#include <zstd.h>

#define DEFLATE_LEVEL 1
/* Largest zstd window that a frame may ask for: the library would reserve it before it has seen
 * one byte of content. 8 MiB is what every level but the "ultra" ones uses. */
#define ZSTD_WINDOW_LOG 23
/* Bytes of a zlib checksum that may follow a deflate stream. */
#define TRAILER_MAX 4
/* One call's input; zlib counts in 32 bits. */
#define INPUT_MAX ((size_t)1 << 30)

static const char *const names[] = {
	[CODEC_NULL] = "null",
	[CODEC_DEFLATE] = "deflate",
	[CODEC_SNAPPY] = "snappy",
	[CODEC_ZSTD] = "zstandard",
};

const char *codec_name(enum codec c)
{
	ASSERT((size_t)c < ARRAY_SIZE(names));
	return names[c];
}

bool codec_from_name(struct strv name, enum codec *ret_c)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strv_eq(strv_of(names[i]), name)) {
			*ret_c = (enum codec)i;
			return true;
		}
	return false;
}

static enum status full(struct err *err)
{
	return err_set(err, ST_LIMIT, "", "an Avro block exceeds the memory limit");
}

static enum status bad(enum codec c, const char *why, struct err *err)
{
	return err_set(err, ST_CORRUPT, "", "%s block: %s", names[c], why);
}

static enum status deflate_all(struct bytes in, struct buf *out, struct err *err)
{
	z_stream z = {0};
	/* Negative window bits: no zlib header, as Avro wants it. */
	if (deflateInit2(&z, DEFLATE_LEVEL, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
		base_memory_note();
		return full(err);
	}
	size_t bound = deflateBound(&z, in.n);
	uint8_t *at = buf_room(out, bound);
	if (!at) {
		deflateEnd(&z);
		return full(err);
	}
	z.next_in = (Bytef *)(uintptr_t)in.p;
	z.avail_in = (uInt)in.n;
	z.next_out = at;
	z.avail_out = (uInt)bound;
	int rc = deflate(&z, Z_FINISH);
	ASSERT(rc == Z_STREAM_END);
	out->n -= z.avail_out;
	deflateEnd(&z);
	return ST_OK;
}

enum status codec_compress(enum codec c, struct bytes in, struct buf *out, struct err *err)
{
	ASSERT(c == CODEC_NULL || c == CODEC_DEFLATE);
	if (in.n > INPUT_MAX)
		return full(err);
	if (c == CODEC_DEFLATE)
		return deflate_all(in, out, err);
	buf_put(out, in.p, in.n);
	return buf_ok(out) ? ST_OK : full(err);
}

/* Room for the next piece of output: grows with what was written, ends at the maximum. */
static uint8_t *next_room(struct buf *out, size_t hint, size_t *ret_n)
{
	size_t left = out->max - out->n;
	size_t n = hint < 4096 ? 4096 : hint;
	n = n < left ? n : left;
	n = n < INPUT_MAX ? n : INPUT_MAX;
	if (n == 0)
		return NULL;
	*ret_n = n;
	return buf_room(out, n);
}

static enum status inflate_all(struct bytes in, struct buf *out, struct err *err)
{
	z_stream z = {0};
	if (inflateInit2(&z, -15) != Z_OK) {
		base_memory_note();
		return full(err);
	}
	z.next_in = (Bytef *)(uintptr_t)in.p;
	z.avail_in = (uInt)in.n;
	size_t hint = in.n * 4;
	enum status st = ST_OK;
	for (int rc = Z_OK; rc != Z_STREAM_END;) {
		size_t n = 0;
		uint8_t *at = next_room(out, hint, &n), one;
		/* At the maximum the stream may still end without further output. */
		z.next_out = at ? at : &one;
		z.avail_out = at ? (uInt)n : 1;
		rc = inflate(&z, Z_NO_FLUSH);
		if (at)
			out->n -= z.avail_out;
		else if (z.avail_out == 0)
			rc = Z_MEM_ERROR;
		if (rc == Z_STREAM_END || (rc == Z_OK && (z.avail_in || !z.avail_out))) {
			hint = n;
			continue;
		}
		st = rc == Z_MEM_ERROR ? full(err) : bad(CODEC_DEFLATE, "malformed or cut", err);
		break;
	}
	/* PyIceberg cuts zlib's frame off one byte short, so that three bytes of its checksum stand
	 * behind the stream. */
	if (st == ST_OK && z.avail_in > TRAILER_MAX)
		st = bad(CODEC_DEFLATE, "bytes after its end", err);
	inflateEnd(&z);
	return st;
}

/* A snappy block carries the CRC-32 of the plain bytes behind it, big-endian. */
static enum status unsnappy(struct bytes in, struct buf *out, struct err *err)
{
	size_t n = 0;
	if (in.n < 4)
		return bad(CODEC_SNAPPY, "too short", err);
	const char *p = (const char *)in.p;
	if (snappy_uncompressed_length(p, in.n - 4, &n) != SNAPPY_OK ||
	    /* No element of three bytes gives more than 64; refuse before memory is taken. */
	    n / 64 > in.n)
		return bad(CODEC_SNAPPY, "malformed", err);
	uint8_t *at = buf_room(out, n);
	if (!at)
		return full(err);
	size_t got = n;
	if (snappy_uncompress(p, in.n - 4, (char *)at, &got) != SNAPPY_OK || got != n)
		return bad(CODEC_SNAPPY, "malformed", err);
	if ((uint32_t)crc32_z(0, at, n) != get_u32be(in.p + in.n - 4))
		return bad(CODEC_SNAPPY, "checksum differs", err);
	return ST_OK;
}

static enum status unzstd(struct bytes in, struct buf *out, struct err *err)
{
	ZSTD_DCtx *d = ZSTD_createDCtx();
	if (!d)
		return full(err);
	enum status st = ST_OK;
	if (ZSTD_isError(ZSTD_DCtx_setParameter(d, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG)))
		st = err_set(err, ST_INTERNAL, "", "zstd refuses its parameters");
	ZSTD_inBuffer src = {in.p, in.n, 0};
	size_t hint = in.n * 4, left = in.n ? 1 : 0;
	while (st == ST_OK && left) {
		size_t n = 0;
		uint8_t *at = next_room(out, hint, &n), one;
		ZSTD_outBuffer dst = {at ? at : &one, at ? n : 1, 0};
		size_t before = src.pos;
		left = ZSTD_decompressStream(d, &dst, &src);
		if (at)
			out->n -= n - dst.pos;
		hint = n;
		if (ZSTD_isError(left))
			st = bad(CODEC_ZSTD, ZSTD_getErrorName(left), err);
		else if (!at && dst.pos)
			st = full(err);
		else if (left && src.pos == before && dst.pos == 0)
			st = bad(CODEC_ZSTD, "cut", err);
		else if (!left && src.pos < src.size)
			left = 1; /* another frame follows */
	}
	ZSTD_freeDCtx(d);
	return st;
}

enum status codec_decompress(enum codec c, struct bytes in, struct buf *out, struct err *err)
{
	if (in.n > INPUT_MAX)
		return full(err);
	switch (c) {
	case CODEC_NULL:
		buf_put(out, in.p, in.n);
		return buf_ok(out) ? ST_OK : full(err);
	case CODEC_DEFLATE:
		return inflate_all(in, out, err);
	case CODEC_SNAPPY:
		return unsnappy(in, out, err);
	case CODEC_ZSTD:
		return unzstd(in, out, err);
	}
	ASSERT_NEVER("known codec");
	return ST_INTERNAL;
}
