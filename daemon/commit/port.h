/* The core's port: events in, effects out. Shared by the daemon's driver (daemon/bind) and by the
 * simulator, and the only thing that they share with the core.
 *
 * The core never calls out. A step appends effects to a list; the driver executes them after the
 * step has returned, in order, and answers EVERY effect with exactly one EV_DONE that carries the
 * effect's token. A token whose generation is stale is counted and dropped by the core.
 *
 * Memory: what an effect points at stays valid until its completion has been delivered. What a
 * completion points at is borrowed until the step returns, except where "own_" says that a
 * reference passes over. */
#ifndef DAEMON_COMMIT_PORT_H
#define DAEMON_COMMIT_PORT_H

#include "proto/base/arena.h"
#include "proto/base/digest.h"
#include "proto/base/err.h"
#include "proto/base/uuid.h"

struct metadata;
struct manifest;
struct manifest_file;
struct requirement;
struct update;
struct bitmap64;
struct rpc_begin;
struct rpc_stage;
struct rpc_seal;
struct rpc_commit;
struct rpc_commit_once;
struct rpc_status;
struct rpc_abort;
struct rpc_heartbeat;
struct encode_in;
struct encode_out;

struct fx_token {
	uint32_t slot;
	uint32_t gen;
};

/* Chosen by the driver, unique among its unanswered requests; the reply effect names it. */
typedef uint64_t req_id;

/* ------------------------------------------------------------------ rows, as SQL knows them */

/* Numbers are stored: never renumber. */
enum txn_db_state {
	TXN_DB_OPEN = 0,
	TXN_DB_SEALED = 1,
	TXN_DB_COMMITTED = 2,
	TXN_DB_REJECTED = 3,
	TXN_DB_ABORTED = 4,
	TXN_DB_EXPIRED = 5,
	TXN_DB_LOST = 6,
};

/* One row of `head`. */
struct head_row {
	struct table_id table;
	int64_t incarnation;
	int64_t epoch;
	struct daemon_id holder; /* nil: nobody yet */
	int64_t version;	 /* one up with every publish */
	struct strv metadata_location;
	int64_t last_batch; /* batch_no of the newest batch row, 0 before the first */
	int64_t last_seq;
	int64_t next_row_id;
	struct strv name; /* for logs: warehouse.namespace.table */
};

/* One row of `txn`; fixed after Begin but for state and what Seal, Commit and a batch set. */
struct txn_row {
	struct txn_id txn;
	struct table_id table;
	int64_t incarnation;
	struct strv ref;
	int32_t kind;	   /* enum rpc kind */
	int32_t isolation; /* enum rpc isolation */
	bool has_read_snapshot;
	int64_t read_snapshot;
	struct strv principal;
	struct digest params; /* over everything that a repeated Begin must repeat */
	struct bytes begin;   /* Avro-encoded rpc Begin, as received */
	int64_t ttl_ms;
	int64_t created_pg_ms; /* results only */
	int64_t expires_pg_ms; /* results only */
	enum txn_db_state state;
	bool commit_requested;
	bool has_set_digest;
	struct digest set_digest;
	struct bytes seal;    /* packed, version byte first: winning fragments in seal order; empty */
	struct bytes summary; /* packed summary properties of Commit; empty when none */
	int64_t batch_no;     /* 0 until final through a batch */
};

/* One row of `fragment`. */
struct fragment_row {
	struct txn_id txn;
	struct strv fragment_id;
	int32_t attempt;
	struct digest digest;
	struct bytes payload; /* packed by the core, opaque to SQL */
};

/* One row of `batch`: the decision record. */
struct batch_row {
	struct table_id table;
	int64_t incarnation;
	int64_t batch_no;
	struct batch_id batch;
	int64_t epoch;
	int64_t base_version;
	const struct txn_id *txns;
	const uint8_t *txn_states; /* enum txn_db_state, final ones, parallel to txns */
	size_t n_txns;
	struct bytes outcomes; /* packed by the core */
	const int64_t *snapshots;
	size_t n_snapshots;
	int64_t first_row_id, added_rows;
	struct strv metadata_location;
	int64_t created_pg_ms; /* results only */
};

/* ------------------------------------------------------------------ SQL effects
 * One effect is one statement and its own transaction with its guard inside. `lost` in the
 * completion means: sent, no reply, the outcome is unknown. */

