/* A small worker: appends a Parquet file that exists, deletes rows by position, commits what tasks
 * of an engine reported, tells a state.
 *
 *   cc worker.c $(pkg-config --cflags --libs libfrazil) -o worker
 *   worker [-p] ADDRESS NAMESPACE.TABLE append FILE ROWS [SPEC-ID]
 *   worker [-p] ADDRESS NAMESPACE.TABLE delete SNAPSHOT DATA-FILE POSITION...
 *   worker [-p] ADDRESS NAMESPACE.TABLE delete-file SNAPSHOT FILE ROWS DATA-FILE...
 *   worker [-p] ADDRESS NAMESPACE.TABLE report SNAPSHOT|- DIALECT MESSAGE-FILE...
 *   worker ADDRESS - status TRANSACTION
 *
 * FILE is a path of this machine below the table's location; DATA-FILE a location as in the table's
 * metadata. delete-file stages a file of position deletes that names those data files, on a table of
 * format version 2 without partitions. A MESSAGE-FILE holds one commit message as JSON; SNAPSHOT is what the engine read, "-"
 * when nothing is deleted. -p waits for a line on stdin before it commits: the place to stop the
 * server, and see that nothing is lost. Prints "member value" lines. */
#include <frazil.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define LEVELS_MAX 16

static int fail(const struct fz_error *err, const char *what)
{
	fprintf(stderr, "%s: %s %s: %s%s%s\n", what, fz_status_name(err->status), err->name,
		err->message, err->field[0] ? " at " : "", err->field);
	return 1;
}

static void show(const struct fz_outcome *o)
{
	printf("state %s\n", fz_state_name(o->state));
	if (o->has_snapshot)
		printf("snapshot %" PRId64 "\n", o->snapshot_id);
	printf("inserted %" PRId64 "\ndeleted %" PRId64 "\n", o->rows_inserted, o->rows_deleted);
	for (size_t i = 0; i < o->n_files; i++)
		printf("file %s %" PRId64 "\n", o->files[i].path, o->files[i].first_row_id);
	for (size_t i = 0; i < o->n_deletes; i++)
		printf("lost %s %" PRId64 "\n", o->deletes[i].data_file, o->deletes[i].deleted);
}

/* Begin, Stage, then Seal and Commit. A call that ends in FZ_UNKNOWN may simply be made again. */
static int run(struct fz_txn *txn, const struct fz_fragment *fragment, int pause_first)
{
	struct fz_error err;
	const struct fz_outcome *outcome;
	if (fz_stage(txn, fragment, NULL, &err) != FZ_OK)
		return fail(&err, "stage");
	if (pause_first) {
		printf("staged\n");
		fflush(stdout);
		if (getchar() == EOF)
			return 1;
	}
	enum fz_status st;
	do {
		st = fz_commit(txn, 10000, NULL, 0, &outcome, &err);
	} while (st == FZ_UNKNOWN || (st == FZ_OK && outcome->state != FZ_STATE_COMMITTED));
	if (st != FZ_OK)
		return fail(&err, "commit");
	show(outcome);
	return 0;
}

/* The same spelling as the table's location, which the server compares byte by byte. */
static void locate(const struct fz_info *info, const char *file, char *path, size_t size)
{
	const char *scheme = strncmp(info->location, "file://", 7) == 0 ? "file://"
			     : strncmp(info->location, "file:", 5) == 0 ? "file:"
									: "";
	snprintf(path, size, "%s%s", scheme, file);
}

static int append_file(struct fz_txn *txn, char **args, int n, int pause_first)
{
	struct fz_error err;
	const struct fz_info *info;
	struct stat st;
	char path[4096];
	if (n < 2 || stat(args[0], &st)) {
		fprintf(stderr, "append: no such file, or no row count\n");
		return 2;
	}
	if (fz_begin(txn, &info, &err) != FZ_OK)
		return fail(&err, "begin");
	int64_t rows = strtoll(args[1], NULL, 10);
	locate(info, args[0], path, sizeof path);
	struct fz_data_file file = {
		.path = path,
		.spec_id = n > 2 ? (int32_t)strtol(args[2], NULL, 10) : info->spec_id,
		.schema_id = info->schema_id,
		.record_count = rows,
		.new_row_count = rows,
		.file_size = st.st_size,
	};
	struct fz_fragment fragment = {.fragment_id = "0", .data_files = &file, .n_data_files = 1};
	return run(txn, &fragment, pause_first);
}

static int delete_rows(struct fz_txn *txn, char **args, int n, int pause_first)
{
	struct fz_error err;
	if (fz_begin(txn, NULL, &err) != FZ_OK)
		return fail(&err, "begin");
	size_t count = (size_t)(n - 1);
	uint64_t *positions = calloc(count, sizeof *positions);
	if (!positions)
		return 1;
	for (size_t i = 0; i < count; i++)
		positions[i] = strtoull(args[i + 1], NULL, 10);
	struct fz_delete gone = {
		.data_file = args[0], .positions = positions, .n_positions = count};
	struct fz_fragment fragment = {.fragment_id = "0", .deletes = &gone, .n_deletes = 1};
	int code = run(txn, &fragment, pause_first);
	free(positions);
	return code;
}

static int delete_by_file(struct fz_txn *txn, char **args, int n, int pause_first)
{
	struct fz_error err;
	const struct fz_info *info;
	struct stat st;
	char path[4096];
	if (n < 3 || stat(args[0], &st)) {
		fprintf(stderr, "delete-file: no such file, no row count, or no data file\n");
		return 2;
	}
	if (fz_begin(txn, &info, &err) != FZ_OK)
		return fail(&err, "begin");
	locate(info, args[0], path, sizeof path);
	struct fz_delete_file file = {
		.path = path,
		.spec_id = info->spec_id,
		.record_count = strtoll(args[1], NULL, 10),
		.file_size = st.st_size,
		.data_files = (const char *const *)(args + 2),
		.n_data_files = (size_t)n - 2,
	};
	struct fz_fragment fragment = {
		.fragment_id = "0", .delete_files = &file, .n_delete_files = 1};
	return run(txn, &fragment, pause_first);
}

