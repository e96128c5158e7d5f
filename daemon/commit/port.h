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
#include "proto/base/pieces.h"
#include "proto/base/uuid.h"
#include "proto/commit/sqlport.h"

struct metadata;
struct mlist;
struct mview;
struct adopted;
struct manifest_file;
struct requirement;
struct update;
struct bitmap64;
struct rpc_manifest_ref;
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

/* ------------------------------------------------------------------ object effects */

enum read_as {
	READ_METADATA,	    /* -> own_metadata */
	READ_MANIFEST_LIST, /* -> own_list, by mlist_read */
	READ_MANIFEST,	    /* -> own_view, by mview_read with `row` and `metadata` */
	READ_INDEX,	    /* the same, its light view */
	READ_VECTOR,	    /* framed blob at offset, length -> own_vector */
	READ_ADOPTED,	    /* a manifest of a worker's, no longer than length -> own_adopted, by
			     * adopt_read with `ref` and `metadata` */
	READ_BLOB,	    /* the same, in a file that a worker wrote: what is wrong with it is the
			     * request's fault, and how many positions it has is not looked at */
};

struct read_effect {
	enum read_as as;
	struct strv path;
	int64_t offset; /* READ_VECTOR, READ_BLOB */
	int64_t length; /* READ_VECTOR, READ_BLOB; otherwise an upper bound or -1 */
	int64_t cardinality;		 /* READ_VECTOR: must match */
	const struct manifest_file *row; /* READ_MANIFEST, READ_INDEX */
	const struct rpc_manifest_ref *ref; /* READ_ADOPTED */
	size_t limit;			    /* READ_ADOPTED: bytes of the decoded form */
	const struct metadata *metadata; /* likewise: specs and schemas; READ_MANIFEST_LIST */
};

struct read_result {
	struct err err; /* ST_NOT_FOUND, ST_CORRUPT, ST_IO, ST_LIMIT … */
	struct metadata *own_metadata;
	struct mlist *own_list; /* objects.h */
	struct mview *own_view;
	struct bitmap64 *own_vector;
	struct adopted *own_adopted; /* adopt.h */
};

struct put_effect {
	struct strv path;
	struct pieces content;
};

struct stat_result {
	struct err err; /* ST_NOT_FOUND: there is no such object; ST_IO: unknown */
	int64_t size;
};

/* Whether a range is read, not a whole object. */
static inline bool read_is_range(const struct read_effect *r)
{
	return r->as == READ_VECTOR || r->as == READ_BLOB;
}

/* ------------------------------------------------------------------ replies */

enum reply_kind {
	REPLY_ERR,	 /* err */
	REPLY_RPC,	 /* msg points at the reply record of that request's kind */
	REPLY_COMMITTED, /* REST: location and metadata */
	REPLY_DROPPED,	 /* where the table's last metadata is */
};

struct reply {
	enum reply_kind kind;
	struct err err;
	const void *msg; /* struct rpc_begin_reply, rpc_outcome, … */
	bool remembered; /* the request's idem has its row: written by the deciding statement */
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
	EV_TABLES_COMMIT, /* several tables at once, all or none; answered by REPLY_RPC without message */
	EV_TABLE_DROP,
	EV_RESUME, /* operator: adopt what head says, clear HALTED */
	EV_HALT,   /* operator: no batch is begun until EV_RESUME; answered when none is under way */
	EV_KIND_COUNT
};

struct core_conf {
	struct daemon_id daemon;
	size_t queue_max;	 /* waiting entries per table */
	size_t batch_max_txns;
	size_t txn_max;		 /* transactions in memory */
	size_t request_max_bytes; /* decoded fragments of one transaction */
	size_t txn_max_bytes;	 /* of all transactions in memory; 0 = no bound */
	size_t cache_max_bytes;
	int64_t window_us;	 /* wait after the first arrival before planning; 0 = none */
	int64_t fairness_us;	 /* longest hold for a REST client that was refused; 0 = none */
	int64_t ttl_default_ms, ttl_max_ms;
	int64_t lifetime_ms;	 /* how long outcomes are kept at least */
	int64_t retry_us;	 /* pause before an effect that failed cleanly is tried again */
	int64_t load_timeout_us; /* a queue may wait this long for its table */
	int64_t cleaner_grace_ms, cleaner_tombstone_ms, cleaner_interval_us;
	int verify_snapshots;	 /* 0 off, 1 warn, 2 reject */
	bool pure_deletes_only_dead; /* reserved, false */
	bool standby; /* another daemon serves the database, or may: nothing is begun, no table is
		       * taken; what was sent is still resolved */
};