enum sql_kind {
	SQL_RECOVER,	  /* which tables have transactions that are not final, and the secret */
	SQL_HEAD_READ,	  /* a plain read: never decides anything but the next bump */
	SQL_HEAD_BUMP,	  /* guard: epoch is the one read */
	SQL_QUEUE_READ,	  /* open and sealed transactions of a table, with their fragments */
	SQL_BATCH_LOOK,	  /* is there a batch row with this id? only after a bump was answered */
	SQL_TXN_BEGIN,	  /* items */
	SQL_TXN_STAGE,	  /* items */
	SQL_TXN_SEAL,	  /* items; may set commit_requested in the same statement */
	SQL_TXN_ONCE,	  /* items: begin, stage, seal with commit requested */
	SQL_TXN_REQUEST,  /* items: commit_requested on a sealed transaction */
	SQL_TXN_END,	  /* items: OPEN -> ABORTED or EXPIRED, staged objects to the queue */
	SQL_TXN_READ,	  /* items: the row, its fragments when not final, its batch when final */
	SQL_LEDGER,	  /* guard: head incarnation and epoch; object rows before the first PUT */
	SQL_PUBLISH,	  /* guard: head incarnation, epoch and version; the durable decision */
	SQL_UNLEDGER,	  /* objects of an attempt that never published go to the delete queue */
	SQL_TABLE_CREATE, /* tabular, head, batch 1 in one statement; or replaces on overwrite */
	SQL_TABLE_DROP,	  /* ends the incarnation and its open transactions */
	SQL_CLEAN_CLAIM,  /* queued objects past their grace become claimed, in a commit of its own */
	SQL_CLEAN_DONE,	  /* deleted or found live: the row goes, or stays claimed */
	SQL_HORIZON,	  /* advances closed_before of every table and purges behind it */
	SQL_KIND_COUNT
};

enum sql_verdict {
	SQL_APPLIED, /* the guard held, everything was written */
	SQL_REFUSED, /* the guard did not hold, nothing was written */
};

struct sql_head_bump {
	struct table_id table;
	int64_t incarnation;
	int64_t epoch_read;
	struct daemon_id holder;
};

struct sql_batch_look {
	struct table_id table;
	struct batch_id batch;
};

/* Paths are the exact strings of the manifests; sizes are what the worker stated. */
struct sql_stage_item {
	struct fragment_row row;
	const struct strv *paths; /* data files that this fragment brings, each once */
	size_t n_paths;
};

struct sql_seal_item {
	struct txn_id txn;
	struct digest set_digest;
	struct bytes seal;
	bool commit_requested;
	struct bytes summary;
};

struct sql_once_item {
	struct txn_row row; /* state, seal, set digest and summary filled in */
	const struct sql_stage_item *stages;
	size_t n_stages;
};

struct sql_request_item {
	struct txn_id txn;
	struct bytes summary;
};

struct sql_end_item {
	struct txn_id txn;
	enum txn_db_state to; /* TXN_DB_ABORTED, or TXN_DB_EXPIRED (then also guarded by expiry) */
};

struct sql_ledger {
	struct table_id table;
	int64_t incarnation;
	int64_t epoch; /* -1: a create, which has no head row to guard by */
	struct batch_id batch;
	struct daemon_id holder;
	const struct strv *paths;
	size_t n_paths;
};

struct sql_publish {
	struct batch_row row;
	int64_t last_seq;
	int64_t next_row_id;
	/* Ledger rows of this batch that are now referenced and leave the ledger; every other ledger
	 * row of this batch id is an orphan of an earlier attempt and is queued. */
	const struct strv *objects;
	size_t n_objects;
	/* Staged data files of transactions that end here without committing go to the delete queue;
	 * those of committed ones leave `object`. SQL knows which from txn_states and owners. */
	/* Metadata files that left the log and may be deleted by the table's own property. */
	const struct strv *expired_metadata;
	size_t n_expired_metadata;
};

struct sql_unledger {
	struct table_id table;
	struct batch_id batch;
	int64_t epoch; /* rows of this batch id with this epoch or a lower one */
};

