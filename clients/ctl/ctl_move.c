/* One entry: look at both sides, judge, act, and after an answer that says nothing look again.
 * What the target has is the only state, so that a run that was cut short needs nothing but
 * another one. */
#include "clients/ctl/ctl_move.h"

#include <stdio.h>

#include "proto/base/jwrite.h"

/* Looks at the target that one entry may take: a lost answer or another writer's creation in
 * between. */
#define LOOKS 4
#define BODY_MAX PEER_ANSWER_MAX

struct work {
	const struct ctl_move_options *o;
	struct ctl_peer_link *source, *target;
	const struct ctl_entry *e;
	struct ctl_moved *m;
	struct strv uuid, location; /* at the source */
	struct ctl_load there, here;
	bool tried; /* a change was sent, its outcome is not known */
};

static void say(struct work *w, enum ctl_verdict verdict)
{
	w->m->row.verdict = verdict;
}

static void failed(struct work *w, enum ctl_verdict verdict, const struct ctl_fault *f)
{
	w->m->fault = *f;
	w->m->row.fault = &w->m->fault;
	say(w, verdict);
}

/* ------------------------------------------------------------------ requests to the target */

static bool send_json(struct work *w, const char *method, const char *tail, struct strv name,
		      struct buf *body, struct ctl_fault *f)
{
	const struct ctl_entry *e = w->e;
	struct ctl_peer_answer a = {0};
	struct buf path;
	buf_init(&path, (size_t)256 << 10);
	/* Namespaces are created where they are listed. */
	bool at_root = e->kind == CTL_NAMESPACE && !tail;
	bool ok = ctl_peer_path(w->target->peer, &path, e->levels, at_root ? 0 : e->n_levels, tail,
				name, f);
	if (ok && !buf_ok(body))
		ok = ctl_fault_set(f, CTL_FAULT_ANSWER, "more properties than there is room for");
	ok = ok && ctl_peer_ask(w->target, method, &path, buf_strv(body), &a, f);
	ctl_peer_release(&a);
	buf_fini(&path);
	return ok;
}

static bool send_register(struct work *w, bool overwrite, struct ctl_fault *f)
{
	struct buf body;
	struct jwrite j;
	buf_init(&body, BODY_MAX);
	jwrite_init(&j, &body);
	jwrite_object(&j);
	jwrite_kstr(&j, "name", w->e->name);
	jwrite_kstr(&j, "metadata-location", w->location);
	if (overwrite)
		jwrite_kbool(&j, "overwrite", true);
	jwrite_end_object(&j);
	bool ok = send_json(w, "POST", w->e->kind == CTL_VIEW ? "register-view" : "register",
			    (struct strv){0}, &body, f);
	buf_fini(&body);
	return ok;
}

/* A view has no overwrite: its name is freed first. Its files stay. */
static bool drop_view(struct work *w, struct ctl_fault *f)
{
	struct buf none;
	buf_init(&none, 1);
	bool ok = send_json(w, "DELETE", "views", w->e->name, &none, f);
	buf_fini(&none);
	return ok || (f->kind == CTL_FAULT_REFUSED && f->status == 404);
}

static bool send_namespace(struct work *w, bool create, struct ctl_fault *f)
{
	const struct ctl_entry *e = w->e;
	struct buf body;
	struct jwrite j;
	buf_init(&body, BODY_MAX);
	jwrite_init(&j, &body);
	jwrite_object(&j);
	if (create) {
		jwrite_key(&j, "namespace");
		jwrite_array(&j);
		for (size_t i = 0; i < e->n_levels; i++)
			jwrite_str(&j, e->levels[i]);
		jwrite_end_array(&j);
	}
	jwrite_key(&j, create ? "properties" : "updates");
	jwrite_raw(&j, e->properties);
	jwrite_end_object(&j);
	bool ok = send_json(w, "POST", create ? NULL : "properties", (struct strv){0}, &body, f);
	buf_fini(&body);
	return ok;
}

/* ------------------------------------------------------------------ a change */

/* What a refusal of the target means to the report. */
static enum ctl_verdict refusal(const struct ctl_fault *f)
{
	struct strv t = strv_of(f->text);
	if (f->kind != CTL_FAULT_REFUSED)
		return CTL_V_FAILED;
	/* Beneath no root, of another scheme, or a file that is not there. */
	bool path = strv_starts(t, STRV("metadata-location.path")) ||
		    strv_starts(t, STRV("location.path")) || strv_starts(t, STRV("write."));
	bool gone = f->status == 404 && !strv_starts(strv_of(f->type), STRV("NoSuch"));
	return path || gone ? CTL_V_OUT_OF_REACH
		       : CTL_V_REFUSED;
}

/* After a change was sent: true when the entry is decided, false to look again. */
static bool settle(struct work *w, bool ok, enum ctl_verdict done, const struct ctl_fault *f,
		   bool last)
{
	if (ok) {
		say(w, done);
		return true;
	}
	w->tried = true;
	bool look = f->kind == CTL_FAULT_LOST || f->status == 409 || f->status >= 500;
	if (look && !last)
		return false;
	failed(w, refusal(f), f);
	return true;
}

/* ------------------------------------------------------------------ tables and views */

