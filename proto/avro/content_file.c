#include "proto/avro/content_file.h"

struct content_file content_file_empty(void)
{
	return (struct content_file){
		.sort_order_id = SORT_ORDER_NONE,
		.first_row_id = ROW_ID_NONE,
		.content_offset = OFFSET_NONE,
		.content_size = OFFSET_NONE,
	};
}

bool content_file_is_dv(const struct content_file *f)
{
	return f->content == CONTENT_POSITION_DELETES &&
	       (f->content_offset != OFFSET_NONE || strv_ieq(f->format, STRV("puffin")));
}

static enum status check_dv(const struct content_file *f, enum status bad, struct err *err)
{
	if (!strv_ieq(f->format, STRV("puffin")))
		return err_set(err, bad, "file_format", "a deletion vector must be in Puffin");
	if (!f->referenced_data_file.p)
		return err_set(err, bad, "referenced_data_file",
			       "a deletion vector must name its data file");
	if (f->content_offset == OFFSET_NONE || f->content_offset < 0)
		return err_set(err, bad, "content_offset", "a deletion vector must have an offset");
	if (f->content_size == OFFSET_NONE || f->content_size < 0)
		return err_set(err, bad, "content_size_in_bytes",
			       "a deletion vector must have a size");
	return ST_OK;
}

static enum status check_version(const struct content_file *f, int format_version, bool dv,
				 enum status bad, struct err *err)
{
	if (format_version < 3 && dv)
		return err_set(err, bad, "file_format", "format version %d has no deletion vectors",
			       format_version);
	if (format_version < 3 && f->first_row_id != ROW_ID_NONE)
		return err_set(err, bad, "first_row_id", "format version %d has no row ids",
			       format_version);
	if (format_version < 2 && f->content != CONTENT_DATA)
		return err_set(err, bad, "content", "format version 1 has no delete files");
	if (format_version < 2 && f->referenced_data_file.p)
		return err_set(err, bad, "referenced_data_file",
			       "format version 1 has no delete files");
	return ST_OK;
}

enum status content_file_check(const struct content_file *f, int format_version, enum status bad,
			       struct err *err)
{
	uint32_t content = f->content;
	if (content > CONTENT_EQUALITY_DELETES)
		return err_set(err, bad, "content", "%u is not a content", content);
	if (!f->path.p || f->path.n == 0)
		return err_set(err, bad, "file_path", "the path is empty");
	if (!f->format.p || f->format.n == 0)
		return err_set(err, bad, "file_format", "the format is empty");
	if (f->record_count < 0)
		return err_set(err, bad, "record_count", "the record count is negative");
	if (f->file_size < 0)
		return err_set(err, bad, "file_size_in_bytes", "the file size is negative");
	bool placed = f->content_offset != OFFSET_NONE || f->content_size != OFFSET_NONE;
	bool dv = content_file_is_dv(f);
	if ((placed || strv_ieq(f->format, STRV("puffin"))) &&
	    f->content != CONTENT_POSITION_DELETES)
		return err_set(err, bad, placed ? "content_offset" : "file_format",
			       "only a deletion vector lies inside a Puffin file");
	if (dv || placed) {
		enum status st = check_dv(f, bad, err);
		if (st != ST_OK)
			return st;
	}
	if ((f->content == CONTENT_EQUALITY_DELETES) != (f->n_equality_ids > 0))
		return err_set(err, bad, "equality_ids",
			       "equality ids belong to equality deletes, and to all of them");
	if (f->first_row_id != ROW_ID_NONE && f->content != CONTENT_DATA)
		return err_set(err, bad, "first_row_id", "only data files have row ids");
	if (f->first_row_id != ROW_ID_NONE && f->first_row_id < 0)
		return err_set(err, bad, "first_row_id", "the row id is negative");
	return check_version(f, format_version, dv, bad, err);
}

static bool copy_array(struct arena *a, const void *from, size_t n, size_t size, void *ret_to)
{
	void *to = NULL;
	if (n) {
		to = arena_calloc(a, n, size);
		if (!to)
			return false;
		memcpy(to, from, n * size);
	}
	memcpy(ret_to, &to, sizeof to);
	return true;
}

static bool copy_bounds(struct arena *a, const struct bound *from, size_t n, struct bound **ret_to)
{
	struct bound *to = NULL;
	if (!copy_array(a, from, n, sizeof *to, &to))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!arena_bytes(a, from[i].b, &to[i].b))
			return false;
	*ret_to = to;
	return true;
}

bool content_file_copy(struct arena *a, const struct content_file *f, struct content_file *ret_f)
{
	struct content_file c = *f;
#define COPY(member) copy_array(a, f->member, f->n_##member, sizeof *f->member, &c.member)
	if (!arena_strv(a, f->path, &c.path) || !arena_strv(a, f->format, &c.format) ||
	    !tuple_copy(a, &f->partition, &c.partition) || !COPY(column_sizes) ||
	    !COPY(value_counts) || !COPY(null_counts) || !COPY(nan_counts) ||
	    !copy_bounds(a, f->lower, f->n_lower, &c.lower) ||
	    !copy_bounds(a, f->upper, f->n_upper, &c.upper) || !COPY(split_offsets) ||
	    !COPY(equality_ids))
		return false;
#undef COPY
	if (f->has_key_metadata && !arena_bytes(a, f->key_metadata, &c.key_metadata))
		return false;
	if (f->referenced_data_file.p &&
	    !arena_strv(a, f->referenced_data_file, &c.referenced_data_file))
		return false;
	*ret_f = c;
	return true;
}
