/* Walks Avro binary data along its schema without keeping anything. avro-c allocates as much as a
 * length says before it looks whether the data is there, and never frees that text or those bytes
 * when they are cut (seen with 1.11.1); only data that passed here reaches it. */
#ifndef CLIENTS_C_FZ_SCAN_H
#define CLIENTS_C_FZ_SCAN_H

#include <avro.h>

#include "proto/base/strv.h"

/* true when `data` is exactly one value of the schema: lengths inside the data, numbers of at most
 * 10 bytes and in range, symbols and branches known, text UTF-8 without NUL. *ret_items counts the
 * elements of all arrays. `why` is static text, set on failure. */
MUST_CHECK bool fz_scan(avro_schema_t schema, struct bytes data, size_t *ret_items,
			const char **ret_why);

#endif
