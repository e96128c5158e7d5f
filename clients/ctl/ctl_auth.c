#include "clients/ctl/ctl_auth.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "clients/ctl/ctl_http.h"
#include "proto/base/jspan.h"

#define FILE_MAX ((size_t)64 << 10)
#define ANSWER_MAX ((size_t)1 << 20)
/* A token is renewed when so much of its life is left. */
#define EARLY_S 30

struct ctl_auth {
	struct ctl_auth_options o;
	pthread_mutex_t lock; /* what follows */
	struct buf token;     /* "Authorization: Bearer …" with its NUL; empty: none yet */
	unsigned serial;
	int64_t ends_s; /* when to renew it; 0: not told */
	struct buf id, secret, url, lines;
	const char *fixed[CTL_HEADERS_MAX];
	size_t n_fixed;
};

static int64_t mono_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

/* The whole file without the line end behind it. */
static bool read_file(const char *path, struct buf *b, struct ctl_fault *f)
{
	char part[4096];
	FILE *in = fopen(path, "rb");
	if (!in)
		return ctl_fault_set(f, CTL_FAULT_LOCAL, "%s: %s", path, strerror(errno));
	for (size_t n; (n = fread(part, 1, sizeof part, in)) > 0;)
		buf_put(b, part, n);
	bool bad = ferror(in);
	fclose(in);
	while (b->n && (b->p[b->n - 1] == '\n' || b->p[b->n - 1] == '\r'))
		b->n--;
	if (bad || !buf_ok(b))
		return ctl_fault_set(f, CTL_FAULT_LOCAL, "%s: %s", path,
				     bad ? "cannot be read" : "is larger than 64 KiB");
	return true;
}

/* Text that may stand in a header: visible, spaces inside. */
static bool is_header_text(struct strv s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7f)
			return false;
	return s.n > 0;
}

static bool take_token(struct ctl_auth *a, struct strv token)
{
	if (!is_header_text(token) || token.n > FILE_MAX)
		return false;
	buf_clear(&a->token);
	buf_puts(&a->token, "Authorization: Bearer ");
	buf_putv(&a->token, token);
	buf_putc(&a->token, 0);
	a->serial++;
	return buf_ok(&a->token);
}

static bool read_token(struct ctl_auth *a, struct ctl_fault *f)
{
	struct buf b;
	buf_init(&b, FILE_MAX);
	bool ok = read_file(a->o.token_file, &b, f);
	if (ok && !take_token(a, buf_strv(&b)))
		ok = ctl_fault_set(f, CTL_FAULT_LOCAL, "%s: holds no token", a->o.token_file);
	buf_fini(&b);
	return ok;
}

static bool read_credential(struct ctl_auth *a, struct ctl_fault *f)
{
	struct buf b;
	buf_init(&b, FILE_MAX);
	bool ok = read_file(a->o.credential_file, &b, f);
	struct strv all = buf_strv(&b);
	size_t colon = strv_find(all, ':');
	if (ok && (colon == 0 || colon + 1 >= all.n || !is_header_text(all)))
		ok = ctl_fault_set(f, CTL_FAULT_LOCAL, "%s: must be one line, id:secret",
				   a->o.credential_file);
	if (ok) {
		buf_putv(&a->id, strv_sub(all, 0, colon));
		buf_putv(&a->secret, strv_sub(all, colon + 1, all.n));
	}
	buf_fini(&b);
	return ok;
}

/* "Name: value"; the token has options of its own. */
static bool add_header(struct ctl_auth *a, const char *text, struct ctl_fault *f)
{
	struct strv s = strv_of(text);
	size_t colon = strv_find(s, ':');
	if (a->n_fixed == CTL_HEADERS_MAX)
		return ctl_fault_set(f, CTL_FAULT_LOCAL, "more than %d headers", CTL_HEADERS_MAX);
	if (colon == 0 || colon == s.n || !is_header_text(s) || memchr(s.p, ' ', colon))
		return ctl_fault_set(f, CTL_FAULT_LOCAL, "a header must be \"Name: value\"");
	if (strv_ieq(strv_sub(s, 0, colon), STRV("authorization")) &&
	    (a->o.token_file || a->o.credential_file))
		return ctl_fault_set(f, CTL_FAULT_LOCAL,
				     "a header Authorization beside a token or credential");
	a->fixed[a->n_fixed++] = text;
	return true;
}

