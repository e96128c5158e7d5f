/* Build tool: writes the published Avro schemas and the reference page of the worker protocol from
 * the descriptors of rpc.tbl. usage: gen_rpc DIRECTORY */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "proto/base/buf.h"
#include "proto/rpc/msg.h"

#define OUT_MAX ((size_t)4 << 20)

/* Schemas */

static const char *const avro_names[] = {
	[RPC_TYPE_BOOL] = "boolean",  [RPC_TYPE_INT] = "int",     [RPC_TYPE_LONG] = "long",
	[RPC_TYPE_STRING] = "string", [RPC_TYPE_BYTES] = "bytes",
};

/* Named types are written out where they first stand, afterwards by name. */
struct schema {
	struct buf *out;
	const char *done[128];
	size_t n;
	unsigned depth;
};

static bool first_use(struct schema *s, const char *name)
{
	for (size_t i = 0; i < s->n; i++) {
		if (strcmp(s->done[i], name) == 0)
			return false;
	}
	ASSERT(s->n < ARRAY_SIZE(s->done));
	s->done[s->n++] = name;
	return true;
}

static void newline(struct schema *s)
{
	buf_putc(s->out, '\n');
	for (unsigned i = 0; i < s->depth; i++)
		buf_puts(s->out, "  ");
}

static void schema_record(struct schema *s, const struct rpc_record *record,
			  const struct rpc_message *message);

static void schema_fixed(struct schema *s, const char *name, size_t size)
{
	if (first_use(s, name))
		buf_printf(s->out, "{\"type\": \"fixed\", \"name\": \"%s\", \"size\": %zu}", name,
			   size);
	else
		buf_printf(s->out, "\"%s\"", name);
}

static void schema_enum(struct schema *s, const struct rpc_list *list)
{
	if (!first_use(s, list->name)) {
		buf_printf(s->out, "\"%s\"", list->name);
		return;
	}
	buf_printf(s->out, "{\"type\": \"enum\", \"name\": \"%s\", \"doc\": \"%s\", \"symbols\": [",
		   list->name, list->help);
	for (size_t i = 0; i < list->n; i++)
		buf_printf(s->out, "%s\"%s\"", i ? ", " : "", list->symbols[i].name);
	buf_puts(s->out, "]}");
}

static void schema_type(struct schema *s, const struct rpc_field *f)
{
	switch (f->type) {
	case RPC_TYPE_UUID:
		schema_fixed(s, "Uuid", sizeof(struct uuid));
		break;
	case RPC_TYPE_DIGEST:
		schema_fixed(s, "Digest", sizeof(struct digest));
		break;
	case RPC_TYPE_ENUM:
		schema_enum(s, f->list);
		break;
	case RPC_TYPE_RECORD:
		schema_record(s, f->record, NULL);
		break;
	default:
		buf_printf(s->out, "\"%s\"", avro_names[f->type]);
	}
}

static void schema_field(struct schema *s, const struct rpc_field *f)
{
	buf_printf(s->out, "{\"name\": \"%s\", \"doc\": \"%s\", \"type\": ", f->name, f->help);
	if (f->shape == RPC_ARRAY)
		buf_puts(s->out, "{\"type\": \"array\", \"items\": ");
	else if (f->shape == RPC_OPTIONAL)
		buf_puts(s->out, "[\"null\", ");
	schema_type(s, f);
	if (f->shape == RPC_ARRAY)
		buf_puts(s->out, "}, \"default\": []");
	else if (f->shape == RPC_OPTIONAL)
		buf_puts(s->out, "], \"default\": null");
	else if (f->def && (f->type == RPC_TYPE_STRING || f->type == RPC_TYPE_BYTES ||
			    f->type == RPC_TYPE_ENUM))
		buf_printf(s->out, ", \"default\": \"%s\"", f->def);
	else if (f->def)
		buf_printf(s->out, ", \"default\": %s", f->def);
	buf_putc(s->out, '}');
}

