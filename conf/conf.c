#include "conf/conf.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "conf/addr.h"

enum kind { KIND_INT, KIND_BOOL, KIND_TEXT, KIND_LIST, KIND_LEVEL, KIND_VERIFY };

struct row {
	const char *name;
	const char *def;
	const char *help;
	int64_t min, max;
	size_t offset;
	enum kind kind;
	bool hot;
};

#define RELOAD_HOT true
#define RELOAD_COLD false
static const struct row rows[] = {
#define CONF(member, kind, name, def, min, max, reload, help)                                      \
	{name, def, help, min, max, offsetof(struct conf, member), KIND_##kind, RELOAD_##reload},
#include "conf/conf.tbl"
};

/* Words of the closed kinds, in the order of their enums. */
static const char *const words_level[] = {"error", "warn", "info", "debug", NULL};
static const char *const words_verify[] = {"off", "warn", "reject", NULL};

static const char *const *words_of(enum kind kind)
{
	return kind == KIND_LEVEL ? words_level : words_verify;
}

static void *member_of(struct conf *c, size_t key)
{
	return (char *)c + rows[key].offset;
}

static const void *member_of_const(const struct conf *c, size_t key)
{
	return (const char *)c + rows[key].offset;
}

static struct strv section_of(const struct row *r)
{
	struct strv name = strv_of(r->name);
	return strv_sub(name, 0, strv_find(name, '.'));
}

static bool find_row(struct strv name, size_t *ret_key)
{
	for (size_t i = 0; i < CONF__COUNT; i++) {
		if (strv_eq(strv_of(rows[i].name), name)) {
			*ret_key = i;
			return true;
		}
	}
	return false;
}

static bool section_known(struct strv section)
{
	for (size_t i = 0; i < CONF__COUNT; i++)
		if (strv_eq(section_of(&rows[i]), section))
			return true;
	return false;
}

static bool has_control(struct strv s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] < ' ' || s.p[i] == 0x7f)
			return true;
	return false;
}

static struct strv trim(struct strv s)
{
	while (s.n && (s.p[0] == ' ' || s.p[0] == '\t' || s.p[0] == '\r')) {
		s.p++;
		s.n--;
	}
	while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t' || s.p[s.n - 1] == '\r'))
		s.n--;
	return s;
}

static enum status set_word(const struct row *r, struct strv value, void *member, const char *from,
			    struct err *err)
{
	const char *const *words = words_of(r->kind);
	for (int i = 0; words[i]; i++) {
		if (!strv_eq(strv_of(words[i]), value))
			continue;
		if (r->kind == KIND_LEVEL)
			*(enum log_level *)member = (enum log_level)i;
		else
			*(enum conf_verify *)member = (enum conf_verify)i;
		return ST_OK;
	}
	return err_set(err, ST_ILLEGAL_ARGUMENT, r->name, "%s: \"%.*s\" is none of %s", from,
		       STRV_ARG(value),
		       r->kind == KIND_LEVEL ? "error, warn, info, debug" : "off, warn, reject");
}

/* from: static or in the conf's arena. */
static enum status set_value(struct conf *c, size_t key, struct strv value, const char *from,
			     struct err *err)
{
	const struct row *r = &rows[key];
	void *member = member_of(c, key);
	enum status st = ST_OK;
	if (!strv_utf8(value) || has_control(value))
		return err_set(err, ST_ILLEGAL_ARGUMENT, r->name,
			       "%s: the value is not plain UTF-8 text", from);
	switch (r->kind) {
	case KIND_INT: {
		int64_t v;
		if (!strv_i64(value, &v) || v < r->min || v > r->max)
			return err_set(err, ST_ILLEGAL_ARGUMENT, r->name,
				       "%s: \"%.*s\" is not a whole number from %lld to %lld", from,
				       STRV_ARG(value), (long long)r->min, (long long)r->max);
		*(int64_t *)member = v;
		break;
	}
	case KIND_BOOL:
		if (!strv_eq(value, STRV("yes")) && !strv_eq(value, STRV("no")))
			return err_set(err, ST_ILLEGAL_ARGUMENT, r->name,
				       "%s: \"%.*s\" is neither yes nor no", from, STRV_ARG(value));
		*(bool *)member = value.p[0] == 'y';
		break;
	case KIND_TEXT:
	case KIND_LIST:
		if (!arena_strv(&c->arena, value, (struct strv *)member))
			return err_set(err, ST_LIMIT, r->name, "%s: the configuration is too large",
				       from);
		break;
	case KIND_LEVEL:
	case KIND_VERIFY:
		st = set_word(r, value, member, from, err);
		break;
	}
	if (st == ST_OK)
		c->from[key] = from;
	return st;
}

