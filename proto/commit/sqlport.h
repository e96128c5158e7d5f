/* The SQL half of the core's port: rows, effects and results in the terms of the commit log. Shared
 * by the core, by store/pg (which executes the effects on PostgreSQL) and by the simulator's model.
 *
 * Memory: what an effect points at stays valid until its completion has been delivered; what a
 * result points at is borrowed until the completion returns. */
#ifndef PROTO_COMMIT_SQLPORT_H
#define PROTO_COMMIT_SQLPORT_H

#include "proto/base/digest.h"
#include "proto/base/err.h"
#include "proto/base/strv.h"
#include "proto/base/uuid.h"

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

/* In place of a batch number: the transaction ended with its table. */
#define TXN_BATCH_GONE INT64_C(-1)

/* One row of `head`. */
struct head_row {
	struct table_id table;
	int64_t incarnation;
	int64_t epoch;
	struct daemon_id holder; /* nil: nobody yet */
	int64_t version;         /* one up with every publish */
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
	int32_t kind;      /* enum rpc kind */
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
	struct bytes seal; /* packed, version byte first: winning fragments in seal order; empty */
	struct bytes summary; /* packed summary properties of Commit; empty when none */
	int64_t batch_no;     /* 0 until final through a batch, or TXN_BATCH_GONE */
};

/* What a client's idempotency key has to remember. A decision that is handed one writes its row in
 * the same statement, or nothing at all when the key's row is there. All zero: there is no key. */
