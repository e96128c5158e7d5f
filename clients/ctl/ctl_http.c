#include "clients/ctl/ctl_http.h"

#include <curl/curl.h>
#include <stdio.h>

#define CONNECT_MS 10000L

struct ctl_http_link {
	CURL *curl;
	const char *ca_file;
	int timeout_ms;
};

static size_t take(char *p, size_t size, size_t n, void *ctx)
{
	struct buf *b = ctx;
	buf_put(b, p, size * n);
	/* Anything but the whole ends the transfer. */
	return buf_ok(b) ? size * n : 0;
}

struct ctl_http_link *ctl_http_link_new(const char *ca_file, int timeout_ms)
{
	struct ctl_http_link *l = base_calloc(1, sizeof *l);
	curl_global_init(CURL_GLOBAL_DEFAULT);
	l->curl = curl_easy_init();
	ASSERT(l->curl);
	l->ca_file = ca_file;
	l->timeout_ms = timeout_ms;
	return l;
}

void ctl_http_link_free(struct ctl_http_link *own_link)
{
	if (!own_link)
		return;
	curl_easy_cleanup(own_link->curl);
	base_free(own_link);
}

static bool add_header(struct curl_slist **list, const char *text)
{
	struct curl_slist *longer = curl_slist_append(*list, text);
	if (longer)
		*list = longer;
	return longer;
}

int ctl_http_link_send(struct ctl_http_link *link, const struct ctl_http_call *call,
		       struct buf *body, int64_t *ret_again_s, enum ctl_http_end *ret_end, char why[256])
{
	CURL *c = link->curl;
	struct curl_slist *headers = NULL;
	curl_off_t again = 0;
	char type[96];
	long status = 0;
	bool ok = true;
	why[0] = 0;
	*ret_again_s = 0;
	*ret_end = CTL_HTTP_ANSWERED;
	curl_easy_reset(c);
	curl_easy_setopt(c, CURLOPT_URL, call->url);
	curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(c, CURLOPT_PROXY, "");
	curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, call->method);
	curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)link->timeout_ms);
	curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, body);
	curl_easy_setopt(c, CURLOPT_USERAGENT, "frazilctl");
	if (link->ca_file)
		curl_easy_setopt(c, CURLOPT_CAINFO, link->ca_file);
	if (call->type) {
		snprintf(type, sizeof type, "Content-Type: %s", call->type);
		ok = add_header(&headers, type);
		curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body.n);
		curl_easy_setopt(c, CURLOPT_POSTFIELDS, call->body.n ? call->body.p : "");
	}
	for (size_t i = 0; i < call->n_headers && ok; i++)
		ok = add_header(&headers, call->headers[i]);
	if (headers)
		curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
	CURLcode rc = ok ? curl_easy_perform(c) : CURLE_OUT_OF_MEMORY;
	if (rc != CURLE_OK) {
		*ret_end = !buf_ok(body) ? CTL_HTTP_LARGE
			   : rc == CURLE_PEER_FAILED_VERIFICATION || rc == CURLE_SSL_CACERT_BADFILE
				   ? CTL_HTTP_UNTRUSTED
				   : CTL_HTTP_LOST;
		snprintf(why, 256, "%s", curl_easy_strerror(rc));
	} else {
		curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status);
		if (curl_easy_getinfo(c, CURLINFO_RETRY_AFTER, &again) == CURLE_OK)
			*ret_again_s = again;
	}
	curl_slist_free_all(headers);
	return (int)status;
}

int ctl_http(const char *base, const char *method, const char *path, const char *send,
	     int timeout_ms, struct buf *body, char why[256])
{
	char url[1024], reason[256];
	int64_t again;
	enum ctl_http_end end;
	int n = snprintf(url, sizeof url, "%s%s", base, path);
	if (n < 0 || (size_t)n >= sizeof url) {
		snprintf(why, 256, "the address is too long");
		return 0;
	}
	const struct ctl_http_call call = {.method = method,
					   .url = url,
					   .type = send ? "application/json" : NULL,
					   .body = strv_of(send)};
	struct ctl_http_link *link = ctl_http_link_new(NULL, timeout_ms);
	int status = ctl_http_link_send(link, &call, body, &again, &end, reason);
	ctl_http_link_free(link);
	why[0] = 0;
	if (!status)
		snprintf(why, 256, "%.160s: %.80s", url, reason);
	return status;
}
