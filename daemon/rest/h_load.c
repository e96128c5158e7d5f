/* Loads: the answer of a version of a table or view, or 304 to who has it. */
#include "daemon/rest/h_rest.h"

struct load_work {
	struct call *call;
	struct mcache_wait wait;
	struct strv location; /* of the metadata file */
	bool refs;
};

static struct strv skip(struct strv s, const char *what)
{
	while (s.n && s.p[0] && strchr(what, s.p[0]))
		s = strv_sub(s, 1, s.n);
	return s;
}

/* Whether one of the tags of If-None-Match is ours, compared weakly (RFC 9110, 13.1.2). What stands
 * in another's quotes is its own, commas and asterisks too; nothing behind what is no tag counts. */
static bool matches(struct strv header, struct strv etag)
{
	struct strv any = skip(header, " \t");
	if (any.n && any.p[0] == '*' && skip(strv_sub(any, 1, any.n), " \t").n == 0)
		return true;
	for (;;) {
		header = skip(header, " \t,");
		if (strv_starts(header, STRV("W/")))
			header = strv_sub(header, 2, header.n);
		if (header.n == 0 || header.p[0] != '"')
			return false;
		size_t n = strv_find(strv_sub(header, 1, header.n), '"') + 2;
		if (n > header.n)
			return false;
		if (strv_eq(strv_sub(header, 0, n), etag))
			return true;
		header = skip(strv_sub(header, n, header.n), " \t");
		if (header.n && header.p[0] != ',')
			return false;
	}
}

static enum mcache_rep rep_of(const struct load_work *w)
{
	if (call_accepts_gzip(w->call))
		return w->refs ? MCACHE_REFS_GZIP : MCACHE_ALL_GZIP;
	return w->refs ? MCACHE_REFS : MCACHE_ALL;
}

/* Whether the client holds this version, packed or not: its tag. */
static bool is_known(const struct load_work *w, char etag[MCACHE_ETAG_LEN + 1])
{
	const enum mcache_rep packed = w->refs ? MCACHE_REFS_GZIP : MCACHE_ALL_GZIP;
	if (!w->call->if_none_match.n)
		return false;
	mcache_etag(w->location, rep_of(w), etag);
	if (matches(w->call->if_none_match, strv_of(etag)))
		return true;
	mcache_etag(w->location,
		    rep_of(w) != packed ? packed : w->refs ? MCACHE_REFS : MCACHE_ALL, etag);
	return matches(w->call->if_none_match, strv_of(etag));
}

static void ready(struct mcache_wait *wait, struct mcache_entry *own_entry, const struct err *err)
{
	struct load_work *w = CONTAINER_OF(wait, struct load_work, wait);
	char etag[MCACHE_ETAG_LEN + 1];
	if (!own_entry && err->st == ST_NOT_FOUND) {
		h_refuse_gone(w->call, w->location);
	} else if (!own_entry) {
		struct err e = *err;
		call_reply_err(w->call, &e);
	} else if (is_known(w, etag)) {
		mcache_unref(own_entry);
		call_header(w->call, "ETag", strv_of(etag));
		call_header(w->call, "Vary", STRV("Accept-Encoding"));
		call_reply_status(w->call, 304);
	} else {
		h_reply_entry(w->call, own_entry, rep_of(w));
	}
}

void h_load(struct call *own_call, struct strv location, bool view, bool refs)
{
	struct load_work *w = arena_calloc(&own_call->arena, 1, sizeof *w);
	struct err err;
	char etag[MCACHE_ETAG_LEN + 1];
	if (!w || !arena_strv(&own_call->arena, location, &w->location)) {
		err_set(&err, ST_LIMIT, "", "the request is too large");
		call_reply_err(own_call, &err);
		return;
	}
	w->call = own_call;
	w->refs = refs;
	/* A 304 needs no body, but the file must be there for it too. */
	w->wait.rep = is_known(w, etag) ? MCACHE_METADATA : rep_of(w);
	w->wait.view = view;
	w->wait.done = ready;
	mcache_load(h_cache(own_call->app), w->location, &w->wait);
}