struct sql_idem {
	bool set;
	bool file; /* the answer is made from the metadata file that the decision publishes */
	int16_t http;
	struct uuid key;
	struct digest bound; /* who asks for what: another use of the key has another */
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

/* ------------------------------------------------------------------ semantics
 * What each effect does, exactly; an executor and a model of it must agree on this. "First that
 * holds" lists are in order. Items of one statement are judged in the order they were submitted
 * (begins: by transaction id, then that order); a refused item writes nothing at all. `now` is
 * PostgreSQL's clock at the statement, after its lock waits. Two effects on one transaction or
 * table keep their order only if the second is issued after the first was answered.
 *
 * RECOVER      tables that have OPEN or SEALED transactions or are halted, ascending, and the
 *              secret.
 * HEAD_READ    found, head with its name; not found: dropped or never there.
 * HEAD_BUMP    where table, incarnation and epoch = epoch_read: epoch + 1, holder = the one given;
 *              APPLIED with the head after it, else REFUSED.
 * QUEUE_READ   OPEN and SEALED transactions of the table by id, fragments by (fragment_id, attempt).
 *              And the cause of an operator's halt, if there is one.
 * BATCH_LOOK   by table and batch id, whatever the incarnation and whether or not the table lives.
 * TXN_BEGIN    row exists: other table, principal or params -> DIGEST_CONFLICT, no row shown; else
 *              OK, and an OPEN row's expiry becomes max(it, now + its own ttl). No row, first that
 *              holds: no head with this table and incarnation -> TABLE_GONE; id time <
 *              closed_before -> HORIZON_PASSED; id time > now + 10 min -> CLOCK_SKEW; else
 *              inserted, OPEN, expires now + ttl, OK.
 * TXN_STAGE    first that holds: no row -> TXN_UNKNOWN; final -> TXN_STATE; (fragment_id, attempt)
 *              there: same digest -> OK, nothing written but the expiry, other -> DIGEST_CONFLICT;
 *              SEALED -> TXN_STATE; paths (below) -> DUPLICATE_PATH or PATH_CONDEMNED; else
 *              inserted, OK. OK on an OPEN row renews its expiry as Begin does.
 *   paths      each path is free (no row), staged (owner: a transaction), ledger (owner: a batch
 *              id), queued or claimed. Claimed -> PATH_CONDEMNED; ledger, or staged by another
 *              transaction that is OPEN or SEALED -> DUPLICATE_PATH; the lowest such path by bytes
 *              is named. Otherwise all become staged by this transaction, out of the queue or away
 *              from a final owner.
 * TXN_SEAL     first that holds: no row -> TXN_UNKNOWN; has a set digest (whatever its state):
 *              other -> DIGEST_CONFLICT, same -> OK, and when commit_requested is asked, the row is
 *              SEALED and it was not set: set, with summary; not OPEN -> TXN_STATE; else SEALED
 *              with digest, seal, commit_requested, summary if requested, expiry renewed, and the
 *              losers that are staged by this transaction queued. OK.
 * TXN_ONCE     as Begin, a new row being SEALED with commit_requested at once. Row there: a set
 *              digest: same -> OK, other -> DIGEST_CONFLICT; not OPEN -> TXN_STATE; a fragment of
 *              the same id and attempt with another digest -> DIGEST_CONFLICT; else it goes on.
 *              Paths as Stage (over all fragments), then fragments inserted, SEALED. A refusal of a
 *              new row shows no row after TABLE_GONE, HORIZON_PASSED, CLOCK_SKEW or paths.
 * TXN_REQUEST  no row -> TXN_UNKNOWN; not SEALED -> TXN_STATE; else OK, commit_requested and
 *              summary set unless it was set before (the first summary stays).
 * TXN_END      no row -> TXN_UNKNOWN; already in that final state -> OK; OPEN (and for EXPIRED:
 *              expires <= now) -> that state, final now, its staged paths queued, OK; else
 *              TXN_STATE.
 * TXN_READ     no row -> TXN_UNKNOWN; OK with fragments while OPEN or SEALED, with its batch when
 *              batch_no > 0.
 * LEDGER       epoch >= 0: no head with table, incarnation and epoch -> REFUSED. A batch row with
 *              this id -> an error INTERNAL (lost, and late). Each path free, or
 *              in the ledger under this batch id (epoch = max); any other, or a batch row with this
 *              id -> an error INTERNAL and nothing written. Paths of one effect are distinct.
 * PUBLISH      head with table, incarnation, epoch and version = base_version, else REFUSED; all
 *              n_txns are SEALED in this table and incarnation, else REFUSED; every object is in
 *              the ledger under this batch id, else an error INTERNAL. Then: head (version + 1, the
 *              row's location and batch_no, last_seq, next_row_id), transactions final (state,
 *              batch_no, now), batch row; `objects` leave the ledger, other ledger rows of the
 *              batch id are queued; staged paths of COMMITTED transactions go, of the others are
 *              queued; then garbage paths that are free are queued. n_txns = 0 is a REST commit.
 *              Last, with `places`: they replace those of the table, and the first is its location.
 *   places     one that is new and lies in, around or at a place of another table or view, in a
 *              warehouse that does not allow it -> an error PLACE_TAKEN and nothing written.
 * UNLEDGER     a batch row with the id -> REFUSED; else ledger rows of the batch id with epoch <=
 *              the one given are queued.
 * TABLE_CREATE first that holds: NO_NAMESPACE; batch row with this id -> EXISTS with the head as it
 *              is now, if any; NAME_VIEW; name is a table's and not overwrite -> NAME_TABLE; uuid
 *              live under another name -> UUID_LIVE; metadata location not among `objects` and live
 *              under another name, in a folder of that table -> LOCATION_LIVE; a path of this uuid is claimed, or of a table made
 *              elsewhere (metadata location not among `objects`) one beneath its location ->
 *              CONDEMNED, all undone; objects not in the ledger -> error INTERNAL.
 *              Else the old table of the name ends as in Drop, then tabular, head (new incarnation,
 *              greater than any before, epoch 1, version base_version + 1, last_batch 1), horizon
 *              0 unless the uuid has one, batch row with epoch 1 and no transactions, ledger as
 *              publish, places as publish. What is queued under the uuid, or beneath the location of
 *              a table made elsewhere, is no longer sure to be garbage; that one's metadata file
 *              leaves queue and ledger. CREATED with the head (its name empty).
 * TABLES_COMMIT  a batch row with the id of an item -> APPLIED, nothing written (an earlier send won).
 *              Else the first part whose head with table, incarnation, epoch and version =
 *              base_version is not there, then the first creation that TABLE_CREATE would refuse
 *              -> REFUSED, `at` says which (parts first), `created` why a creation. Else every part
 *              as PUBLISH (batch_no 0: its head was judged, nothing is written) and every
 *              creation as TABLE_CREATE, all at one instant, places last; an error undoes all.
 * TABLE_DROP   no head with table and incarnation -> REFUSED; a purge, and the head has another version
 *              than the one given -> REFUSED, `found`; else the head and name go, OPEN and
 *              SEALED transactions of the table become ABORTED (batch_no TXN_BATCH_GONE), their
 *              staged paths and all ledger rows of the table with epoch >= 0 are queued; free
 *              purge paths too, except those beneath the location of another table or view,
 *              which come back as `paths`. What is queued or claimed then is sure to be garbage
 *              if a purge names it, if purge_all and it lies beneath the table's location, or if
 *              it came from the ledger. APPLIED with head.metadata_location as it was.
 * CLEAN_DUE    at most max tables with an id above `after` that have something which CLEAN_CLAIM of them would
 *              take, forget or queue, ascending, each with whether it has no head: `tables`, `gone`.
 *              `next`: where to go on, nil at the end. (Of staged paths the oldest thousand count.)
 * CLEAN_CLAIM  first queues leftovers of the table: staged by final or unknown transactions; ledger
 *              rows whose epoch is below the head's, or whose head is gone; ledger rows of creates
 *              (epoch -1) older than the grace. Then at most max paths, oldest first: queued for at
 *              least the grace, or claimed for at least the tombstone time, become claimed now and
 *              are returned in no order. `gone`: none if the table has a head; due paths that are not
 *              sure to be garbage are forgotten, at most 10,000, and not returned.
 * CLEAN_LOOK   the paths that lie at or beneath a place of another table or view than the one given (a nil
 *              table means every one; of a view's own files only the one that it names is among them
 *              then); and, `waits`, those that may lie in a folder of a table whose places are not
 *              all known.
 * CLEAN_DONE   claimed paths only: deleted and live ones lose their row, unsure ones are claimed
 *              anew from now, those given back are queued from now.
 * HORIZON      per table: closed_before = max(itself, min(now - lifetime - 10 min, id times of
 *              transactions not final or final after now - lifetime)); then transactions with id
 *              time < closed_before, final at or before now - lifetime and not LOST are purged with
 *              their fragments (10,000 a table and call), a batch with its last transaction, and
 *              batches of no transactions created at or before now - lifetime, but never the
 *              head's last one.
 *   keys       PUBLISH, TABLE_CREATE, TABLES_COMMIT and TABLE_DROP with an idem that is set, when
 *              they would be APPLIED or CREATED: a row with its key is there (a statement on its
 *              way with the same key is waited for) -> KEY_TAKEN and nothing written; else the row
 *              is inserted, if `file` with the new metadata location, or of Drop the last one. Every
 *              other verdict writes no row.
 * HALT         empty cause: the table's halt goes, if there is one, APPLIED. Else no head with table
 *              and epoch -> REFUSED; else the table is halted with this cause, since now unless it
 *              was before. A halt goes with its head (Drop, overwrite). */

/* ------------------------------------------------------------------ SQL effects
 * One effect is one statement and its own transaction with its guard inside. `lost` in the
 * completion means: sent, no reply, the outcome is unknown. */

enum sql_kind {
	SQL_RECOVER,      /* which tables have transactions that are not final, and the secret */
	SQL_HEAD_READ,    /* a plain read: never decides anything but the next bump */
	SQL_HEAD_BUMP,    /* guard: epoch is the one read */
	SQL_QUEUE_READ,   /* open and sealed transactions of a table, with their fragments */
	SQL_BATCH_LOOK,   /* is there a batch row with this id? only after a bump was answered */
	SQL_TXN_BEGIN,    /* items */
	SQL_TXN_STAGE,    /* items */
	SQL_TXN_SEAL,     /* items; may set commit_requested in the same statement */
	SQL_TXN_ONCE,     /* items: begin, stage, seal with commit requested */
	SQL_TXN_REQUEST,  /* items: commit_requested on a sealed transaction */
	SQL_TXN_END,      /* items: OPEN -> ABORTED or EXPIRED, staged objects to the queue */
	SQL_TXN_READ,     /* items: the row, its fragments when not final, its batch when final */
	SQL_LEDGER,       /* guard: head incarnation and epoch; object rows before the first PUT */
	SQL_PUBLISH,      /* guard: head incarnation, epoch and version; the durable decision */
	SQL_UNLEDGER,     /* objects of an attempt that never published go to the delete queue */
	SQL_TABLE_CREATE, /* tabular, head, batch 1 in one statement; or replaces on overwrite */
	SQL_TABLES_COMMIT, /* publishes and creations of several tables, all or none */
	SQL_TABLE_DROP,   /* ends the incarnation and its open transactions */
	SQL_CLEAN_DUE,    /* which tables have paths that a claim would take: a plain read */
	SQL_CLEAN_CLAIM,  /* queued objects past their grace become claimed, in a commit of its own */
	SQL_CLEAN_LOOK,   /* which claimed paths lie beneath another table's or view's place */
	SQL_CLEAN_DONE,   /* deleted or found live: the row goes, or stays claimed */
	SQL_HORIZON,      /* advances closed_before of every table and purges behind it */
	SQL_HALT,         /* an operator's halt of a table, or its end */
	SQL_KIND_COUNT
};

enum sql_verdict {
	SQL_APPLIED, /* the guard held, everything was written */
	SQL_REFUSED, /* the guard did not hold, nothing was written */
	SQL_KEY_TAKEN, /* its idempotency key was decided before, nothing was written */
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
	/* Paths of fragments that are not among the sealed ones and of none that is: nobody can
	 * commit these files any more. */
	const struct strv *losers;
	size_t n_losers;
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
	/* Ledger rows of this batch that are now referenced and leave the ledger; every other
	 * ledger row of this batch id is an orphan of an earlier attempt and is queued. */
	const struct strv *objects;
	size_t n_objects;
	/* Staged data files of transactions that end here without committing go to the delete
	 * queue; those of committed ones leave `object`. SQL knows which from txn_states and
	 * owners. */
	/* Metadata files that left the log and may be deleted by the table's own property; files of
	 * committed transactions whose content was taken at Stage, which no snapshot names. */
	const struct strv *garbage;
	size_t n_garbage;
	struct sql_idem idem; /* of a REST commit */
	/* Where the table keeps its files from now on, its location first; none: as before. */
	const struct strv *places;
	size_t n_places;
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
	struct table_id table;   /* = the metadata's table-uuid */
	struct strv location;    /* table location, for purge roots and uniqueness */
	bool overwrite;          /* register with overwrite: replaces the table of this name */
	struct daemon_id holder; /* becomes the head's first holder at epoch 1 */
	struct batch_row row;    /* batch_no 1; incarnation is given by SQL */
	int64_t last_seq;
	int64_t next_row_id;
	const struct strv *objects; /* as in publish */
	size_t n_objects;
	struct sql_idem idem;
	const struct strv *places; /* where it keeps its files, its location first */
	size_t n_places;
};

struct sql_tables_commit {
	/* Ascending by table, without transactions; batch_no 0: nothing but the guard. */
	const struct sql_publish *const *parts;
	size_t n_parts;
	const struct sql_table_create *const *creates; /* never overwrite */
	size_t n_creates;
	struct sql_idem idem; /* of the whole; those of its items are not set */
};

enum sql_create_verdict {
	SQL_CREATED,
	SQL_CREATE_EXISTS,     /* this very batch id is already there: an earlier send won */
	SQL_CREATE_NAME_TABLE, /* the name is a table's */
	SQL_CREATE_NAME_VIEW,  /* the name is a view's */
	SQL_CREATE_NO_NAMESPACE,
	SQL_CREATE_UUID_LIVE,    /* the uuid is live under another name */
	SQL_CREATE_LOCATION_LIVE, /* the metadata location is live under another name */
	SQL_CREATE_CONDEMNED /* files of the table, as it was here before, are being deleted */
};

struct sql_table_drop {
	struct table_id table;
	int64_t incarnation;
	int64_t version; /* of a purge: the one that was walked; -1: whatever it is */
	bool purge; /* objects beneath the table's location are queued by the caller's list */
	bool purge_all; /* with all that was queued for the table beneath its location */
	const struct strv *purge_paths;
	size_t n_purge_paths;
	struct sql_idem idem;
};

struct sql_clean_due {
	struct table_id after; /* nil: from the start */
	int64_t grace_ms;
	int64_t tombstone_ms;
	int32_t max;
};

struct sql_clean_claim {
	struct table_id table; /* one table at a time: the look reads that table's metadata */
	bool gone; /* it has no head, hence nothing to look at */
	int64_t grace_ms;
	int64_t tombstone_ms;
	int32_t max;
};

struct sql_clean_look {
	struct table_id table; /* nil: of none */
	const struct strv *paths;
	size_t n_paths;
};

struct sql_clean_done {
	const struct strv *deleted; /* every DELETE answered: the row goes */
	size_t n_deleted;
	const struct strv *live; /* found referenced: the row goes, the file stays */
	size_t n_live;
	const struct strv
		*unsure; /* a DELETE without answer: stays claimed for the tombstone time */
	size_t n_unsure;
	const struct strv *back; /* no DELETE was sent: queued again */
	size_t n_back;
};

struct sql_horizon {
	int64_t lifetime_ms;
};

struct sql_halt {
	struct table_id table;
	int64_t epoch;
	struct strv cause; /* empty: the halt ends, whatever the epoch */
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
		const struct sql_tables_commit *tables;
		struct sql_table_drop drop;
		struct sql_clean_due clean_due;
		struct sql_clean_claim claim;
		struct sql_clean_look clean_look;
		const struct sql_clean_done *clean_done;
		struct sql_horizon horizon;
		struct sql_halt halt;
	} u;
};

