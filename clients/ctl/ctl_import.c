/* frazilctl import: all that another catalog or a list holds, registered in the target. */
#include "clients/ctl/ctl_cmd.h"

#include <stdio.h>

#include "clients/ctl/ctl_move.h"
#include "clients/ctl/ctl_record.h"

struct import {
	const struct ctl_move_options *o;
	struct ctl_peer *source, *target;
	struct ctl_peer_link from[CTL_CREW_MAX], to[CTL_CREW_MAX];
	struct ctl_report report;
	const struct ctl_entry *entries; /* under way */
	struct ctl_moved moved[CTL_PIECE];
	struct ctl_fault lost; /* why the run ends early */
};

static void work(void *ctx, size_t thread, size_t i)
{
	struct import *im = ctx;
	ctl_move(im->o, im->source ? &im->from[thread] : NULL, &im->to[thread], &im->entries[i],
		 &im->moved[i]);
}

/* Without an answer to this, there will be none to the next. */
static void note_lost(struct import *im, const struct ctl_fault *f)
{
	if (f && f->kind == CTL_FAULT_LOST)
		im->lost = *f;
}

static bool entries(void *ctx, const struct ctl_entry *v, size_t n)
{
	struct import *im = ctx;
	size_t done = 0;
	while (done < n && im->lost.kind == CTL_FAULT_NONE) {
		/* A few at a time, so that a lost catalog is not asked hundreds of times. */
		size_t some = n - done < 4 * im->o->parallel ? n - done : 4 * im->o->parallel;
		im->entries = v + done;
		ctl_crew_run(im->o->parallel, some, work, im);
		for (size_t i = 0; i < some; i++) {
			ctl_report_row(&im->report, &v[done + i], &im->moved[i].row);
			note_lost(im, im->moved[i].row.fault);
			ctl_move_release(&im->moved[i]);
		}
		done += some;
	}
	fflush(stdout);
	return im->lost.kind == CTL_FAULT_NONE;
}

static bool missed(void *ctx, const struct ctl_entry *e, const struct ctl_fault *f)
{
	struct import *im = ctx;
	ctl_report_row(&im->report, e, &(struct ctl_row){.verdict = CTL_V_FAILED, .fault = f});
	note_lost(im, f);
	return im->lost.kind == CTL_FAULT_NONE;
}

/* ------------------------------------------------------------------ what only the target has */

struct extras {
	struct import *im;
	const struct ctl_entry *ns;
	enum ctl_entry_kind kind;
	const struct ctl_set *names;
	struct ctl_set seen;
};

static bool extra(void *ctx, const struct jspan *v, struct arena *a, bool *ret_new,
		  struct ctl_fault *f)
{
	struct extras *x = ctx;
	struct ctl_entry e = *x->ns;
	if (!jspan_str(jspan_get(v, "name"), a, &e.name))
		return ctl_fault_set(f, CTL_FAULT_ANSWER, "%s: lists what has no name",
				     ctl_peer_uri(x->im->target));
	if (!ctl_set_add(&x->seen, e.name, ret_new))
		return ctl_fault_set(f, CTL_FAULT_ANSWER,
				     "a listing of more names than there is room for");
	e.kind = x->kind;
	if (*ret_new && !ctl_set_has(x->names, e.name))
		ctl_report_row(&x->im->report, &e, &(struct ctl_row){.verdict = CTL_V_ONLY_HERE});
	return true;
}

static void listed(void *ctx, const struct ctl_entry *ns, enum ctl_entry_kind kind,
		   const struct ctl_set *names)
{
	struct import *im = ctx;
	struct extras x = {.im = im, .ns = ns, .kind = kind, .names = names};
	struct ctl_fault f = {0};
	struct buf path;
	buf_init(&path, (size_t)256 << 10);
	ctl_set_init(&x.seen, (size_t)128 << 20);
	bool ok = ctl_peer_path(im->target, &path, ns->levels, ns->n_levels,
				kind == CTL_TABLE ? "tables" : "views", (struct strv){0}, &f);
	buf_puts(&path, "?pageSize=1000");
	ok = ok && ctl_walk_pages(&im->to[0], &path, "identifiers", extra, NULL, &x, &f);
	/* In a dry run the namespace may not be there yet; a refused one was told. */
	if (!ok && !(f.kind == CTL_FAULT_REFUSED && f.status == 404))
		(void)missed(im, ns, &f);
	ctl_set_fini(&x.seen);
	buf_fini(&path);
}

/* ------------------------------------------------------------------ the command */

static bool open_peers(struct import *im, struct ctl_fault *f)
{
	const struct ctl_move_options *o = im->o;
	im->target = ctl_peer_new(&o->target, f);
	if (!im->target)
		return false;
	if (!ctl_peer_offers(im->target, "POST /v1/{prefix}/namespaces/{namespace}/register", NULL))
		return ctl_fault_set(f, CTL_FAULT_REFUSED, "%s does not register tables",
				     o->target.uri);
	if (!o->from_file) {
		im->source = ctl_peer_new(&o->source, f);
		if (!im->source)
			return false;
	}
	for (size_t i = 0; i < o->parallel; i++) {
		ctl_peer_link_init(&im->to[i], im->target);
		if (im->source)
			ctl_peer_link_init(&im->from[i], im->source);
	}
	return true;
}

int ctl_cmd_import(const struct ctl *c)
{
	const struct ctl_move_options *o = c->move;
	const struct ctl_choice choice = {o->namespaces, o->n_namespaces, o->tables,
					       o->n_tables};
	struct ctl_fault f = {0};
	if (!o->source.uri == !o->from_file || o->output) {
		fputs("frazilctl: import needs one of --from and --from-file\n", stderr);
		return CTL_USAGE;
	}
	struct import *im = base_calloc(1, sizeof *im);
	im->o = o;
	im->report = (struct ctl_report){.json = c->json, .dry = o->dry_run};
	const struct ctl_sink sink = {im, entries, missed, o->from_file ? NULL : listed};
	int code = CTL_OK;
	if (open_peers(im, &f)) {
		ctl_report_begin(&im->report);
		bool whole = o->from_file ? ctl_record_read(o->from_file, &choice, &sink, &f)
					  : ctl_walk(im->source, &choice, &sink, &f);
		whole = whole && im->lost.kind == CTL_FAULT_NONE;
		code = ctl_report_end(&im->report, whole);
	}
	if (f.kind == CTL_FAULT_NONE)
		f = im->lost;
	if (f.kind != CTL_FAULT_NONE) {
		fprintf(stderr, "frazilctl: %s%s%s\n", f.type, f.type[0] ? ": " : "", f.text);
		code = ctl_fault_exit(&f);
	}
	for (size_t i = 0; i < CTL_CREW_MAX; i++) {
		ctl_peer_link_fini(&im->from[i]);
		ctl_peer_link_fini(&im->to[i]);
	}
	ctl_peer_free(im->source);
	ctl_peer_free(im->target);
	base_free(im);
	return code;
}
