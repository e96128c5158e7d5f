#include "proto/iceberg/value_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "proto/base/digest.h"
#include "proto/base/uuid.h"

#define DAY_NS INT64_C(86400000000000)
/* Longest JSON text of one default. */
#define DEFAULT_MAX ((size_t)1 << 20)

/* Proleptic Gregorian calendar. Years begin in March here, so that the leap day is the last. */

static int64_t floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/* Days from 1970-01-01 to March 1st of the year. */
static int64_t days_to_march(int64_t year)
{
	return 365 * year + floor_div(year, 4) - floor_div(year, 100) + floor_div(year, 400) -
	       719468;
}

/* Days from March 1st to the first of a month, March being 0. */
static int64_t month_start(int64_t m)
{
	return (153 * m + 2) / 5;
}

void value_text_civil(int64_t days, int64_t *ret_year, int *ret_month, int *ret_day)
{
	/* 146097 days are exactly 400 years; the estimate is off by at most one year. */
	int64_t year = floor_div((days + 719468) * 400, 146097) + 1;
	while (days_to_march(year) > days)
		year--;
	int64_t rest = days - days_to_march(year), m = 11;
	while (month_start(m) > rest)
		m--;
	*ret_day = (int)(rest - month_start(m)) + 1;
	*ret_month = m < 10 ? (int)m + 3 : (int)m - 9;
	*ret_year = m < 10 ? year : year + 1;
}

static bool days_of(int64_t year, int64_t month, int64_t day, int64_t *ret_days)
{
	static const uint8_t length[12] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
	if (month < 1 || month > 12 || day < 1 || day > length[month - 1] ||
	    (month == 2 && day == 29 && !leap))
		return false;
	*ret_days = days_to_march(month > 2 ? year : year - 1) +
		    month_start(month > 2 ? month - 3 : month + 9) + day - 1;
	return true;
}

static void put_date(struct buf *b, int64_t days)
{
	int64_t year;
	int month, day;
	value_text_civil(days, &year, &month, &day);
	/* ISO 8601 wants a sign on years of more than four digits. */
	buf_printf(b, "%s%04lld-%02d-%02d",
		   year < 0      ? "-"
		   : year > 9999 ? "+"
				 : "",
		   (long long)(year < 0 ? -year : year), month, day);
}

void value_text_date(struct buf *b, int64_t days)
{
	int64_t year;
	int month, day;
	value_text_civil(days, &year, &month, &day);
	buf_printf(b, "%04lld-%02d-%02d", (long long)year, month, day);
}

/* Parts of a second: as many digits as the type has, as few as hold the value, or as few groups of
 * three, with seconds only when something is not zero. */
enum fraction { FRACTION_MICROS = 6, FRACTION_NANOS = 9, FRACTION_SHORT = 100, FRACTION_GROUPS };

static void put_time(struct buf *b, int64_t ns, enum fraction how)
{
	int64_t s = ns / 1000000000, frac = ns % 1000000000;
	int digits = (int)how;
	buf_printf(b, "%02d:%02d", (int)(s / 3600), (int)(s / 60 % 60));
	if (how == FRACTION_GROUPS && s % 60 == 0 && frac == 0)
		return;
	if (how == FRACTION_GROUPS)
		digits = frac == 0 ? 0 : frac % 1000000 == 0 ? 3 : frac % 1000 == 0 ? 6 : 9;
	buf_printf(b, ":%02d", (int)(s % 60));
	if (how == FRACTION_SHORT)
		for (digits = 9, s = frac; digits > 0 && s % 10 == 0; s /= 10)
			digits--;
	for (int i = digits; i < 9; i++)
		frac /= 10;
	if (digits > 0)
		buf_printf(b, ".%0*d", digits, (int)frac);
}

static bool is_nanos(const struct type *t)
{
	return t->kind == TYPE_TIMESTAMP_NS || t->kind == TYPE_TIMESTAMPTZ_NS;
}