/* Per item of TXN_BEGIN, TXN_STAGE, TXN_SEAL, TXN_ONCE, TXN_REQUEST, TXN_END. ST_OK also when the
 * very same thing was there before. Otherwise the typed refusal: TABLE_GONE, HORIZON_PASSED,
 * CLOCK_SKEW, DIGEST_CONFLICT, TXN_UNKNOWN, TXN_STATE (state in `row`), DUPLICATE_PATH and
 * PATH_CONDEMNED (path named). */
struct sql_item_result {
	enum status st;
	struct strv path; /* of DUPLICATE_PATH and PATH_CONDEMNED */
	bool has_row;
	struct txn_row row;                   /* the row as it stands after the statement */
	const struct fragment_row *fragments; /* TXN_READ and QUEUE_READ, when not final */
	size_t n_fragments;
	const struct batch_row *batch; /* TXN_READ, when final through a batch */
};

struct sql_result {
	enum sql_kind kind;
	bool sent;      /* false: failed before anything was sent; nothing happened */
	bool lost;      /* sent, and the reply never came: the outcome is unknown */
	struct err err; /* st != ST_OK with sent && !lost: the server answered with an error,
			 * nothing was written */
	int64_t pg_ms;  /* PostgreSQL's clock as this reply saw it; 0 when there is none */
	enum sql_verdict verdict;
	enum sql_create_verdict created;
	size_t at;            /* TABLES_COMMIT refused: the item, parts before creations */
	bool found;           /* HEAD_READ, BATCH_LOOK; TABLE_DROP: the head is there */
	struct head_row head; /* HEAD_READ; HEAD_BUMP when applied; TABLE_CREATE when created; TABLE_DROP: its
			       * metadata location */
	const struct batch_row *batch;       /* BATCH_LOOK */
	struct sql_item_result item;         /* TXN_* */
	const struct sql_item_result *items; /* QUEUE_READ */
	size_t n_items;
	const struct table_id *tables; /* RECOVER, CLEAN_DUE */
	size_t n_tables;
	const bool *gone;     /* CLEAN_DUE: for each table */
	struct table_id next; /* CLEAN_DUE */
	struct strv halted;       /* QUEUE_READ: an operator's cause; empty: not halted */
	int64_t halted_pg_ms;
	struct digest secret;     /* RECOVER */
	const struct strv *paths; /* CLEAN_CLAIM, CLEAN_LOOK; TABLE_DROP: what a purge left alone */
	size_t n_paths;
	const bool *waits; /* CLEAN_LOOK: for each path */
};

#endif
