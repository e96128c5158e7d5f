/* Lists: what a page token asks for, and the answer, which for a long list is written off the loop. */
#include "daemon/rest/h_rest.h"

/* Names in one page when the client leaves the size to us, and at most. */
#define PAGE_DEFAULT 1000
#define PAGE_MAX 10000
#define LIST_MAX_BYTES ((size_t)256 << 20)
/* Writing more names than this takes a millisecond and is a job. */
#define INLINE_NAMES 1000

bool h_page(struct call *own_call, const struct h_place *place, struct strv what,
	    struct h_page *ret_page)
{
	struct call *call = own_call;
	const struct route_arg *token = route_arg(&call->hit, "pageToken");
	const struct route_arg *size = route_arg(&call->hit, "pageSize");
	struct h_page page = {
		.list = rb_list_id(what, place->ns.warehouse, place->ns.levels, place->ns.n),
		.after = {"", 0},
	};
	int64_t limit = PAGE_DEFAULT;
	struct err err;
	enum status st = ST_OK;
	if (size && (!strv_i64(size->value.text, &limit) || limit < 1))
		st = err_set(&err, ST_BAD_REQUEST, "pageSize", "must be a positive number");
	else if (token)
		st = rb_token_parse(token->value.text, page.list, &call->arena, &page.after, &err);
	if (st != ST_OK) {
		call_reply_err(call, &err);
		return false;
	}
	/* Without a token the client does not know about pages and takes what comes for all. */
	page.limit = token ? (size_t)(limit > PAGE_MAX ? PAGE_MAX : limit) : 0;
	*ret_page = page;
	return true;
}

struct page_job {
	struct loop_job job;
	struct call *call;
	h_page_write write;
	struct pg_path ns; /* in the call's arena */
	struct h_page_names what;
	uint64_t list;
	struct buf out;
	struct strv names[]; /* and behind them their bytes */
};

static void write_run(struct loop_job *job)
{
	struct page_job *p = CONTAINER_OF(job, struct page_job, job);
	p->write(&p->out, p->ns.levels, p->ns.n, p->what.names, p->what.n, p->what.more, p->list);
}

static void write_done(struct loop_job *job)
{
	struct page_job *p = CONTAINER_OF(job, struct page_job, job);
	call_reply_buf(p->call, 200, &p->out);
	base_free(p);
}

/* The names are PostgreSQL's answer, which goes away: the job has its own. */
static void write_later(struct call *own_call, const struct h_page *page,
			const struct h_place *place, h_page_write write,
			const struct h_page_names *what)
{
	size_t bytes = 0;
	for (size_t i = 0; i < what->n; i++)
		bytes += what->names[i].n;
	struct page_job *p = base_alloc(sizeof *p + what->n * sizeof p->names[0] + bytes);
	char *at = (char *)&p->names[what->n];
	for (size_t i = 0; i < what->n; i++) {
		p->names[i] = (struct strv){at, what->names[i].n};
		memcpy(at, what->names[i].p, what->names[i].n);
		at += what->names[i].n;
	}
	p->job = (struct loop_job){.run = write_run, .done = write_done};
	p->call = own_call;
	p->write = write;
	p->ns = place->ns;
	p->what = (struct h_page_names){p->names, what->n, what->more};
	p->list = page->list;
	buf_init(&p->out, LIST_MAX_BYTES);
	loop_job_start(&own_call->app->loop, &p->job, true);
}

void h_page_reply(struct call *own_call, const struct h_page *page, const struct h_place *place,
		  h_page_write write, const struct h_page_names *what)
{
	struct buf b;
	if (what->n > INLINE_NAMES) {
		write_later(own_call, page, place, write, what);
		return;
	}
	buf_init(&b, LIST_MAX_BYTES);
	write(&b, place->ns.levels, place->ns.n, what->names, what->n, what->more, page->list);
	call_reply_buf(own_call, 200, &b);
}