/* Changes of a table that is there. */
struct ask_commit {
	const struct requirement *requirements;
	size_t n_requirements;
	const struct update *updates;
	size_t n_updates;
};

/* A table that comes. */
struct ask_create {
	struct strv warehouse;
	const struct strv *levels;
	size_t n_levels;
	struct strv name;
	struct metadata *metadata; /* borrowed until the reply; the finished document */
	struct strv location;	   /* of the metadata file */
	bool registered;	   /* the file exists: nothing is put */
	bool overwrite;
};

/* One table of several. */
struct ask_part {
	struct strv name; /* for messages */
	bool creates;
	struct table_id table; /* of one that is there: what the name resolved to */
	int64_t incarnation;
	struct ask_commit commit;
	struct ask_create create;
};

/* Tables of one request. */
#define CORE_PARTS_MAX 1024

struct ev_request {
	req_id req;
	struct strv principal;
	int64_t deadline_us; /* on mono_us; 0 = none: an unfinished request is answered by then */
	/* Begin, CommitOnce: what the name resolved to. */
	struct table_id table;
	int64_t incarnation;
	/* EV_TABLE_COMMIT, EV_TABLE_CREATE, EV_TABLE_DROP. Answered KEY_DECIDED when its row was
	 * there before. */
	struct sql_idem idem;
	union {
		const struct rpc_begin *begin;
		const struct rpc_stage *stage;
		const struct rpc_seal *seal;
		const struct rpc_commit *commit;
		const struct rpc_commit_once *once;
		const struct rpc_status *status;
		const struct rpc_abort *abort;
		const struct rpc_heartbeat *heartbeat;
		struct ask_create create;
		struct ask_commit commit_table;
		struct {
			const struct ask_part *v; /* 1 to CORE_PARTS_MAX */
			size_t n;
			/* NULL, or why it cannot be: what else it names is not there. Answered
			 * with that unless a part of the request is committed. */
			const struct err *refused;
			/* Whoever asks looks again after ALREADY_EXISTS: what a creation names may
			 * have come since, by this very request. */
			bool may_look;
		} commit_tables;
		struct {
			bool purge;
		} drop;
		struct {
			struct strv cause; /* 1 to CORE_CAUSE_MAX bytes */
		} halt;
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

/* Why a table is halted, and what was under way. */
#define CORE_HALT_TXNS 16
#define CORE_CAUSE_MAX 120
struct core_halt {
	const char *st;	    /* name of the status */
	bool by_operator;
	struct strv object; /* the file or row that cannot be used; empty when none is known */
	int64_t pg_ms;	    /* since when */
	int64_t batch_no;   /* of the batch that met it; 0: none */
	struct batch_id batch;
	struct txn_id txns[CORE_HALT_TXNS]; /* of that batch, the first ones */
	size_t n_txns;			    /* of that batch, all */
};

/* For admin and tests; the callback must not step the core. More in inspect.h. */
struct core_table_info {
	struct table_id table;
	struct strv name;
	const char *state;
	int64_t epoch, version, last_batch;
	size_t queued;
	bool halted;
	struct strv halt_cause;
	const struct core_halt *halt; /* NULL unless halted */
};
void core_each_table(const struct core *core, void (*fn)(void *ctx, const struct core_table_info *),
		     void *ctx);

struct core_counters {
	int64_t stale_tokens, batches, txns_committed, txns_rejected, rest_commits, conflicts;
	int64_t puts, sql, unknown_outcomes, fenced, findings, cleaner_shared, cleaner_waiting,
		purge_kept;
	int64_t rest_refused;
};
const struct core_counters *core_counters(const struct core *core);

/* What is held under cache_max_bytes. */
struct core_index_stats {
	int64_t bytes;	      /* all objects */
	int64_t index_bytes;  /* light views among them */
	int64_t index_files;  /* live files in those */
	int64_t hits, misses; /* of manifests' light and whole views */
	int64_t dropped;      /* objects that went for lack of room */
};
struct core_index_stats core_index_stats(const struct core *core);

/* The effect list's storage; the driver owns it. */
void effects_init(struct effects *fx);
void effects_fini(struct effects *fx);

#endif
