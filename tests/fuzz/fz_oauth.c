/* The token endpoint's form and headers, and the clients file: any bytes are parsed or refused. */
#include <stddef.h>
#include <stdint.h>

#include "daemon/net/auth.h"
#include "proto/rest/rb_oauth.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a;
	struct rb_grant g;
	enum rb_oauth_error why;
	struct err err = {0};
	struct strv text = {(const char *)data, size}, id, secret, token;
	struct auth *auth = NULL;
	arena_init(&a, 4 << 20);
	enum status st = rb_grant_parse((struct bytes){data, size}, &a, &g, &why, &err);
	if (st == ST_OK)
		ASSERT(g.kind == RB_GRANT_CLIENT || g.subject_token.n > 0);
	else
		ASSERT(err.st == st && rb_oauth_http(why) == 400);
	if (rb_oauth_basic(text, &a, &id, &secret))
		ASSERT(strv_utf8(id) && strv_utf8(secret));
	if (rb_oauth_bearer(text, &token))
		ASSERT(token.n > 0 && token.n < size);
	if (auth_parse((struct bytes){data, size}, &auth, &err) == ST_OK) {
		/* Nothing in a file makes that same text a token. */
		ASSERT(auth_check(auth, text, 0, true, &id, &err) == ST_NOT_AUTHORIZED);
		auth_free(auth);
	}
	arena_fini(&a);
	return 0;
}
