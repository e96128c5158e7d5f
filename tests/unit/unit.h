/* One unit program per source file: defines UNIT_MAIN(suite) over check's Suite. */
#ifndef TESTS_UNIT_UNIT_H
#define TESTS_UNIT_UNIT_H

#include <check.h>
#include <stdlib.h>

#include "proto/base/err.h"

/* Fails with the error record's text when a call did not answer ST_OK. */
#define UNIT_OK(call, err)                                                                         \
	do {                                                                                       \
		enum status unit_st_ = (call);                                                     \
		ck_assert_msg(unit_st_ == ST_OK, "%s: %s field=%s msg=%s detail=%s", #call,        \
			      status_info(unit_st_)->name, (err)->field, (err)->msg,               \
			      (err)->detail);                                                      \
	} while (0)
#define UNIT_STATUS(call, want)                                                                    \
	do {                                                                                       \
		enum status unit_st_ = (call);                                                     \
		ck_assert_msg(unit_st_ == (want), "%s: got %s, want %s", #call,                    \
			      status_info(unit_st_)->name, status_info(want)->name);               \
	} while (0)

#define UNIT_MAIN(suite_fn)                                                                        \
	int main(void)                                                                             \
	{                                                                                          \
		SRunner *r = srunner_create(suite_fn());                                           \
		srunner_run_all(r, CK_NORMAL);                                                     \
		int failed = srunner_ntests_failed(r);                                             \
		srunner_free(r);                                                                   \
		return failed ? EXIT_FAILURE : EXIT_SUCCESS;                                       \
	}

#endif
