#include "daemon/net/route.h"

#include <stdio.h>

enum surface { SURFACE_TOP, SURFACE_CATALOG, SURFACE_ADMIN };
enum kind { KIND_OTHER, KIND_COMMIT };

static const struct row {
	const char *name;
	enum surface surface;
	const char *method;
	const char *path;
	enum kind kind;
} rows[] = {
#define ROUTE(id, surface, method, path, kind) {#id, SURFACE_##surface, #method, path, KIND_##kind},
#include "daemon/net/route.tbl"
	{"mirror", SURFACE_TOP, "", "", KIND_COMMIT},
};

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

enum status route_decode(struct arena *arena, struct strv raw, const char *field,
			 struct strv *ret_text, struct err *err)
{
	char *out = arena_alloc(arena, raw.n + 1);
	size_t n = 0;
	if (!out)
		return err_set(err, ST_LIMIT, field, "the request is too large");
	for (size_t i = 0; i < raw.n; i++) {
		char c = raw.p[i];
		if (c == '%') {
			if (raw.n - i < 3 || hex_value(raw.p[i + 1]) < 0 ||
			    hex_value(raw.p[i + 2]) < 0)
				return err_set(err, ST_BAD_REQUEST, field,
					       "'%%' is not followed by two hexadecimal digits");
			c = (char)(hex_value(raw.p[i + 1]) << 4 | hex_value(raw.p[i + 2]));
			i += 2;
			if (c == 0)
				return err_set(err, ST_BAD_REQUEST, field, "%%00 is not allowed");
		} else if (c == '+') {
			c = ' ';
		}
		out[n++] = c;
	}
	out[n] = 0;
	struct strv text = {out, n};
	if (!strv_utf8(text))
		return err_set(err, ST_BAD_REQUEST, field, "the text is not UTF-8");
	*ret_text = text;
	return ST_OK;
}

/* Where the next encoded separator begins, or s.n; *ret_len is its length. */
static size_t find_separator(struct strv s, size_t *ret_len)
{
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == '%' && s.n - i >= 3 && s.p[i + 1] == '1' &&
		    (s.p[i + 2] == 'F' || s.p[i + 2] == 'f')) {
			*ret_len = 3;
			return i;
		}
	}
	*ret_len = 0;
	return s.n;
}

enum status route_namespace(struct arena *arena, struct strv raw, const char *field,
			    struct strv **ret_levels, size_t *ret_n, struct err *err)
{
	size_t count = 1, len;
	for (struct strv s = raw; find_separator(s, &len) < s.n; count++)
		s = strv_sub(s, find_separator(s, &len) + len, s.n);
	struct strv *levels = arena_calloc(arena, count, sizeof *levels);
	if (!levels)
		return err_set(err, ST_LIMIT, field, "the request is too large");
	for (size_t i = 0; i < count; i++) {
		size_t end = find_separator(raw, &len);
		enum status st = route_decode(arena, strv_sub(raw, 0, end), field, &levels[i], err);
		if (st != ST_OK)
			return st;
		if (levels[i].n == 0)
			return err_set(err, ST_BAD_REQUEST, field,
				       "a level of the namespace is empty");
		raw = strv_sub(raw, end + len, raw.n);
	}
	*ret_levels = levels;
	*ret_n = count;
	return ST_OK;
}