static void schema_record(struct schema *s, const struct rpc_record *record,
			  const struct rpc_message *message)
{
	if (!first_use(s, record->name)) {
		buf_printf(s->out, "\"%s\"", record->name);
		return;
	}
	buf_printf(s->out, "{\"type\": \"record\", \"name\": \"%s\", ", record->name);
	if (s->depth == 0)
		buf_puts(s->out, "\"namespace\": \"frazil\", ");
	if (message) {
		buf_printf(s->out, "\"frazil-type\": %u, \"frazil-version\": %d, ",
			   (unsigned)message->type, RPC_VERSION);
		const struct rpc_message *reply = rpc_message_of(message->reply);
		if (reply)
			buf_printf(s->out, "\"frazil-reply\": \"%s\", ", reply->record->name);
	}
	buf_printf(s->out, "\"doc\": \"%s\", \"fields\": [", record->help);
	s->depth++;
	for (size_t i = 0; i < record->n; i++) {
		newline(s);
		schema_field(s, &record->fields[i]);
		if (i + 1 < record->n)
			buf_putc(s->out, ',');
	}
	s->depth--;
	buf_puts(s->out, "]}");
}

static void schema_of(const struct rpc_record *record, const struct rpc_message *message,
		      struct buf *out)
{
	struct schema s = {.out = out};
	schema_record(&s, record, message);
	buf_putc(out, '\n');
}

/* The page */

static const char intro[] =
	"# Worker protocol\n\n"
	"This page is made from `proto/rpc/rpc.tbl`; do not edit it.\n\n"
	"A client connects by TCP or to the unix socket and sends frames; each answer carries the\n"
	"request id of its request. Requests may be sent without waiting, answers come in any\n"
	"order. The first request must be Hello; later frames carry the version that HelloReply\n"
	"names. Any request may be answered by Error. Repeating a message with the same ids is\n"
	"safe and gets the same answer.\n\n"
	"## Frame\n\n"
	"| Offset | Size | What |\n| --- | --- | --- |\n"
	"| 0 | 4 | Bytes that follow this field: 10 + payload |\n"
	"| 4 | 1 | Message type |\n"
	"| 5 | 1 | Message version |\n"
	"| 6 | 4 | Request id |\n"
	"| 10 | 4 | CRC-32C over bytes 0 to 9 and the payload |\n"
	"| 14 | | Payload: one record in Avro binary encoding |\n\n"
	"Numbers of the header are big-endian. The schemas are `proto/rpc/*.avsc`; a message\n"
	"version names exactly one schema. A server closes the connection after a frame that it\n"
	"cannot trust (length, checksum), and when a client does not read its answers.\n\n"
	"## Capabilities\n\n"
	"Hello and HelloReply list what each side can do; unknown names are ignored.\n\n"
	"- `provenance`: the client states truthfully what became of the rows that it deletes, so\n"
	"  that an explicit DEAD counts even in a transaction that stages data files.\n\n"
	"## JSON mirror\n\n"
	"`POST /frazil/v1/<message>` on the REST port takes and returns the same records as JSON:\n"
	"64-bit numbers as numbers, bytes and digests as base64, UUIDs as text, symbols by name.\n"
	"Unknown members are refused; an absent array is empty; an absent member with a default\n"
	"takes it. Hello is not needed.\n\n";

static void page_type(const struct rpc_field *f, struct buf *out)
{
	static const char *const names[] = {
		[RPC_TYPE_BOOL] = "boolean",
		[RPC_TYPE_INT] = "int",
		[RPC_TYPE_LONG] = "long",
		[RPC_TYPE_STRING] = "string",
		[RPC_TYPE_BYTES] = "bytes",
		[RPC_TYPE_UUID] = "uuid, fixed(16)",
		[RPC_TYPE_DIGEST] = "digest, fixed(32)",
	};
	const char *name = f->type == RPC_TYPE_ENUM     ? f->list->name
			   : f->type == RPC_TYPE_RECORD ? f->record->name
							: names[f->type];
	if (f->shape == RPC_ARRAY)
		buf_printf(out, "array of %s", name);
	else if (f->shape == RPC_OPTIONAL)
		buf_printf(out, "optional %s", name);
	else
		buf_puts(out, name);
}

static void page_record(const struct rpc_record *record, struct buf *out)
{
	buf_printf(out, "%s\n\n| Field | Type | Default | Meaning |\n| --- | --- | --- | --- |\n",
		   record->help);
	for (size_t i = 0; i < record->n; i++) {
		const struct rpc_field *f = &record->fields[i];
		buf_printf(out, "| `%s` | ", f->name);
		page_type(f, out);
		if (f->def)
			buf_printf(out, " | `%s` | %s |\n", *f->def ? f->def : "\"\"", f->help);
		else
			buf_printf(out, " | | %s |\n", f->help);
	}
	buf_putc(out, '\n');
}

