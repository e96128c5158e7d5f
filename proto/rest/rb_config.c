#include "proto/rest/rb_config.h"

/* Clients put the property "prefix" into their paths as it stands, so it must come encoded. */
static void put_segment(struct buf *b, struct strv s)
{
	static const char plain[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~";
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] && strchr(plain, s.p[i]))
			buf_putc(b, (uint8_t)s.p[i]);
		else
			buf_printf(b, "%%%02X", (unsigned)(uint8_t)s.p[i]);
	}
}

void rb_config_write(struct buf *b, struct strv prefix, const struct strv *endpoints, size_t n,
		     struct strv key_lifetime)
{
	struct jwrite w;
	jwrite_init(&w, b);
	jwrite_object(&w);
	jwrite_key(&w, "defaults");
	jwrite_object(&w);
	jwrite_end_object(&w);
	jwrite_key(&w, "overrides");
	jwrite_object(&w);
	if (prefix.p) {
		struct buf segment;
		buf_init(&segment, 4096);
		put_segment(&segment, prefix);
		jwrite_kstr(&w, "prefix", buf_strv(&segment));
		buf_fini(&segment);
	}
	jwrite_end_object(&w);
	jwrite_key(&w, "endpoints");
	jwrite_array(&w);
	for (size_t i = 0; i < n; i++)
		jwrite_str(&w, endpoints[i]);
	jwrite_end_array(&w);
	if (key_lifetime.p)
		jwrite_kstr(&w, "idempotency-key-lifetime", key_lifetime);
	jwrite_end_object(&w);
}
