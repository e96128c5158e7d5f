/* Absent values and reserved ids of the table format. A missing number is always one of these
 * names, never a bare −1 or 0: 0 is a valid sequence number and −1 is what some documents write
 * for "none", so both stand in files and neither may mean "absent" in memory. */
#ifndef PROTO_ICEBERG_IDS_H
#define PROTO_ICEBERG_IDS_H

#include "proto/base/base.h"

#define SNAPSHOT_NONE INT64_MIN     /* no snapshot id: no parent, no current snapshot */
#define SEQ_NONE INT64_MIN          /* no sequence number: to be inherited */
#define SEQ_UNKNOWN (INT64_MIN + 1) /* file sequence number that an old writer did not record */
#define ROW_ID_NONE INT64_MIN       /* no first-row-id */
#define OFFSET_NONE INT64_MIN       /* no content offset or content size */
#define SORT_ORDER_NONE INT32_MIN   /* no sort-order-id; 0 is the unsorted order */
#define SCHEMA_ID_NONE INT32_MIN    /* no schema-id */
#define SPEC_ID_NONE INT32_MIN      /* no partition-spec-id */

/* Field ids of metadata columns ("Reserved Field IDs" of the table spec). */
#define FIELD_ID_FILE INT32_C(2147483646)
#define FIELD_ID_POS INT32_C(2147483645)
#define FIELD_ID_DELETED INT32_C(2147483644)
#define FIELD_ID_SPEC_ID INT32_C(2147483643)
#define FIELD_ID_PARTITION INT32_C(2147483642)
#define FIELD_ID_DELETE_FILE_PATH INT32_C(2147483546)
#define FIELD_ID_DELETE_POS INT32_C(2147483545)
#define FIELD_ID_DELETE_ROW INT32_C(2147483544)
#define FIELD_ID_ROW_ID INT32_C(2147483540)
#define FIELD_ID_LAST_UPDATED_SEQ INT32_C(2147483539)

/* Ids of partition fields start here; last-partition-id of a table without any is one less. */
#define PARTITION_FIELD_ID_FIRST 1000

#endif