static bool is_zoned(const struct type *t)
{
	return t->kind == TYPE_TIMESTAMPTZ || t->kind == TYPE_TIMESTAMPTZ_NS;
}

static void put_timestamp(struct buf *b, const struct type *t, int64_t v, bool human)
{
	int64_t scale = is_nanos(t) ? 1 : 1000, day = DAY_NS / scale;
	int64_t days = floor_div(v, day);
	put_date(b, days);
	buf_putc(b, 'T');
	/* The remainder without days * day, which may not fit at the far end of the range. */
	int64_t rest = v % day < 0 ? v % day + day : v % day;
	put_time(b, rest * scale,
		 human         ? FRACTION_SHORT
		 : is_nanos(t) ? FRACTION_NANOS
			       : FRACTION_MICROS);
	if (is_zoned(t))
		buf_puts(b, "+00:00");
}

/* Reading: a cursor over the text; each step takes its part or fails. */

static bool take(struct strv *s, char c)
{
	if (s->n == 0 || *s->p != c)
		return false;
	*s = strv_sub(*s, 1, s->n);
	return true;
}

static bool take_digits(struct strv *s, size_t least, size_t most, int64_t *ret_v, size_t *ret_n)
{
	size_t n = 0;
	int64_t v = 0;
	while (n < s->n && n < most && s->p[n] >= '0' && s->p[n] <= '9')
		v = v * 10 + (s->p[n++] - '0');
	if (n < least)
		return false;
	*s = strv_sub(*s, n, s->n);
	*ret_v = v;
	if (ret_n)
		*ret_n = n;
	return true;
}

static bool take_date(struct strv *s, int64_t *ret_days)
{
	int64_t year, month, day;
	bool minus = take(s, '-'), sign = minus || take(s, '+');
	if (!take_digits(s, 4, sign ? 9 : 4, &year, NULL) || !take(s, '-') ||
	    !take_digits(s, 2, 2, &month, NULL) || !take(s, '-') ||
	    !take_digits(s, 2, 2, &day, NULL))
		return false;
	return days_of(minus ? -year : year, month, day, ret_days);
}

static bool take_time(struct strv *s, size_t most_digits, int64_t *ret_ns)
{
	int64_t h, m, sec, frac = 0;
	size_t n = 9;
	if (!take_digits(s, 2, 2, &h, NULL) || !take(s, ':') || !take_digits(s, 2, 2, &m, NULL) ||
	    !take(s, ':') || !take_digits(s, 2, 2, &sec, NULL) || h > 23 || m > 59 || sec > 59)
		return false;
	if (take(s, '.') && !take_digits(s, 1, most_digits, &frac, &n))
		return false;
	for (; n < 9; n++)
		frac *= 10;
	*ret_ns = ((h * 60 + m) * 60 + sec) * 1000000000 + frac;
	return true;
}

static bool read_timestamp(const struct type *t, struct strv s, int64_t *ret_v)
{
	int64_t scale = is_nanos(t) ? 1 : 1000, days, ns, v;
	if (!take_date(&s, &days) || !take(&s, 'T') || !take_time(&s, is_nanos(t) ? 9 : 6, &ns))
		return false;
	if (is_zoned(t)) {
		/* Other offsets are refused, as the reference implementation does. */
		if (!strv_eq(s, STRV("+00:00")) && !strv_eq(s, STRV("Z")))
			return false;
	} else if (s.n > 0) {
		return false;
	}
	/* The wide product lets the first moments of the range pass, which begin in an earlier day.
	 */
	__int128 wide = (__int128)days * (DAY_NS / scale) + ns / scale;
	if (wide < INT64_MIN || wide > INT64_MAX)
		return false;
	v = (int64_t)wide;
	*ret_v = v;
	return true;
}

