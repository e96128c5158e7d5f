/* Reads the folders of tables that are older than PostgreSQL's list of places, one after another, in the
 * background. Until all are known the cleaner leaves alone what may lie in
 * theirs. */
#ifndef DAEMON_REST_H_UNPLACED_H
#define DAEMON_REST_H_UNPLACED_H

#include "daemon/app.h"

/* After h_rest_step, whose cache it reads through. */
extern const struct app_step h_unplaced_step;

#endif