static void judge(struct work *w, bool *ret_overwrite)
{
	struct ctl_load *here = &w->here, *there = &w->there;
	bool view = w->e->kind == CTL_VIEW;
	*ret_overwrite = false;
	if (!strv_eq(here->uuid, w->uuid)) {
		say(w, CTL_V_OTHER_UUID);
		return;
	}
	if (strv_eq(here->location, w->location)) {
		say(w, CTL_V_SAME);
		return;
	}
	bool behind = there->found && (view ? ctl_load_follows(there, here)
					    : ctl_load_had(there, here->location));
	bool ahead = view ? there->found && ctl_load_follows(here, there)
			  : ctl_load_had(here, w->location);
	say(w, ahead ? CTL_V_AHEAD : behind ? CTL_V_MOVED_ON : CTL_V_DIVERGED);
	*ret_overwrite = w->o->force || (w->o->overwrite && behind && !ahead);
}

/* One look at the target with what follows from it. True when the entry is decided. */
static bool look(struct work *w, bool last)
{
	struct ctl_fault f = {0};
	bool overwrite = false;
	ctl_load_release(&w->here);
	if (!ctl_load(w->target, w->e, &w->here, &f)) {
		failed(w, CTL_V_FAILED, &f);
		return true;
	}
	if (!w->here.found) {
		if (w->o->dry_run) {
			say(w, CTL_V_NEW);
			return true;
		}
		return settle(w, send_register(w, false, &f), CTL_V_REGISTERED, &f, last);
	}
	judge(w, &overwrite);
	/* What the lost answer would have said. */
	if (w->m->row.verdict == CTL_V_SAME && w->tried)
		say(w, CTL_V_REGISTERED);
	if (!overwrite || w->o->dry_run)
		return true;
	bool ok = w->e->kind == CTL_TABLE ? send_register(w, true, &f)
					  : drop_view(w, &f) && send_register(w, false, &f);
	return settle(w, ok, CTL_V_OVERWRITTEN, &f, last);
}

static bool look_there(struct work *w)
{
	struct ctl_fault f = {0};
	w->uuid = w->e->uuid;
	w->location = w->e->location;
	if (!w->source)
		return true;
	if (!ctl_load(w->source, w->e, &w->there, &f)) {
		failed(w, CTL_V_FAILED, &f);
		return false;
	}
	if (!w->there.found) {
		say(w, CTL_V_GONE);
		return false;
	}
	w->uuid = w->there.uuid;
	w->location = w->there.location;
	return true;
}


static void move_tabular(struct work *w)
{
	struct ctl_row *row = &w->m->row;
	struct buf *b = &w->m->keep;
	size_t location, target, dialects;
	if (look_there(w))
		for (int i = 1; !look(w, i == LOOKS); i++)
			;
	buf_putv(b, w->uuid);
	location = b->n;
	buf_putv(b, w->location);
	target = b->n;
	if (w->here.found)
		buf_putv(b, w->here.location);
	dialects = b->n;
	if (w->e->kind == CTL_VIEW && w->there.found)
		ctl_load_dialects(&w->there, b);
	if (buf_ok(b)) {
		struct strv all = buf_strv(b);
		row->uuid = strv_sub(all, 0, location);
		row->location = strv_sub(all, location, target);
		row->target = strv_sub(all, target, dialects);
		row->dialects = strv_sub(all, dialects, all.n);
	}
	ctl_load_release(&w->there);
	ctl_load_release(&w->here);
}

/* ------------------------------------------------------------------ namespaces */

static bool look_namespace(struct work *w, bool last)
{
	struct ctl_fault f = {0};
	struct ctl_peer_answer a = {0};
	const struct jspan *want = NULL;
	struct buf path;
	struct err err;
	buf_init(&path, (size_t)256 << 10);
	bool ok = ctl_peer_path(w->target->peer, &path, w->e->levels, w->e->n_levels, NULL,
				(struct strv){0}, &f) &&
		  ctl_peer_ask(w->target, "GET", &path, (struct strv){0}, &a, &f);
	bool same = ok &&
		    jspan_parse(strv_bytes(w->e->properties), ST_CORRUPT, &a.arena, &want, &err) ==
			    ST_OK &&
		    ctl_load_holds(jspan_get(a.root, "properties"), want, &a.arena);
	ctl_peer_release(&a);
	buf_fini(&path);
	if (!ok && (f.kind != CTL_FAULT_REFUSED || f.status != 404)) {
		failed(w, f.kind == CTL_FAULT_REFUSED ? CTL_V_REFUSED : CTL_V_FAILED, &f);
		return true;
	}
	if (!ok && !w->o->dry_run)
		return settle(w, send_namespace(w, true, &f), CTL_V_REGISTERED, &f, last);
	say(w, !ok ? CTL_V_NEW : same ? (w->tried ? CTL_V_REGISTERED : CTL_V_SAME) : CTL_V_PROPERTIES);
	if (w->m->row.verdict != CTL_V_PROPERTIES || w->o->dry_run ||
	    !(w->o->overwrite || w->o->force))
		return true;
	return settle(w, send_namespace(w, false, &f), CTL_V_UPDATED, &f, last);
}

void ctl_move(const struct ctl_move_options *o, struct ctl_peer_link *source,
	      struct ctl_peer_link *target, const struct ctl_entry *e, struct ctl_moved *ret_moved)
{
	struct work w = {.o = o, .source = source, .target = target, .e = e, .m = ret_moved};
	*ret_moved = (struct ctl_moved){0};
	buf_init(&ret_moved->keep, (size_t)1 << 20);
	if (e->kind != CTL_NAMESPACE) {
		move_tabular(&w);
		return;
	}
	for (int i = 1; !look_namespace(&w, i == LOOKS); i++)
		;
}

void ctl_move_release(struct ctl_moved *m)
{
	buf_fini(&m->keep);
}
