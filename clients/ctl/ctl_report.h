/* The report of an import, a line or JSON object a row, and what all rows together mean. */
#ifndef CLIENTS_CTL_CTL_REPORT_H
#define CLIENTS_CTL_CTL_REPORT_H

#include "clients/ctl/ctl_walk.h"

enum ctl_verdict {
#define VERDICT(id, word, differs, help) CTL_V_##id,
#include "clients/ctl/ctl_verdict.tbl"
	CTL_VERDICT_COUNT
};

struct ctl_row {
	enum ctl_verdict verdict;
	struct strv uuid;	  /* of the source */
	struct strv location, target; /* metadata files there and here; n 0: not known */
	struct strv dialects;	  /* of a view, "spark, trino" */
	const struct ctl_fault *fault; /* NULL: none */
};

struct ctl_report {
	bool json, dry;
	size_t rows;
	size_t counts[CTL_VERDICT_COUNT];
};

void ctl_report_begin(struct ctl_report *r);
/* Text leaves out what is the same. */
void ctl_report_row(struct ctl_report *r, const struct ctl_entry *e, const struct ctl_row *row);
/* finished: all was looked at. The exit code: CTL_OK when the target holds all that the source
 * does, else CTL_NO. */
int ctl_report_end(struct ctl_report *r, bool finished);

#endif
