/* libfrazil: client of the commit coordinator frazild for workers written in C.
 *
 * A client is one connection that is opened, and opened again, when work needs it. Every call has
 * an asynchronous form (fz_start_*) that ends in exactly one call-back run by fz_process, and a
 * blocking form that does the same and waits. Repeats are safe: a transaction's id is made before
 * anything is sent, and a message that lost its connection, or was answered OVERLOADED or the like,
 * is sent again with the same ids until the deadline. When the outcome of Commit, CommitOnce or
 * Abort stays open, the client asks for the transaction's status before it gives up.
 *
 * Thread-compatible: different clients may be used by different threads at once, one client and its
 * transactions only by one thread at a time. No call-back runs outside fz_process, fz_close and the
 * blocking forms. Input is borrowed until the call returns. Text is UTF-8 and ends with NUL. */
#ifndef CLIENTS_C_FRAZIL_H
#define CLIENTS_C_FRAZIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FZ_VERSION "0.1.0"

#if defined(__GNUC__)
#define FZ_API __attribute__((visibility("default")))
#define FZ_CHECK __attribute__((warn_unused_result))
#else
#define FZ_API
#define FZ_CHECK
#endif

/* ---- errors ---- */

/* How a call ended. */
enum fz_status {
	FZ_OK,
	FZ_REJECTED, /* refused for what it holds or met; final for Commit; error.name tells why */
	FZ_CONFLICT, /* the id was used before with other content */
	FZ_OVER,     /* final: the transaction was aborted, expired or lost */
	FZ_OVERLOADED, /* refused before any work, also after all repeats */
	FZ_UNKNOWN,    /* the outcome is open: make the same call again or ask for the status */
	FZ_LOST,       /* no connection within retries and deadline; error.effect tells the rest */
	FZ_PROTOCOL,   /* the peer broke the protocol or speaks no common version */
	FZ_USAGE,      /* an argument or a limit of this library; nothing was sent */
	FZ_REFUSED     /* any other refusal of the server */
};

/* What repeating can do. */
enum fz_retry {
	FZ_RETRY_NONE,    /* the same request can never succeed */
	FZ_RETRY_SAME,    /* repeat the very same call */
	FZ_RETRY_REFRESH, /* load the table again, build the work again */
	FZ_RETRY_LATER    /* repeat later, nothing was started */
};

/* What the failed call may have done. */
enum fz_effect { FZ_EFFECT_CLEAN, FZ_EFFECT_UNKNOWN };

/* code, name, field and message are the server's where it answered; code is 0 for errors found
 * here. Longer text is cut. */
struct fz_error {
	enum fz_status status;
	int code;
	enum fz_retry retry;
	enum fz_effect effect;
	char name[48];
	char field[128];
	char message[256];
};

/* Static text: "FZ_REJECTED". */
FZ_API const char *fz_status_name(enum fz_status status);
/* Version of the library that runs, as FZ_VERSION is of the one compiled against. */
FZ_API const char *fz_version(void);

/* ---- client ---- */

struct fz_client;
struct fz_txn;

/* Zero members take the default. */
struct fz_options {
	const char *address;     /* "host:port", "[v6]:port", "unix:/path" or a path; no default */
	const char *client_name; /* for the server's log; default "libfrazil/<version>" */
	int timeout_ms;          /* whole call with all repeats, without its max_wait_ms; 60,000 */
	int attempt_ms; /* one attempt, likewise, before the connection counts as dead; 20,000 */
	int retries; /* repeats of one call; 100, so that the deadline rules; negative for none */
	size_t max_memory; /* bytes of requests that wait for answers; 256 MiB */
	size_t max_reply;  /* largest reply, which may take 16 times as much once read; 64 MiB */
	bool provenance;   /* every deletion states truthfully what became of its rows */
};

/* Makes a client; connects when the first call starts. A host name is looked up with getaddrinfo,
 * which may block: give a numeric address or a socket where that matters. NULL and *err on
 * FZ_USAGE. */
FZ_API FZ_CHECK struct fz_client *fz_open(const struct fz_options *options, struct fz_error *err);
/* Ends calls that are under way with FZ_LOST, then frees. Transactions of the client stay valid for
 * fz_txn_free and fz_txn_id only. Not from inside a call-back. */
FZ_API void fz_close(struct fz_client *own_client);

/* A descriptor, the same for the client's life, that becomes readable whenever fz_process has work:
 * answers, room to write, deadlines. Do not read from it. */
FZ_API int fz_fd(const struct fz_client *client);
/* Does what can be done without blocking, then runs call-backs of the calls that ended. */
FZ_API void fz_process(struct fz_client *client);
/* Calls that have not ended. */
FZ_API size_t fz_pending(const struct fz_client *client);
/* fz_process until no call is pending or timeout_ms (-1: no limit) has passed; true when none is.
 */