static enum status parse_query(struct strv query, struct arena *arena, struct route_hit *hit,
			       struct err *err)
{
	if (query.n == 0)
		return ST_OK;
	size_t parts = 1;
	for (size_t i = 0; i < query.n; i++)
		parts += query.p[i] == '&';
	if (parts > ROUTE_ARGS_MAX)
		parts = ROUTE_ARGS_MAX;
	hit->args = arena_calloc(arena, parts, sizeof *hit->args);
	if (!hit->args)
		return err_set(err, ST_LIMIT, "query", "the request is too large");
	while (query.n) {
		size_t end = strv_find(query, '&');
		struct strv part = strv_sub(query, 0, end);
		query = strv_sub(query, end + 1, query.n);
		if (part.n == 0)
			continue;
		if (hit->n_args == ROUTE_ARGS_MAX)
			return err_set(err, ST_BAD_REQUEST, "query", "more than %d arguments",
				       ROUTE_ARGS_MAX);
		struct route_arg *arg = &hit->args[hit->n_args++];
		size_t eq = strv_find(part, '=');
		arg->value.raw = strv_sub(part, eq + 1, part.n);
		enum status st =
			route_decode(arena, strv_sub(part, 0, eq), "query", &arg->key, err);
		if (st == ST_OK)
			st = route_decode(arena, arg->value.raw, "query", &arg->value.text, err);
		if (st != ST_OK)
			return st;
	}
	return ST_OK;
}

/* Compares a row's path with segments from..n; fills params on a match. */
static bool row_matches(const struct row *row, const struct route_part *segments, size_t from,
			size_t n, struct route_hit *hit)
{
	struct strv path = strv_of(row->path);
	size_t n_params = 0;
	for (; path.n; from++) {
		size_t end = strv_find(path, '/');
		struct strv want = strv_sub(path, 0, end);
		path = strv_sub(path, end + 1, path.n);
		if (from == n)
			return false;
		if (want.p[0] == '{') {
			if (segments[from].text.n == 0)
				return false;
			hit->params[n_params++] = segments[from];
		} else if (!strv_eq(want, segments[from].text)) {
			return false;
		}
	}
	hit->n_params = n_params;
	return from == n;
}

static bool method_matches(const struct row *row, struct strv method)
{
	return strv_eq(strv_of(row->method), method);
}

/* Looks for the path with any method. 0: no such path, 1: found, -1: other methods only. */
static int find_row(enum route_surface surface, struct strv method,
		    const struct route_part *segments, size_t from, size_t n, bool prefixed,
		    struct route_hit *hit)
{
	bool path_known = false;
	int as_get = -1;
	size_t allow = 0;
	hit->allow[0] = 0;
	struct route_hit trial;
	for (int i = 0; i < ROUTE_mirror; i++) {
		const struct row *row = &rows[i];
		bool admin = row->surface == SURFACE_ADMIN;
		if (admin != (surface == ROUTE_ADMIN) ||
		    (prefixed && row->surface != SURFACE_CATALOG) ||
		    !row_matches(row, segments, from, n, &trial))
			continue;
		if (!path_known) {
			memcpy(hit->params, trial.params,
			       trial.n_params * sizeof trial.params[0]);
			hit->n_params = trial.n_params;
		}
		path_known = true;
		if (method_matches(row, method)) {
			hit->route = (enum route)i;
			return 1;
		}
		if (strv_eq(strv_of(row->method), STRV("GET")))
			as_get = i;
		int w = snprintf(hit->allow + allow, sizeof hit->allow - allow, "%s%s",
				 allow ? ", " : "", row->method);
		if (w > 0 && (size_t)w < sizeof hit->allow - allow)
			allow += (size_t)w;
	}
	if (as_get >= 0 && strv_eq(method, STRV("HEAD"))) {
		hit->route = (enum route)as_get;
		return 1;
	}
	return path_known ? -1 : 0;
}

static bool clean_target(struct strv target)
{
	for (size_t i = 0; i < target.n; i++)
		if ((unsigned char)target.p[i] <= ' ' || target.p[i] == 0x7f)
			return false;
	return target.n > 0;
}

/* The path of an absolute-form target (RFC 9112 §3.2.2), which servers must accept. */
static struct strv origin_form(struct strv target)
{
	static const char *const schemes[] = {"http://", "https://"};
	for (size_t i = 0; i < ARRAY_SIZE(schemes); i++) {
		struct strv scheme = strv_of(schemes[i]);
		if (target.n >= scheme.n && strv_ieq(strv_sub(target, 0, scheme.n), scheme)) {
			target = strv_sub(target, scheme.n, target.n);
			return strv_sub(target, strv_find(target, '/'), target.n);
		}
	}
	return target;
}

