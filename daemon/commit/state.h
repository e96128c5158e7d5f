/* The core's own structures. Only files of this folder include it; all state hangs off struct core
 * and is touched by core_step alone. */
#ifndef DAEMON_COMMIT_STATE_H
#define DAEMON_COMMIT_STATE_H

#include "daemon/commit/cache.h"
#include "daemon/commit/encode.h"
#include "daemon/commit/fair.h"
#include "daemon/commit/plan.h"
#include "daemon/commit/port.h"
#include "proto/base/list.h"
#include "proto/rpc/rpc.h"

enum txn_state {
#define STATE(name, help) TXN_##name,
#include "daemon/commit/txn.tbl"
	TXN__COUNT
};

enum batch_state {
#define STATE(name, help) BATCH_##name,
#include "daemon/commit/batch.tbl"
	BATCH__COUNT
};

typedef void (*done_fn)(struct core *c, void *ctx, const struct event *ev);

/* An operation that runs until no file is missing; embedded in its owner. */
struct gather {
	size_t waiting; /* reads under way for it */
	void (*run)(struct core *c, struct gather *g);
};

/* A callback at a time on the loop clock; at most one per owner, embedded. */
struct timer {
	struct list node; /* on core.timers while armed */
	int64_t at_us;
	void (*fire)(struct core *c, struct timer *t);
};

struct request {
	struct list node;	/* core.requests until the reply's completion */
	struct list wait;	/* whichever queue it waits in: start, table, transaction, final */
	enum ev_kind kind;
	struct ev_request in;
	struct arena arena;	/* the reply and what is needed on the way */
	bool answered;
	bool sent;		/* a durable step of it may have happened: time-out is unknown */
	size_t holds;		/* effects under way that name this request */
	bool released;		/* the reply was delivered: freed when nothing holds it */
	struct table *table;	/* loaded, set when past the table gate */
	struct txn *txn;
	struct txn *held;	/* kept in memory while holds > 0: effects point into it */
	struct gather gather;
	struct needs needs;
	struct frag *frag;	/* EV_STAGE: being staged */
	size_t stats;		/* FX_STAT under way */
	struct err stat_err;	/* first finding */
	size_t blobs;		/* reads of workers' files under way */
	struct err blob_err;	/* first finding */
	struct err late_err;	/* CommitOnce: what to say when the rows know nothing */
	size_t looked;		/* TXN_READ already tried */
	struct entry *entry;	/* EV_TABLE_COMMIT: in the table's queue */
	struct batch *batch;	/* EV_TABLE_COMMIT: being published */
	struct creation *creation;
	struct multi *multi; /* EV_TABLES_COMMIT: under way */
	struct metadata *replied; /* kept until the reply is written */
	struct purge *purging;
	struct strv *purge;
	size_t n_purge;
	struct strv cause;	 /* EV_HALT */
	struct table *halting;	 /* EV_HALT: held */
	struct table_id resumed; /* EV_RESUME */
};

enum entry_kind { ENTRY_TXN, ENTRY_REST, ENTRY_PART };

struct entry {
	struct list node; /* table.queue */
	enum entry_kind kind;
	struct txn *txn;
	struct request *req;
	struct part *part;
};

