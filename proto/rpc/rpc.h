/* The worker protocol's records as plain structs, and the tables that describe them. Everything is
 * made from rpc.tbl by the preprocessor: `struct rpc_<record>`, `enum rpc_<list>`, RPC_MSG_<NAME>.
 * Pointers inside a decoded record point into the arena it was decoded with. */
#ifndef PROTO_RPC_RPC_H
#define PROTO_RPC_RPC_H

#include "proto/base/digest.h"
#include "proto/base/err.h"
#include "proto/base/uuid.h"

/* The only protocol version; a version names exactly one schema for each message. Hello and its answer
 * are always of this one. */
#define RPC_VERSION 1

/* Seal's expected totals when the client does not state them. */
#define RPC_EXPECTED_NONE INT64_C(-1)

#define LIST_BEGIN(e, Name, help)                                                                  \
	enum rpc_##e                                                                               \
	{
#define SYMBOL(E, e, NAME, help) RPC_##E##_##NAME,
#define LIST_END(e)                                                                                \
	}                                                                                          \
	;
#include "proto/rpc/rpc.tbl"

/* C types of the scalar types. */
#define RPC_C_BOOL bool
#define RPC_C_INT int32_t
#define RPC_C_LONG int64_t
#define RPC_C_STRING struct strv
#define RPC_C_BYTES struct bytes
#define RPC_C_UUID struct uuid
#define RPC_C_DIGEST struct digest

#define RECORD(rec, Name, help) struct rpc_##rec {
#define FIELD(rec, TYPE, name, help) RPC_C_##TYPE name;
#define OPT(rec, TYPE, name, help)                                                                 \
	RPC_C_##TYPE name;                                                                         \
	bool has_##name;
#define MANY(rec, TYPE, name, help)                                                                \
	RPC_C_##TYPE *name;                                                                        \
	size_t n_##name;
#define ENUM(rec, e, name, help) enum rpc_##e name;
#define SUB(rec, sub, name, help) struct rpc_##sub name;
#define OPT_SUB(rec, sub, name, help) struct rpc_##sub *name;
#define MANY_SUB(rec, sub, name, help)                                                             \
	struct rpc_##sub *name;                                                                    \
	size_t n_##name;
#define END(rec, Name)                                                                             \
	}                                                                                          \
	;
#include "proto/rpc/rpc.tbl"

/* Type numbers of messages, as in a frame's header. */
enum rpc_msg_type {
	RPC_MSG_NONE = 0, /* no message; an answer has no reply */
#define MESSAGE(number, NAME, rec, REPLY, help) RPC_MSG_##NAME = (number),
#include "proto/rpc/rpc.tbl"
};

enum rpc_type {
	RPC_TYPE_BOOL,
	RPC_TYPE_INT,
	RPC_TYPE_LONG,
	RPC_TYPE_STRING,
	RPC_TYPE_BYTES,
	RPC_TYPE_UUID,
	RPC_TYPE_DIGEST,
	RPC_TYPE_ENUM,
	RPC_TYPE_RECORD,
};

enum rpc_shape { RPC_ONE, RPC_OPTIONAL, RPC_ARRAY };

struct rpc_symbol {
	const char *name;
	const char *help;
};

struct rpc_list {
	const char *name; /* Avro name, as "TxnState" */
	const char *help;
	const struct rpc_symbol *symbols;
	size_t n;
};

struct rpc_record;

struct rpc_field {
	const char *name;
	enum rpc_type type;
	enum rpc_shape shape;
	size_t offset;
	size_t aux;                      /* offset of has_name or n_name; 0 when there is none */
	const struct rpc_list *list;     /* of an enum */
	const struct rpc_record *record; /* of a record */
	const char *def; /* text of the JSON mirror's default; NULL when the member is required */
	const char *help;
};

struct rpc_record {
	const char *name; /* Avro name, as "BeginReply" */
	const char *help;
	size_t size;
	const struct rpc_field *fields;
	size_t n;
};

struct rpc_message {
	enum rpc_msg_type type;
	enum rpc_msg_type reply; /* RPC_MSG_NONE for an answer */
	const char *name;        /* lower case, as "commit_once": the path of the JSON mirror */
	const struct rpc_record *record;
	const char *help;
};

/* The messages in order of their numbers; ends with an entry of type RPC_MSG_NONE. */
extern const struct rpc_message rpc_messages[];
/* NULL when no message has this number or name. */
const struct rpc_message *rpc_message_of(unsigned type);
const struct rpc_message *rpc_message_named(struct strv name);

/* rpc_list_<list> and rpc_record_<record>. */
#define LIST_BEGIN(e, Name, help) extern const struct rpc_list rpc_list_##e;
#define RECORD(rec, Name, help) extern const struct rpc_record rpc_record_##rec;
#include "proto/rpc/rpc.tbl"

/* Name of a symbol, static storage; asserts that the value is one of the list:
 * rpc_symbol_name(&rpc_list_state, outcome.state). */
const char *rpc_symbol_name(const struct rpc_list *list, unsigned value);

/* Bytes of one value, or of one item of an array, in memory. */
size_t rpc_value_size(const struct rpc_field *f);

/* Fills an Error record from an error; text is borrowed from err and must outlive the record. */
void rpc_error_of(const struct err *err, struct rpc_error *ret_e);

#endif