FZ_API bool fz_drain(struct fz_client *client, int timeout_ms);
/* Deadline of calls started from now on; 0 for the one of the options. */
FZ_API void fz_set_timeout(struct fz_client *client, int timeout_ms);

/* What Hello agreed on with the last connection. */
struct fz_hello {
	int version;
	const char *server;
	uint8_t daemon_id[16];
	int64_t max_frame_bytes;
};
/* Connects now if no connection stands. The result is valid until the next blocking call. */
FZ_API FZ_CHECK enum fz_status fz_connect(struct fz_client *client,
					  const struct fz_hello **ret_hello, struct fz_error *err);

/* ---- what is sent ---- */

enum fz_kind { FZ_APPEND, FZ_DELETE, FZ_ROW_DELTA, FZ_OVERWRITE, FZ_REWRITE, FZ_TRUNCATE };
enum fz_isolation { FZ_SNAPSHOT, FZ_SERIALIZABLE };
enum fz_provenance { FZ_ABSENT, FZ_DEAD, FZ_MOVED };

/* Place of a transaction in a stream, so that a repeat is noticed. */
struct fz_source {
	const char *source_id;
	int64_t epoch;
	int64_t seq_from;
	int64_t seq_to;
};

/* A transaction. Zero members: a new id, the default warehouse, ref main, kind APPEND, isolation
 * SNAPSHOT, the server's time to live. */
struct fz_begin {
	const uint8_t
		*txn_id; /* 16 bytes, a UUID of version 7; of an earlier run to take it up again */
	const char *warehouse;
	const char *const *namespace_levels;
	size_t n_levels;
	const char *table;
	const char *ref;
	enum fz_kind kind;
	enum fz_isolation isolation;
	bool has_read_snapshot;
	int64_t read_snapshot_id; /* needed by every kind that deletes */
	const char *filter;       /* conflict filter: an Iceberg expression as JSON */
	bool ordered;
	const struct fz_source *source;
	int64_t ttl_ms;
};

/* One field of a partition tuple, in Iceberg's single-value binary form; value NULL for null. */
struct fz_partition {
	int32_t field_id;
	const void *value;
	size_t size;
};
struct fz_metric {
	int32_t field_id;
	int64_t value;
};
struct fz_bound {
	int32_t field_id;
	const void *value;
	size_t size;
};

/* A data file that the worker wrote. new_row_count is record_count unless rows carry ids. */
struct fz_data_file {
	const char *path;   /* exactly as it shall stand in the manifest */
	const char *format; /* NULL for PARQUET */
	int32_t spec_id;
	int32_t schema_id;
	const struct fz_partition *partition;
	size_t n_partition;
	int64_t record_count;
	int64_t file_size;
	const struct fz_metric *column_sizes, *value_counts, *null_counts, *nan_counts;
	size_t n_column_sizes, n_value_counts, n_null_counts, n_nan_counts;
	const struct fz_bound *lower_bounds, *upper_bounds;
	size_t n_lower_bounds, n_upper_bounds;
	const int64_t *split_offsets;
	size_t n_split_offsets;
	bool has_sort_order;
	int32_t sort_order_id;
	bool has_row_ids;
	int64_t new_row_count;
	int64_t updated_row_count;
};

/* Rows to delete from one data file: positions in any order, repeats allowed; or, with its
 * cardinality, a framed vector made elsewhere: its bytes in blob, or with blob_path the range of a
 * file that was written, which the server fetches. */
struct fz_delete {
	const char *data_file; /* exactly as in its manifest */
	const uint64_t *positions;
	size_t n_positions;
	const void *blob;
	size_t blob_size;
	const char *blob_path;
	int64_t blob_offset, blob_length;
	int64_t cardinality;
	enum fz_provenance provenance;
	bool includes_existing;
};

/* A file of position deletes that the worker wrote, for a table of format version 2. */
struct fz_delete_file {
	const char *path;   /* exactly as it shall stand in the manifest */
	const char *format; /* NULL for PARQUET */
	int32_t spec_id;
	const struct fz_partition *partition;
	size_t n_partition;
	int64_t record_count;
	int64_t file_size;
	const struct fz_metric *column_sizes, *value_counts, *null_counts;
	size_t n_column_sizes, n_value_counts, n_null_counts;
	const struct fz_bound *lower_bounds, *upper_bounds;
	size_t n_lower_bounds, n_upper_bounds;
	const char *const *data_files; /* that it names; none: any of its partition */
	size_t n_data_files;
};

/* What a task of an engine reports when it has written: JSON as the engine made it. */
enum fz_dialect { FZ_VELOX, FZ_PRESTO, FZ_TRINO, FZ_ICEBERG };
struct fz_task_message {
	enum fz_dialect dialect;
	const void *json;
	size_t json_size;
};

