/* Reference files under tests/golden, read relative to the top folder, and hex in sources. */
#ifndef TESTS_UNIT_GOLDEN_H
#define TESTS_UNIT_GOLDEN_H

#include <stdio.h>

#include "proto/base/buf.h"
#include "tests/unit/unit.h"

/* Appends the whole file. */
static inline void golden_read(const char *path, struct buf *out)
{
	FILE *f = fopen(path, "rb");
	ck_assert_msg(f != NULL, "%s: run from the top folder", path);
	uint8_t chunk[4096];
	size_t n;
	while ((n = fread(chunk, 1, sizeof chunk, f)) > 0)
		buf_put(out, chunk, n);
	fclose(f);
	ck_assert(buf_ok(out));
}

static inline void golden_hex(const char *hex, struct buf *out)
{
	for (; *hex; hex += hex[0] == ' ' ? 1 : 2) {
		unsigned byte;
		if (hex[0] == ' ')
			continue;
		ck_assert_int_eq(sscanf(hex, "%2x", &byte), 1);
		buf_putc(out, (uint8_t)byte);
	}
}

#endif
