#include "daemon/net/auth.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf/log.h"
#include "proto/base/digest.h"

#define FILE_MAX ((size_t)1 << 20)
#define NAME_MAX_BYTES 256
#define TOKEN_MAX 1024
#define PREFIX "fz1."

struct client {
	struct strv id;	      /* in the text */
	struct digest secret; /* its SHA-256 */
};

struct auth {
	struct client *v;
	size_t n;
	struct digest key;
	char *text;
};

static struct strv trim(struct strv s)
{
	while (s.n && (s.p[0] == ' ' || s.p[0] == '\t'))
		s = strv_sub(s, 1, s.n);
	while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t' || s.p[s.n - 1] == '\r'))
		s.n--;
	return s;
}

static const struct client *find(const struct auth *a, struct strv id)
{
	for (size_t i = 0; i < a->n; i++)
		if (strv_eq(a->v[i].id, id))
			return &a->v[i];
	return NULL;
}

static enum status parse_line(struct auth *a, struct strv line, size_t number, struct err *err)
{
	line = trim(line);
	if (line.n == 0 || line.p[0] == '#')
		return ST_OK;
	size_t colon = strv_find(line, ':');
	struct strv id = strv_sub(line, 0, colon);
	struct strv secret = strv_sub(line, colon < line.n ? colon + 1 : colon, line.n);
	/* Never the line itself: it may hold a secret. */
	if (id.n == 0 || id.n > NAME_MAX_BYTES || !strv_utf8(id) || strv_find(id, '\0') < id.n)
		return err_set(err, ST_ILLEGAL_ARGUMENT, "auth.clients-file",
			       "line %zu: a name of 1 to %d bytes, a colon and a secret are expected",
			       number, NAME_MAX_BYTES);
	if (secret.n < AUTH_SECRET_MIN)
		return err_set(err, ST_ILLEGAL_ARGUMENT, "auth.clients-file",
			       "line %zu: a secret has at least %d bytes", number, AUTH_SECRET_MIN);
	if (find(a, id))
		return err_set(err, ST_ILLEGAL_ARGUMENT, "auth.clients-file",
			       "line %zu: the name stands twice", number);
	if (a->n == AUTH_CLIENTS_MAX)
		return err_set(err, ST_ILLEGAL_ARGUMENT, "auth.clients-file",
			       "more than %d clients", AUTH_CLIENTS_MAX);
	a->v[a->n++] = (struct client){id, digest_sha256((struct bytes){(const uint8_t *)secret.p,
									secret.n})};
	return ST_OK;
}

enum status auth_parse(struct bytes text, struct auth **ret_auth, struct err *err)
{
	static const char label[] = "frazil token key 1";
	struct auth *a = base_calloc(1, sizeof *a);
	struct digest_ctx d;
	enum status st = ST_OK;
	size_t number = 0;
	a->v = base_calloc(AUTH_CLIENTS_MAX, sizeof *a->v);
	a->text = base_alloc(text.n + 1);
	memcpy(a->text, text.n ? text.p : (const uint8_t *)"", text.n);
	digest_init(&d);
	digest_add(&d, (struct bytes){(const uint8_t *)label, sizeof label});
	digest_add(&d, text);
	a->key = digest_fini(&d);
	struct strv rest = {a->text, text.n};
	while (st == ST_OK && rest.n) {
		size_t n = strv_find(rest, '\n');
		st = parse_line(a, strv_sub(rest, 0, n), ++number, err);
		rest = strv_sub(rest, n < rest.n ? n + 1 : n, rest.n);
	}
	if (st == ST_OK && a->n == 0)
		st = err_set(err, ST_ILLEGAL_ARGUMENT, "auth.clients-file", "names no client");
	if (st != ST_OK) {
		auth_free(a);
		return st;
	}
	*ret_auth = a;
	return ST_OK;
}

void auth_free(struct auth *own_auth)
{
	if (!own_auth)
		return;
	base_free(own_auth->v);
	base_free(own_auth->text);
	base_free(own_auth);
}

/* ------------------------------------------------------------------ clients and tokens */

bool auth_client(const struct auth *a, struct strv id, struct strv secret, struct strv *ret_name)
{
	const struct client *c = find(a, id);
	struct digest d = digest_sha256((struct bytes){(const uint8_t *)secret.p, secret.n});
	if (!c || !digest_eq_secret((struct bytes){d.b, sizeof d.b},
				    (struct bytes){c->secret.b, sizeof c->secret.b}))
		return false;
	*ret_name = c->id;
	return true;
}

void auth_issue(const struct auth *a, struct strv name, int64_t end_s, struct buf *out)
{
	struct buf said;
	buf_init(&said, TOKEN_MAX);
	buf_puts(&said, PREFIX);
	digest_hex(&said, (struct bytes){(const uint8_t *)name.p, name.n});
	buf_printf(&said, ".%lld", (long long)end_s);
	struct digest mac = digest_hmac((struct bytes){a->key.b, sizeof a->key.b}, buf_bytes(&said));
	buf_putv(out, buf_strv(&said));
	buf_putc(out, '.');
	digest_hex(out, (struct bytes){mac.b, sizeof mac.b});
	ASSERT(buf_ok(&said));
	buf_fini(&said);
}