static bool is_message(const struct rpc_record *record)
{
	for (const struct rpc_message *m = rpc_messages; m->name; m++) {
		if (m->record == record)
			return true;
	}
	return false;
}

static void page_lists(struct buf *out)
{
	static const struct rpc_list *const lists[] = {
#define LIST_BEGIN(e, Name, help) &rpc_list_##e,
#include "proto/rpc/rpc.tbl"
	};
	buf_puts(out, "## Lists\n\nThe number of a symbol is its place, from 0.\n\n");
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		buf_printf(out, "### %s\n\n%s\n\n", lists[i]->name, lists[i]->help);
		for (size_t k = 0; k < lists[i]->n; k++)
			buf_printf(out, "- `%s`: %s\n", lists[i]->symbols[k].name,
				   lists[i]->symbols[k].help);
		buf_putc(out, '\n');
	}
}

static void page_statuses(struct buf *out)
{
	buf_puts(out,
		 "## Statuses\n\nWhat `code` and `name` of an Error can be.\n\n"
		 "| Code | Name | Retry | Effect | Meaning |\n| --- | --- | --- | --- | --- |\n");
	for (int i = ST_OK + 1; i < ST__COUNT; i++) {
		struct err err = {.st = (enum status)i};
		struct rpc_error e;
		rpc_error_of(&err, &e);
		buf_printf(out, "| %d | `%.*s` | %s | %s | %s |\n", e.code, STRV_ARG(e.name),
			   rpc_symbol_name(&rpc_list_retry, e.retry),
			   rpc_symbol_name(&rpc_list_effect, e.effect), status_info(err.st)->help);
	}
}

static void page(struct buf *out)
{
	static const struct rpc_record *const records[] = {
#define RECORD(rec, Name, help) &rpc_record_##rec,
#include "proto/rpc/rpc.tbl"
	};
	buf_puts(out, intro);
	buf_puts(out, "## Messages\n\n| Type | Message | Answer | |\n| --- | --- | --- | --- |\n");
	for (const struct rpc_message *m = rpc_messages; m->name; m++) {
		const struct rpc_message *reply = rpc_message_of(m->reply);
		buf_printf(out, "| %u | %s | %s | %s |\n", (unsigned)m->type, m->record->name,
			   reply ? reply->record->name : "", m->help);
	}
	buf_putc(out, '\n');
	for (const struct rpc_message *m = rpc_messages; m->name; m++) {
		buf_printf(out, "### %s\n\n", m->record->name);
		page_record(m->record, out);
	}
	buf_puts(out, "## Parts of messages\n\n");
	for (size_t i = 0; i < ARRAY_SIZE(records); i++) {
		if (is_message(records[i]))
			continue;
		buf_printf(out, "### %s\n\n", records[i]->name);
		page_record(records[i], out);
	}
	page_lists(out);
	page_statuses(out);
}

static void write_file(const char *dir, const char *name, const char *ext, struct buf *b)
{
	char path[4096];
	int n = snprintf(path, sizeof path, "%s/%s.%s", dir, name, ext);
	FILE *f = n > 0 && (size_t)n < sizeof path ? fopen(path, "w") : NULL;
	bool ok = f && buf_ok(b) && fwrite(b->p, 1, b->n, f) == b->n;
	if (!f || fclose(f) != 0 || !ok) {
		fprintf(stderr, "gen_rpc: %s/%s.%s: %s\n", dir, name, ext, strerror(errno));
		exit(1);
	}
	buf_clear(b);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: gen_rpc DIRECTORY\n");
		return 2;
	}
	struct buf b;
	buf_init(&b, OUT_MAX);
	for (const struct rpc_message *m = rpc_messages; m->name; m++) {
		schema_of(m->record, m, &b);
		write_file(argv[1], m->name, "avsc", &b);
	}
	/* What a store keeps of a transaction. */
	schema_of(&rpc_record_fragment, NULL, &b);
	write_file(argv[1], "fragment", "avsc", &b);
	page(&b);
	write_file(argv[1], "rpc", "md", &b);
	buf_fini(&b);
	return 0;
}
