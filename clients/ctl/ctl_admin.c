#include "clients/ctl/ctl_admin.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "clients/ctl/ctl_http.h"

#define PAGE 500

void admin_print(const struct buf *b)
{
	fwrite(b->p, 1, b->n, stdout);
	fputc('\n', stdout);
}

void admin_ask(const struct ctl *c, const char *method, const char *path, struct answer *a)
{
	admin_send(c, method, path, NULL, a);
}

void admin_send(const struct ctl *c, const char *method, const char *path, const char *body,
		struct answer *a)
{
	struct err err = {0};
	*a = (struct answer){0};
	buf_init(&a->body, CTL_HTTP_MAX);
	a->status = ctl_http(c->admin, method, path, body, c->timeout_ms, &a->body, a->why);
	if (a->status && a->body.n &&
	    jdoc_parse(buf_bytes(&a->body), ST_CORRUPT, &a->doc, &err) == ST_OK)
		a->root = jdoc_root(a->doc);
}

void admin_done(struct answer *a)
{
	if (a->doc)
		jdoc_free(a->doc);
	buf_fini(&a->body);
}

struct strv admin_text(const struct jval *o, const char *key)
{
	struct strv s = {0};
	if (!jval_as_str(jval_get(o, key), &s))
		s = STRV("");
	return s;
}

int64_t admin_number(const struct jval *o, const char *key)
{
	int64_t n = 0;
	return jval_as_i64(jval_get(o, key), &n) ? n : 0;
}

bool admin_true(const struct jval *o, const char *key)
{
	bool b = false;
	return jval_as_bool(jval_get(o, key), &b) && b;
}

int admin_refusal(const struct answer *a)
{
	if (a->status == 0) {
		fprintf(stderr, "frazilctl: %s\n", a->why);
		return CTL_UNREACHABLE;
	}
	const struct jval *e = jval_get(a->root, "error");
	struct strv message = admin_text(e, "message");
	if (message.n)
		fprintf(stderr, "frazilctl: %.*s\n", STRV_ARG(message));
	else
		fprintf(stderr, "frazilctl: the admin port answered %d\n", a->status);
	return CTL_REFUSED;
}

/* The next page's cursor out of a page; false: it was the last. */
static bool cursor_of(const struct jval *root, char out[64])
{
	struct strv s;
	int64_t n;
	const struct jval *next = jval_get(root, "next");
	if (jval_as_str(next, &s))
		return s.n > 0 && strv_cstr(s, out, 64);
	if (!jval_as_i64(next, &n))
		return false;
	snprintf(out, 64, "%" PRId64, n);
	return true;
}

int admin_pages(const struct ctl *c, const char *path, const char *name, const char *cursor,
		size_t limit, void (*page)(void *ctx, const struct jval *root),
		void (*row)(void *ctx, const struct jval *row), void *ctx)
{
	char at[64] = "", url[512];
	size_t left = limit ? limit : SIZE_MAX;
	while (left > 0) {
		struct answer a;
		snprintf(url, sizeof url, "%s%slimit=%zu%s%s%s%s", path,
			 strchr(path, '?') == NULL ? "?" : "&",
			 left < PAGE ? left : PAGE, at[0] ? "&" : "", at[0] ? cursor : "",
			 at[0] ? "=" : "", at);
		admin_ask(c, "GET", url, &a);
		const struct jval *rows = jval_get(a.root, name);
		if (a.status != 200 || !rows) {
			int code = admin_refusal(&a);
			admin_done(&a);
			return code;
		}
		if (page)
			page(ctx, a.root);
		for (size_t i = 0; i < jval_count(rows) && left > 0; i++, left--)
			row(ctx, jval_at(rows, i));
		bool more = cursor_of(a.root, at);
		admin_done(&a);
		if (!more)
			break;
	}
	return CTL_OK;
}
