/* Planted errors, for proving that the simulator finds them. Without FRAZIL_MUTANT this is nothing:
 * the condition is a constant false. */
#ifndef DAEMON_COMMIT_MUTANT_H
#define DAEMON_COMMIT_MUTANT_H

#ifdef FRAZIL_MUTANT
#include <stdbool.h>
bool mutant_is(const char *name);
#define MUTANT(name) mutant_is(name)
#else
#define MUTANT(name) false
#endif

#endif
