#include "clients/ctl/ctl_cmd.h"

#include <inttypes.h>
#include <stdio.h>

#include "clients/c/frazil.h"
#include "clients/ctl/ctl_http.h"
#include "proto/base/json.h"
#include "proto/base/jwrite.h"

#define OUT_MAX ((size_t)128 << 20)

static void print(const struct buf *b)
{
	fwrite(b->p, 1, b->n, stdout);
	fputc('\n', stdout);
}

/* ---- answers of the admin port ---- */

struct answer {
	int status; /* 0 when there was none */
	struct buf body;
	struct jdoc *doc; /* NULL when the body is empty or no JSON */
	const struct jval *root;
	char why[256];
};

static void ask(const struct ctl *c, const char *method, const char *path, struct answer *a)
{
	struct err err = {0};
	*a = (struct answer){0};
	buf_init(&a->body, CTL_HTTP_MAX);
	a->status = ctl_http(c->admin, method, path, c->timeout_ms, &a->body, a->why);
	if (a->status && a->body.n &&
	    jdoc_parse(buf_bytes(&a->body), ST_CORRUPT, &a->doc, &err) == ST_OK)
		a->root = jdoc_root(a->doc);
}

static void done(struct answer *a)
{
	if (a->doc)
		jdoc_free(a->doc);
	buf_fini(&a->body);
}

static struct strv text_of(const struct jval *o, const char *key)
{
	struct strv s = {0};
	if (!jval_as_str(jval_get(o, key), &s))
		s = STRV("");
	return s;
}

static int64_t number_of(const struct jval *o, const char *key)
{
	int64_t n = 0;
	return jval_as_i64(jval_get(o, key), &n) ? n : 0;
}

static bool true_of(const struct jval *o, const char *key)
{
	bool b = false;
	return jval_as_bool(jval_get(o, key), &b) && b;
}

/* Says why an answer is not the one that was asked for; its exit code. */
static int refusal(const struct answer *a)
{
	if (a->status == 0) {
		fprintf(stderr, "frazilctl: %s\n", a->why);
		return CTL_UNREACHABLE;
	}
	const struct jval *e = jval_get(a->root, "error");
	struct strv message = text_of(e, "message");
	if (message.n)
		fprintf(stderr, "frazilctl: %.*s\n", STRV_ARG(message));
	else
		fprintf(stderr, "frazilctl: the admin port answered %d\n", a->status);
	return CTL_REFUSED;
}

/* ---- tables ---- */

static void table_line(const struct jval *t)
{
	struct strv name = text_of(t, "name"), id = text_of(t, "table-uuid");
	struct strv state = text_of(t, "state"), cause = text_of(t, "cause");
	printf("%-36.*s  %-30.*s  %-9.*s  batch %" PRId64 "  queued %" PRId64 "%s%.*s\n",
	       STRV_ARG(id), STRV_ARG(name), STRV_ARG(state), number_of(t, "last-batch"),
	       number_of(t, "queued"), true_of(t, "halted") ? "  HALTED: " : "", STRV_ARG(cause));
}

/* Whether `which` is the table's UUID, its whole name (warehouse.namespace.table), or the end of
 * it. */
static bool is_named(const struct jval *t, const char *which)
{
	struct strv name = text_of(t, "name"), w = strv_of(which);
	if (strv_ieq(text_of(t, "table-uuid"), w) || strv_eq(name, w))
		return true;
	return w.n > 0 && name.n > w.n && strv_ends(name, w) && name.p[name.n - w.n - 1] == '.';
}

