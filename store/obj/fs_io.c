#include "store/obj/fs_io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define COMPARE_CHUNK 65536
/* Written by one call; POSIX allows no more. */
#define PIECES_MAX 1024

void fs_io_synced_init(struct fs_io_synced *s)
{
	memset(s, 0, sizeof *s);
	pthread_mutex_init(&s->lock, NULL);
}

void fs_io_synced_fini(struct fs_io_synced *s)
{
	pthread_mutex_destroy(&s->lock);
}

/* Digest of root and folder, with the NUL between them as separator. */
static struct digest synced_key(struct fs_io_place at, size_t folder_len)
{
	struct digest_ctx c;
	digest_init(&c);
	digest_add(&c, (struct bytes){(const uint8_t *)at.root, strlen(at.root) + 1});
	digest_add(&c, (struct bytes){(const uint8_t *)at.rel, folder_len});
	return digest_fini(&c);
}

static struct digest *synced_slot(struct fs_io_synced *s, const struct digest *key)
{
	return &s->slots[get_u32le(key->b) % FS_IO_SYNCED_SLOTS];
}

static bool synced_has(struct fs_io_synced *s, const struct digest *key)
{
	pthread_mutex_lock(&s->lock);
	bool has = digest_eq(synced_slot(s, key), key);
	pthread_mutex_unlock(&s->lock);
	return has;
}

static void synced_add(struct fs_io_synced *s, const struct digest *key)
{
	pthread_mutex_lock(&s->lock);
	*synced_slot(s, key) = *key;
	pthread_mutex_unlock(&s->lock);
}

static const char *errno_name(int e)
{
	const char *name = strerrorname_np(e);
	return name ? name : "unknown error";
}

/* The failed call and the system's reason go to the log; the client learns the reason only. */
static enum status io_error(struct err *err, enum status st, struct fs_io_place at,
			    const char *what, int e)
{
	err_set(err, st, "path", "the file store cannot %s: %s", what, errno_name(e));
	err_detail(err, "%s/%s", at.root, at.rel);
	return st;
}

static enum status outside(struct err *err, struct fs_io_place at)
{
	err_set(err, ST_PATH_OUTSIDE, "path", "a component of the path is a link");
	err_detail(err, "%s/%s", at.root, at.rel);
	return ST_PATH_OUTSIDE;
}

static enum status missing(struct err *err, struct fs_io_place at)
{
	err_set(err, ST_NOT_FOUND, "path", "the object does not exist");
	err_detail(err, "%s/%s", at.root, at.rel);
	return ST_NOT_FOUND;
}

