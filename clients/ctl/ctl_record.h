/* The list of a catalog: a line of JSON for the format, one for each namespace, table and view,
 * and a last one that counts them, so that a list that was cut is not taken for a whole one. See
 * frazilctl(1). */
#ifndef CLIENTS_CTL_CTL_RECORD_H
#define CLIENTS_CTL_CTL_RECORD_H

#include <stdio.h>

#include "clients/ctl/ctl_entry.h"

struct ctl_record_counts {
	size_t namespaces, tables, views;
};

void ctl_record_begin(FILE *out);
/* False when the entry is larger than a line may be. */
MUST_CHECK bool ctl_record_put(FILE *out, const struct ctl_entry *e, struct ctl_record_counts *counts);
void ctl_record_end(FILE *out, const struct ctl_record_counts *counts);

/* Reads the file twice: as a whole first, and only a good list is handed over, as by ctl_walk;
 * `missed` is called for chosen tables that are not in it. False with a fault, or without one
 * when the sink ended it. */
bool ctl_record_read(const char *path, const struct ctl_choice *choice,
		     const struct ctl_sink *sink, struct ctl_fault *f);

#endif
