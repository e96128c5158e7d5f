#include "daemon/commit/reflog.h"

#include "proto/iceberg/ids.h"

/* Past these the record starts anew: refusals become possible, nothing else. */
#define STEPS_MAX 65536
#define FILES_MAX 65536

struct step {
	int64_t snapshot;
	bool unknown; /* may have moved rows that are not recorded */
};

struct file {
	struct file *next;
	struct strv path; /* owned */
	struct bitmap64 *moved;
	bool emptied, spoilt;
};

struct reflog {
	struct strv ref; /* owned */
	struct step *steps;
	size_t n, cap;
	struct file *buckets[256];
	size_t n_files;
};

static struct strv own(struct strv s)
{
	char *p = base_alloc(s.n + 1);
	if (s.n)
		memcpy(p, s.p, s.n);
	p[s.n] = 0;
	return (struct strv){p, s.n};
}

static void disown(struct strv s)
{
	base_free((char *)(uintptr_t)s.p);
}

static void push(struct reflog *l, int64_t snapshot, bool unknown)
{
	if (l->n == l->cap) {
		l->cap = l->cap ? l->cap * 2 : 16;
		l->steps = base_realloc_array(l->steps, l->cap, sizeof *l->steps);
	}
	l->steps[l->n++] = (struct step){snapshot, unknown};
}

struct reflog *reflog_new(struct strv ref, int64_t head)
{
	struct reflog *l = base_calloc(1, sizeof *l);
	l->ref = own(ref);
	push(l, head, false);
	return l;
}

static void forget_files(struct reflog *l)
{
	for (size_t i = 0; i < ARRAY_SIZE(l->buckets); i++)
		while (l->buckets[i]) {
			struct file *f = l->buckets[i];
			l->buckets[i] = f->next;
			disown(f->path);
			bitmap64_free(f->moved);
			base_free(f);
		}
	l->n_files = 0;
}

void reflog_free(struct reflog *own_l)
{
	if (!own_l)
		return;
	forget_files(own_l);
	disown(own_l->ref);
	base_free(own_l->steps);
	base_free(own_l);
}

struct strv reflog_ref(const struct reflog *l)
{
	return l->ref;
}

int64_t reflog_head(const struct reflog *l)
{
	return l->steps[l->n - 1].snapshot;
}

void reflog_reset(struct reflog *l, int64_t head)
{
	forget_files(l);
	l->n = 0;
	push(l, head, false);
}

static void ours(struct reflog *l, int64_t snapshot, bool unknown)
{
	if (l->n >= STEPS_MAX || l->n_files >= FILES_MAX)
		reflog_reset(l, snapshot);
	else
		push(l, snapshot, unknown);
}

void reflog_ours(struct reflog *l, int64_t snapshot)
{
	ours(l, snapshot, false);
}

void reflog_ours_moved(struct reflog *l, int64_t snapshot)
{
	ours(l, snapshot, true);
}

void reflog_foreign(struct reflog *l, int64_t snapshot, bool dead)
{
	push(l, snapshot, !dead);
}

static struct file *find(const struct reflog *l, struct strv path)
{
	struct file *f = l->buckets[bytes_hash(strv_bytes(path)) % ARRAY_SIZE(l->buckets)];
	while (f && !strv_eq(f->path, path))
		f = f->next;
	return f;
}

static struct file *find_or_add(struct reflog *l, struct strv path)
{
	struct file *f = find(l, path);
	if (f)
		return f;
	f = base_calloc(1, sizeof *f);
	f->path = own(path);
	size_t at = bytes_hash(strv_bytes(path)) % ARRAY_SIZE(l->buckets);
	f->next = l->buckets[at];
	l->buckets[at] = f;
	l->n_files++;
	return f;
}

void reflog_moved(struct reflog *l, struct strv path, const struct bitmap64 *rows)
{
	if (bitmap64_empty(rows))
		return;
	struct file *f = find_or_add(l, path);
	struct err err;
	if (!f->moved)
		f->moved = bitmap64_new();
	if (bitmap64_union(f->moved, &rows, 1, &err) != ST_OK)
		reflog_reset(l, reflog_head(l)); /* too sparse to record: forget, hence "moved" */
}

void reflog_emptied(struct reflog *l, struct strv path)
{
	find_or_add(l, path)->emptied = true;
}

static bool step_of(const struct reflog *l, int64_t snapshot, size_t *ret_i)
{
	for (size_t i = l->n; i-- > 0;)
		if (l->steps[i].snapshot == snapshot) {
			*ret_i = i;
			return true;
		}
	return false;
}

bool reflog_knows(const struct reflog *l, int64_t read)
{
	size_t at;
	if (!step_of(l, read, &at))
		return false;
	for (size_t i = at + 1; i < l->n; i++)
		if (l->steps[i].unknown)
			return false;
	return true;
}

bool reflog_plain(const struct reflog *l, int64_t snapshot)
{
	size_t at;
	/* What the first one did is not told. */
	return step_of(l, snapshot, &at) && at > 0 && !l->steps[at].unknown;
}

bool reflog_saw(const struct reflog *l, int64_t snapshot)
{
	size_t at;
	return step_of(l, snapshot, &at);
}

const struct bitmap64 *reflog_moved_of(const struct reflog *l, struct strv path)
{
	const struct file *f = find(l, path);
	return f ? f->moved : NULL;
}

bool reflog_was_emptied(const struct reflog *l, struct strv path)
{
	const struct file *f = find(l, path);
	return f && f->emptied;
}

void reflog_spoil(struct reflog *l, struct strv path)
{
	find_or_add(l, path)->spoilt = true;
}

bool reflog_spoilt(const struct reflog *l, struct strv path)
{
	const struct file *f = find(l, path);
	return f && f->spoilt;
}
