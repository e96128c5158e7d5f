#include "proto/rpc/frame.h"

#include "proto/base/digest.h"

/* Bytes of the header behind the length field. */
#define AFTER_LENGTH (FRAME_HEADER - 4)

static uint32_t checksum(const uint8_t *header, struct bytes payload)
{
	return digest_crc32c(digest_crc32c(0, (struct bytes){header, 10}), payload);
}

enum status frame_parse(struct bytes in, size_t max_frame, struct frame *ret_f, size_t *ret_used,
			struct err *err)
{
	if (in.n < 4) {
		*ret_used = 0;
		return ST_OK;
	}
	size_t after = get_u32be(in.p);
	if (after < AFTER_LENGTH)
		return err_set(err, ST_BAD_REQUEST, "frame.length",
			       "a frame of %zu bytes has no room for its header", after);
	if (max_frame < 4 || after > max_frame - 4)
		return err_set(err, ST_TOO_LARGE, "frame.length",
			       "a frame may have %zu bytes, this one says %zu", max_frame,
			       after + 4);
	if (in.n - 4 < after) {
		*ret_used = 0;
		return ST_OK;
	}
	struct bytes payload = {in.p + FRAME_HEADER, after - AFTER_LENGTH};
	if (get_u32be(in.p + 10) != checksum(in.p, payload))
		return err_set(err, ST_BAD_REQUEST, "frame.crc", "the checksum is wrong");
	*ret_f = (struct frame){
		.type = in.p[4],
		.version = in.p[5],
		.request_id = get_u32be(in.p + 6),
		.payload = payload,
	};
	*ret_used = after + 4;
	return ST_OK;
}

size_t frame_open(struct buf *out, uint8_t type, uint8_t version, uint32_t request_id)
{
	size_t start = out->n;
	uint8_t *p = buf_room(out, FRAME_HEADER);
	if (!p)
		return start;
	memset(p, 0, FRAME_HEADER);
	p[4] = type;
	p[5] = version;
	put_u32be(p + 6, request_id);
	return start;
}

void frame_close(struct buf *out, size_t start)
{
	if (!buf_ok(out))
		return;
	ASSERT(out->n - start >= FRAME_HEADER);
	size_t after = out->n - start - 4;
	if (after > UINT32_MAX) {
		out->failed = true;
		return;
	}
	uint8_t *p = out->p + start;
	put_u32be(p, (uint32_t)after);
	struct bytes payload = {p + FRAME_HEADER, after - AFTER_LENGTH};
	put_u32be(p + 10, checksum(p, payload));
}

void frame_put(struct buf *out, const struct frame *f)
{
	size_t start = frame_open(out, f->type, f->version, f->request_id);
	buf_put(out, f->payload.p, f->payload.n);
	frame_close(out, start);
}
