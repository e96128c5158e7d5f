/* Configuration: conf.tbl's keys as a typed struct. Filled in the order default, file, environment,
 * --set, then checked and from there on immutable and shared by reference; a reload swaps the
 * reference. Counts change on the loop thread only. */
#ifndef CONF_CONF_H
#define CONF_CONF_H

#include <sys/socket.h>

#include "conf/log.h"
#include "proto/base/arena.h"
#include "proto/base/buf.h"

/* Values of kind VERIFY, in the order of their words. */
enum conf_verify { CONF_VERIFY_OFF, CONF_VERIFY_WARN, CONF_VERIFY_REJECT };

/* Text values end with a NUL that is not counted, and hold none. */
#define CONF_TYPE_INT int64_t
#define CONF_TYPE_BOOL bool
#define CONF_TYPE_TEXT struct strv
#define CONF_TYPE_LIST struct strv
#define CONF_TYPE_LEVEL enum log_level
#define CONF_TYPE_VERIFY enum conf_verify

enum conf_key {
#define CONF(member, kind, name, def, min, max, reload, help) CONF_##member,
#include "conf/conf.tbl"
	CONF__COUNT
};

struct conf {
	int refs;
	struct arena arena;
	const char *from[CONF__COUNT]; /* where each value comes from, for printing */
#define CONF(member, kind, name, def, min, max, reload, help) CONF_TYPE_##kind member;
#include "conf/conf.tbl"
};

#define CONF_MAX_FILE (256 * 1024)

/* All defaults, one reference. */
struct conf *conf_new(void);
struct conf *conf_ref(const struct conf *c);
void conf_unref(const struct conf *own_c);

/* INI text: [section], key = value, lines beginning with # or ; are comments. Unknown sections and
 * keys, a key twice, text that is not UTF-8 and values out of range are errors whose message begins
 * with name:line. */
MUST_CHECK enum status conf_apply_text(struct conf *c, struct strv text, const char *name,
				       struct err *err);
MUST_CHECK enum status conf_apply_file(struct conf *c, const char *path, struct err *err);
/* FRAZIL_SECTION_KEY of each row, hyphens as underscores. A variable that begins with a known
 * section but names no key is an error; others with the prefix are not ours. */
MUST_CHECK enum status conf_apply_env(struct conf *c, char *const *environ_list, struct err *err);
/* "section.key=value". */
MUST_CHECK enum status conf_apply_set(struct conf *c, struct strv assignment, struct err *err);
/* Rules over several keys: addresses, loopback without authentication, warehouses. */
MUST_CHECK enum status conf_check(const struct conf *c, struct err *err);
/* Of one address, also of a socket that was handed over: the rule over loopback. */
MUST_CHECK enum status conf_check_address(const struct conf *c, const struct sockaddr_storage *sa,
					  const char *key, struct err *err);

/* On reload: copies the values of COLD keys from old, and appends the names of those that differed
 * to changed, separated by spaces. */
MUST_CHECK enum status conf_keep_cold(struct conf *fresh, const struct conf *old,
				      struct buf *changed, struct err *err);

/* The values in force as INI text with their origin. */
void conf_print(const struct conf *c, struct buf *out);
/* frazild.ini: every key with help, commented out at its default. */
void conf_template(struct buf *out);

/* Takes the next item of a comma-separated list off *rest, spaces trimmed, empty ones skipped;
 * false at the end. */
bool conf_list_next(struct strv *rest, struct strv *ret_item);
/* Warehouses in order, the default one first; false past the end. Locations have no slash at their
 * end. */
bool conf_warehouse(const struct conf *c, size_t i, struct strv *ret_name,
		    struct strv *ret_location);

#endif
