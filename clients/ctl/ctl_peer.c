#include "clients/ctl/ctl_peer.h"

#include <stdio.h>
#include <time.h>

#include "clients/ctl/ctl_http.h"

#define URI_MAX ((size_t)4096)
#define PREFIX_MAX ((size_t)1024)
#define ATTEMPTS 6
#define PAUSE_MS 200
/* A server that wants to be left alone for longer is told to the user. */
#define AGAIN_MAX_S 60

struct ctl_peer {
	struct ctl_peer_options o;
	struct ctl_auth *auth;
	struct buf base;      /* without a slash at its end, with its NUL */
	struct buf prefix;    /* "/prefix", as it goes into a path; empty: none */
	struct buf separator; /* of namespace levels, as it goes into a path */
	struct buf plain;     /* the same decoded */
	struct ctl_peer_answer config;
	const struct jspan *endpoints; /* NULL: not told */
};

/* ------------------------------------------------------------------ paths */

void ctl_peer_quote(struct buf *b, struct strv s)
{
	static const char plain[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~";
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] && strchr(plain, s.p[i]))
			buf_putc(b, (uint8_t)s.p[i]);
		else
			buf_printf(b, "%%%02X", (unsigned)(uint8_t)s.p[i]);
	}
}

static bool holds(struct strv s, struct strv part)
{
	for (size_t i = 0; part.n && i + part.n <= s.n; i++)
		if (memcmp(s.p + i, part.p, part.n) == 0)
			return true;
	return false;
}

static bool put_levels(const struct ctl_peer *p, struct buf *b, const struct strv *levels, size_t n,
		       struct ctl_fault *f)
{
	for (size_t i = 0; i < n; i++) {
		if (holds(levels[i], buf_strv(&p->plain)))
			return ctl_fault_set(f, CTL_FAULT_ANSWER,
					     "the name holds what separates levels in paths of %s",
					     p->o.uri);
		if (i > 0)
			buf_putv(b, buf_strv(&p->separator));
		ctl_peer_quote(b, levels[i]);
	}
	return true;
}

bool ctl_peer_path(const struct ctl_peer *p, struct buf *b, const struct strv *levels, size_t n,
		   const char *tail, struct strv name, struct ctl_fault *f)
{
	buf_puts(b, "/v1");
	buf_putv(b, buf_strv(&p->prefix));
	buf_puts(b, "/namespaces");
	if (n > 0) {
		buf_putc(b, '/');
		if (!put_levels(p, b, levels, n, f))
			return false;
	}
	if (tail)
		buf_printf(b, "/%s", tail);
	if (name.n) {
		buf_putc(b, '/');
		ctl_peer_quote(b, name);
	}
	return true;
}

bool ctl_peer_parent(const struct ctl_peer *p, struct buf *b, const struct strv *levels, size_t n,
		     struct ctl_fault *f)
{
	buf_puts(b, "&parent=");
	return put_levels(p, b, levels, n, f);
}

/* ------------------------------------------------------------------ requests */

void ctl_peer_link_init(struct ctl_peer_link *l, struct ctl_peer *p)
{
	l->peer = p;
	l->http = ctl_http_link_new(p->o.ca_file, p->o.timeout_ms);
	buf_init(&l->keep, (size_t)128 << 10);
}

void ctl_peer_link_fini(struct ctl_peer_link *l)
{
	if (!l->peer)
		return;
	ctl_http_link_free(l->http);
	buf_fini(&l->keep);
}

void ctl_peer_release(struct ctl_peer_answer *a)
{
	buf_fini(&a->body);
	arena_fini(&a->arena);
}