static bool read_moment(const struct type *t, struct strv s, int64_t *ret_v)
{
	int64_t v;
	if (t->kind == TYPE_DATE) {
		if (!take_date(&s, &v) || s.n > 0 || v < INT32_MIN || v > INT32_MAX)
			return false;
	} else if (t->kind == TYPE_TIME) {
		if (!take_time(&s, 6, &v) || s.n > 0)
			return false;
		v /= 1000;
	} else if (!read_timestamp(t, s, &v)) {
		return false;
	}
	*ret_v = v;
	return true;
}

/* Floating point: the fewest digits that read back as the same number, laid out as Java does, which
 * is valid JSON too. */
static void put_double(struct buf *b, double d, bool single)
{
	char text[32], digits[20];
	size_t n = 0;
	/* At least two digits, the closer of which Java takes too: 4.9E-324, not 5.0E-324. */
	for (int p = 1; p < 17; p++) {
		snprintf(text, sizeof text, "%.*e", p, d);
		if (single ? strtof(text, NULL) == (float)d : strtod(text, NULL) == d)
			break;
	}
	char *e = strchr(text, 'e');
	ASSERT(e);
	int exp = (int)strtol(e + 1, NULL, 10);
	for (char *p = text; p < e; p++)
		if (*p >= '0' && *p <= '9')
			digits[n++] = *p;
	while (n > 1 && digits[n - 1] == '0')
		n--;
	if (signbit(d))
		buf_putc(b, '-');
	if (d == 0) {
		buf_puts(b, "0.0");
	} else if (exp < -3 || exp >= 7) {
		buf_putc(b, (uint8_t)digits[0]);
		buf_putc(b, '.');
		buf_put(b, n > 1 ? digits + 1 : "0", n > 1 ? n - 1 : 1);
		buf_printf(b, "E%d", exp);
	} else if (exp < 0) {
		buf_puts(b, "0.");
		for (int i = -1; i > exp; i--)
			buf_putc(b, '0');
		buf_put(b, digits, n);
	} else {
		for (size_t i = 0; i < n || i < (size_t)exp + 2; i++) {
			if (i == (size_t)exp + 1)
				buf_putc(b, '.');
			buf_putc(b, i < n ? (uint8_t)digits[i] : '0');
		}
	}
}

static void put_float(struct buf *b, const struct type *t, const struct value *v)
{
	double d = value_double(t, v);
	if (isnan(d))
		buf_puts(b, "NaN");
	else if (isinf(d))
		buf_puts(b, d < 0 ? "-Infinity" : "Infinity");
	else
		put_double(b, d, t->kind == TYPE_FLOAT);
}

static void put_decimal(struct buf *b, __int128 v, int32_t scale)
{
	char digits[64];
	size_t n = sizeof digits, least = n - (size_t)scale - 1;
	bool minus = v < 0;
	unsigned __int128 u = minus ? 0 - (unsigned __int128)v : (unsigned __int128)v;
	for (; u > 0 || n > least; u /= 10)
		digits[--n] = (char)('0' + (int)(u % 10));
	if (minus)
		buf_putc(b, '-');
	buf_put(b, digits + n, sizeof digits - n - (size_t)scale);
	if (scale > 0) {
		buf_putc(b, '.');
		buf_put(b, digits + sizeof digits - scale, (size_t)scale);
	}
}

/* The reference implementation's partition paths turn to an exponent where more than five zeros
 * would follow the point. */
static void put_decimal_human(struct buf *b, __int128 v, int32_t scale)
{
	char digits[64];
	size_t n = sizeof digits;
	unsigned __int128 u = v < 0 ? 0 - (unsigned __int128)v : (unsigned __int128)v;
	do {
		digits[--n] = (char)('0' + (int)(u % 10));
		u /= 10;
	} while (u > 0);
	size_t count = sizeof digits - n;
	if ((int)count - 1 - scale >= -6) {
		put_decimal(b, v, scale);
		return;
	}
	if (v < 0)
		buf_putc(b, '-');
	buf_putc(b, (uint8_t)digits[n]);
	if (count > 1) {
		buf_putc(b, '.');
		buf_put(b, digits + n + 1, count - 1);
	}
	buf_printf(b, "E%d", (int)count - 1 - scale);
}