struct txn {
	struct txn *next; /* hash chain */
	struct txn_id id;
	struct table *table;
	enum txn_state state;
	struct arena arena;
	struct txn_row row; /* text in the arena */
	struct digest token;
	int format_version; /* of the table at Begin */
	bool ordered;
	struct list frags;
	struct frag **frag_slots; /* hash over id and attempt; a power of two many, or none */
	size_t n_frags, n_frag_slots;
	struct frag **winners; /* in seal order; set when sealed */
	size_t n_winners;
	struct strv_pair *summary;
	size_t n_summary;
	struct list turn;    /* requests that wait for their turn */
	size_t stages;	     /* Stage requests under way */
	struct request *busy; /* the exclusive request under way */
	struct list waiters; /* requests that wait for the final outcome */
	enum plan_wish wish;
	bool verified;	     /* staged objects were confirmed */
	struct list order;   /* on table.ordered */
	bool ready;	     /* waits for its forerunners there only */
	size_t stats;	     /* FX_STAT under way */
	struct err refused;  /* found before planning */
	bool ending;	     /* an expiry statement is under way */
	bool turning;	     /* its line is being served */
	struct entry entry;
	struct adopted **manifests; /* owned */
	size_t n_manifests, cap_manifests;
	struct bitmap64 **sets; /* owned: positions of deletes */
	size_t n_sets, cap_sets;
	size_t set_bytes, weighed; /* of the sets; of all as the core counts it */
	/* Of the winners, set when sealed. */
	struct plan_delete *merged; /* each data file once */
	size_t n_merged;
	struct content_file *files;
	int32_t *schema_ids;
	size_t n_files;
	struct plan_adopted *adopted;
	struct content_file *lists; /* parallel: path and size of each manifest */
	size_t n_adopted;
	struct strv *spent; /* files whose content was taken at Stage; each once, ascending */
	size_t n_spent;
	struct plan_delete_file *delete_files;
	size_t n_delete_files;
	int64_t rows_updated;
	struct timer timer; /* verification or a lost statement, again */
	const struct sql_once_item *once;	/* sent, not answered for certain */
	const struct sql_request_item *ask;
	struct request *asker;			/* held; whose statement it is */
	bool ask_lost;	 /* an answer was lost: only an answer of the same statement ends it */
	bool ask_paused; /* to be sent again; nothing is under way that lets go of the asker */
	struct bytes outcome;
	size_t holds; /* effects under way that name it */
	bool gone;
	struct list ghost; /* on core.ghost_txns when gone and held */
};

enum table_state {
	TABLE_LOADING,
	TABLE_READY,
	TABLE_HALTED,
};

struct table {
	struct table *next; /* hash chain */
	struct list node;   /* core.table_list, or core.ghost_tables */
	struct table_id id;
	enum table_state state;
	int64_t incarnation, epoch, version, last_batch;
	struct strv name;     /* owned */
	struct strv location; /* of the metadata file; owned */
	struct metadata *meta;
	struct list queue;
	struct list ordered; /* ordered transactions that are asked for, not yet queued */
	size_t n_queue;
	struct list waiting; /* requests until READY */
	struct batch *batch;
	struct reflog **logs;
	size_t n_logs;
	struct err halt;
	struct core_halt blame; /* object is owned */
	struct err wish;     /* an operator's, of which the rows know; ST_OK: none */
	int64_t wish_pg_ms;
	bool resumed; /* the word was taken back while its rows were being read */
	struct list halters; /* requests that wait until it stands still */
	size_t batch_limit; /* fewer transactions after a batch that did not fit */
	int64_t first_us;   /* arrival of the oldest waiting entry, for the window */
	int64_t pause_us;   /* no batch before: the last attempt failed */
	struct fair fair;   /* holds transactions back for REST clients */
	struct list refused; /* REST commits whose refusal waits for the next hold */
	struct timer fair_timer;
	bool pumping;
	struct timer timer; /* load retries and the window */
	bool taking;	    /* a take-over is under way */
	bool replaced; /* history: forgotten as soon as no batch or take-over is under way */
	int64_t epoch_read, read_incarnation; /* of the last plain read */
	int64_t epoch_expected; /* 0, or: anything else means that somebody took the table */
	bool bump_open;		/* a bump of epoch_read was sent, its outcome is not known */
	int64_t head_seq;
	struct strv head_location; /* owned: as the take-over read it */
	size_t holds;		   /* effects under way that name this table */
	bool gone;		   /* dropped; freed when nothing holds it */
	void (*taken)(struct core *c, struct table *t, enum status st);
	int failures; /* of loading, in a row */
};

/* A snapshot's time may be this much ahead of the clock. */
#define SNAPSHOT_AHEAD_MAX_MS INT64_C(60000)