/* The tables that `pick` names (all when NULL), printed; how many there were. */
static size_t show_tables(const struct ctl *c, const struct jval *tables, const char *pick)
{
	struct buf out;
	struct jwrite w;
	size_t found = 0;
	buf_init(&out, OUT_MAX);
	jwrite_init(&w, &out);
	jwrite_array(&w);
	for (size_t i = 0; i < jval_count(tables); i++) {
		const struct jval *t = jval_at(tables, i);
		if (c->halted && !true_of(t, "halted"))
			continue;
		if (pick && !is_named(t, pick))
			continue;
		found++;
		if (!c->json) {
			table_line(t);
			continue;
		}
		struct buf one;
		buf_init(&one, OUT_MAX);
		jval_dump(&one, t);
		jwrite_raw(&w, buf_strv(&one));
		buf_fini(&one);
	}
	jwrite_end_array(&w);
	if (c->json)
		print(&out);
	buf_fini(&out);
	return found;
}

int ctl_cmd_tables(const struct ctl *c)
{
	struct answer a;
	int code = CTL_OK;
	ask(c, "GET", "/admin/tables", &a);
	if (a.status == 200 && a.root)
		show_tables(c, jval_get(a.root, "tables"), NULL);
	else
		code = refusal(&a);
	done(&a);
	return code;
}

int ctl_cmd_table(const struct ctl *c, const char *which)
{
	struct answer a;
	int code = CTL_OK;
	ask(c, "GET", "/admin/tables", &a);
	if (a.status != 200 || !a.root) {
		code = refusal(&a);
	} else if (show_tables(c, jval_get(a.root, "tables"), which) == 0) {
		fprintf(stderr, "frazilctl: no table in memory is %s\n", which);
		code = CTL_REFUSED;
	}
	done(&a);
	return code;
}

/* The UUID of a table. What names several is refused. */
static int find_table(const struct ctl *c, const char *which, char ret_id[37])
{
	struct answer a;
	uint8_t id[16];
	size_t found = 0;
	int code = CTL_REFUSED;
	if (fz_id_parse(which, id)) {
		fz_id_text(id, ret_id);
		return CTL_OK;
	}
	ask(c, "GET", "/admin/tables", &a);
	const struct jval *tables = jval_get(a.root, "tables");
	for (size_t i = 0; i < jval_count(tables); i++)
		if (is_named(jval_at(tables, i), which) &&
		    strv_cstr(text_of(jval_at(tables, i), "table-uuid"), ret_id, 37))
			found++;
	if (a.status != 200)
		code = refusal(&a);
	else if (found == 1)
		code = CTL_OK;
	else if (found == 0)
		fprintf(stderr, "frazilctl: no table in memory is %s\n", which);
	else
		fprintf(stderr, "frazilctl: %zu tables are named %s: say more of the name\n", found,
			which);
	done(&a);
	return code;
}

int ctl_cmd_resume(const struct ctl *c, const char *which)
{
	char id[37], path[80];
	struct answer a;
	int code = find_table(c, which, id);
	if (code != CTL_OK)
		return code;
	snprintf(path, sizeof path, "/admin/tables/%s/resume", id);
	ask(c, "POST", path, &a);
	if (a.status < 200 || a.status > 299)
		code = refusal(&a);
	else if (c->json)
		printf("{\"table-uuid\":\"%s\",\"resumed\":true}\n", id);
	else
		printf("%s resumed\n", id);
	done(&a);
	return code;
}

/* ---- health ---- */

struct health {
	bool reached, healthy, ready;
	char reason[128];
	size_t tables, halted;
	struct answer list;
};

static int read_health(const struct ctl *c, struct health *h)
{
	struct answer a;
	*h = (struct health){0};
	ask(c, "GET", "/healthz", &a);
	if (a.status == 0) {
		int code = refusal(&a);
		done(&a);
		return code;
	}
	h->healthy = a.status == 200;
	done(&a);
	ask(c, "GET", "/readyz", &a);
	h->ready = a.status == 200 && true_of(a.root, "ready");
	struct strv reason = text_of(a.root, "reason");
	snprintf(h->reason, sizeof h->reason, "%.*s", STRV_ARG(reason));
	done(&a);
	ask(c, "GET", "/admin/tables", &h->list);
	const struct jval *tables = jval_get(h->list.root, "tables");
	h->tables = jval_count(tables);
	for (size_t i = 0; i < h->tables; i++)
		h->halted += true_of(jval_at(tables, i), "halted");
	return CTL_OK;
}

