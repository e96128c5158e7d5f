#include "tests/it/pgtest.h"
void pgtest_catalog(struct pgtest *t)
{
	(void)t;
}
