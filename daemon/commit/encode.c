#include "daemon/commit/encode.h"

#include <inttypes.h>
#include <stdlib.h>

#include "daemon/commit/lane.h"
#include "proto/base/gzip.h"
#include "proto/base/jwrite.h"
#include "proto/iceberg/metadata.h"
#include "proto/iceberg/update.h"

#define CREATED_BY STRV("frazil")

static enum status full(struct err *err)
{
	return err_set(err, ST_LIMIT, "", "the batch exceeds the memory limit of one snapshot");
}

struct encode_out *encode_out_new(size_t max_bytes)
{
	struct encode_out *out = base_calloc(1, sizeof *out);
	arena_init(&out->arena, max_bytes);
	return out;
}

void encode_out_free(struct encode_out *own_out)
{
	if (!own_out)
		return;
	for (size_t i = 0; i < own_out->n_objects; i++)
		base_free((void *)(uintptr_t)own_out->objects[i].data.p);
	for (size_t i = 0; i < own_out->n_lists; i++)
		mlist_unref(own_out->lists[i].list);
	for (size_t i = 0; i < own_out->n_views; i++)
		mview_unref(own_out->views[i].view);
	for (size_t i = 0; i < own_out->n_vecs; i++)
		vec_unref(own_out->vecs[i].vec);
	metadata_unref(own_out->metadata);
	arena_fini(&own_out->arena);
	base_free(own_out);
}
/* ------------------------------------------------------------------ the metadata */

static enum status apply(struct lane_work *k, struct err *err)
{
	const struct plan *p = k->plan;
	struct encode_out *out = k->w.out;
	struct update *u = arena_calloc(&out->arena, p->n_lanes + p->n_refs, sizeof *u);
	if (!u)
		return full(err);
	size_t n = 0;
	for (size_t i = 0; i < p->n_lanes; i++)
		u[n++] = (struct update){.kind = UPDATE_ADD_SNAPSHOT,
					 .u.snapshot = &k->snapshots[i]};
	for (size_t r = 0; r < p->n_refs; r++) {
		int64_t newest = SNAPSHOT_NONE;
		for (size_t i = 0; i < p->n_lanes; i++)
			if (p->lanes[i].ref == (int)r)
				newest = p->lanes[i].snapshot_id;
		if (newest == SNAPSHOT_NONE)
			continue;
		struct snapshot_ref ref = {.name = p->refs[r].name};
		const struct snapshot_ref *old = metadata_ref_by_name(k->w.meta, ref.name);
		if (old)
			ref = *old; /* retention settings stay */
		ref.snapshot_id = newest;
		u[n++] = (struct update){.kind = UPDATE_SET_SNAPSHOT_REF, .u.ref = ref};
	}
	struct metadata_ctx ctx = {.now_ms = k->timestamp_ms,
				   .base_location = k->w.in->base_location,
				   .new_uuid = k->w.in->commit_uuid};
	bool changed = false;
	enum status st = metadata_apply(k->w.meta, u, n, &ctx, &out->metadata, &changed, err);
	if (st == ST_OK)
		ASSERT(changed);
	return st;
}

static enum status write_metadata(const struct encode_in *in, struct encode_out *out,
				  struct err *err)
{
	struct buf own;
	struct pieces content;
	struct gzip_writer z;
	enum status st = ST_OK;
	buf_init(&own, METADATA_MAX_BYTES);
	if (metadata_file_gzip(in->metadata_path)) {
		gzip_begin(&z, &own);
		metadata_gzip(out->metadata, &z);
		st = gzip_end(&z, err);
		if (st == ST_OK)
			st = rewrite_object(out, in->metadata_path, &own, NULL, err);
	} else if (metadata_pieces(out->metadata, &own, &out->arena, &content) &&
		   pieces_size(&content) <= METADATA_MAX_BYTES) {
		st = rewrite_pieces(out, in->metadata_path, &content, &own, err);
	} else {
		st = full(err);
	}
	buf_fini(&own);
	return st;
}

/* Metadata files that the base's log still has and the new one's has not. A log may have come from
 * elsewhere with its table: what lies outside the table's own folders is not the table's to delete. */
static bool find_expired(const struct encode_in *in, struct encode_out *out,
			 const struct metadata *base)
{
	struct strv wanted = metadata_property(out->metadata,
					       "write.metadata.delete-after-commit.enabled");
	if (!base || !wanted.p || !strv_ieq(wanted, STRV("true")))
		return true;
	size_t n_old, n_new;
	const struct metadata_log_entry *old = metadata_log(base, &n_old);
	const struct metadata_log_entry *now = metadata_log(out->metadata, &n_new);
	out->expired = arena_calloc(&out->arena, n_old ? n_old : 1, sizeof *out->expired);
	if (!out->expired)
		return false;
	for (size_t i = 0; i < n_old; i++) {
		bool kept = strv_eq(old[i].file, in->base_location) ||
			    (!metadata_owns_file(base, old[i].file) &&
			     !metadata_owns_file(out->metadata, old[i].file));
		for (size_t j = 0; j < n_new; j++)
			kept |= strv_eq(now[j].file, old[i].file);
		if (!kept)
			out->expired[out->n_expired++] = old[i].file;
	}
	return true;
}

