/* The encode job: turns a plan into the bytes of every object of its snapshots. Pure, run off the
 * loop: reads the plan, which is immutable by then, and writes its own output only. All names and
 * random bytes are given, so that the same input makes the same output. */
#ifndef DAEMON_COMMIT_ENCODE_H
#define DAEMON_COMMIT_ENCODE_H

#include "daemon/commit/plan.h"
#include "daemon/commit/verify.h"

struct encode_in {
	/* A batch of transactions; NULL for a metadata change that is already applied. */
	const struct plan *plan;
	struct metadata *metadata;   /* plan NULL: the new metadata, only to be written */
	const struct metadata *base; /* plan NULL: what it replaces */
	const struct verify_snapshot *verify; /* plan NULL: snapshots to look at first */
	size_t n_verify;
	bool reject; /* a finding fails the job */
	struct strv metadata_path;   /* where it goes; gzipped when it says so */
	struct strv base_location;   /* metadata file of the plan's base */
	int64_t now_ms;		     /* clock for timestamps */
	struct uuid commit_uuid;     /* names manifests, lists and vector files */
	struct batch_id batch;	     /* told in the summary */
	uint8_t sync[16];
	size_t max_bytes; /* of all objects together */
};

struct encode_object {
	struct strv path;
	struct pieces content;
	struct bytes data; /* owned: what of the content is not the metadata's; all of it but in
			    * plain metadata files */
};

/* Per transaction of the plan. */
struct encode_txn {
	int64_t snapshot_id; /* SNAPSHOT_NONE when it made no snapshot */
	int64_t seq;
	int64_t *first_row_ids; /* parallel to its files; ROW_ID_NONE below version 3 */
};

struct encode_list {
	struct strv path;
	struct mlist *list;
};
struct encode_view {
	struct strv path;
	int64_t first_row_id, seq; /* of its row */
	struct mview *view;
};
struct encode_vec {
	struct strv path;
	int64_t offset;
	struct vec *vec;
};

struct encode_out {
	struct arena arena;
	struct err err;
	struct encode_object *objects; /* the metadata file is the last; none when !changed */
	size_t n_objects, cap_objects;
	struct metadata *metadata; /* a reference is held */
	bool changed;		   /* false: no transaction changed anything */
	struct encode_txn *txns;
	int64_t *snapshots;
	size_t n_snapshots;
	int64_t last_seq, next_row_id;
	int64_t first_row_id, added_rows; /* over all snapshots of the batch; 0 and 0 below v3 */
	/* Decoded forms of what was written, for the cache. References are held. */
	struct encode_list *lists;
	size_t n_lists, cap_lists;
	struct encode_view *views;
	size_t n_views, cap_views;
	struct encode_vec *vecs;
	size_t n_vecs, cap_vecs;
	/* Metadata files of the table's own that fell off the log, when it asks for their deletion. */
	struct strv *expired;
	size_t n_expired;
	struct verify_out found;
};

struct encode_out *encode_out_new(size_t max_bytes);
void encode_out_free(struct encode_out *own_out);
/* Fills *out; out->err says how it went. */
void encode_run(const struct encode_in *in, struct encode_out *out);

#endif