struct sql_table_create {
	struct strv warehouse;
	const struct strv *levels; /* namespace */
	size_t n_levels;
	struct strv name;
	struct table_id table;	 /* = the metadata's table-uuid */
	struct strv location;	 /* table location, for purge roots and uniqueness */
	bool overwrite;		 /* register with overwrite: replaces the table of this name */
	struct daemon_id holder; /* becomes the head's first holder at epoch 1 */
	struct batch_row row;	 /* batch_no 1; incarnation is given by SQL */
	int64_t last_seq;
	int64_t next_row_id;
	const struct strv *objects; /* as in publish */
	size_t n_objects;
};

enum sql_create_verdict {
	SQL_CREATED,
	SQL_CREATE_EXISTS,	 /* this very batch id is already there: an earlier send won */
	SQL_CREATE_NAME_TABLE,	 /* the name is a table's */
	SQL_CREATE_NAME_VIEW,	 /* the name is a view's */
	SQL_CREATE_NO_NAMESPACE,
	SQL_CREATE_UUID_LIVE,	 /* the uuid is live under another name */
	SQL_CREATE_LOCATION_LIVE /* the metadata location is live under another name */
};

struct sql_table_drop {
	struct table_id table;
	int64_t incarnation;
	bool purge; /* objects beneath the table's location are queued by the caller's list */
	const struct strv *purge_paths;
	size_t n_purge_paths;
};

struct sql_clean_claim {
	struct table_id table; /* one table at a time: the look reads that table's metadata */
	int64_t grace_ms;
	int64_t tombstone_ms;
	int32_t max;
};

struct sql_clean_done {
	const struct strv *deleted; /* every DELETE answered: the row goes */
	size_t n_deleted;
	const struct strv *live; /* found referenced: the row goes, the file stays */
	size_t n_live;
	const struct strv *unsure; /* a DELETE without answer: stays claimed for the tombstone time */
	size_t n_unsure;
};

struct sql_horizon {
	int64_t lifetime_ms;
};

struct sql_effect {
	enum sql_kind kind;
	union {
		struct table_id table; /* HEAD_READ, QUEUE_READ */
		struct sql_head_bump bump;
		struct sql_batch_look look;
		const struct txn_row *begin;
		const struct sql_stage_item *stage;
		const struct sql_seal_item *seal;
		const struct sql_once_item *once;
		const struct sql_request_item *request;
		struct sql_end_item end;
		struct txn_id txn; /* TXN_READ */
		struct sql_ledger ledger;
		const struct sql_publish *publish;
		struct sql_unledger unledger;
		const struct sql_table_create *create;
		struct sql_table_drop drop;
		struct sql_clean_claim claim;
		const struct sql_clean_done *clean_done;
		struct sql_horizon horizon;
	} u;
};

/* Per item of TXN_BEGIN, TXN_STAGE, TXN_SEAL, TXN_ONCE, TXN_REQUEST, TXN_END. ST_OK also when the
 * very same thing was there before. Otherwise the typed refusal: TABLE_GONE, HORIZON_PASSED,
 * CLOCK_SKEW, DIGEST_CONFLICT, TXN_UNKNOWN, TXN_STATE (state in `row`), DUPLICATE_PATH and
 * PATH_CONDEMNED (path named). */
struct sql_item_result {
	enum status st;
	struct strv path;	     /* of DUPLICATE_PATH and PATH_CONDEMNED */
	bool has_row;
	struct txn_row row;	     /* the row as it stands after the statement */
	const struct fragment_row *fragments; /* TXN_READ and QUEUE_READ, when not final */
	size_t n_fragments;
	const struct batch_row *batch;	/* TXN_READ, when final through a batch */
};

struct sql_result {
	enum sql_kind kind;
	bool sent;	/* false: failed before anything was sent; nothing happened */
	bool lost;	/* sent, and the reply never came: the outcome is unknown */
	struct err err; /* st != ST_OK with sent && !lost: the server answered with an error, nothing
			 * was written */
	int64_t pg_ms;	/* PostgreSQL's clock as this reply saw it; 0 when there is none */
	enum sql_verdict verdict;
	enum sql_create_verdict created;
	bool found;		    /* HEAD_READ, BATCH_LOOK */
	struct head_row head;	    /* HEAD_READ; HEAD_BUMP when applied; TABLE_CREATE when created */
	const struct batch_row *batch; /* BATCH_LOOK */
	struct sql_item_result item;   /* TXN_* */
	const struct sql_item_result *items; /* QUEUE_READ */
	size_t n_items;
	const struct table_id *tables; /* RECOVER */
	size_t n_tables;
	struct digest secret;	       /* RECOVER */
	const struct strv *paths;      /* CLEAN_CLAIM */
	size_t n_paths;
};

