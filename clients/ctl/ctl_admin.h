/* Answers of the admin port: one request, lists page by page, and what frazilctl says about a refusal. */
#ifndef CLIENTS_CTL_CTL_ADMIN_H
#define CLIENTS_CTL_CTL_ADMIN_H

#include "clients/ctl/ctl_cmd.h"
#include "proto/base/buf.h"
#include "proto/base/json.h"

#define CTL_OUT_MAX ((size_t)128 << 20)

struct answer {
	int status; /* 0 when there was none */
	struct buf body;
	struct jdoc *doc; /* NULL when the body is empty or no JSON */
	const struct jval *root;
	char why[256];
};

void admin_ask(const struct ctl *c, const char *method, const char *path, struct answer *a);
/* The same with a JSON body. */
void admin_send(const struct ctl *c, const char *method, const char *path, const char *body,
		struct answer *a);
void admin_done(struct answer *a);
/* Says why an answer is not the one that was asked for; its exit code. */
int admin_refusal(const struct answer *a);

/* Asks for `path` and the pages behind it, whose cursor is the query's `cursor` ("after", "before"), and
 * hands over each element of the array `name`, at most `limit` (0: all), and each page's whole
 * answer (may be NULL). The exit code; a refusal was said. */
int admin_pages(const struct ctl *c, const char *path, const char *name, const char *cursor,
		size_t limit, void (*page)(void *ctx, const struct jval *root),
		void (*row)(void *ctx, const struct jval *row), void *ctx);

/* Members of an object; empty, 0 and false when they are absent. */
struct strv admin_text(const struct jval *o, const char *key);
int64_t admin_number(const struct jval *o, const char *key);
bool admin_true(const struct jval *o, const char *key);

/* To stdout, with a newline. */
void admin_print(const struct buf *b);

#endif