struct batch {
	struct core *core;
	struct table *table;
	size_t holds;	/* effects under way that name it */
	bool ledgered;	/* object rows may exist */
	bool fenced;	/* somebody else moved the epoch */
	size_t rechecks;
	enum batch_state state;
	struct arena arena;
	struct batch_id id;
	int64_t no;
	struct request *rest; /* a REST commit of this table alone */
	struct part *part;    /* one table of several; neither: transactions */
	const struct ask_commit *ask; /* of a REST commit, alone or one of several */
	struct txn **txns;
	struct plan_txn *plan_txns;
	size_t n;
	struct gather gather;
	struct needs needs;
	struct plan *plan;
	struct metadata *fresh; /* REST: the applied metadata */
	struct metadata *base;	/* REST: what it was applied to */
	size_t used_at; /* REST: how far used_specs has looked */
	struct verify_snapshot *verify; /* REST: references are held */
	size_t n_verify;
	struct verify_out unread; /* files that could not be looked at */
	struct encode_in in;
	struct encode_out *out;
	size_t puts; /* under way */
	struct err put_err;
	struct sql_ledger ledger;
	struct sql_publish publish;
	struct timer timer;
	enum batch_state resume; /* after PAUSED */
	int refusals;		 /* by PostgreSQL, for causes that do not pass by themselves */
	struct txn_id *ids;
	uint8_t *states;
	struct bytes *outcomes; /* per transaction, inside the packed form */
};

struct slot {
	uint32_t gen;
	bool used;
	enum fx_kind kind;
	done_fn done;
	void *ctx;
	uint32_t next_free;
};

struct core {
	uint64_t rng[4];
	struct core_conf conf;
	int64_t now_us, pg_ms;
	struct effects *fx; /* during a step */
	struct slot *slots;
	size_t n_slots, cap_slots;
	uint32_t free_slot;
	bool started, draining;
	struct digest secret;
	struct request *word; /* of an operator: its statement is under way */
	struct list words;    /* ... and those that wait for it */
	struct list starting; /* requests before RECOVER was answered */
	struct list requests;
	struct list timers;
	struct list kept;   /* contexts of effects under way */
	struct list ghost_txns, ghost_tables; /* gone, but named by effects */
	struct cache *cache;
	struct table *tables[256];
	struct list table_list;
	struct txn *txns[4096];
	size_t n_txns;
	size_t txn_bytes; /* held by transactions */
	int64_t next_deadline;
	struct timer sweep;
	struct timer recover;
	struct core_counters counters;
	struct cleaner *cleaner;
	struct inspect *inspect; /* findings that are kept for the operator; NULL: none yet */
	size_t background; /* effects that nobody waits for but a drain */
};

/* --- core.c --- */
/* Appends an effect whose completion calls done(ctx); fill in the union of the returned effect at
 * once, the pointer moves with the next one. */
struct effect *core_emit(struct core *c, enum fx_kind kind, done_fn done, void *ctx);
/* Zeroed memory for the context of an effect; what is left when the core goes is freed with it, fini
 * (may be NULL) first. */
void *core_keep(struct core *c, size_t n, void (*fini)(void *p));
void core_unkeep(void *own_p);
uint64_t core_random(struct core *c);
void core_random_bytes(struct core *c, uint8_t *out, size_t n);
struct uuid core_uuid7(struct core *c);
struct uuid core_uuid4(struct core *c);
void core_timer(struct core *c, struct timer *t, int64_t at_us,
		void (*fire)(struct core *c, struct timer *t));
void core_timer_stop(struct timer *t);
void core_log(struct core *c, int level, const char *event, const struct table *t,
	      const struct txn *x, const struct err *err);
/* Issues the reads in needs; g->run is called when all have been answered. */
void core_gather(struct core *c, struct gather *g, struct needs *needs);
/* Whether an SQL completion means "nothing happened, try again later". */
static inline bool core_sql_clean_failure(const struct sql_result *r)
{
	return !r->sent || (!r->lost && r->err.st != ST_OK);
}

/* --- request.c --- */
void request_new(struct core *c, const struct event *ev);
/* Each request is answered once; later calls are ignored (it was answered by its deadline). */
void request_fail(struct core *c, struct request *r, const struct err *err);
void request_status(struct core *c, struct request *r, enum status st, const char *field,
		    const char *msg);
void request_rpc(struct core *c, struct request *r, const void *msg);
/* The end of a table, with where its last metadata is. */
/* Done, without a body; the key of the request, if it has one, went with the decision. */
void request_remembered(struct core *c, struct request *r);
void request_dropped(struct core *c, struct request *r, struct strv location);
void request_committed(struct core *c, struct request *r, struct strv location,
		       struct metadata *m, bool remembered);