struct conf *conf_new(void)
{
	struct conf *c = base_calloc(1, sizeof *c);
	c->refs = 1;
	arena_init(&c->arena, 4 * CONF_MAX_FILE);
	for (size_t i = 0; i < CONF__COUNT; i++) {
		struct err err;
		enum status st = set_value(c, i, strv_of(rows[i].def), "default", &err);
		ASSERT(st == ST_OK);
	}
	return c;
}

struct conf *conf_ref(const struct conf *c)
{
	struct conf *shared = (struct conf *)c;
	shared->refs++;
	return shared;
}

void conf_unref(const struct conf *own_c)
{
	struct conf *c = (struct conf *)own_c;
	if (!c || --c->refs > 0)
		return;
	arena_fini(&c->arena);
	base_free(c);
}

static enum status apply_line(struct conf *c, struct strv line, const char *name, int number,
			      struct strv *section, bool *seen, struct err *err)
{
	if (line.n == 0 || line.p[0] == '#' || line.p[0] == ';')
		return ST_OK;
	if (line.p[0] == '[') {
		if (line.p[line.n - 1] != ']')
			return err_set(err, ST_ILLEGAL_ARGUMENT, "", "%s:%d: ']' is missing", name,
				       number);
		*section = trim(strv_sub(line, 1, line.n - 1));
		if (!section_known(*section))
			return err_set(err, ST_ILLEGAL_ARGUMENT, "",
				       "%s:%d: unknown section \"%.*s\"", name, number,
				       STRV_ARG(*section));
		return ST_OK;
	}
	size_t eq = strv_find(line, '=');
	if (eq == line.n)
		return err_set(err, ST_ILLEGAL_ARGUMENT, "", "%s:%d: \"key = value\" expected",
			       name, number);
	struct strv key = trim(strv_sub(line, 0, eq));
	char full[96];
	int n = snprintf(full, sizeof full, "%.*s.%.*s", STRV_ARG(*section), STRV_ARG(key));
	size_t at;
	if (section->n == 0 || n < 0 || (size_t)n >= sizeof full || !find_row(strv_of(full), &at))
		return err_set(err, ST_ILLEGAL_ARGUMENT, "", "%s:%d: unknown key \"%.*s\"%s", name,
			       number, STRV_ARG(key), section->n ? "" : " before any [section]");
	if (seen[at])
		return err_set(err, ST_ILLEGAL_ARGUMENT, rows[at].name,
			       "%s:%d: the key stands twice", name, number);
	seen[at] = true;
	const char *from = arena_printf(&c->arena, "%s:%d", name, number);
	if (!from)
		return err_set(err, ST_LIMIT, "", "%s:%d: the file is too large", name, number);
	return set_value(c, at, trim(strv_sub(line, eq + 1, line.n)), from, err);
}

enum status conf_apply_text(struct conf *c, struct strv text, const char *name, struct err *err)
{
	if (text.n > CONF_MAX_FILE)
		return err_set(err, ST_LIMIT, "", "%s: the file is larger than %d bytes", name,
			       CONF_MAX_FILE);
	bool seen[CONF__COUNT] = {false};
	struct strv section = {NULL, 0};
	for (int number = 1; text.n; number++) {
		size_t end = strv_find(text, '\n');
		struct strv line = trim(strv_sub(text, 0, end));
		text = strv_sub(text, end + 1, text.n);
		enum status st = apply_line(c, line, name, number, &section, seen, err);
		if (st != ST_OK)
			return st;
	}
	return ST_OK;
}

