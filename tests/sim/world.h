/* The simulator: one core under a virtual clock, with a model of the PostgreSQL effects, a model of
 * the object store, actors that use it and an oracle that knows what must be true. Everything is a
 * function of the seed. */
#ifndef TESTS_SIM_WORLD_H
#define TESTS_SIM_WORLD_H

#include "daemon/commit/encode.h"
#include "daemon/commit/mutant.h"
#include "daemon/commit/port.h"
#include "proto/iceberg/metadata.h"
#include "proto/rpc/rpc.h"

#define PG_EPOCH_MS INT64_C(1800000000000) /* PostgreSQL's clock at virtual time 0 */
#define TABLES_MAX 4

struct world;
typedef void (*world_fn)(struct world *w, void *arg);

/* Chances out of 1000 for each effect of the kind. */
struct faults {
	int sql_unsent;      /* fails before it is sent */
	int sql_error;       /* the server answers with an error, nothing is written */
	int sql_lost_before; /* no reply, never executed */
	int sql_lost_after;  /* no reply, executed */
	int sql_late;        /* no reply, executed later */
	int put_fail, put_lost, put_late;
	int get_fail, stat_fail;
	int reply_lost;
	int crash;   /* of the daemon, after a step */
	int give_up; /* a worker goes away in the middle of a transaction */
};

struct sim_conf {
	struct faults f;
	int tables, workers, rest_clients;
	bool partitioned, deletes, dropper;
	bool v2; /* tables begin with format version 2; somebody upgrades them */
	bool zombies; /* some crashes only look like one */
	bool outside; /* somebody changes rows by hand */
	bool several; /* REST clients also commit to several tables at once */
	bool comeback; /* what was dropped is registered again, and what is there over itself */
	bool expirer;  /* somebody tags snapshots, somebody expires those that he saw no ref name */
	bool operator; /* somebody halts tables and resumes them */
	int steal; /* of 1000 files: somebody else's path */
	int sql_us, io_us;         /* typical latencies */
	int64_t run_us;            /* faults and new work until then */
	int64_t client_timeout_us; /* before a client repeats */
	int64_t ttl_ms, grace_ms;
	size_t batch_max;
	int64_t window_us;
	size_t cache_max;
};

struct timed {
	int64_t at;
	uint64_t seq;
	world_fn fn;
	void *arg;
};

/* ------------------------------------------------------------------ effects under way */

enum fate { FATE_OK, FATE_UNSENT, FATE_ERROR, FATE_LOST_BEFORE, FATE_LOST_AFTER, FATE_LATE };

struct flight {
	struct flight *next, *prev; /* all that are under way */
	struct world *w;
	uint32_t gen; /* of the core that emitted it */
	struct effect e;
	enum fate fate;
	bool executed, completed;
	int64_t since; /* when it was asked for */
	bool orphaned; /* its daemon is gone: arrives late */
	/* SQL: row locks in the order of acquisition. */
	struct uuid *locks;
	size_t n_locks, n_held;
	struct flight *lock_next; /* in the queue of the lock it waits for */
	struct sql_result res;
	struct err err;
};

/* ------------------------------------------------------------------ rows */

enum obj_state { OBJ_STAGED, OBJ_LEDGER, OBJ_QUEUED, OBJ_CLAIMED };

struct m_txn {
	struct txn_row r;
	struct fragment_row *frags;
	size_t n_frags, cap_frags;
	int64_t batch_incarnation;
};
struct m_obj {
	struct strv path;
	struct table_id table;
	struct uuid owner;
	int64_t epoch;
	enum obj_state state;
	int64_t since_ms;
	bool late; /* written by a statement that nobody waits for any more */
};
struct m_tab {
	struct strv name;
	struct table_id table;
	const struct strv *places;
	size_t n_places;
};
struct m_halt {
	struct table_id table;
	struct strv cause;
	bool confirmed; /* the operator was told so: nothing may be published */
};
/* An answer by idempotency key. */
struct m_idem {
	struct uuid key;
	int16_t http;
	bool there; /* always, but where an error is planted */
	struct strv location; /* the file that the answer is made from; empty: none */
};
struct m_lock {
	struct uuid key;
	struct flight *holder, *first, *last;
};

struct pg {
	struct head_row *heads;
	size_t n_heads, cap_heads;
	struct m_txn **txns;
	size_t n_txns, cap_txns;
	struct batch_row **batches;
	size_t n_batches, cap_batches;
	struct m_obj *objs;
	size_t n_objs, cap_objs;
	struct m_tab *tabs;
	size_t n_tabs, cap_tabs;
	struct m_halt *halts;
	size_t n_halts, cap_halts;
	struct m_idem *idems;
	size_t n_idems, cap_idems;
	struct m_lock *locks;
	size_t n_locks, cap_locks;
	int64_t incarnation;
	struct digest secret;
};

