#include "store/obj/fs.h"

#include <stdio.h>

#include "store/obj/fs_io.h"
#include "store/obj/fs_path.h"

#define ROOTS_MAX 4096

struct fs {
	struct obj_store store; /* first: fs_of relies on it */
	uv_loop_t *loop;
	struct fs_path *roots;
	size_t n_roots;
	uint64_t put_delay_ms;
	uint64_t nonce; /* of this process, in names of temporary files */
	uint64_t next_temp;
	struct fs_io_synced synced;
	size_t calls; /* not freed yet */
	bool closing;
	void (*closed)(void *ctx);
	void *closed_ctx;
};

enum call_kind { CALL_PUT, CALL_GET, CALL_STAT, CALL_DELETE };

/* WAITING: for the delay. SENT: in the pool, perhaps in a thread. A call outlives its operation
 * when that was given up while a thread was inside it. */
enum call_state { CALL_WAITING, CALL_SENT, CALL_RETURNED };

struct call {
	struct fs *fs;
	struct obj_op *o; /* NULL once its done has run */
	uv_work_t work;
	uv_timer_t timer; /* end of the delay, deadline, or a cancel to be reported */
	uint64_t send_at_ms;
	enum call_kind kind;
	enum call_state state;
	bool cancelled, borrows; /* borrows: put is the caller's until done */
	/* Input of the thread, copied so that it holds after the operation was given up. */
	char *path; /* root, NUL, rel */
	struct fs_io_place at;
	struct pieces put; /* content */
	struct bytes whole; /* the one piece of a copy */
	struct buf data;    /* a copy of put; get: result */
	uint64_t offset;
	size_t length;
	char temp[64];
	/* Its output. */
	enum status st;
	struct err err;
	uint64_t size;
	bool existed;
};

static struct fs *fs_of(struct obj_store *s)
{
	return CONTAINER_OF(s, struct fs, store);
}

/* --- the thread's side --- */

static void on_thread(uv_work_t *work)
{
	struct call *c = CONTAINER_OF(work, struct call, work);
	switch (c->kind) {
	case CALL_PUT:
		c->st = fs_io_put(c->at, c->temp, &c->put, &c->fs->synced, &c->existed, &c->err);
		break;
	case CALL_GET:
		c->st = fs_io_get(c->at, c->offset, c->length, &c->data, &c->err);
		c->size = c->data.n;
		break;
	case CALL_STAT:
		c->st = fs_io_stat(c->at, &c->size, &c->err);
		break;
	case CALL_DELETE:
		c->st = fs_io_delete(c->at, &c->existed, &c->err);
		break;
	}
}

/* --- the loop's side --- */

static void maybe_closed(struct fs *fs)
{
	if (!fs->closing || fs->calls > 0)
		return;
	void (*closed)(void *) = fs->closed;
	void *ctx = fs->closed_ctx;
	fs_io_synced_fini(&fs->synced);
	base_free(fs->roots);
	base_free(fs);
	if (closed)
		closed(ctx);
}

static void on_timer_closed(uv_handle_t *handle)
{
	struct call *c = CONTAINER_OF((uv_timer_t *)handle, struct call, timer);
	struct fs *fs = c->fs;
	buf_fini(&c->data);
	base_free(c->path);
	base_free(c);
	fs->calls--;
	maybe_closed(fs);
}

/* The thread is not, or no longer, inside. */
static void call_release(struct call *c)
{
	uv_close((uv_handle_t *)&c->timer, on_timer_closed);
}

static void call_done(struct call *c, enum status st, const struct err *err)
{
	struct obj_op *o = c->o;
	if (st == ST_OK) {
		o->size = c->size;
		o->existed = c->existed;
		if (c->kind == CALL_GET)
			o->data = buf_bytes(&c->data);
	}
	/* impl stays for obj_take inside done, where o may also be started anew. */
	c->o = NULL;
	obj_done(o, st, err);
}

static bool has_effect(const struct call *c)
{
	return c->kind == CALL_PUT || c->kind == CALL_DELETE;
}

/* The operation ends before its call has returned. */
static void give_up(struct call *c)
{
	const char *why = c->cancelled ? "the operation was cancelled" : "the deadline passed";
	struct err err = {0};
	enum status st = ST_IO;
	if (c->state == CALL_SENT && has_effect(c))
		st = ST_TIMEOUT;
	err_set(&err, st, "path", "%s%s", why,
		c->state == CALL_WAITING ? " before it was sent" : "");
	err_detail(&err, "%s/%s", c->at.root, c->at.rel);
	call_done(c, st, &err);
}

static void on_returned(uv_work_t *work, int uv_status)
{
	struct call *c = CONTAINER_OF(work, struct call, work);
	if (c->o && uv_status == UV_ECANCELED) {
		c->state = CALL_WAITING; /* taken back before a thread saw it */
		give_up(c);
	} else if (c->o) {
		c->state = CALL_RETURNED;
		if (c->st == ST_OK)
			c->err = (struct err){.st = ST_OK};
		call_done(c, c->st, &c->err);
	}
	call_release(c);
}

