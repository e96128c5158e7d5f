#include "proto/rpc/rpc.h"

/* Enums are read and written through their descriptor as 32-bit numbers. */
_Static_assert(sizeof(enum rpc_state) == sizeof(uint32_t), "enums have the size of an int");

#define LIST_BEGIN(e, Name, help) static const struct rpc_symbol symbols_##e[] = {
#define SYMBOL(E, e, NAME, help) {#NAME, help},
#define LIST_END(e)                                                                                \
	}                                                                                          \
	;
#include "proto/rpc/rpc.tbl"

#define LIST_BEGIN(e, Name, help)                                                                  \
	const struct rpc_list rpc_list_##e = {#Name, help, symbols_##e, ARRAY_SIZE(symbols_##e)};
#include "proto/rpc/rpc.tbl"

/* A row: name, type, shape, offset, aux, list, record, default, help. */
#define ROW(...) {__VA_ARGS__},
#define AT(rec, name) offsetof(struct rpc_##rec, name)

#define RECORD(rec, Name, help) static const struct rpc_field fields_##rec[] = {
#define FIELD(rec, TYPE, name, help) FIELD_OR(rec, TYPE, name, NULL, help)
#define FIELD_OR(rec, TYPE, name, def, help)                                                       \
	ROW(#name, RPC_TYPE_##TYPE, RPC_ONE, AT(rec, name), 0, NULL, NULL, def, help)
#define OPT(rec, TYPE, name, help)                                                                 \
	ROW(#name, RPC_TYPE_##TYPE, RPC_OPTIONAL, AT(rec, name), AT(rec, has_##name), NULL, NULL,  \
	    NULL, help)
#define MANY(rec, TYPE, name, help)                                                                \
	ROW(#name, RPC_TYPE_##TYPE, RPC_ARRAY, AT(rec, name), AT(rec, n_##name), NULL, NULL, NULL, \
	    help)
#define ENUM(rec, e, name, help) ENUM_OR(rec, e, name, NULL, help)
#define ENUM_OR(rec, e, name, def, help)                                                           \
	ROW(#name, RPC_TYPE_ENUM, RPC_ONE, AT(rec, name), 0, &rpc_list_##e, NULL, def, help)
#define SUB(rec, sub, name, help)                                                                  \
	ROW(#name, RPC_TYPE_RECORD, RPC_ONE, AT(rec, name), 0, NULL, &rpc_record_##sub, NULL, help)
#define OPT_SUB(rec, sub, name, help)                                                              \
	ROW(#name, RPC_TYPE_RECORD, RPC_OPTIONAL, AT(rec, name), 0, NULL, &rpc_record_##sub, NULL, \
	    help)
#define MANY_SUB(rec, sub, name, help)                                                             \
	ROW(#name, RPC_TYPE_RECORD, RPC_ARRAY, AT(rec, name), AT(rec, n_##name), NULL,             \
	    &rpc_record_##sub, NULL, help)
#define END(rec, Name)                                                                             \
	}                                                                                          \
	;
#include "proto/rpc/rpc.tbl"

#define RECORD(rec, Name, help)                                                                    \
	const struct rpc_record rpc_record_##rec = {#Name, help, sizeof(struct rpc_##rec),         \
						    fields_##rec, ARRAY_SIZE(fields_##rec)};
#include "proto/rpc/rpc.tbl"

/* The path of a message in the JSON mirror is the name of its record. */
const struct rpc_message rpc_messages[] = {
#define MESSAGE(number, NAME, rec, REPLY, help)                                                    \
	{RPC_MSG_##NAME, RPC_MSG_##REPLY, #rec, &rpc_record_##rec, help},
#include "proto/rpc/rpc.tbl"
	{RPC_MSG_NONE, RPC_MSG_NONE, NULL, NULL, NULL},
};

const struct rpc_message *rpc_message_of(unsigned type)
{
	for (const struct rpc_message *m = rpc_messages; m->name; m++) {
		if ((unsigned)m->type == type)
			return m;
	}
	return NULL;
}

const struct rpc_message *rpc_message_named(struct strv name)
{
	for (const struct rpc_message *m = rpc_messages; m->name; m++) {
		if (strv_eq(strv_of(m->name), name))
			return m;
	}
	return NULL;
}

const char *rpc_symbol_name(const struct rpc_list *list, unsigned value)
{
	ASSERT(value < list->n);
	return list->symbols[value].name;
}

size_t rpc_value_size(const struct rpc_field *f)
{
	switch (f->type) {
	case RPC_TYPE_BOOL:
		return sizeof(bool);
	case RPC_TYPE_INT:
		return sizeof(int32_t);
	case RPC_TYPE_LONG:
		return sizeof(int64_t);
	case RPC_TYPE_STRING:
		return sizeof(struct strv);
	case RPC_TYPE_BYTES:
		return sizeof(struct bytes);
	case RPC_TYPE_UUID:
		return sizeof(struct uuid);
	case RPC_TYPE_DIGEST:
		return sizeof(struct digest);
	case RPC_TYPE_ENUM:
		return sizeof(uint32_t);
	case RPC_TYPE_RECORD:
		return f->record->size;
	}
	ASSERT(false);
	return 0;
}

void rpc_error_of(const struct err *err, struct rpc_error *ret_e)
{
	const struct status_info *info = status_info(err->st);
	enum rpc_retry retry = RPC_RETRY_NONE;
	switch (info->retry) {
	case RETRY_NONE:
		retry = RPC_RETRY_NONE;
		break;
	case RETRY_SAME:
		retry = RPC_RETRY_SAME;
		break;
	case RETRY_REFRESH:
		retry = RPC_RETRY_REFRESH;
		break;
	case RETRY_LATER:
		retry = RPC_RETRY_LATER;
		break;
	}
	*ret_e = (struct rpc_error){
		.code = info->rpc_code,
		.name = strv_of(info->name),
		.field = strv_of(err->field),
		.message = strv_of(err->msg),
		.retry = retry,
		.effect = info->effect == EFFECT_UNKNOWN ? RPC_EFFECT_UNKNOWN : RPC_EFFECT_CLEAN,
	};
}
