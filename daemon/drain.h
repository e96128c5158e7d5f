/* The time limit of a stop. What each step does to finish its work is the step's own matter. */
#ifndef DAEMON_DRAIN_H
#define DAEMON_DRAIN_H

struct app;

/* Starts the clock of drain.timeout-ms. */
void drain_begin(struct app *app);
/* All has stopped. */
void drain_end(struct app *app);
/* Ends the process now, exit code 3. Allowed at any moment: the durable state decides what
 * happened, exactly as after a crash. */
__attribute__((noreturn)) void drain_force(struct app *app, const char *why);

#endif
