#include "clients/c/fz_schemas.h"

#include <string.h>

static const struct {
	int type, version;
	const char *name, *reply, *json;
} rows[] = {
#define FZ_AVSC(type, version, name, reply, json) {type, version, name, reply, json},
#include "gen/fz_avsc.h"
#undef FZ_AVSC
};

static const char *row_json(enum fz_msg msg)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].type == (int)msg && rows[i].version == FZ_PROTOCOL_VERSION)
			return rows[i].json;
	return NULL;
}

const char *fz_schemas_name(int msg)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].type == msg)
			return rows[i].name;
	return NULL;
}

enum fz_msg fz_schemas_reply(enum fz_msg msg)
{
	const char *reply = "";
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].type == (int)msg)
			reply = rows[i].reply;
	for (size_t i = 0; *reply && i < ARRAY_SIZE(rows); i++)
		if (strcmp(rows[i].name, reply) == 0)
			return (enum fz_msg)rows[i].type;
	return (enum fz_msg)0;
}

void fz_schemas_init(struct fz_schemas *s)
{
	memset(s, 0, sizeof *s);
}

void fz_schemas_fini(struct fz_schemas *s)
{
	for (size_t i = 0; i < FZ_MSG__COUNT; i++) {
		if (s->of[i].generic)
			avro_value_iface_decref(s->of[i].generic);
		if (s->of[i].schema)
			avro_schema_decref(s->of[i].schema);
	}
	memset(s, 0, sizeof *s);
}

const struct fz_schema *fz_schemas_get(struct fz_schemas *s, enum fz_msg msg)
{
	struct fz_schema *one = &s->of[msg];
	if (one->generic)
		return one;
	const char *json = row_json(msg);
	if (!json)
		return NULL;
	avro_schema_t schema;
	if (avro_schema_from_json_length(json, strlen(json), &schema))
		return NULL;
	avro_value_iface_t *generic = avro_generic_class_from_schema(schema);
	if (!generic) {
		avro_schema_decref(schema);
		return NULL;
	}
	*one = (struct fz_schema){fz_schemas_name((int)msg), fz_schemas_reply(msg), schema,
				  generic};
	return one;
}
