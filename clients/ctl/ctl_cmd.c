#include "clients/ctl/ctl_cmd.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "clients/c/frazil.h"
#include "clients/ctl/ctl_admin.h"
#include "proto/base/jwrite.h"

int ctl_cmd_halt(const struct ctl *c, const char *which)
{
	char id[37], path[80];
	struct answer a;
	struct buf body;
	struct jwrite w;
	int code = ctl_find_table(c, which, id);
	if (code != CTL_OK)
		return code;
	if (c->cause && !strv_utf8(strv_of(c->cause))) {
		fprintf(stderr, "frazilctl: the reason is not UTF-8\n");
		return CTL_USAGE;
	}
	snprintf(path, sizeof path, "/admin/tables/%s/halt", id);
	buf_init(&body, CTL_OUT_MAX);
	jwrite_init(&w, &body);
	jwrite_object(&w);
	if (c->cause)
		jwrite_kstr(&w, "cause", strv_of(c->cause));
	jwrite_end_object(&w);
	buf_putc(&body, 0);
	admin_send(c, "POST", path, (const char *)body.p, &a);
	buf_fini(&body);
	if (a.status < 200 || a.status > 299)
		code = admin_refusal(&a);
	else if (c->json)
		printf("{\"table-uuid\":\"%s\",\"halted\":true}\n", id);
	else
		printf("%s halted\n", id);
	admin_done(&a);
	return code;
}

int ctl_cmd_resume(const struct ctl *c, const char *which)
{
	char id[37], path[80];
	struct answer a;
	int code = ctl_find_table(c, which, id);
	if (code != CTL_OK)
		return code;
	snprintf(path, sizeof path, "/admin/tables/%s/resume", id);
	admin_ask(c, "POST", path, &a);
	if (a.status < 200 || a.status > 299)
		code = admin_refusal(&a);
	else if (c->json)
		printf("{\"table-uuid\":\"%s\",\"resumed\":true}\n", id);
	else
		printf("%s resumed\n", id);
	admin_done(&a);
	return code;
}

/* ---- health ---- */

struct health {
	bool reached, healthy, ready;
	char reason[128];
	int64_t tables, halted, txns;
	struct answer list;
};

static int read_health(const struct ctl *c, struct health *h)
{
	struct answer a;
	*h = (struct health){0};
	admin_ask(c, "GET", "/healthz", &a);
	if (a.status == 0) {
		int code = admin_refusal(&a);
		admin_done(&a);
		return code;
	}
	h->healthy = a.status == 200;
	admin_done(&a);
	admin_ask(c, "GET", "/readyz", &a);
	h->ready = a.status == 200 && admin_true(a.root, "ready");
	struct strv reason = admin_text(a.root, "reason");
	snprintf(h->reason, sizeof h->reason, "%.*s", STRV_ARG(reason));
	admin_done(&a);
	admin_ask(c, "GET", "/admin/tables?limit=1", &h->list);
	const struct jval *totals = jval_get(h->list.root, "totals");
	h->tables = admin_number(totals, "tables");
	h->halted = admin_number(totals, "halted");
	h->txns = admin_number(totals, "transactions");
	return CTL_OK;
}

static void health_json(const struct health *h, bool counters)
{
	struct buf out, raw;
	struct jwrite w;
	buf_init(&out, CTL_OUT_MAX);
	buf_init(&raw, CTL_OUT_MAX);
	jwrite_init(&w, &out);
	jwrite_object(&w);
	jwrite_kbool(&w, "healthy", h->healthy);
	jwrite_kbool(&w, "ready", h->ready);
	if (h->reason[0])
		jwrite_kstr(&w, "reason", strv_of(h->reason));
	jwrite_ki64(&w, "tables", h->tables);
	jwrite_ki64(&w, "halted", h->halted);
	jwrite_ki64(&w, "transactions", h->txns);
	if (counters && h->list.root) {
		jval_dump(&raw, jval_get(h->list.root, "counters"));
		jwrite_key(&w, "counters");
		jwrite_raw(&w, buf_strv(&raw));
	}
	jwrite_end_object(&w);
	admin_print(&out);
	buf_fini(&raw);
	buf_fini(&out);
}

static void health_text(const struct health *h)
{
	printf("healthy  %s\nready    %s%s%s\ntables   %" PRId64 " in memory, %" PRId64
	       " halted\npending  %" PRId64 " transactions\n",
	       h->healthy ? "yes" : "no", h->ready ? "yes" : "no", h->reason[0] ? ": " : "",
	       h->reason, h->tables, h->halted, h->txns);
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
	admin_done(&h.list);
	return CTL_OK;
}

static void check_text(const struct jval *root)
{
	const struct jval *v = jval_get(root, "findings");
	struct strv name = admin_text(root, "table");
	printf("%.*s: %" PRId64 " manifests, %" PRId64 " files, %" PRId64 " vectors, %" PRId64
	       " findings\n",
	       STRV_ARG(name), admin_number(root, "manifests"), admin_number(root, "files"),
	       admin_number(root, "vectors"), admin_number(root, "findings-total"));
	for (size_t i = 0; i < jval_count(v); i++) {
		struct strv kind = admin_text(jval_at(v, i), "kind");
		struct strv object = admin_text(jval_at(v, i), "object");
		struct strv message = admin_text(jval_at(v, i), "message");
		printf("%-10.*s  %.*s  %.*s\n", STRV_ARG(kind), STRV_ARG(object),
		       STRV_ARG(message));
	}
}

/* Asks until the check is over. */
static int await_check(const struct ctl *c, int64_t no)
{
	for (;;) {
		struct answer a;
		int code = CTL_OK;
		admin_ask(c, "GET", "/admin/check", &a);
		if (a.status != 200) {
			code = admin_refusal(&a);
		} else if (admin_number(a.root, "check") != no) {
			fputs("frazilctl: another check has taken its place\n", stderr);
			code = CTL_REFUSED;
		} else if (strv_eq(admin_text(a.root, "state"), STRV("running"))) {
			admin_done(&a);
			nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
			continue;
		} else {
			if (c->json)
				admin_print(&a.body);
			else
				check_text(a.root);
			code = admin_number(a.root, "findings-total") ? CTL_NO : CTL_OK;
		}
		admin_done(&a);
		return code;
	}
}

static int check_table(const struct ctl *c, const char *which)
{
	char id[37], path[80];
	struct answer a;
	int code = ctl_find_table(c, which, id);
	if (code != CTL_OK)
		return code;
	snprintf(path, sizeof path, "/admin/tables/%s/check", id);
	admin_ask(c, "POST", path, &a);
	int64_t no = admin_number(a.root, "check");
	if (a.status != 202)
		code = admin_refusal(&a);
	admin_done(&a);
	return code == CTL_OK ? await_check(c, no) : code;
}

int ctl_cmd_check(const struct ctl *c, const char *which)
{
	struct health h;
	if (which)
		return check_table(c, which);
	int code = read_health(c, &h);
	if (code != CTL_OK)
		return code;
	if (c->json)
		health_json(&h, false);
	else
		health_text(&h);
	admin_done(&h.list);
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
	buf_init(&out, CTL_OUT_MAX);
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
	admin_print(&out);
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
	buf_init(&out, CTL_OUT_MAX);
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
		admin_print(&out);
	else
		printf("frazilctl %s, libfrazil %s, server %s\n", FZ_VERSION, fz_version(),
		       up ? h->server : "not reached");
	buf_fini(&out);
	fz_close(client);
	return CTL_OK;
}