/* An effect's completion will name the request. After it was answered, `in` must not be read. */
void request_hold(struct request *r);
/* The same, and the effect points into the transaction's memory. */
void request_hold_txn(struct request *r, struct txn *x);
/* The request's transaction, NULL when it has gone since. */
struct txn *request_txn(const struct request *r);
/* One whose statement met a row that has gone on: the row answers, or says how to go on. */
void request_read_row(struct core *c, struct request *r);
/* What a request gets whose transaction became final while it was under way. */
void request_ended(struct core *c, struct request *r);
void request_let(struct request *r);
/* Past the gates of start and table: runs the handler of its kind. */
void request_run(struct core *c, struct request *r);
void request_expire(struct core *c);
/* The table is READY or will not be: lets its waiting requests go on. */
void request_table_ready(struct core *c, struct table *t);

/* --- table.c --- */
struct table *table_find(struct core *c, struct table_id id);
/* Finds or starts loading. */
struct table *table_open(struct core *c, struct table_id id);
/* Forgets the table and everything of it in memory; its requests are answered with st. */
void table_drop(struct core *c, struct table *t, enum status st, const char *why);
/* All incarnations of the table up to `last` have ended: the same, if one of them is in memory, as soon as
 * no batch or take-over needs it. */
void table_replaced(struct core *c, struct table_id id, int64_t last, const char *why);
/* Whether t is the incarnation that a name resolved to. If not, err: NO_SUCH_TABLE when that is over,
 * OVERLOADED when t is over itself and still has to be forgotten. */
MUST_CHECK bool table_is(struct core *c, struct table *t, int64_t incarnation, struct err *err);
/* --- halt.c --- */
/* EV_HALT, EV_RESUME. */
void halt_request(struct core *c, struct request *r);
void halt_resume(struct core *c, struct request *r);
/* A table that was just loaded: whether an operator has halted it. */
void halt_restored(struct core *c, struct table *t, const struct sql_result *r);
/* Halts a table that an operator wants halted and that does nothing now. */
bool halt_due(struct core *c, struct table *t);
/* What table_halt will show, told while it is at hand; b and object may be absent. */
void table_blame(struct table *t, const struct batch *b, struct strv object);
void table_halt(struct core *c, struct table *t, const struct err *err);
/* FENCED or TABLE_HALTED for a request about x (or none): said as unknown where it may go on. */
void table_tell(struct core *c, struct request *r, const struct txn *x, const struct err *err);
void table_hold(struct table *t);
void table_let(struct table *t);
/* Bumps the epoch until it is ours: st ST_OK, or ST_FENCED when somebody else moved it, or
 * ST_TABLE_GONE. expected: the epoch that must be found, 0 for any. Retries by itself on lost
 * replies. */
void table_take(struct core *c, struct table *t, int64_t expected,
		void (*taken)(struct core *c, struct table *t, enum status st));
/* News of a new current metadata for the driver. */
void table_note(struct core *c, struct table_id id, struct strv location, struct metadata *m);
struct reflog *table_log(struct table *t, struct strv ref, int64_t head);
void table_set_head(struct core *c, struct table *t, struct metadata *m, struct strv location,
		    int64_t version, int64_t last_batch);
void table_enqueue(struct core *c, struct table *t, struct entry *e);
/* Before those that wait: nobody has been promised their order against a REST commit. */
void table_enqueue_first(struct core *c, struct table *t, struct entry *e);
void table_dequeue(struct table *t, struct entry *e);
void table_pump(struct core *c, struct table *t);
/* No batch for a while. */
void table_pause(struct core *c, struct table *t);
void table_free_all(struct core *c);

/* --- txn.c --- */
struct txn *txn_find(struct core *c, struct txn_id id);
struct txn *txn_new(struct core *c, struct table *t, struct txn_id id);
void txn_free(struct core *c, struct txn *x);
void txn_free_all(struct core *c); /* the core goes */
/* Counts what the transaction has grown by. */
void txn_weigh(struct core *c, struct txn *x);
/* Whether all together hold as much as they may: nothing that grows is begun then. */
static inline bool txn_full(const struct core *c)
{
	return c->conf.txn_max_bytes && c->txn_bytes >= c->conf.txn_max_bytes;
}
void txn_move(struct core *c, struct txn *x, enum txn_state to);
struct digest txn_token(const struct core *c, struct txn_id id, struct table_id table,
			int64_t incarnation);
