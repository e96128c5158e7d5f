/* POST /v1/oauth/tokens, and the door of the REST port. Both only when clients are configured. */
#include "daemon/rest/h_rest.h"

#include "daemon/net/auth.h"
#include "proto/rest/rb_oauth.h"

static int64_t now_s(const struct call *call)
{
	return h_now_ms(call->app) / 1000;
}

static void refuse(struct call *own_call, enum rb_oauth_error why, const struct err *err)
{
	struct buf b;
	buf_init(&b, 4096);
	rb_oauth_error_write(&b, why, err);
	if (rb_oauth_http(why) == 401)
		call_header(own_call, "WWW-Authenticate", STRV("Basic realm=\"frazil\""));
	call_header(own_call, "Cache-Control", STRV("no-store"));
	call_reply_buf(own_call, rb_oauth_http(why), &b);
}

static void grant(struct call *own_call, struct strv name, const struct rb_grant *g)
{
	struct buf token, body;
	int64_t lifetime_s = own_call->app->conf->auth_token_lifetime_ms / 1000;
	buf_init(&token, 4096);
	buf_init(&body, RB_OAUTH_BODY_MAX * 8);
	auth_issue(own_call->app->auth, name, now_s(own_call) + lifetime_s, &token);
	rb_oauth_token_write(&body, buf_strv(&token), lifetime_s, g->scope,
			     g->kind == RB_GRANT_EXCHANGE);
	buf_fini(&token);
	call_header(own_call, "Cache-Control", STRV("no-store"));
	call_reply_buf(own_call, 200, &body);
}

/* A client proves itself by its secret, in the form or as Basic; for an exchange also by the token that
 * it wants renewed, as long as that is good. */
static void oauth_token(struct call *own_call)
{
	struct call *call = own_call;
	const struct auth *a = call->app->auth;
	struct rb_grant g = {0};
	enum rb_oauth_error why;
	struct strv id, secret, name = {NULL, 0}, subject;
	struct err err = {0};
	bool proven = false, tried = true;
	if (rb_grant_parse(call->body, &call->arena, &g, &why, &err) != ST_OK) {
		refuse(call, why, &err);
		return;
	}
	if (rb_oauth_basic(call->authorization, &call->arena, &id, &secret))
		proven = auth_client(a, id, secret, &name);
	else if (g.client_id.p || g.client_secret.p)
		proven = auth_client(a, g.client_id, g.client_secret, &name);
	else
		tried = false;
	if (!proven && (tried || g.kind == RB_GRANT_CLIENT)) {
		err_set(&err, ST_NOT_AUTHORIZED, "", "unknown client or wrong secret");
		refuse(call, RB_OAUTH_INVALID_CLIENT, &err);
		return;
	}
	if (g.kind == RB_GRANT_EXCHANGE) {
		if (auth_check(a, g.subject_token, now_s(call), proven, &subject, &err) != ST_OK) {
			err_prefix(&err, "subject_token");
			refuse(call, RB_OAUTH_INVALID_GRANT, &err);
			return;
		}
		if (proven && !strv_eq(subject, name)) {
			err_set(&err, ST_NOT_AUTHORIZED, "subject_token", "is another client's");
			refuse(call, RB_OAUTH_INVALID_GRANT, &err);
			return;
		}
		name = subject;
	}
	grant(call, name, &g);
}

/* The door: every route of the REST port but the one above. */
static bool admit(struct call *call)
{
	struct strv token = {NULL, 0}, name;
	struct err err = {0};
	if (call->hit.route == ROUTE_oauth_token)
		return true;
	if (!rb_oauth_bearer(call->authorization, &token))
		err_set(&err, ST_NOT_AUTHORIZED, "", "a bearer token is required");
	else if (auth_check(call->app->auth, token, now_s(call), false, &name, &err) == ST_OK &&
		 !arena_strv(&call->arena, name, &call->principal))
		err_set(&err, ST_LIMIT, "", "the request is too large");
	if (err.st == ST_OK)
		return true;
	/* Who shows none is told of none (RFC 6750 §3). */
	call->token_bad = token.n > 0;
	call_reply_err(call, &err);
	return false;
}

void h_oauth_routes(struct app *app, struct route_table *t)
{
	if (!app->auth)
		return;
	route_set(t, ROUTE_oauth_token, oauth_token);
	t->admit = admit;
}
