#include "daemon/net/http_head.h"

/* RFC 9110 §5.6.2. */
static bool is_token(struct strv s)
{
	static const char marks[] = "!#$%&'*+-.^_`|~";
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];
		bool word =
			(c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
		if (!word && (c == 0 || !strchr(marks, c)))
			return false;
	}
	return s.n > 0;
}

/* RFC 9110 §5.5. */
static bool has_controls(struct strv v)
{
	for (size_t i = 0; i < v.n; i++)
		if (((unsigned char)v.p[i] < ' ' && v.p[i] != '\t') || v.p[i] == 0x7f)
			return true;
	return false;
}

struct strv http_head_bare(struct strv v)
{
	while (v.n > 0 && (v.p[v.n - 1] == ' ' || v.p[v.n - 1] == '\t'))
		v.n--;
	return v;
}

/* The library cuts a value at a NUL: then something else than the end of its line, which is two
 * zeros by now, stands between it and the next name. */
static bool hides_text(const struct http_head *h, const char *name)
{
	uintptr_t at = (uintptr_t)name, end = (uintptr_t)h->end;
	return end && at > end && at - end < h->memory && at - end != 2;
}

void http_head_init(struct http_head *h, size_t memory)
{
	*h = (struct http_head){.memory = memory};
}

/* The same in the request line, where spaces may stand in front of the target alone. */
void http_head_line(struct http_head *h, const char *method, const char *target, size_t n,
		    const char *version)
{
	for (const char *p = method + strlen(method); p < target; p++)
		if (*p != 0 && *p != ' ' && *p != '\t')
			h->bad_line = true;
	if (version != target + n + 1)
		h->bad_line = true;
}

/* Lengths and codings of a transfer are judged with the white space behind them, as the library reads
 * them. */
void http_head_field(struct http_head *h, struct strv name, struct strv v)
{
	/* "Content-Length : 5" arrives with the space in its name. */
	if (!is_token(name))
		h->bad_name = true;
	if (has_controls(v) || hides_text(h, name.p))
		h->bad_value = true;
	h->end = v.p ? v.p + v.n : NULL;
	if (strv_ieq(name, STRV("Content-Length"))) {
		int64_t n;
		h->lengths++;
		if (!strv_i64(v, &n) || n < 0 || v.p[0] == '-')
			h->bad_length = true;
		else
			h->length = (size_t)n;
	} else if (strv_ieq(name, STRV("Transfer-Encoding"))) {
		h->encodings++;
		if (!strv_ieq(v, STRV("chunked")))
			h->bad_encoding = true;
	} else if (strv_ieq(name, STRV("Host"))) {
		h->hosts++;
	} else if (strv_ieq(name, STRV("Authorization"))) {
		h->proofs++;
	} else if (strv_ieq(name, STRV("Expect"))) {
		h->expects = true;
		if (http_head_bare(v).n > 0 &&
		    !strv_ieq(http_head_bare(v), STRV("100-continue")))
			h->bad_expect = true;
	} else if (strv_ieq(name, STRV("Content-Encoding"))) {
		if (http_head_bare(v).n > 0 && !strv_ieq(http_head_bare(v), STRV("identity")))
			h->packed = true;
	}
}

enum status http_head_judge(struct http_head *h, const char *version, size_t max_body,
			    struct err *err)
{
	if (h->bad_line)
		return err_set(err, ST_BAD_REQUEST, "", "the request line holds a NUL");
	/* Behind the last one at least two line feeds came. */
	if (h->end && h->end[1] != 0)
		h->bad_value = true;
	if (h->bad_name)
		return err_set(err, ST_BAD_REQUEST, "", "a header name is not a token");
	if (h->bad_value)
		return err_set(err, ST_BAD_REQUEST, "", "a header value holds control characters");
	if (h->lengths + h->encodings > 1)
		return err_set(err, ST_BAD_REQUEST, "",
			       "more than one of Content-Length and Transfer-Encoding");
	if (h->bad_length)
		return err_set(err, ST_BAD_REQUEST, "", "Content-Length is not a number");
	if (h->bad_encoding)
		return err_set(err, ST_BAD_REQUEST, "", "only chunked transfer encoding is served");
	if (h->hosts > 1)
		return err_set(err, ST_BAD_REQUEST, "", "more than one Host");
	if (h->hosts == 0 && strcmp(version, "HTTP/1.0") != 0)
		return err_set(err, ST_BAD_REQUEST, "", "a Host header is required");
	/* A proxy in front may have looked at the other one. */
	if (h->proofs > 1)
		return err_set(err, ST_BAD_REQUEST, "", "more than one Authorization");
	if (h->bad_expect)
		return err_set(err, ST_EXPECTATION, "", "Expect may be 100-continue only");
	if (h->packed)
		return err_set(err, ST_UNSUPPORTED_MEDIA, "",
			       "Content-Encoding: bodies of requests are taken as they are only");
	if (h->length > max_body)
		return err_set(err, ST_TOO_LARGE, "", "the body is larger than %zu bytes", max_body);
	return ST_OK;
}