/* Fills row fields that Begin fixes from the message; text goes into the transaction's arena. */
MUST_CHECK enum status txn_fill(struct core *c, struct txn *x, const struct rpc_begin *m,
				struct strv principal, struct err *err);
/* From rows, after a restart. The transaction may end up in the queue. */
void txn_restore(struct core *c, struct table *t, const struct sql_item_result *item);
void txn_hold(struct txn *x);
void txn_let(struct txn *x);
/* The set lives as long as the transaction. */
void txn_own_set(struct txn *x, struct bitmap64 *own_bits);
/* The same for what a manifest held. */
void txn_own_adopted(struct txn *x, struct adopted *own_a);
/* Fixes the winners and what they bring together; the state is the caller's to move. */
MUST_CHECK enum status txn_seal(struct core *c, struct txn *x, struct frag **winners, size_t n,
				struct err *err);
/* From the packed form of a row. */
MUST_CHECK enum status txn_set_summary(struct txn *x, struct bytes packed, struct err *err);
/* The i-th of the objects that the winners bring: data files, delete files, manifests. */
const struct content_file *txn_object(const struct txn *x, size_t i);
size_t txn_n_objects(const struct txn *x);
/* Confirms staged objects by size with requests that are sent now, then queues. */
void txn_verify(struct core *c, struct txn *x);
void txn_verify_again(struct core *c, struct timer *t);
/* Judges one answer: ST_FILE_MISSING, ST_SIZE_MISMATCH, or ST_IO when the store did not say. */
void txn_stat_finding(const struct content_file *f, const struct stat_result *r, struct err *err);
void txn_queue(struct core *c, struct txn *x);
/* It is asked for: an ordered one keeps its place from now on. */
void txn_asked(struct txn *x);
/* Final: answers everyone who waits and frees it. outcome is an encoded rpc_outcome. */
void txn_final(struct core *c, struct txn *x, struct bytes outcome);
/* Its row is gone from the database: nothing was decided and nothing can be. Tells everyone and frees
 * it. */
void txn_vanish(struct core *c, struct txn *x);
/* Whether the asker's statement must be sent again. */
bool txn_ask_failed(struct txn *x, const struct sql_result *r);
/* The rows know of a later expiry. */
void txn_renew(struct txn *x, const struct sql_item_result *item);
/* A statement told that the rows are ahead of memory: an earlier one was executed after all and
 * its answer lost. Reads them and follows. */
void txn_reread(struct core *c, struct txn *x);
/* After an effect: lets waiting requests have their turn. */
void txn_turn(struct core *c, struct txn *x);
void txn_sweep(struct core *c);

/* --- begin.c --- */
/* What may be begun on the table. */
MUST_CHECK enum status begin_check(const struct table *t, const struct rpc_begin *m,
				   struct err *err);
void begin_start(struct core *c, struct request *r);

/* --- stage.c --- */
/* Whether an SQL item's completion settles the request; if not, the request was answered. */
bool stage_settled(struct core *c, struct request *r, const struct sql_result *q);
void stage_item_error(struct core *c, struct request *r, const struct sql_item_result *item);
void stage_stage(struct core *c, struct request *r);
void stage_seal(struct core *c, struct request *r);

/* Fragments that together make up a transaction. */
MUST_CHECK enum status stage_check_winners(struct frag *const *w, size_t n, struct err *err);
/* The statement's item for a packed fragment; NULL when memory is gone. */
struct sql_stage_item *stage_item(struct txn *x, struct frag *f);

/* Replies from what is durable. */
void stage_reply(struct core *c, struct request *r, struct strv id, int32_t attempt,
		 const struct digest *d, struct strv warning);
void stage_seal_reply(struct core *c, struct request *r, const struct digest *d);

/* --- once.c --- */
void once_start(struct core *c, struct request *r);

/* --- lease.c --- */
void lease_heartbeat(struct core *c, struct request *r);

