#include "proto/base/base.h"

#include <stdio.h>
#include <stdlib.h>

void base_assert_fail(const char *cond, const char *file, int line)
{
	fprintf(stderr, "<2>ev=assert.fail at=%s:%d cond=\"%s\"\n", file, line, cond);
	abort();
}

static _Thread_local bool memory_failed;

void base_memory_reset(void)
{
	memory_failed = false;
}

bool base_memory_failed(void)
{
	return memory_failed;
}

void base_memory_note(void)
{
	memory_failed = true;
}

void *base_alloc(size_t n)
{
	void *p = malloc(n ? n : 1);
	ASSERT(p != NULL);
	return p;
}

void *base_calloc(size_t count, size_t size)
{
	void *p = calloc(count ? count : 1, size ? size : 1);
	ASSERT(p != NULL);
	return p;
}

void *base_realloc_array(void *own_p, size_t count, size_t size)
{
	size_t n = 0;
	ASSERT(mul_size(count, size, &n));
	void *p = realloc(own_p, n ? n : 1);
	ASSERT(p != NULL);
	return p;
}

void base_free(void *own_p)
{
	free(own_p);
}