static void health_json(const struct health *h, bool counters)
{
	struct buf out, raw;
	struct jwrite w;
	buf_init(&out, OUT_MAX);
	buf_init(&raw, OUT_MAX);
	jwrite_init(&w, &out);
	jwrite_object(&w);
	jwrite_kbool(&w, "healthy", h->healthy);
	jwrite_kbool(&w, "ready", h->ready);
	if (h->reason[0])
		jwrite_kstr(&w, "reason", strv_of(h->reason));
	jwrite_ki64(&w, "tables", (int64_t)h->tables);
	jwrite_ki64(&w, "halted", (int64_t)h->halted);
	if (counters && h->list.root) {
		jval_dump(&raw, jval_get(h->list.root, "counters"));
		jwrite_key(&w, "counters");
		jwrite_raw(&w, buf_strv(&raw));
	}
	jwrite_end_object(&w);
	print(&out);
	buf_fini(&raw);
	buf_fini(&out);
}

static void health_text(const struct health *h)
{
	printf("healthy  %s\nready    %s%s%s\ntables   %zu in memory, %zu halted\n",
	       h->healthy ? "yes" : "no", h->ready ? "yes" : "no", h->reason[0] ? ": " : "",
	       h->reason, h->tables, h->halted);
}

int ctl_cmd_status(const struct ctl *c)
{
	struct health h;
	int code = read_health(c, &h);
	if (code != CTL_OK)
		return code;
	if (c->json) {
		health_json(&h, true);
	} else {
		health_text(&h);
		const struct jval *counters = jval_get(h.list.root, "counters");
		for (struct jval_iter it = jval_iter(counters);
		     jval_is_object(counters) && jval_next(&it);) {
			int64_t n = 0;
			if (jval_as_i64(it.val, &n))
				printf("%-24.*s %" PRId64 "\n", STRV_ARG(it.key), n);
		}
	}
	done(&h.list);
	return CTL_OK;
}

int ctl_cmd_check(const struct ctl *c)
{
	struct health h;
	int code = read_health(c, &h);
	if (code != CTL_OK)
		return code;
	if (c->json)
		health_json(&h, false);
	else
		health_text(&h);
	done(&h.list);
	return h.healthy && h.ready && h.halted == 0 && h.list.status == 200 ? CTL_OK : CTL_NO;
}

/* ---- over the worker protocol ---- */

static int rpc_refusal(const struct fz_error *e)
{
	fprintf(stderr, "frazilctl: %s%s%s\n", e->name, e->name[0] ? ": " : "", e->message);
	return e->status == FZ_LOST    ? CTL_UNREACHABLE
	       : e->status == FZ_USAGE ? CTL_USAGE
				       : CTL_REFUSED;
}

static struct fz_client *open_rpc(const struct ctl *c, struct fz_error *err)
{
	struct fz_options o = {.address = c->rpc,
			       .client_name = "frazilctl/" FZ_VERSION,
			       .timeout_ms = c->timeout_ms,
			       .retries = 3};
	return fz_open(&o, err);
}

