#include "clients/ctl/ctl_walk.h"

#define PAGE "1000"
/* Pages of a listing in a row that bring nothing new. */
#define BARREN_MAX 100
#define NAMES_MAX ((size_t)128 << 20)
#define TOKENS_MAX ((size_t)32 << 20)

/* A text for each namespace that no other has. */
static struct strv key_of(const struct strv *levels, size_t n, struct buf *b)
{
	buf_clear(b);
	for (size_t i = 0; i < n; i++) {
		buf_printf(b, "%zu:", levels[i].n);
		buf_putv(b, levels[i]);
	}
	return buf_strv(b);
}

/* ------------------------------------------------------------------ pages */

bool ctl_walk_pages(struct ctl_peer_link *l, const struct buf *path, const char *key,
		    bool (*each)(void *ctx, const struct jspan *v, struct arena *a,
				 bool *ret_new, struct ctl_fault *f),
		    void (*page)(void *ctx), void *ctx, struct ctl_fault *f)
{
	const char *uri = ctl_peer_uri(l->peer);
	struct ctl_set tokens;
	struct buf url;
	size_t barren = 0;
	bool ok = true, more = true;
	ctl_set_init(&tokens, TOKENS_MAX);
	buf_init(&url, (size_t)512 << 10);
	buf_putv(&url, buf_strv(path));
	buf_puts(&url, "&pageToken=");
	size_t stem = url.n;
	while (ok && more) {
		struct ctl_peer_answer a;
		struct strv token = {0};
		struct err err;
		bool has = false, any = false, is_new = true;
		ok = ctl_peer_ask(l, "GET", &url, (struct strv){0}, &a, f);
		const struct jspan *v = jspan_get(a.root, key);
		if (ok && !jspan_is(v, JSPAN_ARRAY))
			ok = ctl_fault_set(f, CTL_FAULT_ANSWER, "%s: a listing without %s", uri,
					   key);
		if (ok && jspan_opt_str(a.root, "next-page-token", ST_CORRUPT, &a.arena, &token,
					&has, &err) != ST_OK)
			ok = ctl_fault_set(f, CTL_FAULT_ANSWER,
					   "%s: next-page-token is no text", uri);
		if (ok) {
			JSPAN_EACH (e, v) {
				bool fresh = false;
				ok = ok && each(ctx, e, &a.arena, &fresh, f);
				any = any || fresh;
			}
		}
		if (ok && page)
			page(ctx);
		more = ok && has && token.n;
		barren = any ? 0 : barren + 1;
		if (more && !ctl_set_add(&tokens, token, &is_new))
			ok = ctl_fault_set(f, CTL_FAULT_ANSWER, "%s: a listing of too many pages",
					   uri);
		else if (more && !is_new)
			ok = ctl_fault_set(f, CTL_FAULT_ANSWER,
					   "%s: a listing gives the same page token again", uri);
		else if (more && barren == BARREN_MAX)
			ok = ctl_fault_set(f, CTL_FAULT_ANSWER,
					   "%s: %d pages of a listing bring nothing new", uri,
					   BARREN_MAX);
		url.n = stem;
		if (more)
			ctl_peer_quote(&url, token);
		ctl_peer_release(&a);
	}
	buf_fini(&url);
	ctl_set_fini(&tokens);
	return ok;
}

/* ------------------------------------------------------------------ the walk */

enum depth { SHELL, SOME, WHOLE };

/* A namespace that waits for its visit. */
struct stop {
	const struct strv *levels;
	size_t n;
	enum depth depth;
};

struct walk {
	struct ctl_peer *peer;
	const struct ctl_sink *sink;
	const struct ctl_choice *choice;
	struct ctl_peer_link link;
	struct arena arena; /* names of namespaces */
	struct stop *stops;
	size_t n_stops, cap_stops, at;
	struct ctl_set given, listed; /* namespaces, by key_of */
	struct ctl_set names;	      /* of the listing under way */
	struct buf key;
	const struct strv **picks; /* chosen tables */
	size_t *n_picks;
	bool *found;
	bool views, views_told; /* the catalog has them; says so */
	bool over;		/* the sink had enough */
	/* The listing under way. */
	const struct stop *now;
	enum ctl_entry_kind kind;
	struct arena piece; /* names of what follows */
	struct ctl_entry entries[CTL_PIECE];
	size_t n_entries;
};

static bool full(struct ctl_fault *f)
{
	return ctl_fault_set(f, CTL_FAULT_ANSWER, "a listing of more names than there is room for");
}

