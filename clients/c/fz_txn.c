#include "clients/c/frazil.h"

#include <stdlib.h>
#include <time.h>

#include "clients/c/fz_client.h"
#include "clients/c/fz_error.h"

/* What was begun is kept, so that CommitOnce and a repeat of Begin say the same. */
struct fz_txn {
	struct fz_client *client;
	unsigned refs;
	struct uuid id;
	struct arena arena; /* strings of begin */
	struct fz_begin begin;
	struct fz_source source;
	struct buf token;
	bool begun, sealed;
	struct fz_ref *staged; /* the latest attempt of each fragment */
	struct fz_totals *totals;
	size_t n_staged, cap_staged;
};

/* Strings of one Begin; a conflict filter is the only long one. */
#define BEGIN_BYTES ((size_t)1 << 20)
#define TOKEN_BYTES ((size_t)4096)

/* ---- life ---- */

void fz_new_id(uint8_t ret_id[16])
{
	struct timespec t;
	uint8_t random[10];
	clock_gettime(CLOCK_REALTIME, &t);
	digest_random(random, sizeof random);
	struct uuid u = uuid_v7((int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000, random);
	memcpy(ret_id, u.b, 16);
}

void fz_id_text(const uint8_t id[16], char ret_text[37])
{
	struct uuid u;
	memcpy(u.b, id, 16);
	uuid_text(u, ret_text);
}

bool fz_id_parse(const char *text, uint8_t ret_id[16])
{
	struct uuid u;
	if (!uuid_parse(strv_of(text), &u))
		return false;
	memcpy(ret_id, u.b, 16);
	return true;
}

void fz_free(void *own_p)
{
	base_free(own_p);
}

/* NULL stays NULL. */
static bool copy_text(struct arena *a, const char *text, const char **ret_text)
{
	struct strv copy;
	*ret_text = NULL;
	if (!text)
		return true;
	if (!arena_strv(a, strv_of(text), &copy))
		return false;
	*ret_text = copy.p;
	return true;
}

static bool copy_begin(struct fz_txn *t, const struct fz_begin *b)
{
	struct arena *a = &t->arena;
	t->begin = *b;
	t->begin.txn_id = NULL;
	if (!copy_text(a, b->warehouse, &t->begin.warehouse) ||
	    !copy_text(a, b->table, &t->begin.table) || !copy_text(a, b->ref, &t->begin.ref) ||
	    !copy_text(a, b->filter, &t->begin.filter))
		return false;
	if (b->source) {
		t->source = *b->source;
		t->begin.source = &t->source;
		if (!copy_text(a, b->source->source_id, &t->source.source_id))
			return false;
	}
	const char **levels = arena_calloc(a, b->n_levels, sizeof *levels);
	if (!levels)
		return false;
	for (size_t i = 0; i < b->n_levels; i++)
		if (!copy_text(a, b->namespace_levels[i], &levels[i]))
			return false;
	t->begin.namespace_levels = levels;
	return true;
}

struct fz_txn *fz_txn_new(struct fz_client *client, const struct fz_begin *begin,
			  struct fz_error *err)
{
	if (!begin->table || !*begin->table || begin->n_levels == 0) {
		fz_error_set(err, FZ_USAGE, "ILLEGAL_ARGUMENT", "table",
			     "namespace and table are needed");
		return NULL;
	}
	struct fz_txn *t = base_calloc(1, sizeof *t);
	t->client = client;
	t->refs = 1;
	arena_init(&t->arena, BEGIN_BYTES);
	buf_init(&t->token, TOKEN_BYTES);
	if (!copy_begin(t, begin)) {
		fz_txn_unref(t);
		fz_error_set(err, FZ_USAGE, "TOO_LARGE", "",
			     "the names and the filter are too long");
		return NULL;
	}
	if (begin->txn_id)
		memcpy(t->id.b, begin->txn_id, 16);
	else
		fz_new_id(t->id.b);
	return t;
}

void fz_txn_unref(struct fz_txn *own_txn)
{
	struct fz_txn *t = own_txn;
	if (--t->refs > 0)
		return;
	for (size_t i = 0; i < t->n_staged; i++)
		base_free((void *)(uintptr_t)t->staged[i].fragment_id);
	base_free(t->staged);
	base_free(t->totals);
	buf_fini(&t->token);
	arena_fini(&t->arena);
	base_free(t);
}

void fz_txn_free(struct fz_txn *own_txn)
{
	if (own_txn)
		fz_txn_unref(own_txn);
}

const uint8_t *fz_txn_id(const struct fz_txn *txn)
{
	return txn->id.b;
}

static struct fz_lease lease_of(const struct fz_txn *t)
{
	return (struct fz_lease){t->id, buf_bytes(&t->token)};
}

/* ---- what an answer changes here ---- */

static void wrong_answer(struct fz_call *call, const char *field, const char *text)
{
	fz_error_set(&call->reply.error, FZ_PROTOCOL, "", field, "%s", text);
	call->reply.status = FZ_PROTOCOL;
	call->reply.error.effect = FZ_EFFECT_UNKNOWN;
}

static void apply_begin(struct fz_call *call)
{
	struct fz_txn *t = call->txn;
	if (call->reply.status != FZ_OK)
		return;
	if (memcmp(call->reply.info->txn_id, t->id.b, 16) != 0 ||
	    call->decoded.token.n > TOKEN_BYTES) {
		wrong_answer(call, "txn_id", "Begin was answered for another transaction");
		return;
	}
	buf_clear(&t->token);
	buf_put(&t->token, call->decoded.token.p, call->decoded.token.n);
	t->begun = true;
}

/* A later attempt takes the place of an earlier one; an answer that comes late does not. */
static void remember(struct fz_txn *t, struct fz_call *call)
{
	for (size_t i = 0; i < t->n_staged; i++) {
		struct fz_ref *old = &t->staged[i];
		if (strcmp(old->fragment_id, call->ref.fragment_id) != 0)
			continue;
		if (call->ref.attempt >= old->attempt) {
			old->attempt = call->ref.attempt;
			old->digest = call->ref.digest;
			t->totals[i] = call->totals;
		}
		return;
	}
	if (t->n_staged == t->cap_staged) {
		t->cap_staged = t->cap_staged ? 2 * t->cap_staged : 4;
		t->staged = base_realloc_array(t->staged, t->cap_staged, sizeof *t->staged);
		t->totals = base_realloc_array(t->totals, t->cap_staged, sizeof *t->totals);
	}
	t->staged[t->n_staged] = call->ref;
	t->totals[t->n_staged++] = call->totals;
	call->ref.fragment_id = NULL;
}

static void apply_stage(struct fz_call *call)
{
	const struct fz_staged *s = call->reply.staged;
	if (call->reply.status != FZ_OK)
		return;
	if (memcmp(s->digest, call->ref.digest.b, sizeof s->digest) != 0)
		wrong_answer(call, "digest", "the server computed another digest of the fragment");
	else
		remember(call->txn, call);
}

static void apply_seal(struct fz_call *call)
{
	if (call->reply.status == FZ_OK)
		call->txn->sealed = true;
}

/* Commit and CommitOnce: final states other than committed are failures of the call. */
static void apply_commit(struct fz_call *call)
{
	struct fz_reply *r = &call->reply;
	if (r->status != FZ_OK || !r->outcome)
		return;
	if (memcmp(r->outcome->txn_id, call->txn_id.b, 16) != 0) {
		r->outcome = NULL;
		wrong_answer(call, "txn_id", "the outcome is another transaction's");
		return;
	}
	enum fz_state s = r->outcome->state;
	if (s == FZ_STATE_REJECTED) {
		if (r->outcome->reject)
			r->error = *r->outcome->reject;
		else
			fz_error_set(&r->error, FZ_REJECTED, "", "", "rejected");
		r->status = FZ_REJECTED;
	} else if (s == FZ_STATE_ABORTED || s == FZ_STATE_EXPIRED || s == FZ_STATE_LOST) {
		r->status = fz_error_set(&r->error, FZ_OVER, fz_state_name(s), "",
					 "the transaction is %s", fz_state_name(s));
		/* Its table went and took it along. */
		if (r->outcome->reject)
			r->error = *r->outcome->reject;
	}
}

/* ---- starting ---- */

/* A call for the transaction, which it holds. */
static struct fz_call *call_of(struct fz_txn *t, enum fz_msg msg, int64_t extra_ms, fz_done done,
			       void *ctx, void (*apply)(struct fz_call *), struct fz_error *err)
{
	struct fz_call *call = fz_client_call(t->client, msg, extra_ms, done, ctx, err);
	if (!call)
		return NULL;
	call->txn = t;
	t->refs++;
	call->txn_id = t->id;
	call->apply = apply;
	fz_client_open_frame(call);
	return call;
}

static void encode_open(struct fz_encode *e, struct fz_call *call, struct fz_error *err)
{
	fz_encode_open(e, &call->client->schemas, call->msg, fz_client_room(call->client), err);
}

/* Ends the payload and starts the call. */
static enum fz_status encode_start(struct fz_encode *e, struct fz_call *own_call,
				   struct fz_error *err)
{
	enum fz_status st = fz_encode_close(e, &own_call->frame);
	if (st != FZ_OK) {
		fz_client_drop(own_call);
		return st;
	}
	return fz_client_start(own_call, err);
}

static enum fz_status not_begun(struct fz_error *err)
{
	return fz_error_set(err, FZ_USAGE, "STATE", "", "the transaction has not begun");
}

enum fz_status fz_start_begin(struct fz_txn *txn, fz_done done, void *ctx, struct fz_error *err)
{
	struct fz_encode e;
	struct fz_call *call = call_of(txn, FZ_MSG_BEGIN, 0, done, ctx, apply_begin, err);
	if (!call)
		return FZ_USAGE;
	encode_open(&e, call, err);
	fz_encode_begin(&e, txn->id, &txn->begin);
	return encode_start(&e, call, err);
}

enum fz_status fz_start_stage(struct fz_txn *txn, const struct fz_fragment *fragment, fz_done done,
			      void *ctx, struct fz_error *err)
{
	struct fz_encode e;
	struct fz_lease lease = lease_of(txn);
	if (!txn->begun)
		return not_begun(err);
	if (!fragment->fragment_id)
		return fz_error_set(err, FZ_USAGE, "ILLEGAL_ARGUMENT", "fragment_id",
				    "a fragment has no id");
	struct fz_call *call = call_of(txn, FZ_MSG_STAGE, 0, done, ctx, apply_stage, err);
	if (!call)
		return FZ_USAGE;
	size_t n = strlen(fragment->fragment_id) + 1;
	char *id = base_alloc(n);
	memcpy(id, fragment->fragment_id, n);
	call->ref.fragment_id = id;
	call->ref.attempt = fragment->attempt;
	encode_open(&e, call, err);
	fz_encode_stage(&e, &lease, fragment, &call->ref.digest, &call->totals);
	return encode_start(&e, call, err);
}

enum fz_status fz_start_seal(struct fz_txn *txn, fz_done done, void *ctx, struct fz_error *err)
{
	struct fz_encode e;
	struct fz_lease lease = lease_of(txn);
	struct fz_totals sum = {0};
	if (!txn->begun)
		return not_begun(err);
	for (size_t i = 0; i < txn->n_staged; i++) {
		sum.unknown |= txn->totals[i].unknown;
		if (!add_i64(sum.files, txn->totals[i].files, &sum.files) ||
		    !add_i64(sum.rows, txn->totals[i].rows, &sum.rows) ||
		    !add_i64(sum.deleted, txn->totals[i].deleted, &sum.deleted))
			return fz_error_set(err, FZ_USAGE, "ILLEGAL_ARGUMENT", "record_count",
					    "the sum has more than 64 bits");
	}
	struct fz_call *call = call_of(txn, FZ_MSG_SEAL, 0, done, ctx, apply_seal, err);
	if (!call)
		return FZ_USAGE;
	encode_open(&e, call, err);
	fz_encode_seal(&e, &lease, txn->staged, txn->n_staged, &sum);
	return encode_start(&e, call, err);
}

enum fz_status fz_start_commit(struct fz_txn *txn, int64_t max_wait_ms,
			       const struct fz_property *summary, size_t n_summary, fz_done done,
			       void *ctx, struct fz_error *err)
{
	struct fz_encode e;
	struct fz_lease lease = lease_of(txn);
	if (!txn->begun)
		return not_begun(err);
	struct fz_call *call =
		call_of(txn, FZ_MSG_COMMIT, max_wait_ms, done, ctx, apply_commit, err);
	if (!call)
		return FZ_USAGE;
	encode_open(&e, call, err);
	fz_encode_commit(&e, &lease, max_wait_ms, summary, n_summary);
	return encode_start(&e, call, err);
}

enum fz_status fz_start_commit_once(struct fz_txn *txn, const struct fz_fragment *fragments,
				    size_t n_fragments, int64_t max_wait_ms,
				    const struct fz_property *summary, size_t n_summary,
				    fz_done done, void *ctx, struct fz_error *err)
{
	struct fz_encode e;
	struct fz_call *call =
		call_of(txn, FZ_MSG_COMMIT_ONCE, max_wait_ms, done, ctx, apply_commit, err);
	if (!call)
		return FZ_USAGE;
	encode_open(&e, call, err);
	fz_encode_commit_once(&e, txn->id, &txn->begin, fragments, n_fragments, max_wait_ms,
			      summary, n_summary);
	return encode_start(&e, call, err);
}

enum fz_status fz_start_status(struct fz_client *client, const uint8_t txn_id[16], fz_done done,
			       void *ctx, struct fz_error *err)
{
	struct fz_encode e;
	struct fz_call *call = fz_client_call(client, FZ_MSG_STATUS, 0, done, ctx, err);
	if (!call)
		return FZ_USAGE;
	memcpy(call->txn_id.b, txn_id, 16);
	fz_client_open_frame(call);
	encode_open(&e, call, err);
	fz_encode_status(&e, call->txn_id);
	return encode_start(&e, call, err);
}

enum fz_status fz_start_abort(struct fz_txn *txn, const char *reason, fz_done done, void *ctx,
			      struct fz_error *err)
{
	struct fz_encode e;
	struct fz_lease lease = lease_of(txn);
	if (!txn->begun)
		return not_begun(err);
	struct fz_call *call = call_of(txn, FZ_MSG_ABORT, 0, done, ctx, NULL, err);
	if (!call)
		return FZ_USAGE;
	encode_open(&e, call, err);
	fz_encode_abort(&e, &lease, reason);
	return encode_start(&e, call, err);
}

enum fz_status fz_start_heartbeat(struct fz_client *client, struct fz_txn *const *txns,
				  size_t n_txns, fz_done done, void *ctx, struct fz_error *err)
{
	struct fz_encode e;
	struct fz_call *call = fz_client_call(client, FZ_MSG_HEARTBEAT, 0, done, ctx, err);
	if (!call)
		return FZ_USAGE;
	struct fz_lease *leases = base_calloc(n_txns, sizeof *leases);
	bool begun = true;
	for (size_t i = 0; i < n_txns; i++) {
		leases[i] = lease_of(txns[i]);
		begun = begun && txns[i]->begun;
	}
	enum fz_status st;
	if (!begun) {
		st = not_begun(err);
		fz_client_drop(call);
	} else {
		fz_client_open_frame(call);
		encode_open(&e, call, err);
		fz_encode_heartbeat(&e, leases, n_txns);
		st = encode_start(&e, call, err);
	}
	base_free(leases);
	return st;
}

/* ---- blocking ---- */

static enum fz_status wait_if(enum fz_status started, struct fz_client *c, struct fz_error *err)
{
	return started == FZ_OK ? fz_client_wait(c, err) : started;
}

/* The outcome of a blocking call that was started, whatever its status. */
static enum fz_status wait_outcome(enum fz_status started, struct fz_client *c,
				   const struct fz_outcome **ret_outcome, struct fz_error *err)
{
	if (ret_outcome)
		*ret_outcome = NULL;
	enum fz_status st = wait_if(started, c, err);
	if (started == FZ_OK && ret_outcome)
		*ret_outcome = c->kept_reply.outcome;
	return st;
}

enum fz_status fz_begin(struct fz_txn *txn, const struct fz_info **ret_info, struct fz_error *err)
{
	enum fz_status st =
		wait_if(fz_start_begin(txn, fz_client_keep, NULL, err), txn->client, err);
	if (st == FZ_OK && ret_info)
		*ret_info = txn->client->kept_reply.info;
	return st;
}

enum fz_status fz_stage(struct fz_txn *txn, const struct fz_fragment *fragment,
			const struct fz_staged **ret_staged, struct fz_error *err)
{
	enum fz_status st =
		wait_if(fz_start_stage(txn, fragment, fz_client_keep, NULL, err), txn->client, err);
	if (st == FZ_OK && ret_staged)
		*ret_staged = txn->client->kept_reply.staged;
	return st;
}

enum fz_status fz_seal(struct fz_txn *txn, struct fz_error *err)
{
	return wait_if(fz_start_seal(txn, fz_client_keep, NULL, err), txn->client, err);
}

enum fz_status fz_commit(struct fz_txn *txn, int64_t max_wait_ms, const struct fz_property *summary,
			 size_t n_summary, const struct fz_outcome **ret_outcome,
			 struct fz_error *err)
{
	if (ret_outcome)
		*ret_outcome = NULL;
	if (!txn->sealed) {
		enum fz_status st = fz_seal(txn, err);
		if (st != FZ_OK)
			return st;
	}
	return wait_outcome(
		fz_start_commit(txn, max_wait_ms, summary, n_summary, fz_client_keep, NULL, err),
		txn->client, ret_outcome, err);
}

enum fz_status fz_commit_once(struct fz_txn *txn, const struct fz_fragment *fragments,
			      size_t n_fragments, int64_t max_wait_ms,
			      const struct fz_property *summary, size_t n_summary,
			      const struct fz_outcome **ret_outcome, struct fz_error *err)
{
	return wait_outcome(fz_start_commit_once(txn, fragments, n_fragments, max_wait_ms, summary,
						 n_summary, fz_client_keep, NULL, err),
			    txn->client, ret_outcome, err);
}

enum fz_status fz_status_of(struct fz_client *client, const uint8_t txn_id[16],
			    const struct fz_outcome **ret_outcome, struct fz_error *err)
{
	return wait_outcome(fz_start_status(client, txn_id, fz_client_keep, NULL, err), client,
			    ret_outcome, err);
}

enum fz_status fz_abort(struct fz_txn *txn, const char *reason,
			const struct fz_outcome **ret_outcome, struct fz_error *err)
{
	return wait_outcome(fz_start_abort(txn, reason, fz_client_keep, NULL, err), txn->client,
			    ret_outcome, err);
}

enum fz_status fz_heartbeat(struct fz_client *client, struct fz_txn *const *txns, size_t n_txns,
			    const struct fz_lease_state **ret_leases, size_t *ret_n,
			    struct fz_error *err)
{
	enum fz_status st = wait_if(
		fz_start_heartbeat(client, txns, n_txns, fz_client_keep, NULL, err), client, err);
	if (st == FZ_OK && ret_leases)
		*ret_leases = client->kept_reply.leases;
	if (st == FZ_OK && ret_n)
		*ret_n = client->kept_reply.n_leases;
	return st;
}