static void pause_ms(int64_t ms)
{
	nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* The error model: {"error": {"message", "type", "code"}}. */
static void read_refusal(struct ctl_peer *p, struct ctl_peer_answer *a, struct ctl_fault *f)
{
	const struct jspan *root = NULL, *e = NULL;
	struct strv type = {0}, message = {0};
	struct err err;
	if (jspan_parse(buf_bytes(&a->body), ST_CORRUPT, &a->arena, &root, &err) == ST_OK)
		e = jspan_get(root, "error");
	if (!jspan_str(jspan_get(e, "message"), &a->arena, &message))
		message = (struct strv){0};
	if (!jspan_str(jspan_get(e, "type"), &a->arena, &type))
		type = (struct strv){0};
	if (message.n)
		ctl_fault_set(f, CTL_FAULT_REFUSED, "%.*s", STRV_ARG(strv_sub(message, 0, 470)));
	else
		ctl_fault_set(f, CTL_FAULT_REFUSED, "%s answers %d%s", p->o.uri, a->status,
			      a->status >= 300 && a->status < 400
				      ? ", a redirect, which is not followed"
				      : "");
	ctl_fault_text(f->type, sizeof f->type, type);
	f->status = a->status;
}

static bool is_repeatable(const char *method)
{
	return strcmp(method, "GET") == 0;
}

/* One try. ret_again_s: when the server wants to be asked again. */
static bool ask_once(struct ctl_peer_link *l, const char *method, const char *url, struct strv send,
		     struct ctl_peer_answer *a, unsigned *ret_serial, int64_t *ret_again_s,
		     struct ctl_fault *f)
{
	const char *headers[CTL_HEADERS_MAX + 3];
	struct ctl_peer *p = l->peer;
	struct err err;
	size_t n;
	enum ctl_http_end end;
	char why[256];
	*ret_again_s = 0;
	buf_clear(&a->body);
	arena_reset(&a->arena);
	a->root = NULL;
	a->status = 0;
	if (!ctl_auth_headers(p->auth, l->http, &l->keep, headers, &n, ret_serial, f))
		return false;
	headers[n++] = "Accept: application/json";
	const struct ctl_http_call call = {.method = method,
					   .url = url,
					   .type = send.n ? "application/json" : NULL,
					   .body = send,
					   .headers = headers,
					   .n_headers = n};
	a->status = ctl_http_link_send(l->http, &call, &a->body, ret_again_s, &end, why);
	if (end == CTL_HTTP_LARGE)
		return ctl_fault_set(f, CTL_FAULT_ANSWER, "%s: the answer is larger than %zu MiB",
				     p->o.uri, PEER_ANSWER_MAX >> 20);
	if (!a->status) {
		ctl_fault_set(f, CTL_FAULT_LOST, "%s: %s", p->o.uri, why);
		f->final = end == CTL_HTTP_UNTRUSTED;
		return false;
	}
	if (a->status < 200 || a->status > 299) {
		read_refusal(p, a, f);
		return false;
	}
	if (a->body.n &&
	    jspan_parse(buf_bytes(&a->body), ST_CORRUPT, &a->arena, &a->root, &err) != ST_OK)
		return ctl_fault_set(f, CTL_FAULT_ANSWER, "%s: the answer is no JSON: %s", p->o.uri,
				     err.msg);
	return true;
}

bool ctl_peer_ask(struct ctl_peer_link *l, const char *method, const struct buf *path,
		  struct strv send, struct ctl_peer_answer *a, struct ctl_fault *f)
{
	struct ctl_peer *p = l->peer;
	struct buf url;
	bool ok = false, renewed = false;
	int64_t wait_ms = PAUSE_MS, again_s = 0;
	unsigned serial = 0;
	*a = (struct ctl_peer_answer){0};
	buf_init(&a->body, PEER_ANSWER_MAX);
	arena_init(&a->arena, PEER_INDEX_MAX);
	buf_init(&url, (size_t)256 << 10);
	buf_put(&url, p->base.p, p->base.n - 1);
	buf_putv(&url, buf_strv(path));
	buf_putc(&url, 0);
	if (!buf_ok(path) || !buf_ok(&url)) {
		buf_fini(&url);
		return ctl_fault_set(f, CTL_FAULT_ANSWER, "a name is too long for a path");
	}
	for (int i = 1;; i++) {
		*f = (struct ctl_fault){0};
		ok = ask_once(l, method, (const char *)url.p, send, a, &serial, &again_s, f);
		if (ok || i == ATTEMPTS || f->final || f->kind == CTL_FAULT_ANSWER ||
		    f->kind == CTL_FAULT_LOCAL)
			break;
		if (a->status == 401 && !renewed && ctl_auth_stale(p->auth, serial)) {
			renewed = true;
			continue;
		}
		if (f->kind == CTL_FAULT_LOST) {
			if (!is_repeatable(method))
				break;
			again_s = 0;
		} else if (f->status == 429 || f->status == 503) {
			if (again_s > AGAIN_MAX_S) {
				char text[256];
				ctl_fault_text(text, sizeof text, strv_of(f->text));
				snprintf(f->text, sizeof f->text, "%s (asks to wait for %lld s)",
					 text, (long long)again_s);
				break;
			}
		} else if (!is_repeatable(method) ||
			   (f->status != 500 && f->status != 502 && f->status != 504)) {
			break;
		}
		pause_ms(again_s > 0 ? again_s * 1000 : wait_ms);
		wait_ms *= 2;
	}
	buf_fini(&url);
	return ok;
}

/* ------------------------------------------------------------------ the configuration */

static int hex(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/* What may stand in a path as it is: no space, no control, no '?' or '#', escapes complete. */
static bool path_text(struct strv s, struct buf *ret_plain)
{
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];
		if (c <= 0x20 || c >= 0x7f || strchr("?#\\\"<>", c))
			return false;
		if (c != '%') {
			buf_putc(ret_plain, c);
			continue;
		}
		if (i + 2 >= s.n || hex(s.p[i + 1]) < 0 || hex(s.p[i + 2]) < 0)
			return false;
		buf_putc(ret_plain, (uint8_t)(hex(s.p[i + 1]) << 4 | hex(s.p[i + 2])));
		i += 2;
	}
	return buf_ok(ret_plain);
}

/* A property of the configuration: overrides win over defaults. */
static struct strv property(struct ctl_peer_answer *a, const char *key)
{
	static const char *const parts[] = {"overrides", "defaults"};
	struct strv s;
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (jspan_str(jspan_get(jspan_get(a->root, parts[i]), key), &a->arena, &s) && s.n)
			return s;
	return (struct strv){NULL, 0};
}