/* The client whose name stands in hex. */
static const struct client *named(const struct auth *a, struct strv hex)
{
	const struct client *found = NULL;
	for (size_t i = 0; i < a->n && !found; i++) {
		struct buf b;
		if (hex.n != a->v[i].id.n * 2)
			continue;
		buf_init(&b, TOKEN_MAX);
		digest_hex(&b, (struct bytes){(const uint8_t *)a->v[i].id.p, a->v[i].id.n});
		if (strv_eq(buf_strv(&b), hex))
			found = &a->v[i];
		buf_fini(&b);
	}
	return found;
}

enum status auth_check(const struct auth *a, struct strv token, int64_t now_s, bool over_too,
		       struct strv *ret_name, struct err *err)
{
	const struct client *c = NULL;
	int64_t end_s = 0;
	bool good = false;
	if (token.n <= TOKEN_MAX && strv_starts(token, STRV(PREFIX))) {
		struct strv rest = strv_sub(token, sizeof PREFIX - 1, token.n);
		size_t dot = strv_find(rest, '.');
		c = named(a, strv_sub(rest, 0, dot));
		rest = strv_sub(rest, dot < rest.n ? dot + 1 : dot, rest.n);
		if (c && strv_i64(strv_sub(rest, 0, strv_find(rest, '.')), &end_s)) {
			/* It is ours if it is what we should issue. */
			struct buf b;
			buf_init(&b, TOKEN_MAX);
			auth_issue(a, c->id, end_s, &b);
			good = buf_ok(&b) &&
			       digest_eq_secret(buf_bytes(&b),
						(struct bytes){(const uint8_t *)token.p, token.n});
			buf_fini(&b);
		}
	}
	if (!good)
		return err_set(err, ST_NOT_AUTHORIZED, "", "the token is not one of this server");
	if (now_s >= end_s && !over_too)
		return err_set(err, ST_NOT_AUTHORIZED, "", "the token has expired");
	*ret_name = c->id;
	return ST_OK;
}

/* ------------------------------------------------------------------ the step */

static enum status read_file(const char *path, struct buf *b, struct err *err)
{
	struct stat s;
	uint8_t part[4096];
	ssize_t n = 0;
	/* A pipe of this name would wait for its writer, and everybody with it. */
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &s) != 0) {
		int e = errno;
		if (fd >= 0)
			close(fd);
		return err_set(err, ST_ILLEGAL_ARGUMENT, "auth.clients-file", "%s: %s", path,
			       strerror(e));
	}
	if (!S_ISREG(s.st_mode) || (s.st_mode & 077)) {
		close(fd);
		return err_set(err, ST_ILLEGAL_ARGUMENT, "auth.clients-file",
			       "%s must be a file that its owner alone can read", path);
	}
	while ((n = read(fd, part, sizeof part)) > 0)
		buf_put(b, part, (size_t)n);
	int e = errno;
	close(fd);
	if (n < 0)
		return err_set(err, ST_ILLEGAL_ARGUMENT, "auth.clients-file", "%s: %s", path,
			       strerror(e));
	if (!buf_ok(b))
		return err_set(err, ST_ILLEGAL_ARGUMENT, "auth.clients-file",
			       "%s: larger than %zu bytes", path, FILE_MAX);
	return ST_OK;
}

static enum status load(const struct app *app, struct auth **ret_auth, struct err *err)
{
	struct strv name = app->conf->auth_clients_file;
	struct buf b;
	buf_init(&b, FILE_MAX);
	char *path = base_alloc(name.n + 1);
	memcpy(path, name.p, name.n);
	path[name.n] = 0;
	enum status st = read_file(path, &b, err);
	if (st == ST_OK)
		st = auth_parse(buf_bytes(&b), ret_auth, err);
	base_free(path);
	buf_fini(&b);
	return st;
}

static enum status start(struct app *app, bool *ret_pending, struct err *err)
{
	(void)ret_pending;
	return app->conf->auth_clients_file.n ? load(app, &app->auth, err) : ST_OK;
}

static bool stop(struct app *app)
{
	auth_free(app->auth);
	app->auth = NULL;
	return true;
}

/* Names of clients that calls under way carry live in the calls. */
static void reload(struct app *app, const struct conf *old)
{
	struct auth *a = NULL;
	struct err err = {0};
	(void)old;
	if (!app->auth)
		return;
	if (load(app, &a, &err) != ST_OK) {
		LOG(LOG_WARN, "auth.kept", LOG_WITH(.st = err.st), "%s: %s; the clients of before stay",
		    err.field, err.msg);
		return;
	}
	auth_free(app->auth);
	app->auth = a;
}

const struct app_step auth_step = {"clients", start, stop, reload};
