#include "clients/c/fz_error.h"

#include <stdarg.h>
#include <stdio.h>

/* Codes of the rejects that are final, by the protocol's numbering. */
#define REJECT_FIRST 60
#define REJECT_LAST 99

void fz_error_text(char *dst, size_t cap, struct strv text)
{
	size_t n = text.n < cap ? text.n : cap - 1;
	/* A continuation byte must not be the first that is left out. */
	while (n > 0 && n < text.n && ((uint8_t)text.p[n] & 0xc0) == 0x80)
		n--;
	if (n)
		memcpy(dst, text.p, n);
	dst[n] = 0;
}

enum fz_status fz_error_set(struct fz_error *err, enum fz_status st, const char *name,
			    const char *field, const char *fmt, ...)
{
	if (!err)
		return st;
	*err = (struct fz_error){.status = st};
	fz_error_text(err->name, sizeof err->name, strv_of(name));
	fz_error_text(err->field, sizeof err->field, strv_of(field));
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(err->message, sizeof err->message, fmt, ap);
	va_end(ap);
	return st;
}

enum fz_status fz_error_base(struct fz_error *err, const struct err *base)
{
	return fz_error_set(err, FZ_USAGE, status_info(base->st)->name, base->field, "%s",
			    base->msg);
}

enum fz_status fz_error_class(const struct fz_error *err)
{
	static const struct {
		const char *name;
		enum fz_status st;
	} by_name[] = {
		{"DIGEST_CONFLICT", FZ_CONFLICT}, {"TXN_EXPIRED", FZ_OVER},
		{"TXN_ABORTED", FZ_OVER},         {"LOST", FZ_OVER},
		{"OVERLOADED", FZ_OVERLOADED},    {"UNAVAILABLE", FZ_OVERLOADED},
	};
	for (size_t i = 0; i < ARRAY_SIZE(by_name); i++)
		if (strcmp(err->name, by_name[i].name) == 0)
			return by_name[i].st;
	if (err->effect == FZ_EFFECT_UNKNOWN)
		return FZ_UNKNOWN;
	if (err->code >= REJECT_FIRST && err->code <= REJECT_LAST)
		return FZ_REJECTED;
	return FZ_REFUSED;
}

const char *fz_status_name(enum fz_status status)
{
	static const char *const names[] = {
		"FZ_OK",      "FZ_REJECTED", "FZ_CONFLICT", "FZ_OVER",  "FZ_OVERLOADED",
		"FZ_UNKNOWN", "FZ_LOST",     "FZ_PROTOCOL", "FZ_USAGE", "FZ_REFUSED"};
	return (size_t)status < ARRAY_SIZE(names) ? names[status] : "?";
}

const char *fz_state_name(enum fz_state state)
{
	static const char *const names[] = {"OPEN",    "SEALED",  "COMMITTED", "REJECTED",
					    "ABORTED", "EXPIRED", "LOST"};
	return (size_t)state < ARRAY_SIZE(names) ? names[state] : "?";
}

const char *fz_version(void)
{
	return FZ_VERSION;
}