static bool is_link(int dir, const char *name)
{
	struct stat s;
	return fstatat(dir, name, &s, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(s.st_mode);
}

static const char *last_part(const char *rel)
{
	const char *slash = strrchr(rel, '/');
	return slash ? slash + 1 : rel;
}

/* How a walk treats folders. */
struct walk {
	bool make;     /* make what is missing */
	bool sync_all; /* sync every folder whose entry leads on, not only of what was made */
	bool may_sync; /* open so that the last folder can be synced */
};

static int open_folder(int dir, const char *name, bool may_sync)
{
	int flags = O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | (may_sync ? O_RDONLY : O_PATH);
	return openat(dir, name, flags);
}

/* One step down. Returns the new folder or -1 with *ret_st set. */
static int step(int dir, const char *name, struct walk w, struct fs_io_place at,
		enum status *ret_st, struct err *err)
{
	bool made = false;
	int next = open_folder(dir, name, w.may_sync);
	if (next < 0 && errno == ENOENT && w.make) {
		made = mkdirat(dir, name, 0777) == 0;
		if (!made && errno != EEXIST) {
			*ret_st = io_error(err, ST_IO, at, "make a folder", errno);
			return -1;
		}
		next = open_folder(dir, name, w.may_sync);
	}
	if (next < 0) {
		int e = errno;
		if ((e == ENOTDIR || e == ELOOP) && is_link(dir, name))
			*ret_st = outside(err, at);
		else if (!w.make && (e == ENOENT || e == ENOTDIR))
			*ret_st = missing(err, at);
		else
			*ret_st = io_error(err, ST_IO, at, "open a folder", e);
		return -1;
	}
	if ((made || w.sync_all) && fsync(dir) != 0) {
		*ret_st = io_error(err, ST_IO, at, "sync a folder", errno);
		close(next);
		return -1;
	}
	return next;
}

/* Opens the folder that holds the object. */
static enum status open_parent(struct fs_io_place at, struct walk w, int *ret_dir, struct err *err)
{
	int dir = open(at.root[0] ? at.root : "/",
		       O_DIRECTORY | O_CLOEXEC | (w.may_sync ? O_RDONLY : O_PATH));
	/* A root that is gone is a fault of the set-up, never "this object does not exist". */
	if (dir < 0)
		return io_error(err, ST_IO, at, "open its root", errno);
	const char *p = at.rel;
	for (const char *slash; (slash = strchr(p, '/')); p = slash + 1) {
		char name[NAME_MAX + 1];
		enum status st = ST_OK;
		int next = -1;
		if (strv_cstr((struct strv){p, (size_t)(slash - p)}, name, sizeof name))
			next = step(dir, name, w, at, &st, err);
		else
			st = io_error(err, w.make ? ST_IO : ST_NOT_FOUND, at, "open a folder",
				      ENAMETOOLONG);
		close(dir);
		if (next < 0)
			return st;
		dir = next;
	}
	*ret_dir = dir;
	return ST_OK;
}

/* Opens a plain file for reading; a pipe or device never blocks here. */
static enum status open_file(int dir, struct fs_io_place at, int *ret_fd, uint64_t *ret_size,
			     struct err *err)
{
	const char *name = last_part(at.rel);
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0) {
		int e = errno;
		if (e == ENOENT || e == ENAMETOOLONG)
			return missing(err, at);
		return e == ELOOP ? outside(err, at) : io_error(err, ST_IO, at, "open a file", e);
	}
	struct stat s;
	if (fstat(fd, &s) != 0 || !S_ISREG(s.st_mode)) {
		close(fd);
		return io_error(err, ST_IO, at, "read what is no file", EISDIR);
	}
	*ret_fd = fd;
	*ret_size = (uint64_t)s.st_size;
	return ST_OK;
}

/* The next pieces from piece i on, without the first `skip` bytes of it. */
static int next_pieces(const struct pieces *content, size_t i, size_t skip,
		       struct iovec v[PIECES_MAX])
{
	int n = 0;
	for (; n < PIECES_MAX && i < content->n; i++, skip = 0)
		v[n++] = (struct iovec){(uint8_t *)(uintptr_t)content->v[i].p + skip,
					content->v[i].n - skip};
	return n;
}

static bool write_all(int fd, const struct pieces *content)
{
	struct iovec v[PIECES_MAX];
	size_t i = 0, done = 0; /* of piece i */
	while (i < content->n) {
		ssize_t n = writev(fd, v, next_pieces(content, i, done, v));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return false;
		for (done += (size_t)n; i < content->n && done >= content->v[i].n; i++)
			done -= content->v[i].n;
	}
	return true;
}

/* Up to n bytes at offset; fewer only at the end of the file. -1 on error. */
static ssize_t read_at(int fd, uint8_t *p, size_t n, uint64_t offset)
{
	size_t have = 0;
	while (have < n) {
		ssize_t got = pread(fd, p + have, n - have, (off_t)(offset + have));
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -1;
		if (got == 0)
			break;
		have += (size_t)got;
	}
	return (ssize_t)have;
}

static bool same_piece(int fd, struct bytes piece, uint64_t offset, uint8_t *chunk)
{
	bool same = true;
	for (size_t at = 0; same && at < piece.n;) {
		size_t n = piece.n - at < COMPARE_CHUNK ? piece.n - at : COMPARE_CHUNK;
		same = read_at(fd, chunk, n, offset + at) == (ssize_t)n &&
		       memcmp(chunk, piece.p + at, n) == 0;
		at += n;
	}
	return same;
}

static bool same_content(int fd, const struct pieces *content)
{
	uint8_t *chunk = base_alloc(COMPARE_CHUNK);
	bool same = true;
	uint64_t offset = 0;
	for (size_t i = 0; same && i < content->n; i++) {
		same = same_piece(fd, content->v[i], offset, chunk);
		offset += content->v[i].n;
	}
	base_free(chunk);
	return same;
}

/* The name is taken. An equal object counts as written once it is known to be durable: the writer
 * before us may have died between its link and its sync. */