/* A finished manifest that the worker wrote, to be listed as it is. */
struct fz_manifest {
	const char *path;
	int64_t length;
	int32_t added_files;
	int64_t added_rows;
};

/* What one task of a transaction produced. A later attempt of the same id takes its place. */
struct fz_fragment {
	const char *fragment_id;
	int32_t attempt;
	const struct fz_data_file *data_files;
	size_t n_data_files;
	const struct fz_delete *deletes;
	size_t n_deletes;
	const struct fz_delete_file *delete_files;
	size_t n_delete_files;
	const struct fz_task_message *messages;
	size_t n_messages;
	const struct fz_manifest *manifests;
	size_t n_manifests;
};

/* A property of the snapshot's summary. */
struct fz_property {
	const char *key;
	const char *value;
};

/* ---- what comes back ---- */

/* What a worker needs in order to write. */
struct fz_info {
	uint8_t txn_id[16];
	uint8_t table_uuid[16];
	int64_t incarnation;
	int64_t ttl_ms;
	const char *location;
	const char *data_location;
	int32_t format_version;
	int32_t schema_id;
	const char *schema_json;
	int32_t spec_id;
	const char *spec_json;
	int32_t sort_order_id;
	bool has_read_snapshot;
	int64_t read_snapshot_id;
};

enum fz_doomed { FZ_DOOMED_NONE, FZ_DOOMED_LIKELY, FZ_DOOMED_CERTAIN };

struct fz_staged {
	const char *fragment_id;
	int32_t attempt;
	uint8_t digest[32];
	enum fz_doomed doomed; /* whether a conflict is visible already */
	const char *const *warnings;
	size_t n_warnings;
};

enum fz_state {
	FZ_STATE_OPEN,
	FZ_STATE_SEALED,
	FZ_STATE_COMMITTED,
	FZ_STATE_REJECTED,
	FZ_STATE_ABORTED,
	FZ_STATE_EXPIRED,
	FZ_STATE_LOST
};
/* Static text: "COMMITTED". */
FZ_API const char *fz_state_name(enum fz_state state);

struct fz_file_outcome {
	const char *path;
	bool has_first_row_id;
	int64_t first_row_id;
	int64_t record_count;
};
struct fz_delete_outcome {
	const char *data_file;
	int64_t deleted;
	int64_t overlap; /* rows that were gone already */
};

/* State of a transaction and, when final, what it did. */
struct fz_outcome {
	uint8_t txn_id[16];
	enum fz_state state;
	bool has_snapshot;
	int64_t snapshot_id;
	bool has_sequence_number;
	int64_t sequence_number;
	bool has_batch_no;
	int64_t batch_no;
	bool has_batch_id;
	uint8_t batch_id[16];
	const char *metadata_location; /* empty when none published it */
	int64_t rows_inserted;
	int64_t rows_updated;
	int64_t rows_deleted;
	const struct fz_file_outcome *files;
	size_t n_files;
	const struct fz_delete_outcome *deletes;
	size_t n_deletes;
	const struct fz_error *reject; /* NULL unless rejected, or gone with its table */
	bool has_queue_position;
	int32_t queue_position;
	const char *note;
};

struct fz_lease_state {
	uint8_t txn_id[16];
	enum fz_state state;
	const struct fz_error *error; /* NULL when the lease was renewed */
};

/* End of a call. The member that belongs to the call is set on FZ_OK; `outcome` also beside
 * FZ_REJECTED, FZ_OVER and, when Status was asked, FZ_UNKNOWN. Valid during the call-back. */
struct fz_reply {
	enum fz_status status;
	struct fz_error error;
	const struct fz_info *info;
	const struct fz_staged *staged;
	const struct fz_outcome *outcome;
	const struct fz_lease_state *leases;
	size_t n_leases;
};

typedef void (*fz_done)(void *ctx, const struct fz_reply *reply);

/* ---- transactions, asynchronous ----
 *
 * Each starts a call: FZ_OK means that `done` runs exactly once, later; anything else means never.
 * A call-back may start further calls, but not block. */

/* Makes a transaction and its id; sends nothing. NULL and *err on FZ_USAGE. */
FZ_API FZ_CHECK struct fz_txn *fz_txn_new(struct fz_client *client, const struct fz_begin *begin,
					  struct fz_error *err);
/* Sends nothing: a transaction that was not ended expires. Calls under way go on. */
FZ_API void fz_txn_free(struct fz_txn *own_txn);
/* 16 bytes, valid while the transaction is. Note it before Commit, in order to ask after a crash.
 */
FZ_API const uint8_t *fz_txn_id(const struct fz_txn *txn);

FZ_API FZ_CHECK enum fz_status fz_start_begin(struct fz_txn *txn, fz_done done, void *ctx,
					      struct fz_error *err);
