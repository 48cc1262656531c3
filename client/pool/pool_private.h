/* Shared by the files of the pool. */
#ifndef CLIENT_POOL_POOL_PRIVATE_H
#define CLIENT_POOL_POOL_PRIVATE_H

#include "client/pool/pool.h"

#define IN_FLIGHT_DEFAULT 256
#define HOMES 4096     /* prefixes that are not where their hash says, remembered at most */
#define HOMES_BESIDE 4 /* places of one prefix */

struct named_pool {
    char name[POOL_NAME_BYTES];
    size_t count;
    int64_t usable_us; /* when one of them was last seen to be usable */
    size_t pins;
    char model[PROBE_NAME_BYTES]; /* "": not defined */
    char tokenizer_sha256[65];
    char defined_by[POOL_NAME_BYTES];
};

/* The place of a prefix that had to move. */
struct home {
    uint64_t prefix;
    struct engine *engine; /* NULL: a free place */
    int64_t used_us;
};

struct pool {
    struct engine *engines[POOL_ENGINES_MAX];
    size_t count;
    struct named_pool **named;
    size_t named_count;
    struct engine **removed;
    size_t removed_count;
    struct pool_rules rules;
    uint64_t picks;
    bool wants_probe; /* for a trial */
    struct home homes[HOMES];
};

/* pool.c */
uint64_t hash_mix(uint64_t value);

/* pool/health.c: the effect of a request or a probe on an engine's state. */
void engine_set_state(struct engine *engine, enum engine_state state, int64_t now_us, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void engine_gave_sample(struct engine *engine, int64_t now_us);
void engine_probe_ended(struct engine *engine, const struct sample_error *error, int64_t now_us);
/* A pause that is over. */
void engine_refresh(struct engine *engine, int64_t now_us);
/* It can get work, perhaps single requests. */
bool engine_is_usable(const struct engine *engine);
/* It gets no work until a probe has succeeded. */
bool engine_is_lost(const struct engine *engine);
/* It may get samples that failed at other engines. */
bool engine_is_sound(const struct engine *engine);
int64_t pool_pause_us(unsigned failures);

/* pool/agree.c: after a sound probe. False: it does not belong into its pool, ret_why says why. */
bool pool_agrees(struct pool *pool, struct engine *engine, char ret_why[SAMPLE_MESSAGE_BYTES]);

/* pool/probe.c */
void engine_probe_finish(struct engine *engine);

/* pool/limit.c: the limit that is learned. */
void engine_limit_init(struct engine *engine);
void engine_limit_slots(struct engine *engine, size_t slots);
void engine_limit_sample(struct engine *engine, const struct pool_result *result, int64_t now_us);
void engine_limit_overloaded(struct engine *engine);

/* pool/usual.c */
void engine_usual_sample(struct engine *engine, int64_t took_us, size_t tokens);
/* Our own clock ended it, before the engine had its usual time. */
bool engine_was_hurried(const struct engine *engine, const struct pool_result *result);
/* The sample that is to be sent leaves the engine its usual time. */
bool engine_has_time(const struct engine *engine, const struct pool_want *want);

/* pool/serve.c. The pool's, and can be asked for all that is wanted, as far as is known. */
bool engine_suits(const struct engine *engine, const struct pool_want *want);
/* No engine of the pool can, whatever is waited for. ret_wait: a list of models is older than the wish and is asked for
 * once more. */
bool pool_unsuited(struct pool *pool, const struct pool_want *want, int64_t now_us, bool *ret_wait);

/* pool/stats.c */
void stats_note(struct engine *engine, const struct pool_result *result, int64_t now_us);

#endif
