/* One logfmt line per event on stderr, with the <N> priority prefix that journald understands.
 * Loop thread only; jobs do not log. Never tokens, credentials, bounds, property values, bodies. */
#ifndef CONF_LOG_H
#define CONF_LOG_H

#include "proto/base/err.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* What the line is about, written in this order. Absent: an empty view, number 0, ST_OK. Build it
 * with LOG_WITH(.req = ..., .st = ...). */
struct log_with {
	struct strv req, conn, principal, txn, table;
	int64_t batch, epoch, snapshot;
	enum status st;
	int64_t dur_us;
};
#define LOG_WITH(...) (&(const struct log_with){__VA_ARGS__})

/* State of one call site: at most LOG_BURST lines a second; the first line of a later second says
 * how many were dropped. */
#define LOG_BURST 50
struct log_site {
	int64_t second;
	uint32_t lines, dropped;
};

/* LOG(LOG_WARN, "pg.lost", LOG_WITH(.st = ST_IO), "connection %d", n): ev is noun.verb in lower
 * case; with may be NULL; an empty text leaves msg out. */
#define LOG(level, ev, with, ...)                                                                  \
	do {                                                                                       \
		static struct log_site log_site_;                                                  \
		if (log_enabled(level))                                                            \
			log_line(&log_site_, level, ev, with, __VA_ARGS__);                        \
	} while (0)

bool log_enabled(enum log_level level);
void log_set_level(enum log_level level);
/* Where lines go: 2 at start. */
void log_set_fd(int fd);
void log_line(struct log_site *site, enum log_level level, const char *ev,
	      const struct log_with *with, const char *fmt, ...) PRINTF_LIKE(5, 6);
/* The failed operation's record: st, msg (field and detail folded in). */
#define LOG_ERR(level, ev, err)                                                                    \
	LOG(level, ev, LOG_WITH(.st = (err)->st), "%s%s%s%s%s%s", (err)->field,                    \
	    (err)->field[0] ? ": " : "", (err)->msg, (err)->detail[0] ? " [" : "", (err)->detail,  \
	    (err)->detail[0] ? "]" : "")

/* Appends a value as logfmt wants it: bare when printable without space, quote, '=' or backslash;
 * else quoted with \" \\ \n \t \r and \u00XX. Bytes that are not UTF-8 become U+FFFD. */
struct buf;
void log_value(struct buf *b, struct strv v);

#endif
