/* Request targets from arbitrary bytes. First byte: method and port. */
#include "daemon/net/route.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const methods[] = {"GET", "HEAD", "POST", "DELETE"};
	struct arena arena;
	struct route_hit hit;
	struct err err;
	if (size == 0)
		return 0;
	arena_init(&arena, 256 * 1024);
	struct strv target = {(const char *)data + 1, size - 1};
	enum route_surface surface = data[0] & 4 ? ROUTE_ADMIN : ROUTE_REST;
	if (route_match(surface, strv_of(methods[data[0] & 3]), target, &arena, &hit, &err) ==
	    ST_OK) {
		ASSERT(hit.route < ROUTE__COUNT && hit.n_params <= ROUTE_PARAMS_MAX);
		for (size_t i = 0; i < hit.n_params; i++) {
			struct strv *levels;
			size_t n;
			struct strv text = hit.params[i].text;
			ASSERT(text.n > 0 && !memchr(text.p, 0, text.n) && strv_utf8(text));
			if (route_namespace(&arena, hit.params[i].raw, "ns", &levels, &n, &err) ==
			    ST_OK)
				ASSERT(n > 0 && levels[n - 1].n > 0);
		}
	}
	arena_fini(&arena);
	return 0;
}