/* --- finish.c --- */
void finish_commit(struct core *c, struct request *r);
void finish_status(struct core *c, struct request *r);
/* A commit that meets a halted table; asked: it was asked for before. */
void finish_halted(struct core *c, struct request *r, const struct table *t, bool asked);
void finish_abort(struct core *c, struct request *r);
enum rpc_state finish_state_of(enum txn_db_state s);
/* Answers with the transaction as it stands in memory. */
void finish_pending(struct core *c, struct request *r, const struct txn *x);
/* With a row that is not final. */
void finish_row(struct core *c, struct request *r, const struct txn_row *row);
/* With an encoded outcome. */
void finish_outcome(struct core *c, struct request *r, struct bytes outcome);
/* A request that finds its transaction final. */
void finish_final(struct core *c, struct request *r, struct bytes outcome);
/* A CommitOnce whose id is known to the rows: asks them. */
void finish_reread(struct core *c, struct request *r);
/* A repeated CommitOnce waits for the outcome of the first. */
void finish_wait_same(struct core *c, struct request *r);
/* Summary properties of Commit: checked, copied, packed into the row. */
MUST_CHECK enum status finish_summary(struct txn *x, const struct rpc_property *in, size_t n,
				      struct err *err);
/* Answers from rows. false: the rows say that it is not final. */
bool finish_from_rows(struct core *c, struct request *r, const struct sql_item_result *item);

/* --- batch.c --- */
void batch_start(struct core *c, struct table *t);
void batch_move(struct core *c, struct batch *b, enum batch_state to);
void batch_free(struct batch *b);
/* The attempt is over without effect: its entries go back to the front of the queue. */
void batch_back(struct core *c, struct batch *b);
/* The same, or a halt when the cause does not pass by itself. */
void batch_failed(struct core *c, struct batch *b, const struct err *err);
/* Ends a batch that holds nothing any more. */
void batch_drop(struct core *c, struct batch *b);
int64_t batch_snapshot_id(struct core *c, const struct metadata *m);
void batch_encode(struct core *c, struct batch *b);
void batch_published(struct core *c, struct batch *b);

/* --- publish.c --- */
/* Everything after encoding: ledger, wave, decision. */
void publish_prepare(struct core *c, struct batch *b);
void publish_ledger(struct core *c, struct batch *b);
void publish_send(struct core *c, struct batch *b);
void publish_resolve(struct core *c, struct batch *b);
void publish_unledger(struct core *c, struct table_id table, struct batch_id id, int64_t epoch);
/* The guard did not hold: finds out why and lets the table, or only the attempt, go. */
void publish_refused(struct core *c, struct batch *b);
/* Our epoch, another version: not by any daemon that keeps the rules. The table halts. */
void publish_changed(struct core *c, struct batch *b, int64_t version);

/* --- rest.c --- */
/* Checks, applies and verifies the REST commit of the batch; calls batch_encode, or answers. */
void rest_plan(struct core *c, struct batch *b);
enum rest_judged {
	REST_FRESH,   /* applied: b->fresh is what is to be published */
	REST_SAME,    /* its requirements hold and it changes nothing */
	REST_DONE,    /* this very request was committed before; err: why not again */
	REST_REFUSED, /* err */
};
/* Whether a request that cannot be committed was committed before, by what the table holds of it. */
enum rest_before { REST_NOT_BEFORE, REST_BEFORE, REST_MAYBE_BEFORE };
enum rest_before rest_before(const struct metadata *m, const struct ask_commit *in);
/* What is said to one of which a part is there. */
void rest_unknown(struct err *err);
/* Answers a REST commit that is in no batch with a reason of the table's. It was not judged: what was
 * committed before is not denied, and what is fenced is no conflict but OVERLOADED. */
void rest_turn_away(struct core *c, struct request *r, const struct table *t,
		    const struct err *err);
/* The first half of that: requirements and updates, on the head. */
enum rest_judged rest_judge(struct core *c, struct batch *b, struct err *err);
void rest_published(struct core *c, struct batch *b);
void rest_enqueue(struct core *c, struct request *r);
void rest_back(struct core *c, struct table *t, struct request *r);
void rest_failed(struct core *c, struct batch *b, const struct err *err);
/* The statement found the key of the request decided. */
void rest_taken(struct core *c, struct batch *b);
/* Lets go of what was read for the look at its snapshots. */
void rest_unview(struct batch *b);