static struct strv without_slash(struct strv s)
{
	while (s.n && s.p[s.n - 1] == '/')
		s.n--;
	return s;
}

static bool read_config(struct ctl_peer *p, struct ctl_fault *f)
{
	struct ctl_peer_answer *a = &p->config;
	struct buf plain;
	if (!jspan_is(a->root, JSPAN_OBJECT))
		return ctl_fault_set(f, CTL_FAULT_ANSWER, "%s: the configuration is no object",
				     p->o.uri);
	struct strv uri = without_slash(property(a, "uri")), prefix = property(a, "prefix");
	struct strv separator = property(a, "namespace-separator");
	if (uri.n && !strv_eq(uri, strv_of((const char *)p->base.p)))
		return ctl_fault_set(f, CTL_FAULT_ANSWER,
				     "%s sends its clients to another address: %.*s", p->o.uri,
				     STRV_ARG(strv_sub(uri, 0, 200)));
	buf_init(&plain, PREFIX_MAX);
	bool ok = prefix.n <= PREFIX_MAX && path_text(prefix, &plain);
	buf_fini(&plain);
	if (!ok)
		return ctl_fault_set(f, CTL_FAULT_ANSWER,
				     "%s: its prefix cannot stand in a path", p->o.uri);
	if (prefix.n) {
		buf_putc(&p->prefix, '/');
		buf_putv(&p->prefix, prefix);
	}
	if (separator.n == 0)
		separator = STRV("%1F");
	if (separator.n > 32 || memchr(separator.p, '/', separator.n) ||
	    !path_text(separator, &p->plain))
		return ctl_fault_set(f, CTL_FAULT_ANSWER,
				     "%s: its namespace-separator cannot stand in a path",
				     p->o.uri);
	buf_putv(&p->separator, separator);
	p->endpoints = jspan_get(a->root, "endpoints");
	if (!jspan_is(p->endpoints, JSPAN_ARRAY))
		p->endpoints = NULL;
	return true;
}

bool ctl_peer_offers(struct ctl_peer *p, const char *endpoint, bool *ret_told)
{
	struct strv want = strv_of(endpoint), text;
	if (ret_told)
		*ret_told = p->endpoints;
	if (!p->endpoints)
		return true;
	JSPAN_EACH (e, p->endpoints) {
		if (jspan_str(e, &p->config.arena, &text) && strv_eq(text, want))
			return true;
	}
	return false;
}

const char *ctl_peer_uri(const struct ctl_peer *p)
{
	return p->o.uri;
}

static bool is_address(struct strv uri)
{
	struct strv rest = {0};
	if (strv_starts(uri, STRV("http://")))
		rest = strv_sub(uri, 7, uri.n);
	else if (strv_starts(uri, STRV("https://")))
		rest = strv_sub(uri, 8, uri.n);
	for (size_t i = 0; i < rest.n; i++)
		if ((unsigned char)rest.p[i] <= 0x20 || strchr("@?#", rest.p[i]))
			return false;
	return rest.n > 0 && uri.n <= URI_MAX;
}

struct ctl_peer *ctl_peer_new(const struct ctl_peer_options *o, struct ctl_fault *f)
{
	struct ctl_peer_link link = {0};
	struct buf path;
	if (!is_address(strv_of(o->uri))) {
		ctl_fault_set(f, CTL_FAULT_LOCAL,
			      "a catalog's address must be http[s]://host[:port][/path], without "
			      "credentials in it");
		return NULL;
	}
	struct ctl_peer *p = base_calloc(1, sizeof *p);
	p->o = *o;
	buf_init(&p->base, URI_MAX + 1);
	buf_init(&p->prefix, PREFIX_MAX + 1);
	buf_init(&p->separator, 64);
	buf_init(&p->plain, 64);
	buf_putv(&p->base, without_slash(strv_of(o->uri)));
	buf_putc(&p->base, 0);
	p->auth = ctl_auth_new(&o->auth, (const char *)p->base.p, f);
	bool ok = p->auth;
	if (ok) {
		buf_init(&path, (size_t)64 << 10);
		buf_puts(&path, "/v1/config");
		if (o->warehouse) {
			buf_puts(&path, "?warehouse=");
			ctl_peer_quote(&path, strv_of(o->warehouse));
		}
		ctl_peer_link_init(&link, p);
		ok = ctl_peer_ask(&link, "GET", &path, (struct strv){0}, &p->config, f) &&
		     read_config(p, f);
		ctl_peer_link_fini(&link);
		buf_fini(&path);
	}
	if (ok)
		return p;
	ctl_peer_free(p);
	return NULL;
}

void ctl_peer_free(struct ctl_peer *own_peer)
{
	if (!own_peer)
		return;
	ctl_auth_free(own_peer->auth);
	ctl_peer_release(&own_peer->config);
	buf_fini(&own_peer->base);
	buf_fini(&own_peer->prefix);
	buf_fini(&own_peer->separator);
	buf_fini(&own_peer->plain);
	base_free(own_peer);
}