static enum status meet_existing(int dir, struct fs_io_place at, const struct pieces *content,
				 struct err *err)
{
	int fd;
	uint64_t size = 0;
	enum status st = open_file(dir, at, &fd, &size, err);
	if (st != ST_OK)
		return st == ST_NOT_FOUND ? io_error(err, ST_IO, at, "keep a file", ENOENT) : st;
	if (size != pieces_size(content) || !same_content(fd, content)) {
		st = err_set(err, ST_ALREADY_EXISTS, "path",
			     "an object with other content has this name");
		err_detail(err, "%s/%s", at.root, at.rel);
	} else if (fsync(fd) != 0) {
		st = io_error(err, ST_IO_UNKNOWN, at, "sync a file", errno);
	}
	close(fd);
	return st;
}

static const char cannot_make[] = "make a file", cannot_name[] = "name a file";

/* The content on disk, then the name; NULL, or what failed with *ret_errno. temp NULL: by a file that
 * has no other name and goes with this process should it be killed. */
static const char *write_and_link(int dir, const char *temp, const struct pieces *content,
				  const char *name, int *ret_errno)
{
	char self[32];
	int flags = temp ? O_CREAT | O_EXCL | O_NOFOLLOW : O_TMPFILE;
	int fd = openat(dir, temp ? temp : ".", O_WRONLY | O_CLOEXEC | flags, 0666);
	if (fd < 0) {
		*ret_errno = errno;
		return cannot_make;
	}
	snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
	const char *failed = NULL;
	if (!write_all(fd, content))
		failed = "write a file";
	else if (fsync(fd) != 0)
		failed = "sync a file";
	else if ((temp ? linkat(dir, temp, dir, name, 0)
		       : linkat(AT_FDCWD, self, dir, name, AT_SYMLINK_FOLLOW)) != 0)
		failed = cannot_name;
	*ret_errno = errno;
	if (temp)
		unlinkat(dir, temp, 0);
	close(fd); /* the sync has told */
	return failed;
}

static enum status put_in(int dir, struct fs_io_place at, const char *temp, const struct pieces *content,
			  bool *ret_existed, struct err *err)
{
	const char *name = last_part(at.rel);
	enum status st = ST_OK;
	int e = 0;
	const char *failed = write_and_link(dir, NULL, content, name, &e);
	/* Not every file system has nameless files, not every container lets them be named. */
	if (failed == cannot_make || (failed == cannot_name && e != EEXIST))
		failed = write_and_link(dir, temp, content, name, &e);
	bool existed = failed == cannot_name && e == EEXIST;
	if (existed)
		st = meet_existing(dir, at, content, err);
	else if (failed)
		st = io_error(err, ST_IO, at, failed, e);
	if (st != ST_OK)
		return st;
	if (fsync(dir) != 0)
		return io_error(err, ST_IO_UNKNOWN, at, "sync a folder", errno);
	*ret_existed = existed;
	return ST_OK;
}

enum status fs_io_put(struct fs_io_place at, const char *temp_name, const struct pieces *content,
		      struct fs_io_synced *synced, bool *ret_existed, struct err *err)
{
	struct digest key = synced_key(at, (size_t)(last_part(at.rel) - at.rel));
	/* Another writer may have made the folder and not synced it yet: unless its durability is
	 * known, this one syncs the whole way itself. */
	bool known = synced_has(synced, &key);
	struct walk w = {.make = true, .sync_all = !known, .may_sync = true};
	int dir;
	enum status st = open_parent(at, w, &dir, err);
	if (st != ST_OK)
		return st;
	if (!known)
		synced_add(synced, &key);
	st = put_in(dir, at, temp_name, content, ret_existed, err);
	close(dir);
	return st;
}

/* Room for n bytes from fd; short files are an error of `st`. */
static enum status read_into(int fd, struct fs_io_place at, uint64_t offset, size_t n,
			     struct buf *out, struct err *err)
{
	uint8_t *p = buf_room(out, n);
	if (!p && n)
		return err_set(err, ST_LIMIT, "path", "the object is larger than the limit");
	ssize_t got = n ? read_at(fd, p, n, offset) : 0;
	if (got < 0)
		return io_error(err, ST_IO, at, "read a file", errno);
	if ((size_t)got != n)
		return io_error(err, ST_IO, at, "read a file that shrinks", EIO);
	return ST_OK;
}

