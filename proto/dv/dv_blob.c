#include "proto/dv/dv_blob.h"

#include "proto/base/digest.h"

static const uint8_t magic[4] = {0xd1, 0xd3, 0x39, 0x64};

enum status dv_blob_encode(const struct bitmap64 *set, struct buf *out, struct err *err)
{
	size_t start = out->n;
	uint8_t word[4] = {0};
	buf_put(out, word, sizeof word);
	buf_put(out, magic, sizeof magic);
	bitmap64_encode(set, out);
	if (!buf_ok(out) || out->n - start - 8 > BITMAP64_MAX_BYTES) {
		out->failed = true;
		return err_set(err, ST_LIMIT, "length", "a deletion vector is too long to write");
	}
	struct bytes body = {out->p + start + 4, out->n - start - 4};
	put_u32be(out->p + start, (uint32_t)body.n);
	put_u32be(word, digest_crc32(0, body));
	buf_put(out, word, sizeof word);
	if (!buf_ok(out))
		return err_set(err, ST_LIMIT, "length", "a deletion vector is too long to write");
	return ST_OK;
}

enum status dv_blob_decode(struct bytes blob, struct bitmap64 **ret_set, struct err *err)
{
	if (blob.n < DV_BLOB_MIN_BYTES)
		return err_set(err, ST_DV_CORRUPT, "length",
			       "%zu bytes are too few for a deletion vector", blob.n);
	if (blob.n > (size_t)INT32_MAX)
		return err_set(err, ST_LIMIT, "length", "a deletion vector is longer than 2 GiB");
	uint32_t stated = get_u32be(blob.p);
	if (stated != blob.n - 8)
		return err_set(err, ST_DV_CORRUPT, "length",
			       "the stored length is %u, the blob's size says %zu", stated,
			       blob.n - 8);
	if (memcmp(blob.p + 4, magic, sizeof magic) != 0)
		return err_set(err, ST_DV_CORRUPT, "magic", "not a deletion vector");
	struct bytes body = {blob.p + 4, blob.n - 8};
	uint32_t crc = get_u32be(blob.p + 4 + body.n), have = digest_crc32(0, body);
	if (crc != have)
		return err_set(err, ST_DV_CORRUPT, "crc", "CRC-32 is %08x, stored is %08x", have,
			       crc);
	return bitmap64_decode((struct bytes){body.p + 4, body.n - 4}, ret_set, err);
}

enum status dv_blob_check_count(const struct bitmap64 *set, int64_t record_count, struct err *err)
{
	uint64_t n = bitmap64_cardinality(set);
	if (record_count < 0 || n != (uint64_t)record_count)
		return err_set(err, ST_DV_CORRUPT, "record_count",
			       "the vector holds %llu positions, %lld are stated",
			       (unsigned long long)n, (long long)record_count);
	return ST_OK;
}

enum status dv_blob_check_range(const struct bitmap64 *set, int64_t file_records, struct err *err)
{
	uint64_t max;
	if (bitmap64_max(set, &max) && (file_records < 0 || max >= (uint64_t)file_records))
		return err_set(err, ST_POSITION_RANGE, "positions",
			       "position %llu is not below the file's %lld rows",
			       (unsigned long long)max, (long long)file_records);
	return ST_OK;
}