/* ------------------------------------------------------------------ object effects */

enum read_as {
	READ_METADATA,	    /* -> own_metadata */
	READ_MANIFEST_LIST, /* -> own_list */
	READ_MANIFEST,	    /* -> own_manifest; needs `row` and `metadata` */
	READ_VECTOR,	    /* framed blob at offset, length -> own_vector */
};

struct manifest_list; /* decoded list, refcounted (daemon/commit/index.h) */

struct read_effect {
	enum read_as as;
	struct strv path;
	int64_t offset; /* READ_VECTOR */
	int64_t length; /* READ_VECTOR; otherwise an upper bound or -1 */
	int64_t cardinality;		 /* READ_VECTOR: must match */
	const struct manifest_file *row; /* READ_MANIFEST */
	const struct metadata *metadata; /* READ_MANIFEST: specs and schemas; READ_MANIFEST_LIST */
};

struct read_result {
	struct err err; /* ST_NOT_FOUND, ST_CORRUPT, ST_IO, ST_LIMIT … */
	struct metadata *own_metadata;
	struct manifest_list *own_list;
	struct manifest *own_manifest;
	struct bitmap64 *own_vector;
};

struct put_effect {
	struct strv path;
	struct bytes data;
};

struct stat_result {
	struct err err; /* ST_NOT_FOUND: there is no such object; ST_IO: unknown */
	int64_t size;
};

/* ------------------------------------------------------------------ replies */

enum reply_kind {
	REPLY_ERR,	 /* err */
	REPLY_RPC,	 /* msg points at the reply record of that request's kind */
	REPLY_COMMITTED, /* REST: location and metadata */
};

struct reply {
	enum reply_kind kind;
	struct err err;
	const void *msg; /* struct rpc_begin_reply, rpc_outcome, … */
	struct strv metadata_location;
	struct metadata *metadata; /* borrowed; the driver takes its own reference if it keeps it */
};

/* ------------------------------------------------------------------ effects */

enum fx_kind {
	FX_REPLY,  /* to req */
	FX_SQL,
	FX_READ,   /* get and decode */
	FX_PUT,	   /* put-if-absent; an equal object that is already there is success */
	FX_STAT,   /* size of an object; must be sent after this effect was issued (no cache) */
	FX_DELETE, /* delete an object; a missing one is success */
	FX_ENCODE, /* pure job: encode_run(in, out) off the loop */
	FX_HEAD,   /* news: a table has a new current metadata; nothing to do but to remember it */
	FX_LOG,	   /* one log line */
	FX_KIND_COUNT
};

struct effect {
	enum fx_kind kind;
	struct fx_token token;
	union {
		struct {
			req_id req;
			struct reply reply;
		} reply;
		struct sql_effect sql;
		struct read_effect read;
		struct put_effect put;
		struct strv path; /* FX_STAT, FX_DELETE */
		struct {
			const struct encode_in *in;
			struct encode_out *out;
		} encode;
		struct {
			struct table_id table;
			struct strv location;
			struct metadata *metadata; /* borrowed */
		} head;
		struct {
			int level; /* 3 error, 4 warning, 6 info */
			const char *event; /* noun.verb */
			struct table_id table;
			struct txn_id txn;
			int64_t batch_no;
			int64_t epoch;
			enum status st;
			struct strv msg;
		} log;
	} u;
};

struct effects {
	struct effect *v;
	size_t n, cap;
};

/* ------------------------------------------------------------------ events */

enum ev_kind {
	EV_CONFIG,
	EV_START, /* first event after EV_CONFIG */
	EV_TICK,  /* at or after core_next_deadline */
	EV_DRAIN, /* finish what is queued, refuse what is new with OVERLOADED */
	EV_DONE,
	/* Requests. Each is answered by exactly one FX_REPLY; its message memory stays valid until
	 * that reply's completion. */
	EV_BEGIN,
	EV_STAGE,
	EV_SEAL,
	EV_COMMIT,
	EV_COMMIT_ONCE,
	EV_STATUS,
	EV_ABORT,
	EV_HEARTBEAT,
	EV_TABLE_CREATE,
	EV_TABLE_COMMIT,
	EV_TABLE_DROP,
	EV_RESUME, /* operator: adopt what head says, clear HALTED */
	EV_KIND_COUNT
};