/* After Begin has ended. The digest that the server computed is compared with ours. */
FZ_API FZ_CHECK enum fz_status fz_start_stage(struct fz_txn *txn,
					      const struct fz_fragment *fragment, fz_done done,
					      void *ctx, struct fz_error *err);
/* Names every fragment that was staged through this object, and their totals unless one of them has
 * task messages. */
FZ_API FZ_CHECK enum fz_status fz_start_seal(struct fz_txn *txn, fz_done done, void *ctx,
					     struct fz_error *err);
/* After Seal has ended. Waits up to max_wait_ms on the server, 0 for its default; a state of SEALED
 * is then FZ_OK: call again. */
FZ_API FZ_CHECK enum fz_status fz_start_commit(struct fz_txn *txn, int64_t max_wait_ms,
					       const struct fz_property *summary, size_t n_summary,
					       fz_done done, void *ctx, struct fz_error *err);
/* Begin, Stage, Seal and Commit in one message, instead of the four. */
FZ_API FZ_CHECK enum fz_status
fz_start_commit_once(struct fz_txn *txn, const struct fz_fragment *fragments, size_t n_fragments,
		     int64_t max_wait_ms, const struct fz_property *summary, size_t n_summary,
		     fz_done done, void *ctx, struct fz_error *err);
/* Final states are no errors here. */
FZ_API FZ_CHECK enum fz_status fz_start_status(struct fz_client *client, const uint8_t txn_id[16],
					       fz_done done, void *ctx, struct fz_error *err);
/* The answer may say COMMITTED: then it came too late. */
FZ_API FZ_CHECK enum fz_status fz_start_abort(struct fz_txn *txn, const char *reason, fz_done done,
					      void *ctx, struct fz_error *err);
/* Renews the time to live of many transactions, which must have begun. */
FZ_API FZ_CHECK enum fz_status fz_start_heartbeat(struct fz_client *client,
						  struct fz_txn *const *txns, size_t n_txns,
						  fz_done done, void *ctx, struct fz_error *err);

/* ---- transactions, blocking ----
 *
 * Results are valid until the next blocking call of the same client; ret_ pointers may be NULL. */

FZ_API FZ_CHECK enum fz_status fz_begin(struct fz_txn *txn, const struct fz_info **ret_info,
					struct fz_error *err);
FZ_API FZ_CHECK enum fz_status fz_stage(struct fz_txn *txn, const struct fz_fragment *fragment,
					const struct fz_staged **ret_staged, struct fz_error *err);
FZ_API FZ_CHECK enum fz_status fz_seal(struct fz_txn *txn, struct fz_error *err);
/* Seals first where that has not been done. *ret_outcome is NULL when there is none. */
FZ_API FZ_CHECK enum fz_status fz_commit(struct fz_txn *txn, int64_t max_wait_ms,
					 const struct fz_property *summary, size_t n_summary,
					 const struct fz_outcome **ret_outcome,
					 struct fz_error *err);
FZ_API FZ_CHECK enum fz_status
fz_commit_once(struct fz_txn *txn, const struct fz_fragment *fragments, size_t n_fragments,
	       int64_t max_wait_ms, const struct fz_property *summary, size_t n_summary,
	       const struct fz_outcome **ret_outcome, struct fz_error *err);
FZ_API FZ_CHECK enum fz_status fz_status_of(struct fz_client *client, const uint8_t txn_id[16],
					    const struct fz_outcome **ret_outcome,
					    struct fz_error *err);
FZ_API FZ_CHECK enum fz_status fz_abort(struct fz_txn *txn, const char *reason,
					const struct fz_outcome **ret_outcome,
					struct fz_error *err);
FZ_API FZ_CHECK enum fz_status fz_heartbeat(struct fz_client *client, struct fz_txn *const *txns,
					    size_t n_txns, const struct fz_lease_state **ret_leases,
					    size_t *ret_n, struct fz_error *err);

/* ---- helpers ---- */

/* The framed blob of type deletion-vector-v1 of a set of positions, in any order and with repeats.
 * Give *ret_blob to fz_free. */
FZ_API FZ_CHECK enum fz_status fz_vector(const uint64_t *positions, size_t n_positions,
					 uint8_t **ret_blob, size_t *ret_size,
					 int64_t *ret_cardinality, struct fz_error *err);
FZ_API void fz_free(void *own_p);
/* A new id of version 7 (RFC 9562). */
FZ_API void fz_new_id(uint8_t ret_id[16]);
/* 36 characters and a NUL; parsing is false unless text is a canonical UUID. */
FZ_API void fz_id_text(const uint8_t id[16], char ret_text[37]);
FZ_API FZ_CHECK bool fz_id_parse(const char *text, uint8_t ret_id[16]);

#ifdef __cplusplus
}
#endif

#endif
