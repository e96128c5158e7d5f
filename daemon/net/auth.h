/* Who may use the REST port: clients with secrets from a file, and the tokens that they get for them. A
 * token is a client's name and an end, signed with a key that is derived from the file: every daemon with
 * the same file takes it, also after a restart, and a changed file ends all tokens. */
#ifndef DAEMON_NET_AUTH_H
#define DAEMON_NET_AUTH_H

#include "daemon/app.h"
#include "proto/base/buf.h"

struct auth;

/* Reads auth.clients-file into app->auth; nothing when none is configured. Read again on a reload; a
 * broken file then leaves the old one in force. */
extern const struct app_step auth_step;

/* The same from a file's text: lines of id:secret, empty ones and those that begin with '#' apart. An id
 * has 1 to 256 bytes and stands once, a secret at least AUTH_SECRET_MIN bytes; AUTH_CLIENTS_MAX at most. */
#define AUTH_SECRET_MIN 16
#define AUTH_CLIENTS_MAX 1024
MUST_CHECK enum status auth_parse(struct bytes text, struct auth **ret_auth, struct err *err);
void auth_free(struct auth *own_auth);

/* Whether there is such a client and this is its secret. *ret_name lives as long as the auth. */
MUST_CHECK bool auth_client(const struct auth *a, struct strv id, struct strv secret,
			    struct strv *ret_name);
/* Appends a token of the client, good until end_s (seconds since 1970). */
void auth_issue(const struct auth *a, struct strv name, int64_t end_s, struct buf *out);
/* Whose token it is: ST_NOT_AUTHORIZED when it is not ours, or over at now_s and not `over_too`. */
MUST_CHECK enum status auth_check(const struct auth *a, struct strv token, int64_t now_s, bool over_too,
				  struct strv *ret_name, struct err *err);

#endif
