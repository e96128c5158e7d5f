/* Build tool: writes frazild.ini, made from conf.tbl, to standard output. */
#include <unistd.h>

#include "conf/conf.h"

int main(void)
{
	struct buf b;
	buf_init(&b, CONF_MAX_FILE);
	conf_template(&b);
	bool ok = buf_ok(&b) && write(1, b.p, b.n) == (ssize_t)b.n;
	buf_fini(&b);
	return ok ? 0 : 1;
}
