/* Writing the manifests of one snapshot: new ones, and copies of old ones in which some entries
 * are now deleted. Part of the encode job. */
#ifndef DAEMON_COMMIT_REWRITE_H
#define DAEMON_COMMIT_REWRITE_H

#include "daemon/commit/encode.h"

/* One manifest in a ref's growing list. */
struct rewrite_row {
	struct manifest_file f;
	struct mview *view; /* borrowed: the plan's, or the output's, which are whole */
};

struct rewrite {
	const struct encode_in *in;
	struct encode_out *out;
	const struct metadata *meta;
	int version;
	struct strv schema_json;
	struct strv metadata_dir;
	int n_manifests; /* numbers the names */
	int64_t snapshot_id;
	int64_t seq;
};

MUST_CHECK enum status rewrite_init(struct rewrite *w, const struct encode_in *in,
				    struct encode_out *out, const struct metadata *meta,
				    struct err *err);
/* Writes one manifest under spec_id and adds it to the objects. like: the manifest that is copied,
 * whose tuple types count (a column that a spec names may have left the schema), or NULL. The view is not made here: its
 * entries inherit from the row, which has its final numbers only when the list is written. The
 * bytes are borrowed from the output. */
MUST_CHECK enum status rewrite_manifest(struct rewrite *w, enum manifest_content content,
					int32_t spec_id, const struct mview *like,
					const struct manifest_entry *const *entries, size_t n,
					struct manifest_file *ret_row, struct bytes *ret_file,
					struct err *err);
/* The same entries with live ones EXISTING, but those for which `gone` says true DELETED by this
 * snapshot; entries that were deleted before are left out. */
MUST_CHECK enum status rewrite_copy(struct rewrite *w, const struct rewrite_row *old,
				    bool (*gone)(void *ctx, const struct manifest_entry *e),
				    void *ctx, struct manifest_file *ret_row,
				    struct bytes *ret_file, struct err *err);
/* One manifest with the live entries of several of the same content and spec, all EXISTING. */
MUST_CHECK enum status rewrite_merge(struct rewrite *w, const struct rewrite_row *const *olds,
				     size_t n, struct manifest_file *ret_row,
				     struct bytes *ret_file, struct err *err);
/* Adds an object that lies in pieces; takes those bytes of them that are its own out of the buffer. */
MUST_CHECK enum status rewrite_pieces(struct encode_out *out, struct strv path,
				      const struct pieces *content, struct buf *b, struct err *err);
/* Adds an object; takes the bytes out of the buffer. */
MUST_CHECK enum status rewrite_object(struct encode_out *out, struct strv path, struct buf *b,
				      struct bytes *ret_data, struct err *err);

#endif
