#include "store/pg/pg_tables.h"

#include "store/pg/pg_batch.h"
#include "store/pg/pg_create.h"
#include "store/pg/pg_idem.h"

enum status pg_tables_check(const struct sql_effect *fx, struct err *err)
{
	const struct sql_tables_commit *c = fx->u.tables;
	enum status st = ST_OK;
	for (size_t i = 0; st == ST_OK && i < c->n_parts; i++) {
		struct sql_effect one = {.kind = SQL_PUBLISH, .u.publish = c->parts[i]};
		if (c->parts[i]->row.batch_no != 0)
			st = pg_batch_check(&one, err);
	}
	for (size_t i = 0; st == ST_OK && i < c->n_creates; i++) {
		struct sql_effect one = {.kind = SQL_TABLE_CREATE, .u.create = c->creates[i]};
		st = pg_create_check(&one, err);
	}
	return st;
}

/* One array of a number of each item. */
#define NUMBERS(array, n, member)                                                                  \
	do {                                                                                       \
		pgargs_array(a, PGARGS_INT8);                                                      \
		for (size_t i = 0; i < (n); i++)                                                   \
			pgargs_put_i64(a, (array)[i]->member);                                     \
		pgargs_end(a);                                                                     \
	} while (0)
#define UUIDS(array, n, member)                                                                    \
	do {                                                                                       \
		pgargs_array(a, PGARGS_UUID);                                                      \
		for (size_t i = 0; i < (n); i++)                                                   \
			pgargs_put_uuid(a, (array)[i]->member.u);                                  \
		pgargs_end(a);                                                                     \
	} while (0)
#define TEXTS(array, n, member)                                                                    \
	do {                                                                                       \
		pgargs_array(a, PGARGS_TEXT);                                                      \
		for (size_t i = 0; i < (n); i++)                                                   \
			pgargs_put_text(a, (array)[i]->member);                                    \
		pgargs_end(a);                                                                     \
	} while (0)

/* Where each item's share of an array for all begins, and where the last one ends. */
struct ends {
	struct pgargs *a;
	int32_t at;
};

static void ends_begin(struct ends *e, struct pgargs *a)
{
	*e = (struct ends){a, 0};
	pgargs_array(a, PGARGS_INT4);
	pgargs_put_i32(a, 0);
}

static void ends_put(struct ends *e, size_t n)
{
	e->at += (int32_t)n; /* texts and numbers of a statement of PGARGS_BYTES_MAX */
	pgargs_put_i32(e->a, e->at);
}

static void put_levels(const struct sql_tables_commit *c, struct pgargs *a)
{
	struct ends e;
	ends_begin(&e, a);
	for (size_t i = 0; i < c->n_creates; i++)
		ends_put(&e, c->creates[i]->n_levels);
	pgargs_end(a);
	pgargs_array(a, PGARGS_TEXT);
	for (size_t i = 0; i < c->n_creates; i++)
		for (size_t k = 0; k < c->creates[i]->n_levels; k++)
			pgargs_put_text(a, c->creates[i]->levels[k]);
	pgargs_end(a);
}

static const struct batch_row *row_of(const struct sql_tables_commit *c, size_t i)
{
	return i < c->n_parts ? &c->parts[i]->row : &c->creates[i - c->n_parts]->row;
}

static void put_snapshots(const struct sql_tables_commit *c, struct pgargs *a)
{
	struct ends e;
	ends_begin(&e, a);
	for (size_t i = 0; i < c->n_parts + c->n_creates; i++)
		ends_put(&e, row_of(c, i)->n_snapshots);
	pgargs_end(a);
	pgargs_array(a, PGARGS_INT8);
	for (size_t i = 0; i < c->n_parts + c->n_creates; i++)
		for (size_t k = 0; k < row_of(c, i)->n_snapshots; k++)
			pgargs_put_i64(a, row_of(c, i)->snapshots[k]);
	pgargs_end(a);
}

static const struct strv *objects_of(const struct sql_tables_commit *c, size_t i, size_t *ret_n)
{
	if (i < c->n_parts) {
		*ret_n = c->parts[i]->n_objects;
		return c->parts[i]->objects;
	}
	*ret_n = c->creates[i - c->n_parts]->n_objects;
	return c->creates[i - c->n_parts]->objects;
}