enum status conf_apply_file(struct conf *c, const char *path, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_set(err, ST_IO, "", "%s: %s", path, strerror(errno));
	struct buf b;
	buf_init(&b, CONF_MAX_FILE + 4096);
	enum status st = ST_OK;
	for (;;) {
		char part[4096];
		ssize_t n = read(fd, part, sizeof part);
		if (n == 0)
			break;
		if (n < 0) {
			st = err_set(err, ST_IO, "", "%s: %s", path, strerror(errno));
			break;
		}
		buf_put(&b, part, (size_t)n);
		if (!buf_ok(&b) || b.n > CONF_MAX_FILE) {
			st = err_set(err, ST_LIMIT, "", "%s: the file is larger than %d bytes",
				     path, CONF_MAX_FILE);
			break;
		}
	}
	close(fd);
	if (st == ST_OK)
		st = conf_apply_text(c, buf_strv(&b), path, err);
	buf_fini(&b);
	return st;
}

/* "rest.max-body-bytes" as "FRAZIL_REST_MAX_BODY_BYTES". */
static void env_name(struct strv name, char *out, size_t cap)
{
	size_t n = (size_t)snprintf(out, cap, "FRAZIL_");
	for (size_t i = 0; i < name.n && n + 1 < cap; i++) {
		char ch = name.p[i];
		out[n++] = ch == '.' || ch == '-' ? '_' : (char)toupper((unsigned char)ch);
	}
	out[n] = 0;
}

static enum status apply_variable(struct conf *c, struct strv variable, struct err *err)
{
	size_t eq = strv_find(variable, '=');
	struct strv name = strv_sub(variable, 0, eq);
	bool ours = false;
	for (size_t i = 0; i < CONF__COUNT; i++) {
		char want[128];
		env_name(strv_of(rows[i].name), want, sizeof want);
		if (strv_eq(strv_of(want), name)) {
			const char *from = arena_printf(&c->arena, "environment %s", want);
			if (!from)
				return err_set(err, ST_LIMIT, rows[i].name, "too much environment");
			return set_value(c, i, strv_sub(variable, eq + 1, variable.n), from, err);
		}
		env_name(section_of(&rows[i]), want, sizeof want - 1);
		want[strlen(want) + 1] = 0;
		want[strlen(want)] = '_';
		if (strv_starts(name, strv_of(want)))
			ours = true;
	}
	if (ours)
		return err_set(err, ST_ILLEGAL_ARGUMENT, "", "environment %.*s: unknown key",
			       STRV_ARG(name));
	return ST_OK;
}

enum status conf_apply_env(struct conf *c, char *const *environ_list, struct err *err)
{
	for (; environ_list && *environ_list; environ_list++) {
		struct strv variable = strv_of(*environ_list);
		if (!strv_starts(variable, STRV("FRAZIL_")))
			continue;
		enum status st = apply_variable(c, variable, err);
		if (st != ST_OK)
			return st;
	}
	return ST_OK;
}

enum status conf_apply_set(struct conf *c, struct strv assignment, struct err *err)
{
	size_t eq = strv_find(assignment, '='), at;
	struct strv key = trim(strv_sub(assignment, 0, eq));
	if (eq == assignment.n)
		return err_set(err, ST_ILLEGAL_ARGUMENT, "", "--set %.*s: key=value expected",
			       STRV_ARG(assignment));
	if (!find_row(key, &at))
		return err_set(err, ST_ILLEGAL_ARGUMENT, "", "--set: unknown key \"%.*s\"",
			       STRV_ARG(key));
	return set_value(c, at, trim(strv_sub(assignment, eq + 1, assignment.n)), "--set", err);
}

enum status conf_check_address(const struct conf *c, const struct sockaddr_storage *sa,
			       const char *key, struct err *err)
{
	char text[ADDR_TEXT_MAX];
	if (addr_is_loopback(sa) || c->auth_allow_anonymous ||
	    (c->auth_clients_file.n && strcmp(key, "rest.listen") == 0))
		return ST_OK;
	addr_text(sa, text);
	return err_set(err, ST_ILLEGAL_ARGUMENT, key,
		       "%s is reachable from other machines and no authentication is "
		       "configured; auth.allow-anonymous = yes allows it",
		       text);
}

static enum status check_listen(const struct conf *c, struct strv text, const char *key,
				struct err *err)
{
	struct addr a;
	if (text.n == 0)
		return ST_OK;
	enum status st = addr_parse(text, key, &a, err);
	if (st != ST_OK)
		return st;
	return conf_check_address(c, &a.sa, key, err);
}

