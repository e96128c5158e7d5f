/* Bodies of the token endpoint (REST spec: OAuthTokenRequest, OAuthTokenResponse, OAuthError; RFC 6749,
 * RFC 8693). */
#ifndef PROTO_REST_RB_OAUTH_H
#define PROTO_REST_RB_OAUTH_H

#include "proto/base/arena.h"
#include "proto/base/buf.h"
#include "proto/base/err.h"

enum rb_grant_kind { RB_GRANT_CLIENT, RB_GRANT_EXCHANGE };

/* Absent members: p NULL. */
struct rb_grant {
	enum rb_grant_kind kind;
	struct strv client_id, client_secret, scope;
	struct strv subject_token, subject_token_type; /* of an exchange: required */
};

/* What the endpoint refuses, in the words of RFC 6749 §5.2. */
enum rb_oauth_error { RB_OAUTH_INVALID_REQUEST, RB_OAUTH_INVALID_CLIENT, RB_OAUTH_INVALID_GRANT, RB_OAUTH_UNSUPPORTED_GRANT };

/* A form (application/x-www-form-urlencoded) of at most RB_OAUTH_BODY_MAX bytes; a member twice, an
 * empty one that is required or a broken escape is refused. *ret_why says which refusal it is when
 * the status is not ST_OK, err why. */
#define RB_OAUTH_BODY_MAX 65536
MUST_CHECK enum status rb_grant_parse(struct bytes body, struct arena *a, struct rb_grant *ret_g,
				      enum rb_oauth_error *ret_why, struct err *err);

/* The credentials of an Authorization header of the Basic scheme, whose parts are form-encoded (RFC
 * 6749 §2.3.1). false: it is none, or broken. */
MUST_CHECK bool rb_oauth_basic(struct strv header, struct arena *a, struct strv *ret_id,
			       struct strv *ret_secret);
/* The token of one of the Bearer scheme (RFC 6750), borrowed. false: it is none. */
MUST_CHECK bool rb_oauth_bearer(struct strv header, struct strv *ret_token);

/* scope: p NULL for none. exchanged: the answer to an exchange names the token's type. */
void rb_oauth_token_write(struct buf *b, struct strv token, int64_t expires_s, struct strv scope,
			  bool exchanged);
void rb_oauth_error_write(struct buf *b, enum rb_oauth_error why, const struct err *err);
/* 400 or 401. */
int rb_oauth_http(enum rb_oauth_error why);

#endif