/* ------------------------------------------------------------------ objects */

struct object {
	struct object *next;
	struct strv path;
	struct bytes data; /* p NULL: only a size, as of data files */
	int64_t size;
	struct mview *view; /* decoded by the oracle */
	int64_t view_first;
	bool restaged; /* staged again while it was live: it may be queued, a look saves it */
};

struct store {
	struct object *buckets[1024];
};

struct world {
	uint64_t seed, rng[4], mix; /* mix: hash of all that happened */
	bool tracing;
	int64_t now;
	uint64_t seq, steps;
	int64_t reply_since; /* when the reply that is being delivered was given */
	struct timed *heap;
	size_t n_heap, cap_heap;
	struct arena mem;
	struct sim_conf conf;
	bool calm; /* no faults, no new work */

	struct core *core; /* NULL while down */
	struct core_conf core_conf;
	struct effects fx;
	uint32_t gen;
	struct daemon_id daemon, last_daemon; /* last: before the final restart */
	int64_t tick_at;
	/* A daemon that was replaced while it stood still, and does not know it yet. */
	struct core *zombie;
	uint32_t zombie_gen;
	int64_t zombie_tick_at;
	struct flight flights; /* sentinel */

	struct pg pg;
	struct store store;
	struct actors *actors;
	struct scans *scans;
	struct oracle *oracle;
	struct {
		int64_t committed, rejected, publishes, crashes, rest, effects, aborted, lost;
	} stats;
};

