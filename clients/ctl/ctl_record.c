#include "clients/ctl/ctl_record.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "proto/base/jspan.h"
#include "proto/base/jwrite.h"

#define FORMAT "frazil-catalog-list"
#define LINE_MAX_BYTES ((size_t)16 << 20)
#define INDEX_MAX ((size_t)128 << 20)

/* ------------------------------------------------------------------ writing */

void ctl_record_begin(FILE *out)
{
	fprintf(out, "{\"format\":\"" FORMAT "\",\"version\":1}\n");
}

bool ctl_record_put(FILE *out, const struct ctl_entry *e, struct ctl_record_counts *counts)
{
	struct buf b;
	struct jwrite w;
	buf_init(&b, LINE_MAX_BYTES);
	jwrite_init(&w, &b);
	jwrite_object(&w);
	jwrite_key(&w, ctl_entry_kind_name(e->kind));
	jwrite_array(&w);
	for (size_t i = 0; i < e->n_levels; i++)
		jwrite_str(&w, e->levels[i]);
	if (e->kind != CTL_NAMESPACE)
		jwrite_str(&w, e->name);
	jwrite_end_array(&w);
	if (e->kind == CTL_NAMESPACE) {
		jwrite_key(&w, "properties");
		jwrite_raw(&w, e->properties);
	} else {
		jwrite_kstr(&w, "uuid", e->uuid);
		jwrite_kstr(&w, "metadata-location", e->location);
	}
	jwrite_end_object(&w);
	bool ok = buf_ok(&b);
	if (ok) {
		fwrite(b.p, 1, b.n, out);
		fputc('\n', out);
		size_t *n = e->kind == CTL_NAMESPACE ? &counts->namespaces
			    : e->kind == CTL_TABLE   ? &counts->tables
						     : &counts->views;
		(*n)++;
	}
	buf_fini(&b);
	return ok;
}

void ctl_record_end(FILE *out, const struct ctl_record_counts *counts)
{
	fprintf(out, "{\"end\":{\"namespaces\":%zu,\"tables\":%zu,\"views\":%zu}}\n",
		counts->namespaces, counts->tables, counts->views);
}

/* ------------------------------------------------------------------ reading */

struct reading {
	const char *path;
	FILE *in;
	size_t line_no;
	struct buf line;
	struct arena arena; /* of the line */
	struct ctl_record_counts counts;
	bool ended;
};

static bool wrong(struct reading *r, struct ctl_fault *f, const char *what)
{
	return ctl_fault_set(f, CTL_FAULT_LOCAL, "%s:%zu: %s", r->path, r->line_no, what);
}

/* The next line; false at the end or with a fault. */
static bool next_line(struct reading *r, struct ctl_fault *f)
{
	buf_clear(&r->line);
	arena_reset(&r->arena);
	r->line_no++;
	int c;
	while ((c = getc(r->in)) != EOF && c != '\n') {
		buf_putc(&r->line, (uint8_t)c);
		if (!buf_ok(&r->line))
			return wrong(r, f, "the line is too long");
	}
	if (ferror(r->in))
		return wrong(r, f, strerror(errno));
	return c != EOF || r->line.n > 0;
}

static bool read_names(const struct jspan *v, struct arena *a, struct ctl_entry *e, size_t with_name)
{
	struct strv *names;
	size_t n = 0;
	if (!jspan_is(v, JSPAN_ARRAY) || v->count < 1 + with_name ||
	    v->count > CTL_LEVELS_MAX + with_name)
		return false;
	names = arena_calloc(a, v->count, sizeof *names);
	bool ok = names;
	JSPAN_EACH (s, v)
		ok = ok && jspan_str(s, a, &names[n]) && names[n++].n > 0;
	e->levels = names;
	e->n_levels = n - with_name;
	if (ok && with_name)
		e->name = names[n - 1];
	return ok;
}

static bool read_end(struct reading *r, const struct jspan *end)
{
	int64_t namespaces, tables, views;
	r->ended = true;
	return jspan_i64(jspan_get(end, "namespaces"), &namespaces) &&
	       jspan_i64(jspan_get(end, "tables"), &tables) &&
	       jspan_i64(jspan_get(end, "views"), &views) &&
	       namespaces == (int64_t)r->counts.namespaces &&
	       tables == (int64_t)r->counts.tables && views == (int64_t)r->counts.views;
}

