/* Where the files of a table lie and what they are called: folders, metadata file names, and the
 * properties that say so. */
#include <stdio.h>

#include "proto/iceberg/metadata_int.h"

#define CODEC "write.metadata.compression-codec"
#define FOLDER "write.metadata.path"
#define LOG_MAX "write.metadata.previous-versions-max"

struct strv metadata_strip(struct strv location)
{
	while (strv_ends(location, STRV("/")) && !strv_ends(location, STRV("://")))
		location.n--;
	return location;
}

/* The folder that a property names, else one under the table's location. */
static bool folder_of(const struct metadata *m, const char *property, const char *name,
		      struct arena *a, struct strv *ret_dir)
{
	struct strv dir = metadata_property(m, property);
	if (dir.n) {
		*ret_dir = metadata_strip(dir);
		return true;
	}
	char *text = arena_printf(a, "%.*s/%s", STRV_ARG(m->location), name);
	if (!text)
		return false;
	*ret_dir = strv_of(text);
	return true;
}

bool metadata_folder(const struct metadata *m, struct arena *a, struct strv *ret_dir)
{
	return folder_of(m, FOLDER, "metadata", a, ret_dir);
}

bool metadata_data_folder(const struct metadata *m, struct arena *a, struct strv *ret_dir)
{
	return folder_of(m, "write.data.path", "data", a, ret_dir);
}

/* A path that climbs leads nobody knows where. */
static bool beneath(struct strv path, struct strv root)
{
	if (root.n == 0 || path.n <= root.n + 1 || !strv_starts(path, root) ||
	    path.p[root.n] != '/')
		return false;
	for (struct strv rest = strv_sub(path, root.n + 1, path.n); rest.n > 0;) {
		size_t n = strv_find(rest, '/');
		if (strv_eq(strv_sub(rest, 0, n), STRV("..")))
			return false;
		rest = strv_sub(rest, n < rest.n ? n + 1 : n, rest.n);
	}
	return true;
}

bool metadata_owns_file(const struct metadata *m, struct strv file)
{
	return beneath(file, m->location) ||
	       beneath(file, metadata_strip(metadata_property(m, FOLDER)));
}

bool metadata_wants_gzip(const struct metadata *m)
{
	return strv_ieq(metadata_property(m, CODEC), STRV("gzip"));
}

int64_t metadata_log_max(const struct metadata *m)
{
	int64_t max = metadata_property_i64(m, LOG_MAX, METADATA_LOG_DEFAULT);
	return max < 1 ? 1 : max;
}

enum status metadata_check_property(struct strv key, struct strv value, enum status bad,
				    struct err *err)
{
	struct strv shown = strv_sub(value, 0, 64);
	int64_t n;
	if (strv_eq(key, STRV(CODEC)) && !strv_ieq(value, STRV("gzip")) &&
	    !strv_ieq(value, STRV("none")))
		return err_set(err, bad, CODEC, "Invalid codec name: %.*s", STRV_ARG(shown));
	if (strv_eq(key, STRV(LOG_MAX)) &&
	    (!strv_i64(value, &n) || n < INT32_MIN || n > INT32_MAX))
		return err_set(err, bad, LOG_MAX, "must be an integer: %.*s", STRV_ARG(shown));
	if (strv_eq(key, STRV(FOLDER)) && value.n == 0)
		return err_set(err, bad, FOLDER, "must not be empty");
	return ST_OK;
}

enum status metadata_check_properties(const struct metadata *m, enum status bad, struct err *err)
{
	enum status st = ST_OK;
	for (size_t i = 0; i < m->n_properties && st == ST_OK; i++)
		st = metadata_check_property(m->properties[i].key, m->properties[i].value, bad,
					     err);
	if (st != ST_OK)
		err_prefix(err, "properties");
	return st;
}

/* ------------------------------------------------------------------ names */

static struct strv base_name(struct strv location)
{
	size_t from = location.n;
	while (from > 0 && location.p[from - 1] != '/')
		from--;
	return strv_sub(location, from, location.n);
}

int64_t metadata_file_number(struct strv location)
{
	struct strv name = base_name(location);
	struct strv digits = strv_sub(name, 0, strv_find(name, '-'));
	int64_t n;
	return digits.n < name.n && strv_i64(digits, &n) && n >= 0 ? n : -1;
}

void metadata_file_name(struct strv base_location, struct uuid u, bool gzip,
			char out[METADATA_FILE_NAME_MAX])
{
	char text[UUID_TEXT_LEN + 1];
	int64_t n = metadata_file_number(base_location);
	/* Numbers only order the files for people; one that cannot grow starts over. */
	n = n >= INT32_MAX ? 0 : n + 1;
	uuid_text(u, text);
	snprintf(out, METADATA_FILE_NAME_MAX, "%05lld-%s%s.metadata.json", (long long)n, text,
		 gzip ? ".gz" : "");
}

bool metadata_file_gzip(struct strv location)
{
	return strv_ends(location, STRV(".gz.metadata.json")) ||
	       strv_ends(location, STRV(".metadata.json.gz"));
}