static bool push(struct walk *w, const struct strv *levels, size_t n, enum depth depth,
		 struct ctl_fault *f)
{
	void *stops = w->stops;
	struct strv *copy = arena_calloc(&w->arena, n, sizeof *copy);
	if (!copy || !arena_grow(&w->arena, &stops, &w->cap_stops, w->n_stops + 1, sizeof *w->stops))
		return full(f);
	w->stops = stops;
	for (size_t i = 0; i < n; i++)
		if (!arena_strv(&w->arena, levels[i], &copy[i]))
			return full(f);
	w->stops[w->n_stops++] = (struct stop){copy, n, depth};
	return true;
}

static void missed(struct walk *w, const struct stop *s, struct strv name,
		   enum ctl_entry_kind kind, const struct ctl_fault *f)
{
	const struct ctl_entry e = {
		.kind = kind, .levels = s->levels, .n_levels = s->n, .name = name};
	if (!w->over)
		w->over = !w->sink->missed(w->sink->ctx, &e, f);
}

/* An array of text as levels. */
static bool read_levels(const struct jspan *v, struct arena *a, struct strv **ret_v, size_t *ret_n)
{
	size_t n = 0;
	if (!jspan_is(v, JSPAN_ARRAY) || v->count > CTL_LEVELS_MAX)
		return false;
	struct strv *levels = arena_calloc(a, v->count + 1, sizeof *levels);
	bool ok = levels;
	JSPAN_EACH (e, v)
		ok = ok && jspan_str(e, a, &levels[n++]);
	*ret_v = levels;
	*ret_n = n;
	return ok;
}

static bool is_below(const struct strv *levels, size_t n, const struct stop *s)
{
	size_t above = s ? s->n : 0;
	if (n != above + 1)
		return false;
	for (size_t i = 0; i < above; i++)
		if (!strv_eq(levels[i], s->levels[i]))
			return false;
	return levels[n - 1].n > 0;
}

static bool each_child(void *ctx, const struct jspan *v, struct arena *a, bool *ret_new,
		       struct ctl_fault *f)
{
	struct walk *w = ctx;
	struct strv *levels;
	size_t n;
	if (jspan_is(v, JSPAN_ARRAY) && v->count > CTL_LEVELS_MAX)
		return ctl_fault_set(f, CTL_FAULT_ANSWER,
				     "a namespace below it has more than %d levels",
				     CTL_LEVELS_MAX);
	if (!read_levels(v, a, &levels, &n) || !is_below(levels, n, w->now))
		return ctl_fault_set(f, CTL_FAULT_ANSWER,
				     "%s: lists what is not directly below it", ctl_peer_uri(w->peer));
	if (!ctl_set_add(&w->names, levels[n - 1], ret_new))
		return full(f);
	return !*ret_new || push(w, levels, n, WHOLE, f);
}

/* Namespaces directly below; NULL: the topmost. */
static bool children(struct walk *w, const struct stop *s, struct ctl_fault *f)
{
	struct buf path;
	buf_init(&path, (size_t)256 << 10);
	ctl_set_clear(&w->names);
	w->now = s;
	bool ok = ctl_peer_path(w->peer, &path, NULL, 0, NULL, (struct strv){0}, f);
	buf_puts(&path, "?pageSize=" PAGE);
	if (ok && s)
		ok = ctl_peer_parent(w->peer, &path, s->levels, s->n, f);
	ok = ok && ctl_walk_pages(&w->link, &path, "namespaces", each_child, NULL, w, f);
	buf_fini(&path);
	/* A catalog of one level says so. */
	return ok || (s && f->kind == CTL_FAULT_REFUSED && (f->status == 406 || f->status == 501));
}

static void hand_over(void *ctx)
{
	struct walk *w = ctx;
	if (w->n_entries && !w->over)
		w->over = !w->sink->entries(w->sink->ctx, w->entries, w->n_entries);
	w->n_entries = 0;
	arena_reset(&w->piece);
}

/* Whether a table or view of the namespace under way is wanted. */
static bool wanted(struct walk *w, struct strv name)
{
	bool hit = w->now->depth == WHOLE;
	for (size_t i = 0; i < w->choice->n_tables; i++) {
		const struct strv *v = w->picks[i];
		size_t n = w->n_picks[i], k = 0;
		while (k + 1 < n && k < w->now->n && strv_eq(v[k], w->now->levels[k]))
			k++;
		if (k + 1 == n && k == w->now->n && strv_eq(v[k], name))
			hit = w->found[i] = true;
	}
	return hit;
}

