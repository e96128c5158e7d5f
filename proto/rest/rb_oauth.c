#include "proto/rest/rb_oauth.h"

#include "proto/base/digest.h"
#include "proto/base/jwrite.h"

#define TOKEN_TYPE "urn:ietf:params:oauth:token-type:access_token"
#define EXCHANGE "urn:ietf:params:oauth:grant-type:token-exchange"
#define FORM_MEMBERS_MAX 64
#define BASIC_MAX 8192

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One name or value of a form: '+' is a space, %XX a byte; text without U+0000. */
static enum status decode(struct arena *a, struct strv raw, struct strv *ret_text, struct err *err)
{
	char *out = arena_alloc(a, raw.n + 1);
	size_t n = 0;
	if (!out)
		return err_set(err, ST_LIMIT, "", "the request is too large");
	for (size_t i = 0; i < raw.n; i++) {
		char c = raw.p[i];
		if (c == '+') {
			c = ' ';
		} else if (c == '%') {
			int high = i + 2 < raw.n ? hex_value(raw.p[i + 1]) : -1;
			int low = i + 2 < raw.n ? hex_value(raw.p[i + 2]) : -1;
			if (high < 0 || low < 0)
				return err_set(err, ST_BAD_REQUEST, "body", "a broken %% escape");
			c = (char)(high * 16 + low);
			i += 2;
		}
		out[n++] = c;
	}
	out[n] = 0;
	*ret_text = (struct strv){out, n};
	if (!strv_utf8(*ret_text) || strv_find(*ret_text, '\0') < n)
		return err_set(err, ST_BAD_REQUEST, "body", "not UTF-8 text");
	return ST_OK;
}

struct form {
	struct strv grant_type;
	struct rb_grant g;
};

static struct strv *member_of(struct form *f, struct strv name)
{
	if (strv_eq(name, STRV("grant_type")))
		return &f->grant_type;
	if (strv_eq(name, STRV("client_id")))
		return &f->g.client_id;
	if (strv_eq(name, STRV("client_secret")))
		return &f->g.client_secret;
	if (strv_eq(name, STRV("scope")))
		return &f->g.scope;
	if (strv_eq(name, STRV("subject_token")))
		return &f->g.subject_token;
	if (strv_eq(name, STRV("subject_token_type")))
		return &f->g.subject_token_type;
	return NULL; /* unknown ones are ignored (RFC 6749 §3.2) */
}

static enum status parse_form(struct bytes body, struct arena *a, struct form *f, struct err *err)
{
	struct strv rest = bytes_strv(body);
	size_t n = 0;
	while (rest.n) {
		struct strv part = strv_sub(rest, 0, strv_find(rest, '&'));
		rest = strv_sub(rest, part.n < rest.n ? part.n + 1 : part.n, rest.n);
		if (part.n == 0)
			continue;
		if (++n > FORM_MEMBERS_MAX)
			return err_set(err, ST_BAD_REQUEST, "body", "more than %d members",
				       FORM_MEMBERS_MAX);
		struct strv name, value;
		size_t eq = strv_find(part, '=');
		enum status st = decode(a, strv_sub(part, 0, eq), &name, err);
		if (st == ST_OK)
			st = decode(a, strv_sub(part, eq < part.n ? eq + 1 : eq, part.n), &value, err);
		if (st != ST_OK)
			return st;
		struct strv *m = member_of(f, name);
		if (!m)
			continue;
		if (m->p)
			return err_set(err, ST_BAD_REQUEST, name.p, "stands twice");
		*m = value;
	}
	return ST_OK;
}