/* The whole file, ended with NUL; NULL when it cannot be read. */
static char *read_file(const char *path, size_t *ret_size)
{
	FILE *f = fopen(path, "rb");
	long size = -1;
	char *text = NULL;
	if (f && fseek(f, 0, SEEK_END) == 0)
		size = ftell(f);
	if (size >= 0 && fseek(f, 0, SEEK_SET) == 0)
		text = malloc((size_t)size + 1);
	if (text && fread(text, 1, (size_t)size, f) != (size_t)size) {
		free(text);
		text = NULL;
	}
	if (text)
		text[size] = 0;
	if (f)
		fclose(f);
	*ret_size = (size_t)size;
	return text;
}

static int dialect_of(const char *name, enum fz_dialect *ret_d)
{
	static const char *const names[] = {"velox", "presto", "trino", "iceberg"};
	for (int i = 0; i < 4; i++)
		if (strcmp(name, names[i]) == 0) {
			*ret_d = (enum fz_dialect)i;
			return 1;
		}
	fprintf(stderr, "report: %s is none of velox, presto, trino, iceberg\n", name);
	return 0;
}

static int report(struct fz_txn *txn, char **args, int n, int pause_first)
{
	struct fz_error err;
	enum fz_dialect dialect;
	size_t count = (size_t)(n - 1);
	int code = 2;
	if (!dialect_of(args[0], &dialect))
		return 2;
	struct fz_task_message *messages = calloc(count, sizeof *messages);
	char **texts = calloc(count, sizeof *texts);
	for (size_t i = 0; messages && texts && i < count; i++) {
		texts[i] = read_file(args[i + 1], &messages[i].json_size);
		messages[i].json = texts[i];
		messages[i].dialect = dialect;
		if (!texts[i]) {
			fprintf(stderr, "report: %s cannot be read\n", args[i + 1]);
			goto out;
		}
	}
	if (messages && texts) {
		struct fz_fragment fragment = {
			.fragment_id = "0", .messages = messages, .n_messages = count};
		code = fz_begin(txn, NULL, &err) == FZ_OK ? run(txn, &fragment, pause_first)
							  : fail(&err, "begin");
	}
out:
	for (size_t i = 0; texts && i < count; i++)
		free(texts[i]);
	free(texts);
	free(messages);
	return code;
}

static int tell(struct fz_client *client, const char *text)
{
	struct fz_error err;
	const struct fz_outcome *outcome;
	uint8_t id[16];
	if (!fz_id_parse(text, id)) {
		fprintf(stderr, "status: %s is no transaction's id\n", text);
		return 2;
	}
	if (fz_status_of(client, id, &outcome, &err) != FZ_OK)
		return fail(&err, "status");
	show(outcome);
	return 0;
}

/* Splits "a.b.t" in place. */
static size_t split(char *name, const char *levels[LEVELS_MAX], const char **ret_table)
{
	size_t n = 0;
	char *dot;
	while (n < LEVELS_MAX && (dot = strchr(name, '.'))) {
		*dot = 0;
		levels[n++] = name;
		name = dot + 1;
	}
	*ret_table = name;
	return n;
}

static int work(struct fz_client *client, char **args, int n, int pause_first)
{
	struct fz_error err;
	const char *levels[LEVELS_MAX], *table;
	int code = 2;
	if (strcmp(args[1], "status") == 0)
		return tell(client, args[2]);
	struct fz_begin begin = {.namespace_levels = levels};
	begin.n_levels = split(args[0], levels, &table);
	begin.table = table;
	int by_file = strcmp(args[1], "delete-file") == 0, reports = strcmp(args[1], "report") == 0;
	int deletes = by_file || strcmp(args[1], "delete") == 0;
	if (reports)
		begin.kind = FZ_ROW_DELTA;
	if (deletes)
		begin.kind = FZ_DELETE;
	if (deletes || (reports && strcmp(args[2], "-") != 0)) {
		begin.has_read_snapshot = true;
		begin.read_snapshot_id = strtoll(args[2], NULL, 10);
	}
	struct fz_txn *txn = fz_txn_new(client, &begin, &err);
	if (!txn)
		return fail(&err, "begin");
	char id[37];
	fz_id_text(fz_txn_id(txn), id);
	printf("transaction %s\n", id);
	fflush(stdout);
	if (by_file)
		code = delete_by_file(txn, args + 3, n - 3, pause_first);
	else if (deletes && n > 4)
		code = delete_rows(txn, args + 3, n - 3, pause_first);
	else if (reports && n > 4)
		code = report(txn, args + 3, n - 3, pause_first);
	else if (!deletes && !reports)
		code = append_file(txn, args + 2, n - 2, pause_first);
	fz_txn_free(txn);
	return code;
}

int main(int argc, char **argv)
{
	struct fz_error err;
	int pause_first = argc > 1 && strcmp(argv[1], "-p") == 0;
	char **args = argv + 1 + pause_first;
	int n = argc - 1 - pause_first;
	if (n < 4) {
		fprintf(stderr,
			"usage: worker [-p] ADDRESS TABLE append|delete|delete-file|report|status ...\n");
		return 2;
	}
	struct fz_options options = {.address = args[0], .client_name = "example-worker"};
	struct fz_client *client = fz_open(&options, &err);
	if (!client)
		return fail(&err, "open");
	int code = work(client, args + 1, n - 1, pause_first);
	fz_close(client);
	return code;
}
