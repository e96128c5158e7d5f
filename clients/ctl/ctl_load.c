#include "clients/ctl/ctl_load.h"

void ctl_load_release(struct ctl_load *l)
{
	ctl_peer_release(&l->answer);
	*l = (struct ctl_load){0};
}

static bool read_load(struct ctl_peer_link *l, const struct ctl_entry *e, struct ctl_load *o,
		      struct ctl_fault *f)
{
	struct arena *a = &o->answer.arena;
	const char *uuid = e->kind == CTL_VIEW ? "view-uuid" : "table-uuid";
	o->metadata = jspan_get(o->answer.root, "metadata");
	if (!jspan_is(o->metadata, JSPAN_OBJECT) ||
	    !jspan_str(jspan_get(o->metadata, uuid), a, &o->uuid) || !o->uuid.n)
		return ctl_fault_set(f, CTL_FAULT_ANSWER, "%s: loading it gives no %s",
				     ctl_peer_uri(l->peer), uuid);
	if (!jspan_str(jspan_get(o->answer.root, "metadata-location"), a, &o->location) ||
	    !o->location.n)
		return ctl_fault_set(f, CTL_FAULT_ANSWER,
				     "%s: loading it gives no metadata-location",
				     ctl_peer_uri(l->peer));
	o->found = true;
	return true;
}

bool ctl_load(struct ctl_peer_link *l, const struct ctl_entry *e, struct ctl_load *ret_load,
	      struct ctl_fault *f)
{
	struct buf path;
	*ret_load = (struct ctl_load){0};
	buf_init(&path, (size_t)256 << 10);
	bool ok = ctl_peer_path(l->peer, &path, e->levels, e->n_levels,
				e->kind == CTL_VIEW ? "views" : "tables", e->name, f);
	/* Old snapshots are of no interest. */
	if (ok && e->kind == CTL_TABLE)
		buf_puts(&path, "?snapshots=refs");
	if (ok && ctl_peer_ask(l, "GET", &path, (struct strv){0}, &ret_load->answer, f))
		ok = read_load(l, e, ret_load, f);
	else if (ok)
		/* A file that is gone is 404 as well, and no absent table. */
		ok = f->kind == CTL_FAULT_REFUSED && f->status == 404 &&
		     strv_starts(strv_of(f->type), STRV("NoSuch"));
	if (ok)
		*f = (struct ctl_fault){0};
	buf_fini(&path);
	return ok;
}

bool ctl_load_had(struct ctl_load *l, struct strv location)
{
	struct strv s;
	JSPAN_EACH (e, jspan_get(l->metadata, "metadata-log"))
		if (jspan_str(jspan_get(e, "metadata-file"), &l->answer.arena, &s) &&
		    strv_eq(s, location))
			return true;
	return false;
}

bool ctl_load_holds(const struct jspan *have, const struct jspan *want, struct arena *a)
{
	for (struct jspan_iter w = jspan_iter(want); jspan_next(&w);) {
		struct strv key, value, k, v;
		bool hit = false;
		if (!jspan_str(w.key, a, &key) || !jspan_str(w.val, a, &value))
			return false;
		for (struct jspan_iter h = jspan_iter(have); jspan_next(&h) && !hit;)
			hit = jspan_str(h.key, a, &k) && strv_eq(k, key) &&
			      jspan_str(h.val, a, &v) && strv_eq(v, value);
		if (!hit)
			return false;
	}
	return true;
}

/* Numbers are compared as they are spelt. */
static bool same_member(const struct jspan *x, const struct jspan *y, const char *key)
{
	const struct jspan *a = jspan_get(x, key), *b = jspan_get(y, key);
	return a && b && strv_eq(jspan_text(a), jspan_text(b));
}

bool ctl_load_follows(struct ctl_load *l, struct ctl_load *before)
{
	const struct jspan *last = NULL;
	bool hit = false;
	JSPAN_EACH (e, jspan_get(before->metadata, "version-log"))
		last = e;
	JSPAN_EACH (e, jspan_get(l->metadata, "version-log"))
		hit = hit || (last && same_member(e, last, "version-id") &&
			      same_member(e, last, "timestamp-ms"));
	return hit && ctl_load_holds(jspan_get(l->metadata, "properties"),
				     jspan_get(before->metadata, "properties"), &l->answer.arena);
}

void ctl_load_dialects(struct ctl_load *l, struct buf *b)
{
	const struct jspan *current = jspan_get(l->metadata, "current-version-id");
	struct strv s;
	size_t n = 0;
	JSPAN_EACH (v, jspan_get(l->metadata, "versions")) {
		const struct jspan *id = jspan_get(v, "version-id");
		if (!id || !current || !strv_eq(jspan_text(id), jspan_text(current)))
			continue;
		JSPAN_EACH (r, jspan_get(v, "representations")) {
			if (!jspan_str(jspan_get(r, "dialect"), &l->answer.arena, &s))
				continue;
			buf_puts(b, n++ ? ", " : "");
			buf_putv(b, s);
		}
	}
}
