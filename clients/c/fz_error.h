/* Filling the public error record: from the server's answer, from the base layer, from here. */
#ifndef CLIENTS_C_FZ_ERROR_H
#define CLIENTS_C_FZ_ERROR_H

#include "clients/c/frazil.h"
#include "proto/base/err.h"

/* Fills *err, which may be NULL, and returns st. Code 0, effect clean, retry none. */
enum fz_status fz_error_set(struct fz_error *err, enum fz_status st, const char *name,
			    const char *field, const char *fmt, ...) PRINTF_LIKE(5, 6);
/* The same from a base error: FZ_USAGE, its name, field and text. */
enum fz_status fz_error_base(struct fz_error *err, const struct err *base);
/* Chooses the status of an error whose code, name and effect are the server's. */
enum fz_status fz_error_class(const struct fz_error *err);
/* Copies text, cut at a UTF-8 boundary. */
void fz_error_text(char *dst, size_t cap, struct strv text);

#endif