static enum status match_path(enum route_surface surface, struct strv method, struct strv path,
			      struct arena *arena, struct route_hit *hit, struct err *err)
{
	struct route_part segments[ROUTE_SEGMENTS_MAX];
	size_t n = 0;
	struct strv rest = strv_sub(path, 1, path.n);
	for (bool more = true; more; n++) {
		size_t end = strv_find(rest, '/');
		if (n == ROUTE_SEGMENTS_MAX)
			return err_set(err, ST_NOT_FOUND, "", "no such route");
		segments[n].raw = strv_sub(rest, 0, end);
		more = end < rest.n;
		rest = strv_sub(rest, end + 1, rest.n);
		enum status st =
			route_decode(arena, segments[n].raw, "path", &segments[n].text, err);
		if (st != ST_OK)
			return st;
	}
	size_t from = surface == ROUTE_ADMIN ? 0 : 1;
	int found = 0;
	if (from == 0 || strv_eq(segments[0].text, STRV("v1"))) {
		found = find_row(surface, method, segments, from, n, false, hit);
		if (found == 0 && from == 1 && n > 2 && segments[1].text.n) {
			found = find_row(surface, method, segments, 2, n, true, hit);
			if (found != 0)
				hit->prefix = segments[1].text;
		}
	}
	if (found < 0)
		return err_set(err, ST_METHOD_NOT_ALLOWED, "", "this route serves %s", hit->allow);
	if (found == 0)
		return err_set(err, ST_NOT_FOUND, "", "no such route");
	return ST_OK;
}

enum status route_match(enum route_surface surface, struct strv method, struct strv target,
			struct arena *arena, struct route_hit *ret_hit, struct err *err)
{
	static const struct strv mirror = {"/frazil/v1/", 11};
	struct route_hit hit = {.route = ROUTE__COUNT};
	enum status st;
	if (!clean_target(target))
		return err_set(err, ST_BAD_REQUEST, "path", "the target holds control characters");
	target = origin_form(target);
	if (target.n == 0 || target.p[0] != '/')
		return err_set(err, ST_BAD_REQUEST, "path", "the path does not begin with '/'");
	size_t question = strv_find(target, '?');
	struct strv path = strv_sub(target, 0, question);
	if (surface == ROUTE_REST && strv_starts(path, mirror)) {
		hit.route = ROUTE_mirror;
		hit.rest = strv_sub(path, mirror.n, path.n);
		st = ST_OK;
	} else {
		st = match_path(surface, method, path, arena, &hit, err);
	}
	if (st == ST_OK)
		st = parse_query(strv_sub(target, question + 1, target.n), arena, &hit, err);
	if (st == ST_OK || st == ST_METHOD_NOT_ALLOWED)
		*ret_hit = hit;
	return st;
}

const struct route_arg *route_arg(const struct route_hit *hit, const char *key)
{
	for (size_t i = 0; i < hit->n_args; i++)
		if (strv_eq(hit->args[i].key, strv_of(key)))
			return &hit->args[i];
	return NULL;
}

const char *route_name(enum route route)
{
	return route < ROUTE__COUNT ? rows[route].name : "none";
}

bool route_is_commit(enum route route)
{
	return route < ROUTE__COUNT && rows[route].kind == KIND_COMMIT;
}

bool route_endpoint(enum route route, struct buf *out)
{
	const struct row *row = &rows[route];
	if (route >= ROUTE_mirror || row->surface == SURFACE_ADMIN)
		return false;
	buf_printf(out, "%s /v1/%s%s", row->method,
		   row->surface == SURFACE_CATALOG ? "{prefix}/" : "", row->path);
	return true;
}
