/* Puffin files (Puffin specification): "PFA1", blobs, then the footer "PFA1" + JSON + i32 payload
 * size + 4 flag bytes + "PFA1". Numbers are little-endian. Pure; reads and writes memory only. */
#ifndef PROTO_DV_PUFFIN_H
#define PROTO_DV_PUFFIN_H

#include "proto/base/arena.h"
#include "proto/base/buf.h"
#include "proto/base/err.h"
#include "proto/base/jwrite.h"

/* Magic, payload size, flags, magic: the footer without its payload. */
#define PUFFIN_FOOTER_FIXED 16
/* The last bytes that puffin_footer_size reads. */
#define PUFFIN_TRAILER 12
/* Our limit on the footer's JSON. */
#define PUFFIN_MAX_PAYLOAD ((size_t)64 << 20)

struct puffin_prop {
	struct strv key;
	struct strv value;
};

struct puffin_blob {
	struct strv type;
	const int32_t *fields;
	size_t n_fields;
	int64_t snapshot_id;
	int64_t sequence_number;
	int64_t offset;    /* bytes from the start of the file */
	int64_t length;    /* bytes as stored */
	struct strv codec; /* empty: not compressed */
	const struct puffin_prop *props;
	size_t n_props;
};

struct puffin_file {
	const struct puffin_blob *blobs;
	size_t n_blobs;
	const struct puffin_prop *props;
	size_t n_props;
};

/* Value of a property; false when absent. */
bool puffin_prop(const struct puffin_prop *props, size_t n, const char *key,
		 struct strv *ret_value);

/* --- reading --- */

/* Bytes of the whole footer, from the last PUFFIN_TRAILER bytes of a file of file_size bytes.
 * Status `bad` for a broken trailer, ST_UNSUPPORTED with field "flags" for a compressed footer or
 * a flag this version does not know. */
MUST_CHECK enum status puffin_footer_size(struct bytes trailer, uint64_t file_size, enum status bad,
					  size_t *ret_n, struct err *err);
/* footer is exactly the last puffin_footer_size() bytes. Blobs of any type and codec are listed;
 * each lies between the leading magic and the footer. *ret_file lives in the arena. */
MUST_CHECK enum status puffin_parse(struct bytes footer, uint64_t file_size, enum status bad,
				    struct arena *a, struct puffin_file *ret_file, struct err *err);
/* The same from a whole file; checks the leading magic too. */
MUST_CHECK enum status puffin_parse_file(struct bytes file, enum status bad, struct arena *a,
					 struct puffin_file *ret_file, struct err *err);
/* The deletion vector at exactly this offset and length: type deletion-vector-v1, not compressed,
 * properties referenced-data-file and cardinality equal to what the manifest says. Empty `fields`
 * are taken, as some writers leave them out. Status `bad` with the field at fault. */
MUST_CHECK enum status puffin_vector_at(const struct puffin_file *file, int64_t offset,
					int64_t length, struct strv data_file, int64_t cardinality,
					enum status bad, const struct puffin_blob **ret_blob,
					struct err *err);

/* --- writing --- */

/* Appends a file to `out`, which must be empty, and the footer's JSON to an own buffer. */
struct puffin_writer {
	struct buf *out;
	struct buf json;
	struct jwrite w;
};

void puffin_begin(struct puffin_writer *w, struct buf *out);
void puffin_writer_fini(struct puffin_writer *w);
/* One blob as it is to be stored. offset and length of `blob` are ignored; *ret_offset is where it
 * went. ST_LIMIT when the buffer is full. */
MUST_CHECK enum status puffin_add(struct puffin_writer *w, const struct puffin_blob *blob,
				  struct bytes data, int64_t *ret_offset, struct err *err);
/* One framed deletion vector (dv_blob) with the members that the table specification asks for:
 * no codec, snapshot id and sequence number -1 because neither is known at writing. data_file is
 * the exact path of the manifest entry. */
MUST_CHECK enum status puffin_add_vector(struct puffin_writer *w, struct bytes dv_blob,
					 struct strv data_file, int64_t cardinality,
					 int64_t *ret_offset, struct err *err);
/* Writes the footer; created_by may be empty. The size of the file is then out->n. */
MUST_CHECK enum status puffin_finish(struct puffin_writer *w, struct strv created_by,
				     struct err *err);

#endif
