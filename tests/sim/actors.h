/* Clients of the daemon: workers, REST clients, a creator and dropper of tables, an operator. */
#ifndef TESTS_SIM_ACTORS_H
#define TESTS_SIM_ACTORS_H

#include "tests/sim/world.h"

struct job;

enum req_use {
	REQ_STEP,  /* the answer moves the job on */
	REQ_ECHO,  /* a message repeated out of turn: whatever comes back must agree */
	REQ_PROBE, /* a wrong token: must be refused */
	REQ_REST,
	REQ_TABLE,
	REQ_RESUME,
	REQ_HALT,
	REQ_BEAT,
};

struct req {
	enum req_use use;
	enum ev_kind kind;
	struct job *job;
	void *arg;
};

struct slot_table {
	struct strv name;
	bool made; /* a create was confirmed */
	int generation;
	bool busy; /* a create or drop is under way */
	struct metadata *metadata;
	struct strv last; /* metadata file that a drop left; p NULL: none */
};

struct actors {
	struct req *reqs;
	size_t n_reqs, cap_reqs;
	struct slot_table tables[TABLES_MAX];
	struct job **jobs;
	size_t n_jobs, cap_jobs;
	struct arena texts;
	int files; /* numbers names */
	int open_jobs;
};

/* Sends a request; the number of its entry in reqs. */
uint64_t actors_send(struct world *w, enum req_use use, struct job *job, void *arg,
		     struct event *ev);
/* The live table of a slot; false when there is none now. */
bool actors_table(struct world *w, int slot, struct table_id *ret_id, int64_t *ret_incarnation);
/* A new data file, written to the store. */
struct strv actors_data_file(struct world *w, struct strv location, int64_t size);

/* Of a new table, by the run's sizes; owned by the caller. */
struct metadata *actors_metadata(struct world *w, struct strv location);

void workers_start(struct world *w);
void workers_reply(struct world *w, struct req *r, uint64_t id, const struct reply *reply);
void rest_start(struct world *w);
void rest_reply(struct world *w, struct req *r, const struct reply *reply);

#endif
