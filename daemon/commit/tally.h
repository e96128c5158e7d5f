/* Counters of one snapshot and its summary (Iceberg spec, "Snapshots"; key names as the reference
 * implementation writes them). */
#ifndef DAEMON_COMMIT_TALLY_H
#define DAEMON_COMMIT_TALLY_H

#include "proto/avro/content_file.h"
#include "proto/base/arena.h"

struct snapshot;

struct tally {
	int64_t added_data_files, deleted_data_files;
	int64_t added_dvs, removed_dvs;
	int64_t added_pos_files, removed_pos_files; /* position delete files that are no vectors */
	int64_t added_records, deleted_records;
	int64_t added_size, removed_size;
	int64_t added_positions, removed_positions;
	int64_t created, kept, replaced; /* manifests */
	/* Partitions touched, each (spec, tuple) once. */
	struct tally_part *parts;
	size_t n_parts, cap_parts;
	struct arena *arena;
};

void tally_init(struct tally *t, struct arena *a);
/* A data file, a vector or a position delete file that the snapshot adds or removes. A vector
 * counts with the length of its blob. false when the arena is exhausted. */
MUST_CHECK bool tally_add(struct tally *t, const struct content_file *f);
MUST_CHECK bool tally_remove(struct tally *t, const struct content_file *f);
/* The operation label for a snapshot that only adds data, only deletes, or does both. */
struct strv tally_operation(const struct tally *t);
/* Summary without "operation". Totals go on from the parent's; a total that the parent lacks, or
 * that would be negative, is left out. parent NULL: totals start at 0. `more` is put at the end. */
MUST_CHECK bool tally_summary(const struct tally *t, const struct snapshot *parent,
			      const struct strv_pair *more, size_t n_more,
			      const struct strv_pair **ret_pairs, size_t *ret_n);

#endif
