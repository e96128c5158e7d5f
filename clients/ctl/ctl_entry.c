#include "clients/ctl/ctl_entry.h"

#include "proto/base/jspan.h"
#include "proto/base/jwrite.h"

const char *ctl_entry_kind_name(enum ctl_entry_kind kind)
{
	return kind == CTL_NAMESPACE ? "namespace" : kind == CTL_TABLE ? "table" : "view";
}

/* ------------------------------------------------------------------ names */

static bool is_plain(struct strv s)
{
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];
		if (c <= 0x20 || c == 0x7f || c == '.' || c == '"' || c == '[' || c == '\\')
			return false;
	}
	return s.n > 0 && strv_utf8(s);
}

void ctl_entry_name(const struct ctl_entry *e, char *out, size_t cap)
{
	size_t n = e->n_levels + (e->name.n > 0);
	bool plain = true;
	struct buf b;
	struct jwrite w;
	buf_init(&b, (size_t)1 << 20);
	jwrite_init(&w, &b);
	for (size_t i = 0; i < n && plain; i++)
		plain = is_plain(i < e->n_levels ? e->levels[i] : e->name);
	if (!plain)
		jwrite_array(&w);
	for (size_t i = 0; i < n; i++) {
		struct strv s = i < e->n_levels ? e->levels[i] : e->name;
		if (plain) {
			if (i > 0)
				buf_putc(&b, '.');
			buf_putv(&b, s);
		} else {
			jwrite_str(&w, s);
		}
	}
	if (!plain)
		jwrite_end_array(&w);
	ctl_fault_text(out, cap, buf_ok(&b) ? buf_strv(&b) : STRV("?"));
	buf_fini(&b);
}

bool ctl_entry_parse(const char *text, struct arena *a, const struct strv **ret_levels, size_t *ret_n,
		    struct ctl_fault *f)
{
	struct strv s = strv_of(text), *v = arena_calloc(a, CTL_LEVELS_MAX + 1, sizeof *v);
	const struct jspan *root = NULL;
	struct err err;
	size_t n = 0;
	bool ok = v && strv_utf8(s);
	if (ok && strv_starts(s, STRV("["))) {
		ok = jspan_parse(strv_bytes(s), ST_BAD_REQUEST, a, &root, &err) == ST_OK &&
		     jspan_is(root, JSPAN_ARRAY) && root->count <= CTL_LEVELS_MAX + 1;
		if (ok)
			JSPAN_EACH (e, root)
				ok = ok && jspan_str(e, a, &v[n]) && v[n++].n > 0;
	} else if (ok) {
		for (bool more = true; more && ok;) {
			size_t dot = strv_find(s, '.');
			ok = dot > 0 && n <= CTL_LEVELS_MAX;
			if (ok)
				v[n++] = strv_sub(s, 0, dot);
			more = dot < s.n;
			s = strv_sub(s, dot + 1, s.n);
		}
	}
	if (!ok || n == 0)
		return ctl_fault_set(f, CTL_FAULT_LOCAL,
				     "%.200s: must be names with dots between them, or a JSON array",
				     text);
	*ret_levels = v;
	*ret_n = n;
	return true;
}