static bool each_name(void *ctx, const struct jspan *v, struct arena *a, bool *ret_new,
		      struct ctl_fault *f)
{
	struct walk *w = ctx;
	const struct stop *s = w->now;
	struct strv *levels, name;
	size_t n;
	if (w->over)
		return ctl_fault_set(f, CTL_FAULT_NONE, "ended");
	bool ok = jspan_str(jspan_get(v, "name"), a, &name) && name.n &&
		  read_levels(jspan_get(v, "namespace"), a, &levels, &n) && n == s->n;
	for (size_t i = 0; ok && i < n; i++)
		ok = strv_eq(levels[i], s->levels[i]);
	if (!ok)
		return ctl_fault_set(f, CTL_FAULT_ANSWER,
				     "%s: lists what is no %s of the namespace",
				     ctl_peer_uri(w->peer), ctl_entry_kind_name(w->kind));
	if (!ctl_set_add(&w->names, name, ret_new))
		return full(f);
	if (!*ret_new || !wanted(w, name))
		return true;
	struct ctl_entry *e = &w->entries[w->n_entries];
	*e = (struct ctl_entry){.kind = w->kind, .levels = s->levels, .n_levels = s->n};
	if (!arena_strv(&w->piece, name, &e->name))
		return full(f);
	if (++w->n_entries == CTL_PIECE)
		hand_over(w);
	return true;
}

static void content(struct walk *w, const struct stop *s, enum ctl_entry_kind kind)
{
	struct ctl_fault f = {0};
	struct buf path;
	buf_init(&path, (size_t)256 << 10);
	ctl_set_clear(&w->names);
	w->now = s;
	w->kind = kind;
	bool ok = ctl_peer_path(w->peer, &path, s->levels, s->n,
				kind == CTL_TABLE ? "tables" : "views", (struct strv){0}, &f);
	buf_puts(&path, "?pageSize=" PAGE);
	ok = ok && ctl_walk_pages(&w->link, &path, "identifiers", each_name, hand_over, w, &f);
	/* What came before the fault is good. */
	hand_over(w);
	buf_fini(&path);
	if (w->over)
		return;
	if (!ok && kind == CTL_VIEW && !w->views_told && f.kind == CTL_FAULT_REFUSED &&
	    (f.status == 400 || f.status == 404 || f.status == 405 || f.status == 406 ||
	     f.status == 501))
		w->views = false; /* older than views */
	else if (!ok)
		missed(w, s, (struct strv){0}, CTL_NAMESPACE, &f);
	else if (w->sink->listed && s->depth == WHOLE) {
		const struct ctl_entry ns = {.levels = s->levels, .n_levels = s->n};
		w->sink->listed(w->sink->ctx, &ns, kind, &w->names);
	}
}

/* The namespace itself. */
static void give(struct walk *w, const struct stop *s)
{
	struct ctl_fault f = {0};
	struct ctl_peer_answer a = {0};
	struct buf path, text;
	bool is_new = false;
	if (!ctl_set_add(&w->given, key_of(s->levels, s->n, &w->key), &is_new))
		full(&f);
	if (!is_new && f.kind == CTL_FAULT_NONE)
		return;
	buf_init(&path, (size_t)256 << 10);
	buf_init(&text, PEER_ANSWER_MAX);
	const struct jspan *v = NULL;
	bool ok = f.kind == CTL_FAULT_NONE &&
		  ctl_peer_path(w->peer, &path, s->levels, s->n, NULL, (struct strv){0}, &f) &&
		  ctl_peer_ask(&w->link, "GET", &path, (struct strv){0}, &a, &f);
	if (ok) {
		v = jspan_get(a.root, "properties");
		if (!jspan_is_null(v) && !jspan_is(v, JSPAN_OBJECT))
			ok = ctl_fault_set(&f, CTL_FAULT_ANSWER,
					   "%s: properties of a namespace are no object",
					   ctl_peer_uri(w->peer));
	}
	if (ok) {
		struct ctl_entry e = {.kind = CTL_NAMESPACE, .levels = s->levels, .n_levels = s->n};
		if (jspan_is(v, JSPAN_OBJECT))
			jspan_compact(v, &text);
		else
			buf_puts(&text, "{}");
		e.properties = buf_strv(&text);
		w->over = !w->sink->entries(w->sink->ctx, &e, 1);
	} else {
		missed(w, s, (struct strv){0}, CTL_NAMESPACE, &f);
	}
	ctl_peer_release(&a);
	buf_fini(&text);
	buf_fini(&path);
}

