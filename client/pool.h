/* pool: the engines, what is known about them, and which one gets the next sample. Bookkeeping only: no I/O, no clock.
 *
 * An engine is UNKNOWN until a probe has found out what it is, UP, COOLING (it said, or we think, that it wants a
 * pause), or DOWN (unreachable or broken; only a probe brings it back). An engine that is down at the start is no
 * error: it is probed again, with pauses that double up to POOL_PAUSE_MAX_US.
 *
 * One that answers every probe and no sample (another model, another path, a proxy's page) is up, fast and idle, so it
 * would get most of the work. So after POOL_DOUBTS_MAX failures in a row, and as long as another engine is sound, it
 * gets single requests at growing distances until it gives a sample. Loop thread only. */
#ifndef CLIENT_POOL_H
#define CLIENT_POOL_H

#include "client/adapter.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POOL_PAUSE_MIN_US INT64_C(250000)
#define POOL_PAUSE_MAX_US INT64_C(5000000)
#define POOL_ENGINES_MAX 256
#define POOL_DOUBTS_MAX 3

struct pool_engine {
    const char *name;       /* "e1" …; NULL: made from the position */
    const char *url;        /* "http://host:port", without fragment */
    const char *kind;       /* a kind of engine_adapters, or NULL: found out by probing */
    const char *model;      /* NULL: the first of /v1/models */
    const char *token;      /* sent as a bearer token, or NULL */
    size_t in_flight_limit; /* 0: 256; an engine that tells its slots gets at most twice as many */
};

enum engine_state { ENGINE_UNKNOWN, ENGINE_UP, ENGINE_COOLING, ENGINE_DOWN };
extern const char *const engine_state_names[];

/* To be read by anybody on the loop thread, written by the pool alone. */
struct engine {
    char name[32];
    char *url;
    char *token;
    char *model;                          /* NULL: unknown, not sent */
    const struct engine_adapter *adapter; /* NULL until probed */
    enum engine_state state;
    size_t in_flight;
    size_t in_flight_limit;
    int64_t paused_until_us;        /* COOLING: usable again; DOWN and UNKNOWN: probed again */
    unsigned failures;              /* in a row */
    unsigned doubts;                /* failures since the last sample, those for want of room left out */
    unsigned trials;                /* single requests that failed since then */
    int64_t trial_at_us;            /* when the next one may be sent */
    uint64_t picked;                /* number of the last pick: ties go to the longest idle */
    int64_t context_tokens;         /* prompt and completion; 0: unknown */
    size_t slots;                   /* how many it works on at once; 0: unknown */
    char version[64];               /* "" if unknown */
    struct sample_error last_error; /* of the last failure; message "" before */

    /* the pool's own */
    bool model_is_set; /* by the settings, so that no probe replaces it */
    size_t in_flight_setting;
    bool probing;
    int probe_step;
};

struct pool;

/* NULL with a message for people if a setting is wrong (unknown kind, bad URL, two of one name). */
struct pool *pool_create(const struct pool_engine *settings, size_t count, char ret_message[200]);
void pool_destroy(struct pool *pool);

size_t pool_count(const struct pool *pool);
struct engine *pool_at(struct pool *pool, size_t index);
struct engine *pool_find(struct pool *pool, struct text name); /* NULL: none */
size_t pool_in_flight_limit(const struct pool *pool);          /* the sum: how many connections there may be */

enum pool_answer {
    POOL_PICKED,
    POOL_BUSY, /* every usable engine is at its limit: come back when a sample ends */
    POOL_WAIT, /* none is usable now, one may be at ret_at_us: a pause, or a probe that still runs */
    POOL_DOWN, /* all are down (probed again at ret_at_us); ret_engine is the one that failed last, with its last_error
                */
    POOL_NONE, /* no engine is configured */
};
/* The usable engine with the smallest share of its limit in flight; another than `avoid` (where it failed before;
 * may be NULL) if there is one.
 * Engines that are COOLING and whose pause is over become UP here. ret_at_us: for WAIT and DOWN. */
enum pool_answer pool_pick(struct pool *pool, const struct engine *avoid, int64_t now_us, struct engine **ret_engine,
                           int64_t *ret_at_us);
/* Whether another engine than this one is sound: what this one refuses may be asked of that one. */
bool pool_has_another(const struct pool *pool, const struct engine *engine);

/* Around each request; error NULL: it gave a sample. Preparing steps count like samples. A cancelled request ends with
 * pool_end_cancelled(), which says nothing about the engine. */
void pool_begin(struct pool *pool, struct engine *engine);
void pool_end(struct pool *pool, struct engine *engine, const struct sample_error *error, int64_t now_us);
void pool_end_cancelled(struct pool *pool, struct engine *engine);

/* --- probing: what is this engine, which model, how many slots ---------------------------------------
 * The caller goes round: pool_probe_due() names an engine; send what engine_probe_path() says (GET, a few seconds at
 * most) until engine_probe_reply() returns false. Not counted as in flight. */
#define ENGINE_PROBE_TIMEOUT_US INT64_C(3000000)
#define ENGINE_PROBE_REPLY_BYTES (1024 * 1024)

/* The next engine to be probed, now marked as being probed; NULL if none is due, then ret_at_us says when to ask again.
 */
struct engine *pool_probe_due(struct pool *pool, int64_t now_us, int64_t *ret_at_us);
const char *engine_probe_path(const struct engine *engine);
/* reply NULL: none came, transport_error says why. True: one more request, of the path that engine_probe_path() says
 * now. */
bool engine_probe_reply(struct engine *engine, const struct engine_reply *reply,
                        const struct sample_error *transport_error, int64_t now_us);

#endif
