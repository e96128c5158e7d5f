/* Status codes (status.tbl) and the error record filled once, where the cause is known. */
#ifndef PROTO_BASE_ERR_H
#define PROTO_BASE_ERR_H

#include "proto/base/base.h"
#include "proto/base/strv.h"

enum status {
#define STATUS(name, http, type, code, retry, effect, help) ST_##name,
#include "proto/base/status.tbl"
	ST__COUNT
};

enum status_retry { RETRY_NONE, RETRY_SAME, RETRY_REFRESH, RETRY_LATER };
enum status_effect { EFFECT_CLEAN, EFFECT_UNKNOWN };

struct status_info {
	const char *name;
	int http;
	const char *iceberg_type;
	int rpc_code;
	enum status_retry retry;
	enum status_effect effect;
	const char *help;
};

/* Static storage; asserts that st is a row of the table. */
const struct status_info *status_info(enum status st);
/* false when no row has this RPC code. */
bool status_from_rpc(int rpc_code, enum status *ret_st);
bool status_from_name(struct strv name, enum status *ret_st);

/* field: path of the offending member ("updates[2].snapshot.summary"); msg may reach clients;
 * detail goes to logs only. All end with NUL; longer text is cut at a UTF-8 boundary. */
struct err {
	enum status st;
	char field[96];
	char msg[192];
	char detail[192];
};

/* Turns an error into OVERLOADED when this thread ran out of memory since base_memory_reset: the same
 * input may well be good, and the request may be repeated. */
void err_memory(struct err *err);
/* Fills *err and returns st, so that a caller can write `return err_set(err, ST_X, "f", "…")`.
 * err may be NULL. */
enum status err_set(struct err *err, enum status st, const char *field, const char *fmt, ...)
	PRINTF_LIKE(4, 5);
void err_detail(struct err *err, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Puts "prefix" or "prefix." before the field path; the only thing a caller may change. */
void err_prefix(struct err *err, const char *fmt, ...) PRINTF_LIKE(2, 3);

#endif