static void visit(struct walk *w, struct stop s)
{
	struct ctl_fault f = {0};
	bool is_new = false;
	give(w, &s);
	if (s.depth == SHELL || w->over)
		return;
	if (!ctl_set_add(&w->listed, key_of(s.levels, s.n, &w->key), &is_new)) {
		full(&f);
		missed(w, &s, (struct strv){0}, CTL_NAMESPACE, &f);
	}
	if (!is_new)
		return;
	content(w, &s, CTL_TABLE);
	if (w->views && !w->over)
		content(w, &s, CTL_VIEW);
	if (s.depth == WHOLE && !w->over && !children(w, &s, &f))
		missed(w, &s, (struct strv){0}, CTL_NAMESPACE, &f);
}

/* The namespaces that were chosen, with those above them. */
static bool choose(struct walk *w, struct ctl_fault *f)
{
	const struct ctl_choice *c = w->choice;
	const struct strv *v;
	size_t n;
	w->picks = arena_calloc(&w->arena, c->n_tables + 1, sizeof(*w->picks));
	w->n_picks = arena_calloc(&w->arena, c->n_tables + 1, sizeof *w->n_picks);
	w->found = arena_calloc(&w->arena, c->n_tables + 1, sizeof *w->found);
	if (!w->picks || !w->n_picks || !w->found)
		return full(f);
	for (size_t i = 0; i < c->n_namespaces + c->n_tables; i++) {
		bool table = i >= c->n_namespaces;
		size_t at = table ? i - c->n_namespaces : i;
		if (!ctl_entry_parse(table ? c->tables[at] : c->namespaces[at], &w->arena, &v, &n, f))
			return false;
		if (table && n < 2)
			return ctl_fault_set(f, CTL_FAULT_LOCAL,
					     "%s: a table needs its namespace before it",
					     c->tables[at]);
		if (table) {
			w->picks[at] = v;
			w->n_picks[at] = n--;
		}
		for (size_t k = 1; k <= n; k++)
			if (!push(w, v, k, k < n ? SHELL : table ? SOME : WHOLE, f))
				return false;
	}
	return true;
}

bool ctl_walk(struct ctl_peer *p, const struct ctl_choice *choice,
	      const struct ctl_sink *sink, struct ctl_fault *f)
{
	struct walk *w = base_calloc(1, sizeof *w);
	w->peer = p;
	w->sink = sink;
	w->choice = choice;
	w->views = ctl_peer_offers(p, "GET /v1/{prefix}/namespaces/{namespace}/views",
				   &w->views_told);
	arena_init(&w->arena, NAMES_MAX);
	arena_init(&w->piece, NAMES_MAX);
	ctl_set_init(&w->given, NAMES_MAX);
	ctl_set_init(&w->listed, NAMES_MAX);
	ctl_set_init(&w->names, NAMES_MAX);
	buf_init(&w->key, (size_t)4 << 20);
	ctl_peer_link_init(&w->link, p);
	bool some = choice->n_namespaces + choice->n_tables > 0;
	bool ok = choose(w, f);
	if (ok && !some && !children(w, NULL, f)) {
		const struct stop top = {NULL, 0, WHOLE};
		/* What the listing gave before its fault is good. */
		ok = w->n_stops > 0;
		if (ok)
			missed(w, &top, (struct strv){0}, CTL_NAMESPACE, f);
	}
	for (; ok && w->at < w->n_stops && !w->over; w->at++)
		visit(w, w->stops[w->at]);
	for (size_t i = 0; ok && !w->over && i < choice->n_tables; i++) {
		struct ctl_fault gone = {0};
		const struct stop s = {w->picks[i], w->n_picks[i] - 1, SOME};
		ctl_fault_set(&gone, CTL_FAULT_REFUSED, "there is no such table or view");
		if (!w->found[i])
			missed(w, &s, w->picks[i][s.n], CTL_TABLE, &gone);
	}
	ok = ok && !w->over;
	ctl_peer_link_fini(&w->link);
	buf_fini(&w->key);
	ctl_set_fini(&w->names);
	ctl_set_fini(&w->listed);
	ctl_set_fini(&w->given);
	arena_fini(&w->piece);
	arena_fini(&w->arena);
	base_free(w);
	return ok;
}
