#include "store/obj/fs_path.h"

static bool is_scheme_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '+' || c == '-' || c == '.';
}

/* Length of "scheme:", 0 when the text begins with none. */
static size_t scheme_len(struct strv s)
{
	size_t i = 0;
	while (i < s.n && is_scheme_char(s.p[i]))
		i++;
	return i > 0 && i < s.n && s.p[i] == ':' ? i + 1 : 0;
}

static enum status strip_scheme(struct strv *s, struct err *err)
{
	size_t n = scheme_len(*s);
	if (n == 0)
		return ST_OK;
	if (!strv_ieq(strv_sub(*s, 0, n), STRV("file:")))
		return err_set(err, ST_UNSUPPORTED, "path", "no store for paths of scheme %.*s",
			       STRV_ARG(strv_sub(*s, 0, n)));
	*s = strv_sub(*s, n, s->n);
	if (!strv_starts(*s, STRV("//")))
		return ST_OK;
	*s = strv_sub(*s, 2, s->n);
	if (!strv_starts(*s, STRV("/")))
		return err_set(err, ST_UNSUPPORTED, "path", "a file URI must not name a host");
	return ST_OK;
}

enum status fs_path_of(struct strv uri, struct fs_path *ret_path, struct err *err)
{
	enum status st = strip_scheme(&uri, err);
	if (st != ST_OK)
		return st;
	if (!strv_starts(uri, STRV("/")))
		return err_set(err, ST_ILLEGAL_ARGUMENT, "path", "a path must be absolute");
	if (strv_find(uri, 0) != uri.n)
		return err_set(err, ST_ILLEGAL_ARGUMENT, "path", "a path must not hold U+0000");
	if (uri.n >= FS_PATH_MAX)
		return err_set(err, ST_ILLEGAL_ARGUMENT, "path", "a path is longer than %d bytes",
			       FS_PATH_MAX - 1);
	struct fs_path path;
	size_t n = 0;
	while (uri.n) {
		uri = strv_sub(uri, 1, uri.n); /* the '/' */
		struct strv part = strv_sub(uri, 0, strv_find(uri, '/'));
		uri = strv_sub(uri, part.n, uri.n);
		if (strv_eq(part, STRV("..")))
			return err_set(err, ST_PATH_OUTSIDE, "path",
				       "a path must not hold a \"..\" component");
		if (part.n == 0 || strv_eq(part, STRV(".")))
			continue;
		path.text[n++] = '/';
		memcpy(path.text + n, part.p, part.n);
		n += part.n;
	}
	path.text[n] = 0;
	memcpy(ret_path->text, path.text, n + 1);
	ret_path->n = n;
	return ST_OK;
}

bool fs_path_beneath(const struct fs_path *root, const struct fs_path *path, const char **ret_rel)
{
	if (path->n < root->n + 2 || memcmp(path->text, root->text, root->n) != 0 ||
	    path->text[root->n] != '/')
		return false;
	*ret_rel = path->text + root->n + 1;
	return true;
}