/* A line as an entry; *ret_entry stays untouched by the last one. */
static bool read_entry(struct reading *r, struct ctl_entry *ret_entry, struct ctl_fault *f)
{
	static const char *const kinds[] = {"namespace", "table", "view"};
	const struct jspan *root, *v = NULL;
	struct ctl_entry e = {0};
	struct err err;
	if (r->ended)
		return wrong(r, f, "text behind the end of the list");
	if (jspan_parse(buf_bytes(&r->line), ST_CORRUPT, &r->arena, &root, &err) != ST_OK)
		return wrong(r, f, err.msg);
	const struct jspan *end = jspan_get(root, "end");
	if (end)
		return read_end(r, end) || wrong(r, f, "the counts are not those of the list");
	for (size_t i = 0; i < ARRAY_SIZE(kinds) && !v; i++) {
		v = jspan_get(root, kinds[i]);
		e.kind = (enum ctl_entry_kind)i;
	}
	if (!v || !read_names(v, &r->arena, &e, e.kind == CTL_NAMESPACE ? 0 : 1))
		return wrong(r, f, "no namespace, table or view is named");
	const struct jspan *properties = jspan_get(root, "properties");
	if (e.kind == CTL_NAMESPACE) {
		if (!jspan_is(properties, JSPAN_OBJECT))
			return wrong(r, f, "properties must be an object");
		e.properties = jspan_text(properties);
	} else if (!jspan_str(jspan_get(root, "uuid"), &r->arena, &e.uuid) ||
		   !jspan_str(jspan_get(root, "metadata-location"), &r->arena, &e.location) ||
		   !e.uuid.n || !e.location.n) {
		return wrong(r, f, "uuid and metadata-location must be text");
	}
	size_t *n = e.kind == CTL_NAMESPACE ? &r->counts.namespaces
		    : e.kind == CTL_TABLE   ? &r->counts.tables
					    : &r->counts.views;
	(*n)++;
	*ret_entry = e;
	return true;
}

static bool open_list(struct reading *r, const char *path, struct ctl_fault *f)
{
	const struct jspan *root = NULL;
	struct strv format;
	struct err err;
	int64_t version;
	*r = (struct reading){.path = path, .in = fopen(path, "rb")};
	buf_init(&r->line, LINE_MAX_BYTES);
	arena_init(&r->arena, INDEX_MAX);
	if (!r->in)
		return ctl_fault_set(f, CTL_FAULT_LOCAL, "%s: %s", path, strerror(errno));
	bool ok = next_line(r, f) &&
		  jspan_parse(buf_bytes(&r->line), ST_CORRUPT, &r->arena, &root, &err) == ST_OK &&
		  jspan_str(jspan_get(root, "format"), &r->arena, &format) &&
		  strv_eq(format, STRV(FORMAT)) &&
		  jspan_i64(jspan_get(root, "version"), &version) && version == 1;
	return ok || wrong(r, f, "no list of a catalog, or of a version unknown here");
}

static void close_list(struct reading *r)
{
	if (r->in)
		fclose(r->in);
	buf_fini(&r->line);
	arena_fini(&r->arena);
}

/* ------------------------------------------------------------------ a piece at a time */

struct pick {
	const struct strv *v;
	size_t n;
	bool found;
};

struct handing {
	const struct ctl_choice *choice;
	const struct ctl_sink *sink;
	struct arena picks_arena, piece;
	struct pick *namespaces, *tables;
	struct ctl_entry entries[CTL_PIECE];
	size_t n;
	bool over;
};

static bool parse_choice(struct handing *h, struct ctl_fault *f)
{
	const struct ctl_choice *c = h->choice;
	h->namespaces = arena_calloc(&h->picks_arena, c->n_namespaces + 1, sizeof *h->namespaces);
	h->tables = arena_calloc(&h->picks_arena, c->n_tables + 1, sizeof *h->tables);
	bool ok = h->namespaces && h->tables;
	for (size_t i = 0; ok && i < c->n_namespaces; i++)
		ok = ctl_entry_parse(c->namespaces[i], &h->picks_arena, &h->namespaces[i].v,
				    &h->namespaces[i].n, f);
	for (size_t i = 0; ok && i < c->n_tables; i++)
		ok = ctl_entry_parse(c->tables[i], &h->picks_arena, &h->tables[i].v, &h->tables[i].n,
				    f);
	return ok;
}

static bool begins_with(const struct strv *v, size_t n, const struct strv *head, size_t n_head)
{
	if (n < n_head)
		return false;
	for (size_t i = 0; i < n_head; i++)
		if (!strv_eq(v[i], head[i]))
			return false;
	return true;
}