static void put_objects(const struct sql_tables_commit *c, struct pgargs *a)
{
	struct ends e;
	size_t n;
	ends_begin(&e, a);
	for (size_t i = 0; i < c->n_parts + c->n_creates; i++) {
		(void)objects_of(c, i, &n);
		ends_put(&e, n);
	}
	pgargs_end(a);
	pgargs_array(a, PGARGS_TEXT);
	for (size_t i = 0; i < c->n_parts + c->n_creates; i++) {
		const struct strv *v = objects_of(c, i, &n);
		for (size_t k = 0; k < n; k++)
			pgargs_put_text(a, v[k]);
	}
	pgargs_end(a);
}

static void put_garbage(const struct sql_tables_commit *c, struct pgargs *a)
{
	struct ends e;
	ends_begin(&e, a);
	for (size_t i = 0; i < c->n_parts; i++)
		ends_put(&e, c->parts[i]->n_garbage);
	pgargs_end(a);
	pgargs_array(a, PGARGS_TEXT);
	for (size_t i = 0; i < c->n_parts; i++)
		for (size_t k = 0; k < c->parts[i]->n_garbage; k++)
			pgargs_put_text(a, c->parts[i]->garbage[k]);
	pgargs_end(a);
}

/* Only of those that are written, each place beside its table. */
static void put_places(const struct sql_tables_commit *c, struct pgargs *a)
{
	for (int paths = 0; paths < 2; paths++) {
		pgargs_array(a, paths ? PGARGS_TEXT : PGARGS_UUID);
		for (size_t i = 0; i < c->n_parts + c->n_creates; i++) {
			const struct sql_publish *p = i < c->n_parts ? c->parts[i] : NULL;
			const struct sql_table_create *t = p ? NULL : c->creates[i - c->n_parts];
			size_t n = p ? p->n_places : t->n_places;
			for (size_t k = 0; k < n; k++)
				if (paths)
					pgargs_put_text(a, p ? p->places[k] : t->places[k]);
				else
					pgargs_put_uuid(a, row_of(c, i)->table.u);
		}
		pgargs_end(a);
	}
}

void pg_tables_args(const struct sql_effect *fx, struct pgargs *a)
{
	const struct sql_tables_commit *c = fx->u.tables;
	const struct uuid nobody = {0};
	UUIDS(c->parts, c->n_parts, row.table);
	NUMBERS(c->parts, c->n_parts, row.incarnation);
	NUMBERS(c->parts, c->n_parts, row.epoch);
	NUMBERS(c->parts, c->n_parts, row.base_version);
	NUMBERS(c->parts, c->n_parts, row.batch_no);
	UUIDS(c->parts, c->n_parts, row.batch);
	NUMBERS(c->parts, c->n_parts, row.first_row_id);
	NUMBERS(c->parts, c->n_parts, row.added_rows);
	TEXTS(c->parts, c->n_parts, row.metadata_location);
	NUMBERS(c->parts, c->n_parts, last_seq);
	NUMBERS(c->parts, c->n_parts, next_row_id);
	TEXTS(c->creates, c->n_creates, warehouse);
	put_levels(c, a);
	TEXTS(c->creates, c->n_creates, name);
	UUIDS(c->creates, c->n_creates, table);
	TEXTS(c->creates, c->n_creates, location);
	pgargs_uuid(a, c->n_creates ? c->creates[0]->holder.u : nobody);
	UUIDS(c->creates, c->n_creates, row.batch);
	NUMBERS(c->creates, c->n_creates, row.base_version);
	TEXTS(c->creates, c->n_creates, row.metadata_location);
	NUMBERS(c->creates, c->n_creates, last_seq);
	NUMBERS(c->creates, c->n_creates, next_row_id);
	put_snapshots(c, a);
	put_objects(c, a);
	put_garbage(c, a);
	pg_idem_args(a, &c->idem);
	put_places(c, a);
}

bool pg_tables_result(const struct sql_effect *fx, const struct pgres *res, struct sql_result *ret)
{
	const struct sql_tables_commit *c = fx->u.tables;
	struct pgrow r = {.res = res};
	ret->pg_ms = pgrow_i64(&r, 0);
	int32_t item = pgrow_i32(&r, 1), v = pgrow_i32(&r, 2);
	if (r.bad || item < 0 || (size_t)item > c->n_parts + c->n_creates)
		return false;
	ret->verdict = item == 0 ? SQL_APPLIED : SQL_REFUSED;
	if (item == 0)
		return true;
	ret->at = (size_t)item - 1;
	if (ret->at < c->n_parts)
		return v == 0;
	if (v <= SQL_CREATE_EXISTS || v > SQL_CREATE_CONDEMNED)
		return false;
	ret->created = (enum sql_create_verdict)v;
	return true;
}
