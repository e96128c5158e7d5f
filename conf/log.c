#include "conf/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "proto/base/buf.h"

/* The longest line; a longer one loses its end, never its frame. */
#define LINE_MAX_BYTES 2048

static enum log_level level_now = LOG_INFO;
static int out_fd = 2;

static const struct {
	const char *name;
	char priority; /* of syslog: 3 error, 4 warning, 6 informational, 7 debug */
} levels[] = {{"error", '3'}, {"warn", '4'}, {"info", '6'}, {"debug", '7'}};

bool log_enabled(enum log_level level)
{
	return level <= level_now;
}

void log_set_level(enum log_level level)
{
	level_now = level;
}

void log_set_fd(int fd)
{
	out_fd = fd;
}

static bool is_bare(struct strv v)
{
	for (size_t i = 0; i < v.n; i++) {
		char c = v.p[i];
		if (c <= ' ' || c > '~' || c == '"' || c == '=' || c == '\\')
			return false;
	}
	return v.n > 0;
}

/* Length of the well-formed UTF-8 sequence at s, or 0. */
static size_t utf8_len(struct strv s)
{
	for (size_t n = 1; n <= 4 && n <= s.n; n++)
		if (strv_utf8(strv_sub(s, 0, n)))
			return n;
	return 0;
}

void log_value(struct buf *b, struct strv v)
{
	if (is_bare(v)) {
		buf_putv(b, v);
		return;
	}
	buf_putc(b, '"');
	for (size_t i = 0; i < v.n;) {
		char c = v.p[i];
		size_t n = utf8_len(strv_sub(v, i, v.n));
		if (n == 0) {
			buf_puts(b, "\xef\xbf\xbd");
			n = 1;
		} else if (n > 1) {
			buf_put(b, v.p + i, n);
		} else if (c == '"' || c == '\\') {
			buf_putc(b, '\\');
			buf_putc(b, (uint8_t)c);
		} else if (c == '\n') {
			buf_puts(b, "\\n");
		} else if (c == '\t') {
			buf_puts(b, "\\t");
		} else if (c == '\r') {
			buf_puts(b, "\\r");
		} else if ((unsigned char)c < ' ' || c == 0x7f) {
			buf_printf(b, "\\u%04x", (unsigned char)c);
		} else {
			buf_putc(b, (uint8_t)c);
		}
		i += n;
	}
	buf_putc(b, '"');
}

static void put_text(struct buf *b, const char *key, struct strv v)
{
	if (v.n == 0)
		return;
	buf_printf(b, " %s=", key);
	log_value(b, v);
}

static void put_number(struct buf *b, const char *key, int64_t v)
{
	if (v)
		buf_printf(b, " %s=%lld", key, (long long)v);
}

static void put_with(struct buf *b, const struct log_with *w)
{
	put_text(b, "req", w->req);
	put_text(b, "conn", w->conn);
	put_text(b, "principal", w->principal);
	put_text(b, "txn", w->txn);
	put_text(b, "table", w->table);
	put_number(b, "batch", w->batch);
	put_number(b, "epoch", w->epoch);
	put_number(b, "snapshot", w->snapshot);
	if (w->st != ST_OK)
		put_text(b, "st", strv_of(status_info(w->st)->name));
	put_number(b, "dur_us", w->dur_us);
}

/* Whether this line may go out; *ret_dropped counts those that could not before it. */
static bool admit(struct log_site *site, int64_t second, uint32_t *ret_dropped)
{
	*ret_dropped = 0;
	if (site->second != second) {
		*ret_dropped = site->dropped;
		*site = (struct log_site){.second = second};
	}
	if (site->lines >= LOG_BURST) {
		site->dropped++;
		return false;
	}
	site->lines++;
	return true;
}

void log_line(struct log_site *site, enum log_level level, const char *ev,
	      const struct log_with *with, const char *fmt, ...)
{
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	uint32_t dropped;
	if (!admit(site, (int64_t)ts.tv_sec, &dropped))
		return;

	char msg[768];
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(msg, sizeof msg, fmt, ap);
	va_end(ap);

	struct tm tm;
	char when[32] = "";
	if (gmtime_r(&ts.tv_sec, &tm))
		strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &tm);
	struct buf b;
	buf_init(&b, 8192);
	buf_printf(&b, "<%c>ts=%s.%06ldZ level=%s ev=%s", levels[level].priority, when,
		   ts.tv_nsec / 1000, levels[level].name, ev);
	if (with)
		put_with(&b, with);
	if (n > 0)
		put_text(&b, "msg", strv_of(msg));
	if (dropped)
		buf_printf(&b, " dropped=%u", dropped);
	size_t len = b.n < LINE_MAX_BYTES ? b.n : LINE_MAX_BYTES;
	b.n = len;
	buf_putc(&b, '\n');
	/* One write, so that lines of several processes on one pipe do not mix. There is nowhere to
	 * report a failure to. */
	ssize_t wrote = write(out_fd, b.p, b.n);
	(void)wrote;
	buf_fini(&b);
}
