/* Arbitrary bytes as the list of a catalog. What is handed over is written and read again as the same
 * number of lines, and a list that is refused hands over nothing. */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "clients/ctl/ctl_record.h"

struct seen {
	FILE *again; /* NULL: only count */
	struct ctl_record_counts written;
	size_t entries;
};

static bool take(void *ctx, const struct ctl_entry *v, size_t n)
{
	struct seen *s = ctx;
	char name[256];
	for (size_t i = 0; i < n; i++) {
		ASSERT(v[i].n_levels >= 1 && v[i].n_levels <= CTL_LEVELS_MAX);
		ASSERT(v[i].kind == CTL_NAMESPACE || (v[i].name.n && v[i].location.n));
		ctl_entry_name(&v[i], name, sizeof name);
		ASSERT(strv_utf8(strv_of(name)));
		bool ok = !s->again || ctl_record_put(s->again, &v[i], &s->written);
		ASSERT(ok);
	}
	s->entries += n;
	return true;
}

static bool missed(void *ctx, const struct ctl_entry *e, const struct ctl_fault *f)
{
	(void)ctx;
	(void)e;
	return f->kind != CTL_FAULT_NONE;
}

static bool read_again(int fd, FILE *again, struct seen *s, const struct ctl_choice *choice)
{
	char path[64];
	struct ctl_fault f;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	*s = (struct seen){.again = again};
	const struct ctl_sink sink = {s, take, missed, NULL};
	bool ok = ctl_record_read(path, choice, &sink, &f);
	ASSERT(ok == (f.kind == CTL_FAULT_NONE) && (ok || s->entries == 0));
	return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const some[] = {"a", "a.b"}, *const tables[] = {"a.t"};
	const struct ctl_choice all = {0}, choice = {some, 2, tables, 1};
	struct seen first, second;
	int fd = memfd_create("list", 0), copy = memfd_create("again", 0);
	FILE *again = fdopen(copy, "w");
	ASSERT(fd >= 0 && again);
	ASSERT(write(fd, data, size) == (ssize_t)size);
	ctl_record_begin(again);
	if (read_again(fd, again, &first, &all)) {
		ctl_record_end(again, &first.written);
		fflush(again);
		ASSERT(read_again(copy, NULL, &second, &all) && second.entries == first.entries);
		ASSERT(read_again(fd, NULL, &second, &choice) && second.entries <= first.entries);
	}
	fclose(again);
	close(fd);
	return 0;
}
