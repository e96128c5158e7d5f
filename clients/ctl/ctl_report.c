#include "clients/ctl/ctl_report.h"

#include <stdio.h>

#include "clients/ctl/ctl_cmd.h"
#include "proto/base/jwrite.h"

#define ROW_MAX ((size_t)4 << 20)

static const struct {
	const char *word;
	bool differs;
} verdicts[] = {
#define VERDICT(id, word, differs, help) {word, differs},
#include "clients/ctl/ctl_verdict.tbl"
};

void ctl_report_begin(struct ctl_report *r)
{
	if (r->json)
		printf("{\"items\":[");
}

static void opt(struct jwrite *w, const char *key, struct strv s)
{
	if (s.n)
		jwrite_kstr(w, key, s);
}

static void row_json(struct ctl_report *r, const struct ctl_entry *e, const struct ctl_row *row)
{
	struct buf b;
	struct jwrite w;
	buf_init(&b, ROW_MAX);
	jwrite_init(&w, &b);
	jwrite_object(&w);
	jwrite_kstr(&w, "kind", strv_of(ctl_entry_kind_name(e->kind)));
	jwrite_key(&w, "name");
	jwrite_array(&w);
	for (size_t i = 0; i < e->n_levels; i++)
		jwrite_str(&w, e->levels[i]);
	if (e->name.n)
		jwrite_str(&w, e->name);
	jwrite_end_array(&w);
	jwrite_kstr(&w, "verdict", strv_of(verdicts[row->verdict].word));
	opt(&w, "uuid", row->uuid);
	opt(&w, "metadata-location", row->location);
	opt(&w, "target-metadata-location", row->target);
	opt(&w, "dialects", row->dialects);
	if (row->fault && row->fault->kind != CTL_FAULT_NONE) {
		if (row->fault->status)
			jwrite_ki64(&w, "status", row->fault->status);
		opt(&w, "type", strv_of(row->fault->type));
		opt(&w, "message", strv_of(row->fault->text));
	}
	jwrite_end_object(&w);
	if (buf_ok(&b))
		printf("%s\n%.*s", r->rows ? "," : "", STRV_ARG(buf_strv(&b)));
	buf_fini(&b);
}

static void row_text(const struct ctl_entry *e, const struct ctl_row *row)
{
	const struct ctl_fault *f = row->fault;
	char name[1024], where[2048], dialects[256];
	if (row->verdict == CTL_V_SAME)
		return;
	ctl_entry_name(e, name, sizeof name);
	printf("%-12s  %-9s  %s", verdicts[row->verdict].word, ctl_entry_kind_name(e->kind), name);
	if (f && f->kind != CTL_FAULT_NONE)
		printf("  %s%s%s", f->type, f->type[0] ? ": " : "", f->text);
	if (row->location.n && (verdicts[row->verdict].differs || !row->fault)) {
		ctl_fault_text(where, sizeof where, row->location);
		printf("  %s", where);
	}
	if (row->target.n && verdicts[row->verdict].differs) {
		ctl_fault_text(where, sizeof where, row->target);
		printf("  here %s", where);
	}
	if (row->dialects.n) {
		ctl_fault_text(dialects, sizeof dialects, row->dialects);
		printf("  (%s)", dialects);
	}
	putchar('\n');
}

void ctl_report_row(struct ctl_report *r, const struct ctl_entry *e, const struct ctl_row *row)
{
	if (r->json)
		row_json(r, e, row);
	else
		row_text(e, row);
	r->rows++;
	r->counts[row->verdict]++;
}

int ctl_report_end(struct ctl_report *r, bool finished)
{
	bool differs = false;
	if (r->json)
		printf("%s],\"summary\":{", r->rows ? "\n" : "");
	else
		printf("%zu looked at%s:", r->rows, r->dry ? ", dry run" : "");
	for (size_t i = 0; i < CTL_VERDICT_COUNT; i++) {
		differs = differs || (verdicts[i].differs && r->counts[i]);
		if (r->json)
			printf("\"%s\":%zu,", verdicts[i].word, r->counts[i]);
		else if (r->counts[i])
			printf(" %s %zu", verdicts[i].word, r->counts[i]);
	}
	if (r->json)
		printf("\"dry-run\":%s,\"finished\":%s}}\n", r->dry ? "true" : "false",
		       finished ? "true" : "false");
	else
		printf("%s\n", finished ? "" : " (not finished: run it again)");
	return differs || !finished ? CTL_NO : CTL_OK;
}
