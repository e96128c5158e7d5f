/* The vector and Puffin codecs on a command line, for tests/it/test_dv_foreign.py.
 *   dvtool write FILE           stdin: one vector a line, "PATH POSITION POSITION …"
 *   dvtool read FILE            every vector of a Puffin file, in the form that write takes
 *   dvtool blob FILE            the positions of one framed blob
 *   dvtool merge FILE           reads a Puffin file, prints the union of its vectors as a blob */
#include <stdio.h>
#include <stdlib.h>

#include "proto/dv/dv_blob.h"
#include "proto/dv/puffin.h"

static struct err err;

static void must(enum status st)
{
	if (st == ST_OK)
		return;
	fprintf(stderr, "%s %s: %s\n", status_info(st)->name, err.field, err.msg);
	exit(1);
}

static void read_file(FILE *f, struct buf *out)
{
	uint8_t chunk[65536];
	size_t n;
	buf_init(out, 256 << 20);
	if (!f)
		must(err_set(&err, ST_IO, "file", "cannot open"));
	while ((n = fread(chunk, 1, sizeof chunk, f)) > 0)
		buf_put(out, chunk, n);
	if (f != stdin)
		fclose(f);
	ASSERT(buf_ok(out));
}

static struct strv next_word(struct strv *line)
{
	struct strv word = strv_sub(*line, 0, strv_find(*line, ' '));
	*line = strv_sub(*line, word.n + 1, line->n);
	return word;
}

static void write_line(struct puffin_writer *w, struct strv line)
{
	struct bitmap64 *set = bitmap64_new();
	struct strv path = next_word(&line);
	while (line.n) {
		int64_t pos;
		if (!strv_i64(next_word(&line), &pos))
			must(err_set(&err, ST_BAD_REQUEST, "position", "not a number"));
		must(bitmap64_add(set, (uint64_t)pos, &err));
	}
	struct buf blob;
	int64_t offset;
	buf_init(&blob, 256 << 20);
	must(dv_blob_encode(set, &blob, &err));
	must(puffin_add_vector(w, buf_bytes(&blob), path, (int64_t)bitmap64_cardinality(set),
			       &offset, &err));
	printf("%lld %zu\n", (long long)offset, blob.n);
	buf_fini(&blob);
	bitmap64_free(set);
}

static void write_puffin(const char *path)
{
	struct buf in, out;
	struct puffin_writer w;
	read_file(stdin, &in);
	buf_init(&out, 256 << 20);
	puffin_begin(&w, &out);
	for (struct strv rest = buf_strv(&in); rest.n;) {
		struct strv line = strv_sub(rest, 0, strv_find(rest, '\n'));
		rest = strv_sub(rest, line.n + 1, rest.n);
		write_line(&w, line);
	}
	must(puffin_finish(&w, STRV("dvtool"), &err));
	puffin_writer_fini(&w);
	FILE *f = fopen(path, "wb");
	if (!f || fwrite(out.p, 1, out.n, f) != out.n || fclose(f) != 0)
		must(err_set(&err, ST_IO, "file", "cannot write"));
	buf_fini(&in);
	buf_fini(&out);
}

static void print_set(const struct bitmap64 *set)
{
	uint64_t page[1024], from = 0;
	size_t n;
	while ((n = bitmap64_read(set, from, page, ARRAY_SIZE(page))) > 0) {
		for (size_t i = 0; i < n; i++)
			printf(" %llu", (unsigned long long)page[i]);
		from = page[n - 1] + 1;
	}
	printf("\n");
}

/* Every vector of the file, checked against what its footer states; the caller frees them. */
static size_t read_vectors(struct bytes file, struct arena *a, struct puffin_file *f,
			   struct bitmap64 **sets, size_t cap)
{
	must(puffin_parse_file(file, ST_CORRUPT, a, f, &err));
	ASSERT(f->n_blobs <= cap);
	for (size_t i = 0; i < f->n_blobs; i++) {
		const struct puffin_blob *b = &f->blobs[i], *same;
		struct strv path = {0}, count = {0};
		int64_t n = -1;
		if (!puffin_prop(b->props, b->n_props, "referenced-data-file", &path) ||
		    !puffin_prop(b->props, b->n_props, "cardinality", &count) ||
		    !strv_i64(count, &n))
			must(err_set(&err, ST_CORRUPT, "properties", "missing"));
		must(puffin_vector_at(f, b->offset, b->length, path, n, ST_CORRUPT, &same, &err));
		struct bytes blob = {file.p + b->offset, (size_t)b->length};
		must(dv_blob_decode(blob, &sets[i], &err));
		must(dv_blob_check_count(sets[i], n, &err));
	}
	return f->n_blobs;
}

static void read_puffin(const char *path, bool merge)
{
	struct buf in;
	struct arena a;
	struct puffin_file f;
	struct bitmap64 *sets[256], *all = bitmap64_new();
	read_file(fopen(path, "rb"), &in);
	arena_init(&a, 64 << 20);
	size_t n = read_vectors(buf_bytes(&in), &a, &f, sets, ARRAY_SIZE(sets));
	if (merge) {
		struct buf blob;
		buf_init(&blob, 256 << 20);
		must(bitmap64_union(all, (const struct bitmap64 *const *)sets, n, &err));
		must(dv_blob_encode(all, &blob, &err));
		fwrite(blob.p, 1, blob.n, stdout);
		buf_fini(&blob);
	}
	for (size_t i = 0; i < n; i++) {
		struct strv name = {0};
		bool named = puffin_prop(f.blobs[i].props, f.blobs[i].n_props,
					 "referenced-data-file", &name);
		ASSERT(named);
		if (!merge) {
			printf("%.*s", STRV_ARG(name));
			print_set(sets[i]);
		}
		bitmap64_free(sets[i]);
	}
	bitmap64_free(all);
	arena_fini(&a);
	buf_fini(&in);
}

static void read_blob(const char *path)
{
	struct buf in;
	struct bitmap64 *set = NULL;
	read_file(fopen(path, "rb"), &in);
	must(dv_blob_decode(buf_bytes(&in), &set, &err));
	print_set(set);
	bitmap64_free(set);
	buf_fini(&in);
}

int main(int argc, char **argv)
{
	struct strv cmd = strv_of(argc == 3 ? argv[1] : "");
	if (strv_eq(cmd, STRV("write")))
		write_puffin(argv[2]);
	else if (strv_eq(cmd, STRV("read")) || strv_eq(cmd, STRV("merge")))
		read_puffin(argv[2], cmd.n == 5);
	else if (strv_eq(cmd, STRV("blob")))
		read_blob(argv[2]);
	else
		return 2;
	return 0;
}