struct core_conf {
	struct daemon_id daemon;
	size_t queue_max;	 /* waiting entries per table */
	size_t batch_max_txns;
	size_t txn_max;		 /* transactions in memory */
	size_t request_max_bytes; /* decoded fragments of one transaction */
	size_t cache_max_bytes;
	int64_t window_us;	 /* wait after the first arrival before planning; 0 = none */
	int64_t ttl_default_ms, ttl_max_ms;
	int64_t lifetime_ms;	 /* how long outcomes are kept at least */
	int64_t retry_us;	 /* pause before an effect that failed cleanly is tried again */
	int64_t load_timeout_us; /* a queue may wait this long for its table */
	int64_t cleaner_grace_ms, cleaner_tombstone_ms, cleaner_interval_us;
	int verify_snapshots;	 /* 0 off, 1 warn, 2 reject */
	bool pure_deletes_only_dead; /* reserved, false */
};

struct ev_request {
	req_id req;
	struct strv principal;
	int64_t deadline_us; /* on mono_us; 0 = none: an unfinished request is answered by then */
	/* Begin, CommitOnce: what the name resolved to. */
	struct table_id table;
	int64_t incarnation;
	union {
		const struct rpc_begin *begin;
		const struct rpc_stage *stage;
		const struct rpc_seal *seal;
		const struct rpc_commit *commit;
		const struct rpc_commit_once *once;
		const struct rpc_status *status;
		const struct rpc_abort *abort;
		const struct rpc_heartbeat *heartbeat;
		struct {
			struct strv warehouse;
			const struct strv *levels;
			size_t n_levels;
			struct strv name;
			struct metadata *metadata; /* borrowed until the reply; the finished document */
			struct strv location;	   /* of the metadata file */
			bool registered;	   /* the file exists: nothing is put */
			bool overwrite;
		} create;
		struct {
			const struct requirement *requirements;
			size_t n_requirements;
			const struct update *updates;
			size_t n_updates;
		} commit_table;
		struct {
			bool purge;
		} drop;
	} u;
};

struct event {
	enum ev_kind kind;
	int64_t mono_us; /* loop clock: deadlines only */
	int64_t pg_ms;	 /* estimate of PostgreSQL's clock now; 0 before the first reply */
	union {
		const struct core_conf *conf;
		struct {
			struct fx_token token;
			enum fx_kind kind;
			const struct sql_result *sql;
			struct read_result *read; /* its own_ members pass to the core */
			const struct stat_result *stat;
			const struct err *err; /* FX_PUT, FX_DELETE, FX_ENCODE: st ST_OK or why not;
						* an unknown outcome has effect UNKNOWN */
		} done;
		struct ev_request req;
	} u;
};

/* ------------------------------------------------------------------ the core */

struct core;

/* seed: for ids and names; the simulator fixes it, the daemon takes it from the kernel. */
struct core *core_new(uint64_t seed);
/* Everything must have been answered or the process is going away. */
void core_free(struct core *own_core);
void core_step(struct core *core, const struct event *ev, struct effects *fx);
/* When the next EV_TICK is due, on the loop clock; INT64_MAX when none. */
int64_t core_next_deadline(const struct core *core);
/* Nothing queued, nothing in flight: a drain may end. */
bool core_idle(const struct core *core);

/* For admin and tests; the callback must not step the core. */
struct core_table_info {
	struct table_id table;
	struct strv name;
	const char *state;
	int64_t epoch, version, last_batch;
	size_t queued;
	bool halted;
	struct strv halt_cause;
};
void core_each_table(const struct core *core, void (*fn)(void *ctx, const struct core_table_info *),
		     void *ctx);

struct core_counters {
	int64_t stale_tokens, batches, txns_committed, txns_rejected, rest_commits, conflicts;
	int64_t puts, sql, unknown_outcomes, fenced, findings;
};
const struct core_counters *core_counters(const struct core *core);

/* The effect list's storage; the driver owns it. */
void effects_init(struct effects *fx);
void effects_fini(struct effects *fx);

#endif