static int64_t mono_us(void)
{
	return (int64_t)(uv_hrtime() / 1000);
}

static void on_timer(uv_timer_t *timer);

/* Next thing to wait for besides the thread: a cancel, the delay's end, the deadline. */
static void arm(struct call *c)
{
	int64_t now = mono_us(), due = c->o->op.deadline_mono_us;
	if (c->state == CALL_WAITING && (int64_t)c->send_at_ms * 1000 < due)
		due = (int64_t)c->send_at_ms * 1000;
	if (c->cancelled)
		due = now;
	if (due == OP_NO_DEADLINE) {
		uv_timer_stop(&c->timer);
		return;
	}
	uint64_t ms = due <= now ? 0 : ((uint64_t)(due - now) + 999) / 1000;
	uv_update_time(c->fs->loop);
	uv_timer_start(&c->timer, on_timer, ms, 0);
}

static void dispatch(struct call *c)
{
	c->state = CALL_SENT;
	int rc = uv_queue_work(c->fs->loop, &c->work, on_thread, on_returned);
	ASSERT(rc == 0);
}

static void on_timer(uv_timer_t *timer)
{
	struct call *c = CONTAINER_OF(timer, struct call, timer);
	if (!c->o)
		return;
	bool late = c->o->op.deadline_mono_us <= mono_us();
	if (c->state == CALL_WAITING && (late || c->cancelled)) {
		give_up(c);
		call_release(c);
	} else if (late || c->cancelled) {
		/* Not in a thread yet: on_returned follows and knows. Else the thread goes on, and
		 * is waited for while it reads what is the caller's. */
		if (uv_cancel((uv_req_t *)&c->work) != 0 && !c->borrows)
			give_up(c);
	} else {
		if (c->state == CALL_WAITING && (int64_t)c->send_at_ms * 1000 <= mono_us())
			dispatch(c);
		arm(c);
	}
}

/* The root above a path, the longest of several; NULL when there is none. */
static const struct fs_path *root_of(const struct fs *fs, const struct fs_path *path,
				     const char **ret_rel)
{
	const struct fs_path *best = NULL;
	const char *rel;
	for (size_t i = 0; i < fs->n_roots; i++)
		if (fs_path_beneath(&fs->roots[i], path, &rel) &&
		    (!best || fs->roots[i].n > best->n)) {
			best = &fs->roots[i];
			*ret_rel = rel;
		}
	return best;
}

static enum status place_of(const struct fs *fs, struct strv uri, struct fs_path *path,
			    const struct fs_path **ret_root, const char **ret_rel, struct err *err)
{
	enum status st = fs_path_of(uri, path, err);
	if (st != ST_OK)
		return st;
	if (strv_ends(uri, STRV("/")))
		return err_set(err, ST_ILLEGAL_ARGUMENT, "path", "a folder is no object");
	*ret_root = root_of(fs, path, ret_rel);
	if (!*ret_root) {
		err_set(err, ST_PATH_OUTSIDE, "path", "the path lies beneath no root");
		err_detail(err, "%s", path->text);
		return ST_PATH_OUTSIDE;
	}
	return ST_OK;
}

enum status fs_check(const struct fs *fs, struct strv path, struct err *err)
{
	struct fs_path p;
	const struct fs_path *root;
	const char *rel;
	return place_of(fs, path, &p, &root, &rel, err);
}

static enum status call_new(struct fs *fs, enum call_kind kind, struct strv uri, struct obj_op *o,
			    struct call **ret_c, struct err *err)
{
	struct fs_path path;
	const struct fs_path *root;
	const char *rel = NULL;
	if (fs->closing)
		return err_set(err, ST_UNAVAILABLE, "", "the object store is closing");
	enum status st = place_of(fs, uri, &path, &root, &rel, err);
	if (st != ST_OK)
		return st;
	struct call *c = base_calloc(1, sizeof *c);
	size_t rel_n = strlen(rel);
	c->path = base_alloc(root->n + rel_n + 2);
	memcpy(c->path, root->text, root->n + 1);
	memcpy(c->path + root->n + 1, rel, rel_n + 1);
	c->at = (struct fs_io_place){c->path, c->path + root->n + 1};
	c->fs = fs;
	c->o = o;
	c->kind = kind;
	*ret_c = c;
	return ST_OK;
}

/* From here on its done will run. */
static void call_start(struct call *c, uint64_t delay_ms)
{
	c->fs->calls++;
	c->o->impl = c;
	uv_timer_init(c->fs->loop, &c->timer);
	if (delay_ms)
		c->send_at_ms = (uint64_t)(mono_us() + 999) / 1000 + delay_ms;
	else
		dispatch(c);
	if (c->state == CALL_WAITING || c->o->op.deadline_mono_us != OP_NO_DEADLINE)
		arm(c);
}

