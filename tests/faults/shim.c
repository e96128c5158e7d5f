/* Preloaded into the daemon: one kind of call on files below FAULT_ROOT fails with a chosen error, as
 * long as the file FAULT_CONTROL says "<call> <errno>". Each failure appends a byte to
 * FAULT_CONTROL.hits, so that a test knows that its fault was met. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static ssize_t (*real_write)(int, const void *, size_t);
static int (*real_openat)(int, const char *, int, ...);

static void *real(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

static int below_root(int fd)
{
	char link[64], path[4096];
	const char *root = getenv("FAULT_ROOT");
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, path, sizeof path - 1);
	if (n < 0 || !root)
		return 0;
	path[n] = 0;
	return strncmp(path, root, strlen(root)) == 0;
}

/* errno to fail with, or 0. */
static int armed(const char *call, int fd)
{
	const char *control = getenv("FAULT_CONTROL");
	char text[64] = "", name[32], hits[4096];
	int number = 0, saved = errno;
	if (!control || !below_root(fd))
		return 0;
	if (!real_openat)
		real_openat = (int (*)(int, const char *, int, ...))real("openat");
	if (!real_write)
		real_write = (ssize_t(*)(int, const void *, size_t))real("write");
	int in = real_openat(AT_FDCWD, control, O_RDONLY | O_CLOEXEC);
	if (in >= 0) {
		ssize_t n = read(in, text, sizeof text - 1);
		text[n > 0 ? n : 0] = 0;
		close(in);
	}
	if (sscanf(text, "%31s %d", name, &number) != 2 || strcmp(name, call) != 0)
		number = 0;
	if (number) {
		snprintf(hits, sizeof hits, "%s.hits", control);
		int out = real_openat(AT_FDCWD, hits, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
		if (out >= 0) {
			(void)!real_write(out, "x", 1);
			close(out);
		}
	}
	errno = saved;
	return number;
}

#define FAIL(call, fd)                                                                             \
	do {                                                                                       \
		int e_ = armed(call, fd);                                                          \
		if (e_) {                                                                          \
			errno = e_;                                                                \
			return -1;                                                                 \
		}                                                                                  \
	} while (0)

int openat(int dir, const char *path, int flags, ...)
{
	va_list ap;
	va_start(ap, flags);
	bool nameless = (flags & O_TMPFILE) == O_TMPFILE;
	mode_t mode = flags & O_CREAT || nameless ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	if (!real_openat)
		real_openat = (int (*)(int, const char *, int, ...))real("openat");
	if (nameless)
		FAIL("nameless", dir);
	if (flags & O_CREAT || nameless)
		FAIL("create", dir);
	else if (!(flags & O_DIRECTORY))
		FAIL("open", dir);
	return real_openat(dir, path, flags, mode);
}

ssize_t write(int fd, const void *p, size_t n)
{
	if (!real_write)
		real_write = (ssize_t(*)(int, const void *, size_t))real("write");
	FAIL("write", fd);
	/* Half of it first, then the disk is full. */
	if (n > 1 && armed("short-write", fd)) {
		static __thread int second;
		second = !second;
		if (second)
			return real_write(fd, p, n / 2);
		errno = ENOSPC;
		return -1;
	}
	return real_write(fd, p, n);
}

ssize_t writev(int fd, const struct iovec *v, int n)
{
	FAIL("write", fd);
	if (armed("short-write", fd))
		return write(fd, v[0].iov_base, v[0].iov_len);
	return ((ssize_t(*)(int, const struct iovec *, int))real("writev"))(fd, v, n);
}

int fsync(int fd)
{
	struct stat s;
	if (fstat(fd, &s) == 0)
		FAIL(S_ISDIR(s.st_mode) ? "fsync-folder" : "fsync", fd);
	return ((int (*)(int))real("fsync"))(fd);
}

int linkat(int from, const char *a, int to, const char *b, int flags)
{
	if (flags & AT_SYMLINK_FOLLOW)
		FAIL("link-nameless", to);
	FAIL("link", to);
	return ((int (*)(int, const char *, int, const char *, int))real("linkat"))(from, a, to, b,
										    flags);
}

int mkdirat(int dir, const char *path, mode_t mode)
{
	FAIL("mkdir", dir);
	return ((int (*)(int, const char *, mode_t))real("mkdirat"))(dir, path, mode);
}

ssize_t pread(int fd, void *p, size_t n, off_t at)
{
	FAIL("read", fd);
	return ((ssize_t(*)(int, void *, size_t, off_t))real("pread"))(fd, p, n, at);
}

int unlinkat(int dir, const char *path, int flags)
{
	FAIL("unlink", dir);
	return ((int (*)(int, const char *, int))real("unlinkat"))(dir, path, flags);
}
