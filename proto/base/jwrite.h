/* Writing compact JSON into a buf: commas, quoting and escapes in one place. Misuse (a key outside
 * an object) is an assertion; a full buffer shows in buf_ok. */
#ifndef PROTO_BASE_JWRITE_H
#define PROTO_BASE_JWRITE_H

#include "proto/base/buf.h"

/* More than any reader accepts: what was read can be written. */
#define JWRITE_DEPTH 96

struct jwrite {
	struct buf *b;
	uint8_t some[JWRITE_DEPTH]; /* per level: something was written, so a comma comes next */
	int depth;
	bool keyed; /* a key was just written: the next value takes no comma */
};

void jwrite_init(struct jwrite *w, struct buf *b);
void jwrite_object(struct jwrite *w);
void jwrite_end_object(struct jwrite *w);
void jwrite_array(struct jwrite *w);
void jwrite_end_array(struct jwrite *w);
/* A name of ours: plain text, written as it stands. */
void jwrite_key(struct jwrite *w, const char *key);
void jwrite_keyv(struct jwrite *w, struct strv key);
/* Text must be UTF-8; only what JSON demands is escaped. */
void jwrite_str(struct jwrite *w, struct strv s);
void jwrite_i64(struct jwrite *w, int64_t v);
void jwrite_bool(struct jwrite *w, bool v);
void jwrite_null(struct jwrite *w);
/* Verbatim JSON text as one value. */
void jwrite_raw(struct jwrite *w, struct strv json);
/* Key and value in one call. */
void jwrite_kstr(struct jwrite *w, const char *key, struct strv s);
void jwrite_ki64(struct jwrite *w, const char *key, int64_t v);
void jwrite_kbool(struct jwrite *w, const char *key, bool v);
/* Only the quoted, escaped text, without regard to commas. */
void jwrite_quote(struct buf *b, struct strv s);

#endif