static enum status fs_put(struct obj_store *s, struct strv path, const struct pieces *content,
			  struct obj_op *o, struct err *err)
{
	struct fs *fs = fs_of(s);
	struct call *c = NULL;
	enum status st = call_new(fs, CALL_PUT, path, o, &c, err);
	if (st != ST_OK)
		return st;
	/* A thread cannot be called back, so it must not read what the caller may free: with a
	 * deadline that may be before it returns. */
	c->borrows = o->op.deadline_mono_us == OP_NO_DEADLINE;
	c->put = *content;
	if (!c->borrows) {
		size_t n = pieces_size(content);
		buf_init(&c->data, n);
		pieces_join(content, &c->data);
		if (!buf_ok(&c->data)) {
			buf_fini(&c->data);
			base_free(c->path);
			base_free(c);
			return err_set(err, ST_LIMIT, "", "no memory for an object of %zu bytes",
				       n);
		}
		c->whole = buf_bytes(&c->data);
		c->put = (struct pieces){.v = &c->whole, .n = 1};
	}
	snprintf(c->temp, sizeof c->temp, ".frazil-%016llx-%llu.tmp", (unsigned long long)fs->nonce,
		 (unsigned long long)fs->next_temp++);
	call_start(c, fs->put_delay_ms);
	return ST_OK;
}

static enum status fs_get(struct obj_store *s, struct strv path, const struct obj_range *range,
			  size_t max, struct obj_op *o, struct err *err)
{
	if (range && range->length > max)
		return err_set(err, ST_LIMIT, "range",
			       "a range of %llu bytes, at most %zu are read",
			       (unsigned long long)range->length, max);
	struct call *c = NULL;
	enum status st = call_new(fs_of(s), CALL_GET, path, o, &c, err);
	if (st != ST_OK)
		return st;
	buf_init(&c->data, max);
	c->offset = range ? range->offset : 0;
	c->length = range ? (size_t)range->length : SIZE_MAX;
	call_start(c, 0);
	return ST_OK;
}

static enum status start_plain(struct obj_store *s, enum call_kind kind, struct strv path,
			       struct obj_op *o, struct err *err)
{
	struct call *c = NULL;
	enum status st = call_new(fs_of(s), kind, path, o, &c, err);
	if (st == ST_OK)
		call_start(c, 0);
	return st;
}

static enum status fs_stat(struct obj_store *s, struct strv path, struct obj_op *o, struct err *err)
{
	return start_plain(s, CALL_STAT, path, o, err);
}

static enum status fs_del(struct obj_store *s, struct strv path, struct obj_op *o, struct err *err)
{
	return start_plain(s, CALL_DELETE, path, o, err);
}

static void fs_cancel(struct obj_op *o)
{
	struct call *c = o->impl;
	c->cancelled = true;
	arm(c);
}

static uint8_t *fs_take(struct obj_op *o, size_t *ret_n)
{
	struct call *c = o->impl;
	o->data = (struct bytes){0};
	return buf_take(&c->data, ret_n);
}

static const struct obj_ops ops = {fs_put, fs_get, fs_stat, fs_del, fs_cancel, fs_take};

/* --- the store --- */

enum status fs_add_root(struct fs *fs, struct strv root, struct err *err)
{
	struct fs_path p;
	enum status st = fs_path_of(root, &p, err);
	if (st != ST_OK)
		return st;
	for (size_t i = 0; i < fs->n_roots; i++)
		if (fs->roots[i].n == p.n && memcmp(fs->roots[i].text, p.text, p.n) == 0)
			return ST_OK;
	if (fs->n_roots == ROOTS_MAX)
		return err_set(err, ST_LIMIT, "path", "more than %d roots", ROOTS_MAX);
	fs->roots = base_realloc_array(fs->roots, fs->n_roots + 1, sizeof *fs->roots);
	fs->roots[fs->n_roots++] = p;
	return ST_OK;
}

enum status fs_new(uv_loop_t *loop, const struct strv *roots, size_t n, struct fs **ret_fs,
		   struct err *err)
{
	struct fs *fs = base_calloc(1, sizeof *fs);
	obj_store_init(&fs->store, &ops);
	fs->loop = loop;
	digest_random((uint8_t *)&fs->nonce, sizeof fs->nonce);
	fs_io_synced_init(&fs->synced);
	for (size_t i = 0; i < n; i++) {
		enum status st = fs_add_root(fs, roots[i], err);
		if (st != ST_OK) {
			err_prefix(err, "roots[%zu]", i);
			fs->closing = true;
			maybe_closed(fs);
			return st;
		}
	}
	*ret_fs = fs;
	return ST_OK;
}

struct obj_store *fs_store(struct fs *fs)
{
	return &fs->store;
}

void fs_put_delay(struct fs *fs, uint64_t delay_ms)
{
	fs->put_delay_ms = delay_ms;
}

void fs_free(struct fs *own_fs, void (*closed)(void *ctx), void *ctx)
{
	own_fs->closing = true;
	own_fs->closed = closed;
	own_fs->closed_ctx = ctx;
	LIST_FOR(node, next, &own_fs->store.running)
	obj_cancel(LIST_ITEM(node, struct obj_op, op.node));
	maybe_closed(own_fs);
}

enum status fs_make_root(struct strv root, struct err *err)
{
	struct fs_path p;
	enum status st = fs_path_of(root, &p, err);
	return st == ST_OK ? fs_io_make_folder(p.text, err) : st;
}