static bool read_headers(struct ctl_auth *a, struct ctl_fault *f)
{
	struct strv name;
	for (size_t i = 0; i < a->o.n_headers; i++) {
		name = strv_sub(strv_of(a->o.headers[i]), 0, 13);
		if (strv_ieq(name, STRV("authorization")))
			return ctl_fault_set(f, CTL_FAULT_LOCAL,
					     "Authorization is a secret: give it in a file");
		if (!add_header(a, a->o.headers[i], f))
			return false;
	}
	if (!a->o.header_file)
		return true;
	if (!read_file(a->o.header_file, &a->lines, f))
		return false;
	buf_putc(&a->lines, 0);
	for (char *at = (char *)a->lines.p; *at;) {
		char *end = at + strcspn(at, "\n"), *next = *end ? end + 1 : end;
		*end = 0;
		if (end > at && end[-1] == '\r')
			end[-1] = 0;
		if (*at && !add_header(a, at, f))
			return false;
		at = next;
	}
	return true;
}

struct ctl_auth *ctl_auth_new(const struct ctl_auth_options *o, const char *base,
			      struct ctl_fault *f)
{
	struct ctl_auth *a = base_calloc(1, sizeof *a);
	a->o = *o;
	pthread_mutex_init(&a->lock, NULL);
	buf_init(&a->token, FILE_MAX + 64);
	buf_init(&a->id, FILE_MAX);
	buf_init(&a->secret, FILE_MAX);
	buf_init(&a->url, 8192);
	buf_init(&a->lines, FILE_MAX + 1);
	if (o->oauth_uri)
		buf_puts(&a->url, o->oauth_uri);
	else
		buf_printf(&a->url, "%s/v1/oauth/tokens", base);
	buf_putc(&a->url, 0);
	bool ok = true;
	if (o->token_file && o->credential_file)
		ok = ctl_fault_set(f, CTL_FAULT_LOCAL, "a token and a credential: give one");
	else if (o->token_file)
		ok = read_token(a, f);
	else if (o->credential_file)
		ok = read_credential(a, f);
	if (ok && read_headers(a, f) && buf_ok(&a->url))
		return a;
	if (!buf_ok(&a->url))
		ctl_fault_set(f, CTL_FAULT_LOCAL, "the token endpoint's address is too long");
	ctl_auth_free(a);
	return NULL;
}

void ctl_auth_free(struct ctl_auth *own_auth)
{
	if (!own_auth)
		return;
	pthread_mutex_destroy(&own_auth->lock);
	buf_fini(&own_auth->token);
	buf_fini(&own_auth->id);
	buf_fini(&own_auth->secret);
	buf_fini(&own_auth->url);
	buf_fini(&own_auth->lines);
	base_free(own_auth);
}

/* ------------------------------------------------------------------ the token endpoint */

static void put_form(struct buf *b, const char *key, struct strv s)
{
	static const char plain[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~";
	buf_puts(b, key);
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] && strchr(plain, s.p[i]))
			buf_putc(b, (uint8_t)s.p[i]);
		else
			buf_printf(b, "%%%02X", (unsigned)(uint8_t)s.p[i]);
	}
}

/* Takes access_token and expires_in. What else the endpoint says stays unsaid but for its error
 * code: it may repeat what it was sent. */
