#include "proto/base/err.h"

#include <stdarg.h>
#include <stdio.h>

static const struct status_info infos[] = {
#define STATUS(name, http, type, code, retry, effect, help)                                         \
	[ST_##name] = {#name, http, type, code, RETRY_##retry, EFFECT_##effect, help},
#include "proto/base/status.tbl"
};

const struct status_info *status_info(enum status st)
{
	ASSERT((size_t)st < ARRAY_SIZE(infos));
	return &infos[st];
}

bool status_from_rpc(int rpc_code, enum status *ret_st)
{
	for (size_t i = 0; i < ARRAY_SIZE(infos); i++)
		if (infos[i].rpc_code == rpc_code) {
			*ret_st = (enum status)i;
			return true;
		}
	return false;
}

bool status_from_name(struct strv name, enum status *ret_st)
{
	for (size_t i = 0; i < ARRAY_SIZE(infos); i++)
		if (strv_eq(strv_of(infos[i].name), name)) {
			*ret_st = (enum status)i;
			return true;
		}
	return false;
}

/* Cut text may end inside a UTF-8 sequence; drop that tail. */
static void cut_utf8(char *s)
{
	size_t n = strlen(s);
	for (size_t back = 0; back < 4 && n > 0; back++) {
		if (strv_utf8((struct strv){s, n}))
			break;
		n--;
	}
	s[n] = 0;
}

static void fill(char *dst, size_t cap, const char *fmt, va_list ap)
{
	int n = vsnprintf(dst, cap, fmt, ap);
	if (n < 0)
		dst[0] = 0;
	else if ((size_t)n >= cap)
		cut_utf8(dst);
}

enum status err_set(struct err *err, enum status st, const char *field, const char *fmt, ...)
{
	if (!err)
		return st;
	err->st = st;
	snprintf(err->field, sizeof err->field, "%s", field ? field : "");
	cut_utf8(err->field);
	va_list ap;
	va_start(ap, fmt);
	fill(err->msg, sizeof err->msg, fmt, ap);
	va_end(ap);
	err->detail[0] = 0;
	return st;
}

void err_detail(struct err *err, const char *fmt, ...)
{
	if (!err)
		return;
	va_list ap;
	va_start(ap, fmt);
	fill(err->detail, sizeof err->detail, fmt, ap);
	va_end(ap);
}

void err_prefix(struct err *err, const char *fmt, ...)
{
	if (!err)
		return;
	char old[sizeof err->field];
	memcpy(old, err->field, sizeof old);
	va_list ap;
	va_start(ap, fmt);
	fill(err->field, sizeof err->field, fmt, ap);
	va_end(ap);
	size_t n = strlen(err->field), cap = sizeof err->field - 1, more = strlen(old);
	if (more == 0 || n + 1 >= cap)
		return;
	if (old[0] != '[')
		err->field[n++] = '.';
	more = more < cap - n ? more : cap - n;
	memcpy(err->field + n, old, more);
	err->field[n + more] = 0;
	cut_utf8(err->field);
}

void err_memory(struct err *err)
{
	if (err->st != ST_OK && base_memory_failed())
		(void)err_set(err, ST_OVERLOADED, "", "the server has run out of memory");
}