/* Exactly `scale` digits after the point and at most `precision` that count. */
static bool read_decimal(const struct type *t, struct strv s, __int128 *ret_v)
{
	bool minus = take(&s, '-');
	unsigned __int128 v = 0, limit = 1;
	size_t point = strv_find(s, '.');
	for (int32_t i = 0; i < t->precision; i++)
		limit *= 10;
	if (point == 0 || (point < s.n ? s.n - point - 1 : 0) != (size_t)t->scale ||
	    (point < s.n && t->scale == 0))
		return false;
	for (size_t i = 0; i < s.n; i++) {
		if (i == point)
			continue;
		if (s.p[i] < '0' || s.p[i] > '9')
			return false;
		/* Before the product, which may pass 128 bits. */
		if (v >= limit / 10)
			return false;
		v = v * 10 + (unsigned)(s.p[i] - '0');
	}
	*ret_v = minus ? -(__int128)v : (__int128)v;
	return true;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* *ret_ok says whether the text is hexadecimal; false is returned only when the arena is full. */
static bool read_hex(struct strv s, struct arena *a, struct bytes *ret_b, bool *ret_ok)
{
	*ret_ok = false;
	if (s.n % 2 != 0)
		return true;
	uint8_t *p = arena_alloc(a, s.n / 2 + 1);
	if (!p)
		return false;
	for (size_t i = 0; i < s.n / 2; i++) {
		int hi = hex_digit(s.p[2 * i]), lo = hex_digit(s.p[2 * i + 1]);
		if (hi < 0 || lo < 0)
			return true;
		p[i] = (uint8_t)(hi << 4 | lo);
	}
	*ret_b = (struct bytes){p, s.n / 2};
	*ret_ok = true;
	return true;
}

/* *ret_ok as in read_hex. */
static bool read_text(const struct type *t, struct strv s, struct arena *a, struct value *ret_v,
		      bool *ret_ok)
{
	struct value out = {.null = false};
	struct uuid u;
	__int128 wide;
	int64_t n;
	bool fits = true;
	*ret_ok = false;
	switch (t->kind) {
	case TYPE_STRING:
		fits = arena_strv(a, s, &s);
		out.b = strv_bytes(s);
		*ret_ok = true;
		break;
	case TYPE_UUID:
		if ((*ret_ok = uuid_parse(s, &u)))
			fits = arena_bytes(a, (struct bytes){u.b, 16}, &out.b);
		break;
	case TYPE_FIXED:
	case TYPE_BINARY:
		fits = read_hex(s, a, &out.b, ret_ok);
		if (*ret_ok && t->kind == TYPE_FIXED)
			*ret_ok = out.b.n == (size_t)t->length;
		break;
	case TYPE_DECIMAL:
		if ((*ret_ok = read_decimal(t, s, &wide)))
			fits = value_of_decimal(wide, a, &out);
		break;
	case TYPE_DATE:
	case TYPE_TIME:
	case TYPE_TIMESTAMP:
	case TYPE_TIMESTAMPTZ:
	case TYPE_TIMESTAMP_NS:
	case TYPE_TIMESTAMPTZ_NS:
		if ((*ret_ok = read_moment(t, s, &n)))
			fits = value_of_i64(t, n, a, &out);
		break;
	default:
		break;
	}
	if (fits && *ret_ok)
		*ret_v = out;
	return fits;
}

enum status value_text_parse(const struct type *t, const struct jval *v, enum status bad,
			     struct arena *a, struct value *ret_v, struct err *err)
{
	static const uint8_t bools[2] = {0, 1};
	struct value out = VALUE_NULL;
	bool ok = true, fits = true, yes;
	struct strv s;
	int64_t n;
	double d;
	if (jval_is_null(v)) {
		*ret_v = out;
		return ST_OK;
	}
	if (t->kind == TYPE_BOOLEAN) {
		if ((ok = jval_as_bool(v, &yes)))
			out = (struct value){.b = {&bools[yes], 1}};
	} else if (t->kind == TYPE_INT || t->kind == TYPE_LONG) {
		ok = jval_as_i64(v, &n) &&
		     (t->kind == TYPE_LONG || (n >= INT32_MIN && n <= INT32_MAX));
		if (ok)
			fits = value_of_i64(t, n, a, &out);
	} else if (t->kind == TYPE_FLOAT || t->kind == TYPE_DOUBLE) {
		ok = jval_as_real(v, &d);
		if (ok && t->kind == TYPE_FLOAT)
			ok = isfinite((float)d);
		if (ok)
			fits = value_of_double(t, d, a, &out);
	} else {
		ok = jval_as_str(v, &s);
		if (ok)
			fits = read_text(t, s, a, &out, &ok);
	}
	if (!fits)
		return err_set(err, ST_LIMIT, "", "the values are larger than this server's limit");
	if (!ok)
		return err_set(err, bad, "", "Cannot parse the value as %s", type_name(t).z);
	*ret_v = out;
	return ST_OK;
}

/* Text of a value without quotes. */
static void put_value(struct buf *b, const struct type *t, const struct value *v, bool human)
{
	char text[UUID_TEXT_LEN + 1];
	struct uuid u;
	switch (t->kind) {
	case TYPE_BOOLEAN:
		buf_puts(b, v->b.p[0] ? "true" : "false");
		break;
	case TYPE_INT:
	case TYPE_LONG:
		buf_printf(b, "%lld", (long long)value_i64(t, v));
		break;
	case TYPE_FLOAT:
	case TYPE_DOUBLE:
		put_float(b, t, v);
		break;
	case TYPE_DATE:
		if (human)
			value_text_date(b, value_i64(t, v));
		else
			put_date(b, value_i64(t, v));
		break;
	case TYPE_TIME:
		put_time(b, value_i64(t, v) * 1000, human ? FRACTION_GROUPS : FRACTION_MICROS);
		break;
	case TYPE_TIMESTAMP:
	case TYPE_TIMESTAMPTZ:
	case TYPE_TIMESTAMP_NS:
	case TYPE_TIMESTAMPTZ_NS:
		put_timestamp(b, t, value_i64(t, v), human);
		break;
	case TYPE_STRING:
		buf_put(b, v->b.p, v->b.n);
		break;
	case TYPE_UUID:
		ASSERT(v->b.n == sizeof u.b);
		memcpy(u.b, v->b.p, sizeof u.b);
		uuid_text(u, text);
		buf_puts(b, text);
		break;
	case TYPE_DECIMAL:
		if (human)
			put_decimal_human(b, value_decimal(v), t->scale);
		else
			put_decimal(b, value_decimal(v), t->scale);
		break;
	default:
		if (human)
			digest_base64(b, v->b);
		else
			digest_hex(b, v->b);
		break;
	}
}

void value_text_write(struct jwrite *w, const struct type *t, const struct value *v)
{
	if (v->null) {
		jwrite_null(w);
		return;
	}
	if (t->kind == TYPE_STRING) {
		jwrite_str(w, bytes_strv(v->b));
		return;
	}
	struct buf b;
	buf_init(&b, 2 * v->b.n + 128);
	put_value(&b, t, v, false);
	bool number =
		t->kind == TYPE_BOOLEAN || t->kind == TYPE_INT || t->kind == TYPE_LONG ||
		((t->kind == TYPE_FLOAT || t->kind == TYPE_DOUBLE) && isfinite(value_double(t, v)));
	if (!buf_ok(&b))
		w->b->failed = true;
	else if (number)
		jwrite_raw(w, buf_strv(&b));
	else
		jwrite_str(w, buf_strv(&b));
	buf_fini(&b);
}

void value_text_human(struct buf *b, const struct type *t, const struct value *v)
{
	if (v->null)
		buf_puts(b, "null");
	else
		put_value(b, t, v, true);
}

/* Defaults: descends with the type, whose depth was bounded when it was parsed. */
static enum status write_default(struct jwrite *w, const struct type *t, const struct jval *v,
				 enum status bad, struct arena *a, struct err *err);

static enum status write_elements(struct jwrite *w, const struct type *t, bool required,
				  const struct jval *array, enum status bad, struct arena *a,
				  struct err *err)
{
	if (!jval_is_array(array))
		return err_set(err, bad, "", "a default of type list or map needs an array");
	jwrite_array(w);
	for (size_t i = 0; i < jval_count(array); i++) {
		const struct jval *e = jval_at(array, i);
		if (required && jval_is_null(e))
			return err_set(err, bad, "",
				       "null in a default whose elements are required");
		enum status st = write_default(w, t, e, bad, a, err);
		if (st != ST_OK)
			return st;
	}
	jwrite_end_array(w);
	return ST_OK;
}

static enum status write_map(struct jwrite *w, const struct type *t, const struct jval *v,
			     enum status bad, struct arena *a, struct err *err)
{
	const struct jval *keys = jval_get(v, "keys"), *values = jval_get(v, "values");
	enum status st;
	if (jval_count(v) != 2 || jval_count(keys) != jval_count(values))
		return err_set(err, bad, "",
			       "a default of type map needs keys and values of one length");
	jwrite_object(w);
	jwrite_key(w, "keys");
	if ((st = write_elements(w, t->u.map.key, true, keys, bad, a, err)) != ST_OK)
		return st;
	jwrite_key(w, "values");
	if ((st = write_elements(w, t->u.map.value, t->u.map.value_required, values, bad, a,
				 err)) != ST_OK)
		return st;
	jwrite_end_object(w);
	return ST_OK;
}

static enum status write_default(struct jwrite *w, const struct type *t, const struct jval *v,
				 enum status bad, struct arena *a, struct err *err)
{
	struct value value;
	if (jval_is_null(v)) {
		jwrite_null(w);
		return ST_OK;
	}
	switch (t->kind) {
	case TYPE_UNKNOWN:
	case TYPE_VARIANT:
	case TYPE_GEOMETRY:
	case TYPE_GEOGRAPHY:
		return err_set(err, bad, "", "a column of type %s cannot have a default",
			       type_kind_name(t->kind));
	case TYPE_STRUCT:
		/* The fields have defaults of their own. */
		if (!jval_is_object(v) || jval_count(v) > 0)
			return err_set(err, bad, "", "the default of a struct is {} or null");
		jwrite_object(w);
		jwrite_end_object(w);
		return ST_OK;
	case TYPE_LIST:
		return write_elements(w, t->u.list.element, t->u.list.element_required, v, bad, a,
				      err);
	case TYPE_MAP:
		return write_map(w, t, v, bad, a, err);
	default:
		break;
	}
	enum status st = value_text_parse(t, v, bad, a, &value, err);
	if (st == ST_OK)
		value_text_write(w, t, &value);
	return st;
}

enum status value_text_default(const struct type *t, const struct jval *v, enum status bad,
			       struct arena *a, struct strv *ret_json, struct err *err)
{
	struct buf b;
	struct jwrite w;
	struct strv json = {NULL, 0};
	if (jval_is_null(v)) {
		*ret_json = json;
		return ST_OK;
	}
	buf_init(&b, DEFAULT_MAX);
	jwrite_init(&w, &b);
	enum status st = write_default(&w, t, v, bad, a, err);
	if (st == ST_OK && (!buf_ok(&b) || !arena_strv(a, buf_strv(&b), &json)))
		st = err_set(err, ST_LIMIT, "", "the default is larger than this server's limit");
	buf_fini(&b);
	if (st == ST_OK)
		*ret_json = json;
	return st;
}