static bool read_answer(struct ctl_auth *a, int status, struct bytes body, struct ctl_fault *f)
{
	struct arena arena;
	const struct jspan *root = NULL;
	struct strv s = {0};
	struct err err;
	int64_t life = 0;
	bool ok = false, has = false;
	arena_init(&arena, 16 * ANSWER_MAX);
	bool json = jspan_parse(body, ST_CORRUPT, &arena, &root, &err) == ST_OK;
	if (status != 200) {
		if (json && jspan_str(jspan_get(root, "error"), &arena, &s) && is_header_text(s))
			ctl_fault_set(f, CTL_FAULT_REFUSED, "the token endpoint answers %d: %.*s",
				      status, STRV_ARG(strv_sub(s, 0, 64)));
		else
			ctl_fault_set(f, CTL_FAULT_REFUSED, "the token endpoint answers %d", status);
		f->status = status;
	} else if (!json || !jspan_str(jspan_get(root, "access_token"), &arena, &s) ||
		   !take_token(a, s)) {
		ctl_fault_set(f, CTL_FAULT_ANSWER, "the token endpoint's answer has no access_token");
	} else if (jspan_opt_i64(root, "expires_in", ST_CORRUPT, &life, &has, &err) != ST_OK) {
		buf_clear(&a->token);
		ctl_fault_set(f, CTL_FAULT_ANSWER, "the token endpoint's expires_in is no number");
	} else {
		a->ends_s = has && life > 0 && life < INT32_MAX
				    ? mono_s() + (life > 2 * EARLY_S ? life - EARLY_S : life / 2 + 1)
				    : 0;
		ok = true;
	}
	arena_fini(&arena);
	return ok;
}

static bool fetch(struct ctl_auth *a, struct ctl_http_link *link, struct ctl_fault *f)
{
	static const char *const accept[] = {"Accept: application/json"};
	struct buf form, body;
	int64_t again;
	enum ctl_http_end end;
	char why[256];
	buf_init(&form, 4 * FILE_MAX);
	buf_init(&body, ANSWER_MAX);
	buf_puts(&form, "grant_type=client_credentials");
	put_form(&form, "&client_id=", buf_strv(&a->id));
	put_form(&form, "&client_secret=", buf_strv(&a->secret));
	put_form(&form, "&scope=", a->o.scope ? strv_of(a->o.scope) : STRV("catalog"));
	const struct ctl_http_call call = {.method = "POST",
					   .url = (const char *)a->url.p,
					   .type = "application/x-www-form-urlencoded",
					   .body = buf_strv(&form),
					   .headers = accept,
					   .n_headers = 1};
	int status = ctl_http_link_send(link, &call, &body, &again, &end, why);
	bool ok = status ? read_answer(a, status, buf_bytes(&body), f)
			 : ctl_fault_set(f, CTL_FAULT_LOST, "%s: %s", call.url, why);
	f->final = end == CTL_HTTP_UNTRUSTED;
	buf_fini(&form);
	buf_fini(&body);
	return ok;
}

bool ctl_auth_headers(struct ctl_auth *a, struct ctl_http_link *link, struct buf *keep,
		      const char **ret_headers, size_t *ret_n, unsigned *ret_serial,
		      struct ctl_fault *f)
{
	bool ok = true;
	pthread_mutex_lock(&a->lock);
	bool late = a->token.n && a->ends_s && mono_s() >= a->ends_s;
	if (a->o.credential_file && (a->token.n == 0 || late))
		ok = fetch(a, link, f);
	else if (a->o.token_file && a->token.n == 0)
		ok = read_token(a, f);
	memcpy(ret_headers, a->fixed, a->n_fixed * sizeof *ret_headers);
	*ret_n = a->n_fixed;
	*ret_serial = a->serial;
	buf_clear(keep);
	if (ok && a->token.n) {
		buf_put(keep, a->token.p, a->token.n);
		ret_headers[(*ret_n)++] = (const char *)keep->p;
	}
	pthread_mutex_unlock(&a->lock);
	return ok;
}

bool ctl_auth_stale(struct ctl_auth *a, unsigned serial)
{
	pthread_mutex_lock(&a->lock);
	bool have = a->o.credential_file || a->o.token_file;
	/* Another thread may have a newer one already. */
	if (have && serial == a->serial)
		buf_clear(&a->token);
	pthread_mutex_unlock(&a->lock);
	return have;
}