enum status fs_io_get(struct fs_io_place at, uint64_t offset, size_t length, struct buf *out,
		      struct err *err)
{
	int dir, fd;
	uint64_t size = 0;
	enum status st = open_parent(at, (struct walk){0}, &dir, err);
	if (st != ST_OK)
		return st;
	st = open_file(dir, at, &fd, &size, err);
	close(dir);
	if (st != ST_OK)
		return st;
	bool whole = length == SIZE_MAX;
	uint64_t want = whole ? size : length;
	if (!whole && (offset > size || want > size - offset)) {
		st = err_set(err, ST_CORRUPT, "range",
			     "the object ends at %llu, before offset %llu + %llu",
			     (unsigned long long)size, (unsigned long long)offset,
			     (unsigned long long)want);
		err_detail(err, "%s/%s", at.root, at.rel);
	} else if (want > out->max) {
		st = err_set(err, ST_LIMIT, "path",
			     "the object has %llu bytes, at most %zu are read",
			     (unsigned long long)want, out->max);
		err_detail(err, "%s/%s", at.root, at.rel);
	} else {
		st = read_into(fd, at, whole ? 0 : offset, (size_t)want, out, err);
	}
	close(fd);
	return st;
}

enum status fs_io_stat(struct fs_io_place at, uint64_t *ret_size, struct err *err)
{
	int dir;
	enum status st = open_parent(at, (struct walk){0}, &dir, err);
	if (st != ST_OK)
		return st;
	struct stat s;
	if (fstatat(dir, last_part(at.rel), &s, AT_SYMLINK_NOFOLLOW) != 0)
		st = errno == ENOENT || errno == ENAMETOOLONG
			     ? missing(err, at)
			     : io_error(err, ST_IO, at, "look at a file", errno);
	else if (S_ISLNK(s.st_mode))
		st = outside(err, at);
	else if (!S_ISREG(s.st_mode))
		st = io_error(err, ST_IO, at, "size what is no file", EISDIR);
	else
		*ret_size = (uint64_t)s.st_size;
	close(dir);
	return st;
}

enum status fs_io_delete(struct fs_io_place at, bool *ret_existed, struct err *err)
{
	int dir;
	enum status st = open_parent(at, (struct walk){.may_sync = true}, &dir, err);
	if (st == ST_NOT_FOUND) {
		*ret_existed = false;
		return ST_OK;
	}
	if (st != ST_OK)
		return st;
	const char *name = last_part(at.rel);
	bool existed = true;
	if (is_link(dir, name)) {
		st = outside(err, at);
	} else if (unlinkat(dir, name, 0) != 0) {
		existed = false;
		if (errno != ENOENT && errno != ENAMETOOLONG)
			st = io_error(err, ST_IO, at, "delete a file", errno);
	}
	/* Also for a missing one: whoever deleted it may not have synced. */
	if (st == ST_OK && fsync(dir) != 0)
		st = io_error(err, ST_IO_UNKNOWN, at, "sync a folder", errno);
	close(dir);
	if (st == ST_OK)
		*ret_existed = existed;
	return st;
}

enum status fs_io_make_folder(const char *path, struct err *err)
{
	struct fs_io_place at = {"", path[0] == '/' ? path + 1 : path};
	char part[PATH_MAX];
	/* Here links are the owner's own set-up and are followed. */
	for (size_t i = 1; path[0] == '/' && i <= strlen(path); i++) {
		if (path[i] != '/' && path[i] != 0)
			continue;
		if (!strv_cstr((struct strv){path, i}, part, sizeof part))
			return io_error(err, ST_IO, at, "make a folder", ENAMETOOLONG);
		bool made = mkdir(part, 0777) == 0;
		if (!made && errno != EEXIST)
			return io_error(err, ST_IO, at, "make a folder", errno);
		if (!made)
			continue;
		char *slash = strrchr(part, '/');
		*(slash == part ? slash + 1 : slash) = 0;
		int dir = open(part, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		int failed = dir < 0 || fsync(dir) != 0 ? errno : 0;
		if (dir >= 0)
			close(dir);
		if (failed)
			return io_error(err, ST_IO, at, "sync a folder", failed);
	}
	return ST_OK;
}