enum status rb_grant_parse(struct bytes body, struct arena *a, struct rb_grant *ret_g,
			   enum rb_oauth_error *ret_why, struct err *err)
{
	struct form f = {0};
	*ret_why = RB_OAUTH_INVALID_REQUEST;
	if (body.n > RB_OAUTH_BODY_MAX)
		return err_set(err, ST_BAD_REQUEST, "body", "longer than %d bytes",
			       RB_OAUTH_BODY_MAX);
	enum status st = parse_form(body, a, &f, err);
	if (st != ST_OK)
		return st;
	if (f.grant_type.n == 0)
		return err_set(err, ST_BAD_REQUEST, "grant_type", "is missing");
	if (strv_eq(f.grant_type, STRV("client_credentials"))) {
		f.g.kind = RB_GRANT_CLIENT;
	} else if (strv_eq(f.grant_type, STRV(EXCHANGE))) {
		f.g.kind = RB_GRANT_EXCHANGE;
		if (f.g.subject_token.n == 0)
			return err_set(err, ST_BAD_REQUEST, "subject_token", "is missing");
		if (!strv_eq(f.g.subject_token_type, STRV(TOKEN_TYPE)))
			return err_set(err, ST_BAD_REQUEST, "subject_token_type",
				       "must be " TOKEN_TYPE);
	} else {
		*ret_why = RB_OAUTH_UNSUPPORTED_GRANT;
		return err_set(err, ST_BAD_REQUEST, "grant_type",
			       "client_credentials and " EXCHANGE " are served");
	}
	*ret_g = f.g;
	return ST_OK;
}

/* What follows the scheme's name, in any case, and a space. */
static bool after_scheme(struct strv header, struct strv scheme, struct strv *ret_rest)
{
	if (header.n <= scheme.n || !strv_ieq(strv_sub(header, 0, scheme.n), scheme) ||
	    header.p[scheme.n] != ' ')
		return false;
	struct strv rest = strv_sub(header, scheme.n, header.n);
	while (rest.n && rest.p[0] == ' ')
		rest = strv_sub(rest, 1, rest.n);
	while (rest.n && rest.p[rest.n - 1] == ' ')
		rest.n--;
	*ret_rest = rest;
	return rest.n > 0;
}

bool rb_oauth_basic(struct strv header, struct arena *a, struct strv *ret_id, struct strv *ret_secret)
{
	struct strv code, text;
	struct buf plain;
	struct err ignored;
	if (!after_scheme(header, STRV("Basic"), &code))
		return false;
	buf_init(&plain, BASIC_MAX);
	bool ok = digest_unbase64(&plain, code) && arena_strv(a, buf_strv(&plain), &text);
	buf_fini(&plain);
	if (!ok)
		return false;
	size_t colon = strv_find(text, ':');
	return colon < text.n &&
	       decode(a, strv_sub(text, 0, colon), ret_id, &ignored) == ST_OK &&
	       decode(a, strv_sub(text, colon + 1, text.n), ret_secret, &ignored) == ST_OK;
}

bool rb_oauth_bearer(struct strv header, struct strv *ret_token)
{
	return after_scheme(header, STRV("Bearer"), ret_token);
}

void rb_oauth_token_write(struct buf *b, struct strv token, int64_t expires_s, struct strv scope,
			  bool exchanged)
{
	struct jwrite w;
	jwrite_init(&w, b);
	jwrite_object(&w);
	jwrite_kstr(&w, "access_token", token);
	jwrite_kstr(&w, "token_type", STRV("bearer"));
	jwrite_ki64(&w, "expires_in", expires_s);
	if (exchanged)
		jwrite_kstr(&w, "issued_token_type", STRV(TOKEN_TYPE));
	if (scope.p)
		jwrite_kstr(&w, "scope", scope);
	jwrite_end_object(&w);
}

static const struct {
	const char *name;
	int http;
} errors[] = {
	[RB_OAUTH_INVALID_REQUEST] = {"invalid_request", 400},
	[RB_OAUTH_INVALID_CLIENT] = {"invalid_client", 401},
	[RB_OAUTH_INVALID_GRANT] = {"invalid_grant", 400},
	[RB_OAUTH_UNSUPPORTED_GRANT] = {"unsupported_grant_type", 400},
};

void rb_oauth_error_write(struct buf *b, enum rb_oauth_error why, const struct err *err)
{
	struct jwrite w;
	struct buf text;
	buf_init(&text, 1024);
	if (err->field[0])
		buf_printf(&text, "%s: ", err->field);
	buf_puts(&text, err->msg);
	jwrite_init(&w, b);
	jwrite_object(&w);
	jwrite_kstr(&w, "error", strv_of(errors[why].name));
	jwrite_kstr(&w, "error_description", buf_strv(&text));
	jwrite_end_object(&w);
	buf_fini(&text);
}

int rb_oauth_http(enum rb_oauth_error why)
{
	return errors[why].http;
}
