/* What went wrong with a catalog: enough for a line of a report, an exit code, and to decide
 * whether another try can help. */
#ifndef CLIENTS_CTL_CTL_FAULT_H
#define CLIENTS_CTL_CTL_FAULT_H

#include "proto/base/strv.h"

enum ctl_fault_kind {
	CTL_FAULT_NONE,
	CTL_FAULT_LOCAL,   /* a file or an option of ours */
	CTL_FAULT_LOST,    /* no answer: what was asked may have been done */
	CTL_FAULT_REFUSED, /* an answer with an error status */
	CTL_FAULT_ANSWER   /* an answer that is not what the specification says */
};

struct ctl_fault {
	enum ctl_fault_kind kind;
	int status;	/* HTTP, 0 when there was no answer */
	bool final;	/* another try will not help */
	char type[64];	/* of the error model; empty when it named none */
	char text[480]; /* for people: printable UTF-8 */
};

/* Fills the fault; always false, so that a caller can return it. */
bool ctl_fault_set(struct ctl_fault *f, enum ctl_fault_kind kind, const char *fmt, ...)
	PRINTF_LIKE(3, 4);
/* The same text cut at a character's end, with what a terminal would take for a command
 * replaced. */
void ctl_fault_text(char *out, size_t cap, struct strv s);
/* The exit code of a command that ends with it. */
int ctl_fault_exit(const struct ctl_fault *f);

#endif