static void outcome_json(const struct fz_outcome *o, const char *id)
{
	struct buf out;
	struct jwrite w;
	buf_init(&out, OUT_MAX);
	jwrite_init(&w, &out);
	jwrite_object(&w);
	jwrite_kstr(&w, "txn-id", strv_of(id));
	jwrite_kstr(&w, "state", strv_of(fz_state_name(o->state)));
	if (o->has_snapshot)
		jwrite_ki64(&w, "snapshot-id", o->snapshot_id);
	if (o->has_sequence_number)
		jwrite_ki64(&w, "sequence-number", o->sequence_number);
	if (o->has_batch_no)
		jwrite_ki64(&w, "batch-no", o->batch_no);
	if (o->has_queue_position)
		jwrite_ki64(&w, "queue-position", o->queue_position);
	jwrite_kstr(&w, "metadata-location", strv_of(o->metadata_location));
	jwrite_ki64(&w, "rows-inserted", o->rows_inserted);
	jwrite_ki64(&w, "rows-updated", o->rows_updated);
	jwrite_ki64(&w, "rows-deleted", o->rows_deleted);
	jwrite_key(&w, "files");
	jwrite_array(&w);
	for (size_t i = 0; i < o->n_files; i++)
		jwrite_str(&w, strv_of(o->files[i].path));
	jwrite_end_array(&w);
	if (o->reject) {
		jwrite_key(&w, "reject");
		jwrite_object(&w);
		jwrite_kstr(&w, "name", strv_of(o->reject->name));
		jwrite_kstr(&w, "field", strv_of(o->reject->field));
		jwrite_kstr(&w, "message", strv_of(o->reject->message));
		jwrite_end_object(&w);
	}
	jwrite_end_object(&w);
	print(&out);
	buf_fini(&out);
}

static void outcome_text(const struct fz_outcome *o, const char *id)
{
	printf("transaction  %s\nstate        %s\n", id, fz_state_name(o->state));
	if (o->has_snapshot)
		printf("snapshot     %" PRId64 "\n", o->snapshot_id);
	if (o->has_batch_no)
		printf("batch        %" PRId64 "\n", o->batch_no);
	if (o->has_queue_position)
		printf("queue        %" PRId32 " ahead\n", o->queue_position);
	printf("rows         %" PRId64 " inserted, %" PRId64 " updated, %" PRId64 " deleted\n",
	       o->rows_inserted, o->rows_updated, o->rows_deleted);
	if (o->reject)
		printf("reject       %s: %s\n", o->reject->name, o->reject->message);
}

int ctl_cmd_txn(const struct ctl *c, const char *text)
{
	struct fz_error err;
	const struct fz_outcome *o;
	uint8_t id[16];
	char canonical[37];
	if (!fz_id_parse(text, id)) {
		fprintf(stderr, "frazilctl: %s is no transaction's id\n", text);
		return CTL_USAGE;
	}
	fz_id_text(id, canonical);
	struct fz_client *client = open_rpc(c, &err);
	if (!client)
		return rpc_refusal(&err);
	int code = CTL_OK;
	if (fz_status_of(client, id, &o, &err) != FZ_OK)
		code = rpc_refusal(&err);
	else {
		if (c->json)
			outcome_json(o, canonical);
		else
			outcome_text(o, canonical);
		code = o->state == FZ_STATE_COMMITTED ? CTL_OK : CTL_NO;
	}
	fz_close(client);
	return code;
}

int ctl_cmd_version(const struct ctl *c)
{
	struct fz_error err;
	const struct fz_hello *h = NULL;
	struct fz_client *client = open_rpc(c, &err);
	bool up = client && fz_connect(client, &h, &err) == FZ_OK;
	struct buf out;
	struct jwrite w;
	buf_init(&out, OUT_MAX);
	jwrite_init(&w, &out);
	jwrite_object(&w);
	jwrite_kstr(&w, "frazilctl", STRV(FZ_VERSION));
	jwrite_kstr(&w, "libfrazil", strv_of(fz_version()));
	if (up) {
		jwrite_kstr(&w, "server", strv_of(h->server));
		jwrite_ki64(&w, "protocol", h->version);
	}
	jwrite_end_object(&w);
	if (c->json)
		print(&out);
	else
		printf("frazilctl %s, libfrazil %s, server %s\n", FZ_VERSION, fz_version(),
		       up ? h->server : "not reached");
	buf_fini(&out);
	fz_close(client);
	return CTL_OK;
}
