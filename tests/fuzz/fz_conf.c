/* Configuration text from arbitrary bytes; whatever is accepted must print and read back. */
#include "conf/conf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct conf *c = conf_new(), *d = conf_new();
	struct err err = {0};
	struct strv text = {(const char *)data, size};
	if (conf_apply_text(c, text, "fuzz", &err) == ST_OK) {
		enum status st = conf_check(c, &err);
		struct buf b;
		buf_init(&b, 4 * CONF_MAX_FILE);
		conf_print(c, &b);
		if (b.n <= CONF_MAX_FILE) {
			ASSERT(conf_apply_text(d, buf_strv(&b), "again", &err) == ST_OK);
			ASSERT(conf_check(d, &err) == st);
		}
		buf_fini(&b);
	}
	(void)!conf_apply_set(d, text, &err);
	conf_unref(c);
	conf_unref(d);
	return 0;
}