/* --- multi.c --- */
void multi_run(struct core *c, struct request *r);
/* The request was answered: unless it has been decided, all its tables are let go. */
void multi_answered(struct core *c, struct multi *m);
/* The turn of a part in its table's queue has come: b holds the table. */
void multi_reserved(struct core *c, struct batch *b);
/* A part's entry left the queue, with the table's reason (NULL: for its batch). */
void multi_unqueued(struct core *c, struct part *p, const struct err *why);
/* Whether the batch is a part that nobody waits for any more; if so it has been dropped. */
bool multi_over(struct core *c, struct batch *b);
/* All of the part's objects are written. */
void multi_ready(struct core *c, struct batch *b);
void multi_create_ready(struct core *c, struct part *p);
/* It cannot be: the request is answered, and lets everything go. The second drops b. */
void multi_fail(struct core *c, struct part *p, const struct err *err);
void multi_failed(struct core *c, struct batch *b, const struct err *err);
/* The attempt of b, which its caller drops, is over without effect: the whole is tried again. */
void multi_back(struct core *c, struct batch *b);
/* The table is wanted otherwise: what has not been sent gives up. */
void multi_interrupt(struct core *c, struct table *t, enum status st, const char *why);
/* Since when the oldest creation of it writes its object; INT64_MAX when none does. */
int64_t multi_oldest_us(const struct multi *m);

/* --- create.c --- */
void create_table(struct core *c, struct request *r);
/* The same as one table of several, up to its object; then multi_ready or multi_failed is called,
 * perhaps at once. */
struct creation *create_part(struct core *c, struct part *p, const struct ask_create *in);
const struct sql_table_create *create_row(const struct creation *k);
/* Before the statement that creates it is sent. */
void create_asked(struct core *c, struct creation *k);
/* Its object is being written. */
bool create_busy(const struct creation *k);
int64_t create_since_us(const struct creation *k);
/* It is there: takes it into use and lets go of it. */
void create_told(struct core *c, struct creation *own_k);
/* It will not come: its object is garbage. */
void create_forget(struct core *c, struct creation *own_k);
void create_verdict(struct creation *k, enum sql_create_verdict v, struct err *err);
/* Since when the oldest creation writes its first object; INT64_MAX when none does. */
int64_t create_oldest_us(const struct core *c);
void create_drop(struct core *c, struct request *r);

/* --- answer.c --- */

/* Packs one outcome per transaction; false when memory is gone. */
MUST_CHECK bool answer_pack(struct core *c, struct batch *b);
/* One transaction's outcome out of a batch row. */
MUST_CHECK bool answer_of(const struct batch_row *row, struct txn_id id, struct bytes *ret_outcome);
MUST_CHECK bool answer_simple(struct arena *a, struct txn_id id, enum rpc_state state,
			      struct bytes *ret_outcome);
/* What a final row says that no batch decided: its state, and that it ended with its table. The error
 * goes into scratch. */
void answer_row(const struct txn_row *row, struct rpc_error *scratch, struct rpc_outcome *ret_o);
/* The outcome of a final transaction as TXN_READ found it. */
MUST_CHECK bool answer_item(struct arena *a, const struct sql_item_result *item,
			    struct bytes *ret_outcome);
/* The outcome as Status tells it: with a note when a move of the ref has taken the snapshot out of its
 * history, as far as the table (may be NULL) is loaded. */
const struct rpc_outcome *answer_noted(struct arena *a, const struct table *t,
				       const struct txn_row *row, const struct rpc_outcome *o);
MUST_CHECK bool answer_decode(struct bytes outcome, struct arena *a,
			      const struct rpc_outcome **ret_o);

/* --- inspect.c --- */
/* A finding is kept for the operator. */
void inspect_note(struct core *c, const struct table *t, const struct verify_finding *f);
void inspect_free(struct inspect *own_s);

/* --- cleaner.c --- */
/* Rounds at the configured interval; also advances the horizon. */
void cleaner_start(struct core *c);
void cleaner_free(struct cleaner *own_k);

#endif