/* --- world.c --- */
void world_init(struct world *w, uint64_t seed, bool tracing);
void world_fini(struct world *w);
/* Runs until the virtual time. */
void world_run(struct world *w, int64_t until);
uint64_t world_random(struct world *w);
int world_below(struct world *w, int n); /* 0 .. n - 1; 0 when n <= 1 */
bool world_chance(struct world *w, int permille);
bool world_fault(struct world *w, int permille); /* never once faults are over */
void world_bytes(struct world *w, uint8_t *out, size_t n);
int64_t world_pg_ms(const struct world *w);
void world_at(struct world *w, int64_t delay_us, world_fn fn, void *arg);
NORETURN void world_fail(struct world *w, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Goes into the hash; printed when tracing. */
void world_trace(struct world *w, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Steps the core with an event and takes over its effects. No-op while it is down. */
void world_step(struct world *w, struct event *ev);
/* Whether the daemon of that number runs, be it as a zombie. */
bool world_alive(const struct world *w, uint32_t gen);
void world_start_core(struct world *w);
void world_crash_core(struct world *w);
/* Delivers the completion, unless the core that asked is gone. */
void world_complete(struct world *w, struct flight *fl, struct event *ev);
struct strv world_strv(struct world *w, struct strv s);
struct bytes world_copy(struct world *w, struct bytes b);
struct bytes world_join(struct world *w, const struct pieces *p);
void *world_alloc(struct world *w, size_t n); /* zeroed, until the end of the run */
void *world_grow(struct world *w, void *v, size_t *cap, size_t need, size_t size);
struct strv world_printf(struct world *w, const char *fmt, ...) PRINTF_LIKE(2, 3);
int64_t world_latency(struct world *w, int typical_us);

/* --- model_pg.c --- */
void pg_init(struct world *w);
void pg_submit(struct world *w, struct flight *fl);
/* Its daemon has gone: what was sent may still be executed. */
void pg_orphan(struct world *w, struct flight *fl);
/* Told of each statement that the model has executed; for the comparison with a server. */
extern void (*pg_executed)(struct world *w, const struct flight *fl);
struct head_row *pg_head(struct world *w, struct table_id table);
struct m_txn *pg_txn(struct world *w, struct txn_id id);
struct batch_row *pg_batch(struct world *w, struct table_id table, int64_t incarnation,
			   int64_t batch_no);
/* NULL: the table is not halted by an operator. */
struct m_halt *pg_halt(struct world *w, struct table_id table);
struct m_obj *pg_obj(struct world *w, struct strv path);
/* NULL: no answer is kept for this key. */
const struct m_idem *world_kept(struct world *w, struct uuid key);
/* Keeps an answer that no statement decided. */
void world_keep(struct world *w, struct uuid key, int16_t http);
/* A key that nobody has used. */
struct sql_idem world_idem(struct world *w, int16_t http);

/* --- model_store.c --- */
struct object *store_find(struct world *w, struct strv path);
void store_put(struct world *w, struct strv path, struct bytes data, int64_t size);
void store_submit(struct world *w, struct flight *fl);
/* Its daemon has gone: a PUT may still arrive. */
void store_orphan(struct world *w, struct flight *fl);
void store_fini(struct world *w);
/* Metadata and manifests as a reader decodes them; failing fails the run. */
struct metadata *store_metadata(struct world *w, struct strv path);
struct mlist *store_list(struct world *w, struct strv path);
struct mview *store_view(struct world *w, const struct manifest_file *row,
			 const struct metadata *m);

/* --- actors.c, workers.c, rest_client.c --- */
void actors_start(struct world *w);
void actors_reply(struct world *w, struct effect *e);
/* All transactions are known final, all clients are done. */
void actors_check_done(struct world *w);

/* --- scans.c --- */
struct scan_file {
	struct strv path;
	int64_t records, first_row_id, seq;
	struct tuple partition;
	int32_t spec_id;
	struct strv dv_path;
	struct bitmap64 *dv; /* NULL without one */
	struct bitmap64 *old; /* rows that position delete files delete; NULL without any */
};
struct scan {
	struct scan *next;
	int64_t snapshot_id;
	struct table_id table;
	struct scan_file *files;
	size_t n, cap;
};
/* The content of a snapshot; checked on its own the first time. */
const struct scan *scans_of(struct world *w, struct table_id table, const struct metadata *m,
			    const struct snapshot *s);

/* Rows of the file that no reader sees; NULL: it sees them all. */
static inline const struct bitmap64 *scan_gone(const struct scan_file *f)
{
	/* A vector holds what position delete files say as well, or readers would show it again. */
	return f->dv ? f->dv : f->old;
}

/* Somebody writes a file of position deletes: rows of one data file in it, one call for each. */
void scans_delete_file(struct world *w, struct strv path, struct strv data_file,
			const struct bitmap64 *rows);
/* Fails unless the object is there, of this size (-1: of any), and nobody may delete it. */
void scans_check_object(struct world *w, struct strv path, int64_t size);
void scans_init(struct world *w);
void scans_fini(struct world *w);

/* --- oracle.c --- */
/* What a client means to do; told before it is asked for. */
struct intent_delete {
	struct strv path;
	struct bitmap64 *positions; /* beyond what was deleted at the read snapshot */
	struct bitmap64 *at_read;
};
struct intent {
	struct txn_id txn;   /* of a worker */
	int64_t snapshot_id; /* of a REST client */
	struct strv summary; /* value of its property; p NULL when it has none */
	bool dead;           /* deletes only, rows are gone */
	struct strv *files;
	int64_t *records;
	size_t n_files;
	struct intent_delete *deletes;
	size_t n_deletes;
	bool by_files;	  /* its deletes are in files of position deletes */
	bool listed;	  /* its data files are in a manifest of its own, of the version it found */
	int64_t read_seq; /* of the snapshot that it has read */
	int64_t final_at; /* told final */
	bool sabotaged; /* a file is missing, has another size, or a path is somebody else's */
	struct strv spent; /* file that holds its vectors; p NULL: they stand in the message */
	bool hopeless;  /* that file is missing */
	int decided;    /* batches that held it */
	/* Told outcome. */
	bool final;
	enum rpc_state state;
	struct bytes outcome; /* canonical */
	bool done;            /* REST: published */
	bool refused;         /* the client was told that nothing happened */
	bool ended;	      /* a worker was told that its table is gone */
	int64_t done_at;
	bool creates;	      /* a table that comes with others */
	struct table_id created;
	struct intent *mate;  /* of the same request over several tables; the last: NULL */
};
void oracle_init(struct world *w);
void oracle_fini(struct world *w);
void oracle_intend(struct world *w, struct intent *i);
/* At the instant at which the decision becomes durable. */
void oracle_published(struct world *w, const struct batch_row *row);
/* After every statement: of the parts of a request all are published, or none. */
void oracle_check_groups(struct world *w);
/* Somebody stages another's path: whoever comes second is refused. */
void oracle_stolen(struct world *w, struct strv path);
/* From outside: a sealed transaction was aborted; the head has another version. */
void oracle_ended(struct world *w, struct txn_id txn);
void oracle_moved(struct world *w, struct table_id table);
/* A client was told that its tag is there. */
void oracle_tagged(struct world *w, struct table_id table, int64_t incarnation, struct strv name);
/* A client was told this outcome. */
void oracle_told(struct world *w, struct txn_id txn, const struct rpc_outcome *o);
void oracle_end(struct world *w);

#endif
