/* frazilctl export: the list of a catalog, from which import puts it back. */
#include "clients/ctl/ctl_cmd.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "clients/ctl/ctl_move.h"
#include "clients/ctl/ctl_record.h"

struct export {
	const struct ctl_move_options *o;
	struct ctl_peer *source;
	struct ctl_peer_link links[CTL_CREW_MAX];
	FILE *out;
	struct ctl_record_counts counts;
	const struct ctl_entry *entries; /* under way */
	struct ctl_load loads[CTL_PIECE];
	struct ctl_fault faults[CTL_PIECE];
	size_t missed;
	struct ctl_fault lost;
};

static void work(void *ctx, size_t thread, size_t i)
{
	struct export *x = ctx;
	x->faults[i] = (struct ctl_fault){0};
	x->loads[i] = (struct ctl_load){0};
	if (x->entries[i].kind != CTL_NAMESPACE)
		(void)ctl_load(&x->links[thread], &x->entries[i], &x->loads[i], &x->faults[i]);
}

static bool missed(void *ctx, const struct ctl_entry *e, const struct ctl_fault *f)
{
	struct export *x = ctx;
	char name[1024];
	ctl_entry_name(e, name, sizeof name);
	fprintf(stderr, "frazilctl: %s %s: %s%s%s\n", ctl_entry_kind_name(e->kind), name, f->type,
		f->type[0] ? ": " : "", f->text);
	x->missed++;
	if (f->kind == CTL_FAULT_LOST)
		x->lost = *f;
	return x->lost.kind == CTL_FAULT_NONE;
}

static void write_entry(struct export *x, const struct ctl_entry *entry, struct ctl_load *load,
			const struct ctl_fault *fault)
{
	struct ctl_entry e = *entry;
	struct ctl_fault f = {0};
	if (fault->kind != CTL_FAULT_NONE) {
		(void)missed(x, &e, fault);
		return;
	}
	/* What was dropped since it was listed is no part of the list. */
	if (e.kind != CTL_NAMESPACE && !load->found)
		return;
	e.uuid = load->uuid;
	e.location = load->location;
	if (!ctl_record_put(x->out, &e, &x->counts)) {
		ctl_fault_set(&f, CTL_FAULT_ANSWER, "is larger than a line of the list may be");
		(void)missed(x, &e, &f);
	}
}

static bool entries(void *ctx, const struct ctl_entry *v, size_t n)
{
	struct export *x = ctx;
	size_t done = 0;
	while (done < n && x->lost.kind == CTL_FAULT_NONE) {
		size_t some = n - done < 4 * x->o->parallel ? n - done : 4 * x->o->parallel;
		x->entries = v + done;
		ctl_crew_run(x->o->parallel, some, work, x);
		for (size_t i = 0; i < some; i++) {
			write_entry(x, &v[done + i], &x->loads[i], &x->faults[i]);
			ctl_load_release(&x->loads[i]);
		}
		done += some;
	}
	return x->lost.kind == CTL_FAULT_NONE && !ferror(x->out);
}

/* The whole list, or no file of that name. */
static bool finish(struct export *x, const char *name, bool good, struct ctl_fault *f)
{
	bool ok = fflush(x->out) == 0 && !ferror(x->out);
	if (!x->o->output)
		return ok || ctl_fault_set(f, CTL_FAULT_LOCAL, "stdout: %s", strerror(errno));
	ok = ok && fsync(fileno(x->out)) == 0;
	ok = fclose(x->out) == 0 && ok;
	if (ok && good && rename(name, x->o->output) == 0)
		return true;
	if (good)
		ctl_fault_set(f, CTL_FAULT_LOCAL, "%s: %s", x->o->output, strerror(errno));
	unlink(name);
	return !good;
}

int ctl_cmd_export(const struct ctl *c)
{
	const struct ctl_move_options *o = c->move;
	const struct ctl_choice choice = {o->namespaces, o->n_namespaces, o->tables,
					       o->n_tables};
	struct ctl_fault f = {0};
	struct ctl_move_options own = *o;
	struct buf name;
	if (o->from_file || o->dry_run || o->overwrite || o->force) {
		fputs("frazilctl: export takes no options of import\n", stderr);
		return CTL_USAGE;
	}
	if (!own.source.uri)
		own.source.uri = own.target.uri;
	struct export *x = base_calloc(1, sizeof *x);
	x->o = &own;
	x->out = stdout;
	buf_init(&name, 8192);
	buf_printf(&name, "%s.part", o->output ? o->output : "");
	buf_putc(&name, 0);
	const struct ctl_sink sink = {x, entries, missed, NULL};
	bool ok = buf_ok(&name);
	if (ok && o->output)
		x->out = fopen((const char *)name.p, "wb");
	if (!ok || !x->out)
		ok = ctl_fault_set(&f, CTL_FAULT_LOCAL, "%s: %s", o->output, strerror(errno));
	else {
		x->source = ctl_peer_new(&own.source, &f);
		ok = x->source;
		for (size_t i = 0; ok && i < own.parallel; i++)
			ctl_peer_link_init(&x->links[i], x->source);
		if (ok) {
			ctl_record_begin(x->out);
			ok = ctl_walk(x->source, &choice, &sink, &f);
		}
		ok = ok && x->lost.kind == CTL_FAULT_NONE;
		if (ok)
			ctl_record_end(x->out, &x->counts);
		ok = finish(x, (const char *)name.p, ok, &f) && ok;
	}
	if (f.kind == CTL_FAULT_NONE)
		f = x->lost;
	int code = x->missed ? CTL_NO : CTL_OK;
	if (!ok) {
		fprintf(stderr, "frazilctl: %s%s%s\n", f.type, f.type[0] ? ": " : "", f.text);
		code = f.kind == CTL_FAULT_NONE ? CTL_NO : ctl_fault_exit(&f);
	}
	for (size_t i = 0; i < CTL_CREW_MAX; i++)
		ctl_peer_link_fini(&x->links[i]);
	ctl_peer_free(x->source);
	buf_fini(&name);
	base_free(x);
	return code;
}
