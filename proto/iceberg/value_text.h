/* Text forms of values: single-value JSON (spec Appendix D) and the human form of partition paths.
 */
#ifndef PROTO_ICEBERG_VALUE_TEXT_H
#define PROTO_ICEBERG_VALUE_TEXT_H

#include "proto/iceberg/value.h"

/* Reads the single-value JSON of a primitive; JSON null gives a null value. `bad` for text that is
 * not a value of the type. */
MUST_CHECK enum status value_text_parse(const struct type *t, const struct jval *v, enum status bad,
					struct arena *a, struct value *ret_v, struct err *err);
/* Writes it. Times carry six digits of a second, nanosecond types nine. */
void value_text_write(struct jwrite *w, const struct type *t, const struct value *v);
/* Checks a field's default of any type, nested ones too, and gives its canonical JSON text in the
 * arena; p NULL for null. A struct's default is {} or null (spec "Default values"). */
MUST_CHECK enum status value_text_default(const struct type *t, const struct jval *v,
					  enum status bad, struct arena *a, struct strv *ret_json,
					  struct err *err);
/* Appends the text that names a value in a partition path, not percent-encoded, as the reference
 * implementation spells it: dates and times, base64 of bytes, "null". */
void value_text_human(struct buf *b, const struct type *t, const struct value *v);
/* Appends a date of days since 1970-01-01 as partition paths have it: "2017-11-16", years before 0
 * and after 9999 without the sign and padding of ISO 8601. */
void value_text_date(struct buf *b, int64_t days);
/* Year, month 1 to 12 and day 1 to 31 of a number of days since 1970-01-01 (proleptic Gregorian);
 * any day of a timestamp, and of a date, is in range. */
void value_text_civil(int64_t days, int64_t *ret_year, int *ret_month, int *ret_day);

#endif
