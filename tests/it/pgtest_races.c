#include "tests/it/pgtest.h"
void pgtest_races(struct pgtest *t)
{
	(void)t;
}
