#include "daemon/commit/decode.h"

#include "daemon/commit/intake/adopt.h"
#include "daemon/commit/objects.h"
#include "proto/base/gzip.h"
#include "proto/dv/dv_blob.h"
#include "proto/iceberg/metadata.h"

static enum status decode_metadata(struct strv path, struct bytes file, struct metadata **ret_m,
				   struct err *err)
{
	if (!metadata_file_gzip(path))
		return metadata_parse(file, ST_CORRUPT, ret_m, err);
	struct buf text;
	buf_init(&text, METADATA_MAX_BYTES);
	enum status st = gzip_read(file, &text, err);
	if (st == ST_OK)
		st = metadata_parse(buf_bytes(&text), ST_CORRUPT, ret_m, err);
	buf_fini(&text);
	return st;
}

static enum status decode_index(const struct read_effect *read, struct bytes file,
				struct mview **ret_v, struct err *err)
{
	struct mview *whole;
	enum status st =
		mview_read(file, read->row, read->metadata, DECODE_MAX_BYTES, &whole, err);
	if (st != ST_OK)
		return st;
	*ret_v = mview_light(whole);
	mview_unref(whole);
	return ST_OK;
}

static enum status decode_vector(const struct read_effect *read, struct bytes file,
				 struct bitmap64 **ret_set, struct err *err)
{
	struct bitmap64 *set;
	enum status st = dv_blob_decode(file, &set, err);
	if (st != ST_OK)
		return st;
	st = dv_blob_check_count(set, read->cardinality, err);
	if (st != ST_OK)
		bitmap64_free(set);
	else
		*ret_set = set;
	return st;
}

void decode_run(const struct read_effect *read, struct bytes file, struct read_result *ret_r)
{
	struct err *err = &ret_r->err;
	enum status st = ST_OK;
	*ret_r = (struct read_result){0};
	switch (read->as) {
	case READ_METADATA:
		st = decode_metadata(read->path, file, &ret_r->own_metadata, err);
		break;
	case READ_MANIFEST_LIST:
		st = mlist_read(file, DECODE_MAX_BYTES, &ret_r->own_list, err);
		break;
	case READ_MANIFEST:
		st = mview_read(file, read->row, read->metadata, DECODE_MAX_BYTES, &ret_r->own_view,
				err);
		break;
	case READ_INDEX:
		st = decode_index(read, file, &ret_r->own_view, err);
		break;
	case READ_VECTOR:
		st = decode_vector(read, file, &ret_r->own_vector, err);
		/* In a stored file this is damage, not a request's fault. */
		if (st == ST_DV_CORRUPT)
			err->st = st = ST_CORRUPT;
		break;
	case READ_ADOPTED:
		st = adopt_read(file, read->ref, read->metadata, read->limit, &ret_r->own_adopted,
				err);
		break;
	case READ_BLOB:
		st = dv_blob_decode(file, &ret_r->own_vector, err);
		break;
	}
	if (st == ST_OK)
		*err = (struct err){0};
}
