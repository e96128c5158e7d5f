#include "daemon/commit/intake/expand.h"

#include "daemon/commit/intake/message.h"

static enum status full(struct err *err)
{
	return err_set(err, ST_TOO_LARGE, "", "the transaction exceeds the memory limit");
}

/* A copy of n items of `size` with room for `more`; false when the arena is full. */
static bool grown(struct arena *a, const void *items, size_t n, size_t more, size_t size,
		  void **ret_items)
{
	size_t all;
	if (!add_size(n, more, &all))
		return false;
	void *p = arena_calloc(a, all ? all : 1, size);
	if (p && n)
		memcpy(p, items, n * size);
	*ret_items = p;
	return p != NULL;
}

/* Every message brings one entry, of one of three arrays. */
static bool make_room(const struct rpc_fragment *in, struct arena *a, struct expand *e,
		      size_t **ret_of[3], struct expand_spec **ret_specs)
{
	size_t n = in->n_messages;
	void *files, *deletes, *delete_files, *specs;
	if (!grown(a, in->data_files, in->n_data_files, n, sizeof *in->data_files, &files) ||
	    !grown(a, in->deletes, in->n_deletes, n, sizeof *in->deletes, &deletes) ||
	    !grown(a, in->delete_files, in->n_delete_files, n, sizeof *in->delete_files,
		   &delete_files) ||
	    !grown(a, NULL, 0, in->n_deletes + n, sizeof **ret_specs, &specs))
		return false;
	for (int i = 0; i < 3; i++)
		if (!(*ret_of[i] = arena_calloc(a, n, sizeof **ret_of[i])))
			return false;
	e->all.data_files = files;
	e->all.deletes = deletes;
	e->all.delete_files = delete_files;
	*ret_specs = specs;
	return true;
}

enum status expand_fragment(const struct metadata *m, const struct rpc_fragment *in,
			    struct arena *a, struct expand *ret_e, struct err *err)
{
	struct expand e = {.all = *in,
			   .own_files = in->n_data_files,
			   .own_deletes = in->n_deletes,
			   .own_delete_files = in->n_delete_files};
	if (in->n_messages == 0) {
		*ret_e = e;
		return ST_OK;
	}
	size_t *of_file, *of_delete, *of_delete_file;
	struct expand_spec *specs;
	if (!make_room(in, a, &e, (size_t * *[3]){&of_file, &of_delete, &of_delete_file}, &specs))
		return full(err);
	for (size_t i = 0; i < in->n_messages; i++) {
		struct message one;
		enum status st = message_read(m, &in->messages[i], a, &one, err);
		if (st != ST_OK) {
			err_prefix(err, "messages[%zu]", i);
			return st;
		}
		switch (one.kind) {
		case MESSAGE_DATA_FILE:
			of_file[e.all.n_data_files - e.own_files] = i;
			e.all.data_files[e.all.n_data_files++] = one.file;
			break;
		case MESSAGE_VECTOR:
			of_delete[e.all.n_deletes - e.own_deletes] = i;
			specs[e.all.n_deletes] = (struct expand_spec){one.has_spec, one.spec_id};
			e.all.deletes[e.all.n_deletes++] = one.vector;
			break;
		case MESSAGE_DELETE_FILE:
			of_delete_file[e.all.n_delete_files - e.own_delete_files] = i;
			e.all.delete_files[e.all.n_delete_files++] = one.delete_file;
			break;
		}
	}
	e.all.messages = NULL;
	e.all.n_messages = 0;
	e.specs = specs;
	e.file_message = of_file;
	e.delete_message = of_delete;
	e.delete_file_message = of_delete_file;
	*ret_e = e;
	return ST_OK;
}

static void blame(const char *name, size_t own, const size_t *message, size_t i, struct err *err)
{
	if (i < own)
		err_prefix(err, "%s[%zu]", name, i);
	else
		err_prefix(err, "messages[%zu]", message[i - own]);
}

void expand_blame_file(const struct expand *e, size_t i, struct err *err)
{
	blame("data_files", e->own_files, e->file_message, i, err);
}

void expand_blame_delete(const struct expand *e, size_t i, struct err *err)
{
	blame("deletes", e->own_deletes, e->delete_message, i, err);
}

void expand_blame_delete_file(const struct expand *e, size_t i, struct err *err)
{
	blame("delete_files", e->own_delete_files, e->delete_file_message, i, err);
}