/* A warehouse name is the first segment of a path, so it must not look like a route's own. */
static bool name_reserved(struct strv name)
{
	static const char *const taken[] = {"config", "oauth",        "namespaces",
					    "tables", "transactions", "views"};
	for (size_t i = 0; i < ARRAY_SIZE(taken); i++)
		if (strv_eq(name, strv_of(taken[i])))
			return true;
	return false;
}

static enum status check_warehouse(const struct conf *c, size_t i, struct strv name,
				   struct strv location, struct err *err)
{
	const char *key = i == 0 ? "warehouse.name" : "warehouse.extra";
	if (name.n == 0 || strv_find(name, '/') < name.n || name_reserved(name))
		return err_set(
			err, ST_ILLEGAL_ARGUMENT, key,
			"\"%.*s\" cannot name a warehouse: empty, with a slash, or a word of "
			"the routes",
			STRV_ARG(name));
	if (location.n && !strv_starts(location, STRV("file:///")))
		return err_set(err, ST_ILLEGAL_ARGUMENT, i == 0 ? "warehouse.location" : key,
			       "\"%.*s\" is not an absolute file:// URI", STRV_ARG(location));
	if (i > 0 && location.n == 0)
		return err_set(err, ST_ILLEGAL_ARGUMENT, key, "\"%.*s\" has no location",
			       STRV_ARG(name));
	struct strv other, ignored;
	for (size_t k = 0; k < i && conf_warehouse(c, k, &other, &ignored); k++)
		if (strv_eq(other, name))
			return err_set(err, ST_ILLEGAL_ARGUMENT, key, "\"%.*s\" stands twice",
				       STRV_ARG(name));
	return ST_OK;
}

enum status conf_check(const struct conf *c, struct err *err)
{
	enum status st = check_listen(c, c->rest_listen, "rest.listen", err);
	if (st == ST_OK)
		st = check_listen(c, c->rpc_listen, "rpc.listen", err);
	if (st == ST_OK)
		st = check_listen(c, c->admin_listen, "admin.listen", err);
	if (st == ST_OK && c->rest_listen.n == 0)
		st = err_set(err, ST_ILLEGAL_ARGUMENT, "rest.listen", "an address is needed");
	/* sun_path of a unix address holds 108 bytes with its NUL. */
	if (st == ST_OK && c->rpc_socket.n > 107)
		st = err_set(err, ST_ILLEGAL_ARGUMENT, "rpc.socket", "longer than 107 bytes");
	if (st == ST_OK && c->txn_ttl_default_ms > c->txn_ttl_max_ms)
		st = err_set(err, ST_ILLEGAL_ARGUMENT, "txn.ttl-default-ms",
			     "larger than txn.ttl-max-ms");
	struct strv name, location;
	for (size_t i = 0; st == ST_OK && conf_warehouse(c, i, &name, &location); i++)
		st = check_warehouse(c, i, name, location, err);
	struct strv roots = c->fs_roots, root;
	while (st == ST_OK && conf_list_next(&roots, &root))
		if (!strv_starts(root, STRV("file:///")))
			st = err_set(err, ST_ILLEGAL_ARGUMENT, "fs.roots",
				     "\"%.*s\" is not an absolute file:// URI", STRV_ARG(root));
	return st;
}

static void put_value(const struct conf *c, size_t key, struct buf *out)
{
	const void *m = member_of_const(c, key);
	switch (rows[key].kind) {
	case KIND_INT:
		buf_printf(out, "%lld", (long long)*(const int64_t *)m);
		break;
	case KIND_BOOL:
		buf_puts(out, *(const bool *)m ? "yes" : "no");
		break;
	case KIND_TEXT:
	case KIND_LIST:
		buf_putv(out, *(const struct strv *)m);
		break;
	case KIND_LEVEL:
		buf_puts(out, words_level[*(const enum log_level *)m]);
		break;
	case KIND_VERIFY:
		buf_puts(out, words_verify[*(const enum conf_verify *)m]);
		break;
	}
}

