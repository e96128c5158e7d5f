#include "clients/ctl/ctl_http.h"

#include <curl/curl.h>
#include <stdio.h>

static size_t take(char *p, size_t size, size_t n, void *ctx)
{
	struct buf *b = ctx;
	buf_put(b, p, size * n);
	/* Anything but the whole ends the transfer. */
	return buf_ok(b) ? size * n : 0;
}

int ctl_http(const char *base, const char *method, const char *path, const char *send,
	     int timeout_ms, struct buf *body, char why[256])
{
	char url[1024];
	long status = 0;
	int n = snprintf(url, sizeof url, "%s%s", base, path);
	why[0] = 0;
	if (n < 0 || (size_t)n >= sizeof url) {
		snprintf(why, 256, "the address is too long");
		return 0;
	}
	CURL *c = curl_easy_init();
	if (!c) {
		snprintf(why, 256, "no memory");
		return 0;
	}
	curl_easy_setopt(c, CURLOPT_URL, url);
	curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(c, CURLOPT_PROXY, "");
	curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, method);
	curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, body);
	curl_easy_setopt(c, CURLOPT_USERAGENT, "frazilctl");
	struct curl_slist *headers = NULL;
	if (send) {
		headers = curl_slist_append(NULL, "Content-Type: application/json");
		curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
		curl_easy_setopt(c, CURLOPT_POSTFIELDS, send);
	}
	CURLcode rc = curl_easy_perform(c);
	if (rc != CURLE_OK)
		snprintf(why, 256, "%.160s: %.80s", url, curl_easy_strerror(rc));
	else
		curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_cleanup(c);
	curl_slist_free_all(headers);
	return (int)status;
}