static bool chosen(struct handing *h, const struct ctl_entry *e)
{
	const struct ctl_choice *c = h->choice;
	bool hit = c->n_namespaces + c->n_tables == 0;
	for (size_t i = 0; i < c->n_namespaces; i++) {
		const struct pick *p = &h->namespaces[i];
		hit = hit || begins_with(e->levels, e->n_levels, p->v, p->n) ||
		      (e->kind == CTL_NAMESPACE &&
		       begins_with(p->v, p->n, e->levels, e->n_levels));
	}
	for (size_t i = 0; i < c->n_tables; i++) {
		struct pick *p = &h->tables[i];
		if (e->kind == CTL_NAMESPACE) {
			hit = hit || begins_with(p->v, p->n - 1, e->levels, e->n_levels);
		} else if (p->n == e->n_levels + 1 &&
			   begins_with(p->v, p->n, e->levels, e->n_levels) &&
			   strv_eq(p->v[p->n - 1], e->name)) {
			hit = p->found = true;
		}
	}
	return hit;
}

static void hand_over(struct handing *h)
{
	if (h->n && !h->over)
		h->over = !h->sink->entries(h->sink->ctx, h->entries, h->n);
	h->n = 0;
	arena_reset(&h->piece);
}

static bool copy(struct handing *h, const struct ctl_entry *e)
{
	struct ctl_entry *to = &h->entries[h->n];
	struct strv *levels = arena_calloc(&h->piece, e->n_levels, sizeof *levels);
	*to = *e;
	bool ok = levels && arena_strv(&h->piece, e->name, &to->name) &&
		  arena_strv(&h->piece, e->properties, &to->properties) &&
		  arena_strv(&h->piece, e->uuid, &to->uuid) &&
		  arena_strv(&h->piece, e->location, &to->location);
	for (size_t i = 0; ok && i < e->n_levels; i++)
		ok = arena_strv(&h->piece, e->levels[i], &levels[i]);
	to->levels = levels;
	return ok;
}

/* Namespaces go one at a time, so that each is there before what it holds. */
static bool add(struct handing *h, const struct ctl_entry *e)
{
	bool alone = e->kind == CTL_NAMESPACE;
	if (h->n && (alone || h->n == CTL_PIECE))
		hand_over(h);
	if (!copy(h, e)) {
		hand_over(h);
		if (!copy(h, e))
			return false;
	}
	h->n++;
	if (alone)
		hand_over(h);
	return true;
}

static bool read_all(const char *path, struct handing *h, struct ctl_fault *f)
{
	struct reading r;
	bool ok = open_list(&r, path, f), more = ok;
	while (ok && more && !(h && h->over)) {
		struct ctl_entry e = {0};
		more = next_line(&r, f);
		ok = f->kind == CTL_FAULT_NONE && (!more || read_entry(&r, &e, f));
		if (ok && h && e.n_levels && chosen(h, &e) && !add(h, &e))
			ok = wrong(&r, f, "more names than there is room for");
	}
	if (h)
		hand_over(h);
	if (ok && !more && !r.ended)
		ok = wrong(&r, f, "the list has no end: it was cut");
	close_list(&r);
	return ok && !(h && h->over);
}

bool ctl_record_read(const char *path, const struct ctl_choice *choice,
		     const struct ctl_sink *sink, struct ctl_fault *f)
{
	struct handing *h = base_calloc(1, sizeof *h);
	*f = (struct ctl_fault){0};
	h->choice = choice;
	h->sink = sink;
	arena_init(&h->picks_arena, (size_t)16 << 20);
	arena_init(&h->piece, (size_t)64 << 20);
	bool ok = parse_choice(h, f) && read_all(path, NULL, f) && read_all(path, h, f);
	for (size_t i = 0; ok && i < choice->n_tables; i++) {
		const struct pick *p = &h->tables[i];
		struct ctl_fault gone = {0};
		const struct ctl_entry e = {.kind = CTL_TABLE,
					    .levels = p->v,
					    .n_levels = p->n - 1,
					    .name = p->v[p->n - 1]};
		ctl_fault_set(&gone, CTL_FAULT_REFUSED, "the list holds no such table or view");
		if (!p->found)
			ok = sink->missed(sink->ctx, &e, &gone);
	}
	arena_fini(&h->picks_arena);
	arena_fini(&h->piece);
	base_free(h);
	return ok;
}
