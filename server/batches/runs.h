/* runs: the state of each run that has live batches or an open weight update. Loop thread only. */
#ifndef SERVER_BATCHES_RUNS_H
#define SERVER_BATCHES_RUNS_H

#include "server/base/text.h"
#include "server/store/store.h"

#include <uthash.h>

struct batches;
struct weight_update;

struct run_state {
    char *name;
    int64_t revision;             /* the current one; -1: none declared */
    int64_t incarnation;          /* how often the trainer went back */
    size_t batches;               /* live ones */
    struct weight_update *update; /* stops its dispatch; NULL: none is open */
    int64_t resumed_us;           /* when the last one ended */
    UT_hash_handle hh;
};

struct run_state *runs_find(const struct batches *batches, struct text name); /* NULL: it is not known */
struct run_state *runs_find_or_add(struct batches *batches, struct text name);
/* A run without a live batch and without an open update is forgotten, unless unfinished batches are still being read
 * back: another one may come, which was read before the trainer declared what is known here. */
void runs_forget_if_idle(struct batches *batches, struct run_state *run);
/* A declaration of the trainer. Kept for a run that is known, and for any run while unfinished batches are still being
 * read back. */
void runs_declared(struct batches *batches, const struct store_declare_policy *declared);
/* All unfinished batches are back: new ones may come, and idle runs are forgotten. */
void runs_resumed(struct batches *batches);
void runs_finish(struct batches *batches);

#endif
