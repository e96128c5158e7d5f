/* View metadata: any bytes are read; what is taken is written and read again as the same text, and
 * takes any updates that the same bytes may hold. */
#include <stddef.h>
#include <stdint.h>

#include "proto/iceberg/view.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void written(const struct view *v, struct buf *b)
{
	buf_init(b, VIEW_MAX_BYTES * 2);
	view_write(b, v);
	ASSERT(buf_ok(b));
}

static void same_again(const struct view *v)
{
	struct buf once, twice;
	struct view *again = NULL;
	struct err err;
	written(v, &once);
	/* Numbers with a fraction grow when they are written with all their digits. */
	enum status st = view_read(buf_bytes(&once), false, &again, &err);
	ASSERT(st == ST_OK || st == ST_LIMIT);
	if (st == ST_OK) {
		written(again, &twice);
		ASSERT(bytes_eq(buf_bytes(&once), buf_bytes(&twice)));
		buf_fini(&twice);
	}
	view_free(again);
	buf_fini(&once);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct jdoc *doc = NULL;
	struct view *v = NULL, *next = NULL;
	struct err err;
	bool changed = false;
	if (view_read((struct bytes){data, size}, size && data[0] == 0x1f, &v, &err) != ST_OK)
		return 0;
	same_again(v);
	if (jdoc_parse((struct bytes){data, size}, ST_BAD_REQUEST, &doc, &err) == ST_OK &&
	    view_commit(v, jval_get(jdoc_root(doc), "requirements"),
			jval_get(jdoc_root(doc), "updates"), 1, &next, &changed, &err) == ST_OK) {
		same_again(next);
		view_free(next);
	}
	jdoc_free(doc);
	view_free(v);
	return 0;
}