static int64_t timestamp_of(const struct encode_in *in)
{
	const struct plan *p = in->plan;
	int64_t t = in->now_ms, updated = metadata_last_updated_ms(p->base);
	if (t < updated)
		t = updated;
	size_t n;
	const struct metadata_snapshot_log_entry *log = metadata_snapshot_log(p->base, &n);
	if (n && t < log[n - 1].timestamp_ms)
		t = log[n - 1].timestamp_ms;
	for (size_t i = 0; i < p->n_refs; i++)
		if (p->refs[i].head && t < p->refs[i].head->timestamp_ms)
			t = p->refs[i].head->timestamp_ms;
	return t;
}

static enum status run_plan(const struct encode_in *in, struct encode_out *out, struct err *err)
{
	const struct plan *p = in->plan;
	struct lane_work k = {.plan = p};
	out->txns = arena_calloc(&out->arena, p->n_txns ? p->n_txns : 1, sizeof *out->txns);
	out->snapshots = arena_calloc(&out->arena, p->n_lanes ? p->n_lanes : 1, sizeof(int64_t));
	k.lines = arena_calloc(&out->arena, p->n_refs ? p->n_refs : 1, sizeof *k.lines);
	k.snapshots = arena_calloc(&out->arena, p->n_lanes ? p->n_lanes : 1, sizeof *k.snapshots);
	if (!out->txns || !out->snapshots || !k.lines || !k.snapshots)
		return full(err);
	for (size_t i = 0; i < p->n_txns; i++)
		out->txns[i] = (struct encode_txn){.snapshot_id = SNAPSHOT_NONE, .seq = SEQ_NONE};
	out->last_seq = metadata_last_sequence_number(p->base);
	out->next_row_id = metadata_next_row_id(p->base);
	out->first_row_id = out->next_row_id;
	if (p->n_lanes == 0) {
		out->metadata = metadata_ref(p->base);
		return ST_OK;
	}
	enum status st = rewrite_init(&k.w, in, out, p->base, err);
	if (st == ST_OK && !metadata_data_folder(p->base, &out->arena, &k.data_dir))
		st = full(err);
	if (st != ST_OK)
		return st;
	for (size_t r = 0; r < p->n_refs; r++) {
		const struct plan_ref *ref = &p->refs[r];
		struct lane_line *line = &k.lines[r];
		line->head = ref->head;
		line->n = ref->list ? ref->list->l.n : 0;
		line->rows =
			arena_calloc(&out->arena, line->n ? line->n : 1, sizeof *line->rows);
		if (!line->rows)
			return full(err);
		for (size_t i = 0; i < line->n; i++) {
			line->rows[i] =
				(struct rewrite_row){ref->list->l.rows[i], ref->views[i]};
			/* Some writers leave a number there, which no reader may use. */
			if (line->rows[i].f.content == MANIFEST_DELETES)
				line->rows[i].f.first_row_id = ROW_ID_NONE;
		}
	}
	k.timestamp_ms = timestamp_of(in);
	k.next_row_id = out->next_row_id;
	for (size_t i = 0; i < p->n_lanes && st == ST_OK; i++)
		st = lane_encode(&k, (int)i, err);
	if (st == ST_OK)
		st = apply(&k, err);
	if (st != ST_OK)
		return st;
	out->changed = true;
	out->last_seq = metadata_last_sequence_number(out->metadata);
	out->next_row_id = metadata_next_row_id(out->metadata);
	out->added_rows = out->next_row_id - out->first_row_id;
	if (!find_expired(in, out, p->base))
		return full(err);
	return write_metadata(in, out, err);
}

void encode_run(const struct encode_in *in, struct encode_out *out)
{
	struct err err = {0};
	if (in->plan) {
		err.st = run_plan(in, out, &err);
	} else {
		out->metadata = metadata_ref(in->metadata);
		out->changed = true;
		out->last_seq = metadata_last_sequence_number(out->metadata);
		out->next_row_id = metadata_next_row_id(out->metadata);
		for (size_t i = 0; i < in->n_verify; i++)
			verify_run(&in->verify[i], &out->found);
		if (in->reject && out->found.n)
			verify_err(&out->found.v[0], ST_VALIDATION, &err);
		else if (!find_expired(in, out, in->base))
			err.st = full(&err);
		else
			err.st = write_metadata(in, out, &err);
	}
	out->err = err;
}