enum status conf_keep_cold(struct conf *fresh, const struct conf *old, struct buf *changed,
			   struct err *err)
{
	for (size_t i = 0; i < CONF__COUNT; i++) {
		if (rows[i].hot)
			continue;
		struct buf a, b;
		buf_init(&a, CONF_MAX_FILE);
		buf_init(&b, CONF_MAX_FILE);
		put_value(fresh, i, &a);
		put_value(old, i, &b);
		enum status st = ST_OK;
		if (!strv_eq(buf_strv(&a), buf_strv(&b))) {
			buf_printf(changed, "%s%s", changed->n ? " " : "", rows[i].name);
			const char *from = arena_printf(&fresh->arena, "%s", old->from[i]);
			st = from ? set_value(fresh, i, buf_strv(&b), from, err)
				  : err_set(err, ST_LIMIT, rows[i].name, "out of room");
		}
		buf_fini(&a);
		buf_fini(&b);
		if (st != ST_OK)
			return st;
	}
	return ST_OK;
}

/* Writes "[section]" when row i begins one. */
static void put_section(size_t i, struct buf *out)
{
	struct strv section = section_of(&rows[i]);
	if (i == 0 || !strv_eq(section, section_of(&rows[i - 1])))
		buf_printf(out, "%s[%.*s]\n", i ? "\n" : "", STRV_ARG(section));
}

static const char *key_in_section(size_t i)
{
	return rows[i].name + section_of(&rows[i]).n + 1;
}

void conf_print(const struct conf *c, struct buf *out)
{
	for (size_t i = 0; i < CONF__COUNT; i++) {
		put_section(i, out);
		buf_printf(out, "# %s\n%s = ", c->from[i], key_in_section(i));
		put_value(c, i, out);
		buf_putc(out, '\n');
	}
}

/* Help text folded at 96 columns behind "# ". */
static void put_help(struct strv help, struct buf *out)
{
	size_t column = 0;
	while (help.n) {
		size_t end = strv_find(help, ' ');
		if (column == 0 || column + 1 + end > 96) {
			buf_puts(out, column ? "\n#" : "#");
			column = 1;
		}
		buf_putc(out, ' ');
		buf_putv(out, strv_sub(help, 0, end));
		column += 1 + end;
		help = strv_sub(help, end + 1, help.n);
	}
	buf_putc(out, '\n');
}

void conf_template(struct buf *out)
{
	buf_puts(
		out,
		"# Configuration of frazild. Every key stands here with its default; uncomment to "
		"change it.\n"
		"# The environment (FRAZIL_SECTION_KEY) and --set section.key=value win over "
		"this file.\n"
		"# Made from conf.tbl by `make gen`; do not edit the copy in the source tree.\n\n");
	for (size_t i = 0; i < CONF__COUNT; i++) {
		const struct row *r = &rows[i];
		put_section(i, out);
		put_help(strv_of(r->help), out);
		if (r->kind == KIND_INT)
			buf_printf(out, "# From %lld to %lld.\n", (long long)r->min,
				   (long long)r->max);
		if (r->hot)
			buf_puts(out, "# Taken over on reload.\n");
		buf_printf(out, "#%s =%s%s\n", key_in_section(i), r->def[0] ? " " : "", r->def);
	}
}

bool conf_list_next(struct strv *rest, struct strv *ret_item)
{
	while (rest->n) {
		size_t end = strv_find(*rest, ',');
		struct strv item = trim(strv_sub(*rest, 0, end));
		*rest = strv_sub(*rest, end + 1, rest->n);
		if (item.n) {
			*ret_item = item;
			return true;
		}
	}
	return false;
}

static struct strv without_slash(struct strv location)
{
	while (location.n > strlen("file:///") && location.p[location.n - 1] == '/')
		location.n--;
	return location;
}

bool conf_warehouse(const struct conf *c, size_t i, struct strv *ret_name,
		    struct strv *ret_location)
{
	if (i == 0) {
		*ret_name = c->warehouse_name;
		*ret_location = without_slash(c->warehouse_location);
		return true;
	}
	struct strv rest = c->warehouse_extra, item;
	for (size_t k = 1; conf_list_next(&rest, &item); k++) {
		if (k != i)
			continue;
		size_t eq = strv_find(item, '=');
		*ret_name = trim(strv_sub(item, 0, eq));
		*ret_location = without_slash(trim(strv_sub(item, eq + 1, item.n)));
		return true;
	}
	return false;
}
