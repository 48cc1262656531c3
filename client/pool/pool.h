/* pool: the engines, their states and facts, and the choice of one for a sample. Bookkeeping only: no I/O, no clock.
 *
 * One struct pool holds all engines. Each belongs to a named pool ("default" unless its settings say another); a batch
 * names the pool whose engines may serve it. Engines come and go while the service runs.
 *
 * The states of an engine (a circuit breaker):
 *
 *   UNKNOWN --probe--> UP --"later"--> COOLING --pause over--> UP
 *                      UP --not reached, or broken POOL_FAULTS_MAX times in a row--> DOWN --probe--> UP or HALF_OPEN
 *                      UP --POOL_DOUBTS_MAX failures of any kind in a row--> HALF_OPEN --a sample--> UP
 *
 * A HALF_OPEN engine gets only single requests, at growing distances: a server that answers every probe and no sample
 * (another model, another path, a proxy's page) is fast and idle, so it would get most of the work. If no other
 * engine of its pool is sound, an engine that merely refuses keeps getting work: the refusals may be about the requests.
 *
 * DRAINING (no new requests, those in flight may end) and REFUSED (a probe found that it does not belong into its pool)
 * are beside this.
 *
 * docs/engines.md explains the rules. Loop thread only. */
#ifndef CLIENT_POOL_POOL_H
#define CLIENT_POOL_POOL_H

#include "client/probe/dialogue.h"
#include "server/base/nearest.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POOL_PAUSE_MIN_US INT64_C(250000)
#define POOL_PAUSE_MAX_US INT64_C(5000000)
#define POOL_ENGINES_MAX 256
#define POOL_DOUBTS_MAX 3
#define POOL_FAULTS_MAX 3
#define POOL_NAME_BYTES 65 /* names of engines and of pools, with the NUL */
#define POOL_MESSAGE_BYTES 200
#define POOL_DEFAULT "default"

/* --- rules ---------------------------------------------------------------------------------------- */

struct pool_rules {
    int64_t pause_max_us;    /* the longest pause that an engine gets by asking for one */
    int64_t down_timeout_us; /* how long a batch waits for a pool of which no engine can be used */
    double retry_ratio;      /* repeats per first try, in the long run; see struct retry_budget */
    int64_t check_us;        /* an engine that is up is looked at again after this; 0: never */
    bool ask_samples;        /* probes also sample tokens, to check seeds, ids and log-probabilities */
};
#define POOL_RULES_DEFAULT ((struct pool_rules){60 * INT64_C(1000000), 60 * INT64_C(1000000), 0.2, 0, false})

/* Tokens for repeats: one for each repeat, `retry_ratio` of one earned by each first try, and some to begin with. */
struct retry_budget {
    double tokens;
    int64_t refilled_us; /* an engine's few tokens to begin with come back; a batch's do not */
};
#define RETRY_TOKENS_MIN 10
#define RETRY_TOKENS_MAX 1000
#define RETRY_BUDGET_NEW ((struct retry_budget){.tokens = RETRY_TOKENS_MIN})

/* --- engines -------------------------------------------------------------------------------------- */

enum engine_source { ENGINE_OF_SETTINGS, ENGINE_OF_API };

struct pool_engine {
    const char *name;       /* "e1" …; NULL: made from the position */
    const char *pool;       /* NULL: "default" */
    const char *url;        /* "http://host:port", without fragment */
    const char *kind;       /* a kind of engine_adapters, or NULL: found out by probing */
    const char *model;      /* NULL: the first of /v1/models */
    const char *token;      /* sent as a bearer token, or NULL */
    size_t in_flight_limit; /* 0: 256; an engine that tells its slots gets at most twice as many */
    bool in_flight_learned; /* the limit is found by trying: more while it answers well, less when it is overloaded */
    bool shared;            /* several runs may use it at once */
    bool unasked;           /* as if its kind sampled nothing: see struct engine */
    enum engine_source source;
};

/* DRAINING and PROBING (UNKNOWN, while it is being asked) are never in engine.state: engine_shown_state() says them. */
#define ENGINE_STATE(name, word) ENGINE_##name,
enum engine_state { ENGINE_STATE_WORDS(ENGINE_STATE) ENGINE_STATE_COUNT };
extern const char *const engine_state_names[]; /* as on the wire; ended by NULL */

struct named_pool; /* the engines of one name; a handle that stays valid as long as the pool */

#define LATENCY_BUCKETS 192 /* six per octave from 100 us: below 12 % wide, to about an hour and a half */
#define LATENCY_WINDOWS 6   /* of ten seconds */

struct engine_latency {
    size_t samples;
    int64_t p50_us, p90_us, p99_us; /* 0 without samples */
};

struct engine_stats {
    uint64_t requests; /* begun; requests that only prepare a prompt count with their sample */
    uint64_t samples;
    uint64_t retries;                        /* of those requests: repeats of one that failed, here or elsewhere */
    uint64_t failures[SAMPLE_FAILURE_COUNT]; /* by code */
    struct sample_error last_error;          /* message "" before the first; a sound probe does not clear it */
    int64_t last_error_us;                   /* 0: none yet */

    /* the latencies of samples: read by engine_latency() */
    int64_t window_began_us;
    unsigned window; /* the one that is being filled */
    uint32_t latencies[LATENCY_WINDOWS][LATENCY_BUCKETS];
};

/* Read by all rooms on the loop thread, written by the pool alone. */
struct engine {
    char name[POOL_NAME_BYTES];
    struct named_pool *pool;
    char *url;
    char *token;
    char *model;                          /* NULL: unknown, not sent */
    const struct engine_adapter *adapter; /* NULL until probed */
    bool shared;
    bool unasked; /* a server that samples nothing: it gets no probe; lost, it comes back for single requests */
    enum engine_source source;

    enum engine_state state;
    char why[SAMPLE_MESSAGE_BYTES]; /* the reason of its state, as a message; "": none */
    int64_t since_us;               /* of this state */
    int64_t lost_us;                /* since when it cannot be used; 0: it can, or never could */
    bool draining;
    bool removed;              /* only in flight still; forgotten by pool_reap() */
    int64_t paused_until_us;   /* COOLING: usable again; DOWN, UNKNOWN, REFUSED: probed again */
    unsigned failures;         /* in a row */
    unsigned doubts;           /* failures since the last sample, those for want of room left out */
    unsigned trials;           /* single requests that failed since then */
    int64_t trial_at_us;       /* when the next one may be sent */
    int64_t trial_began_us;    /* when the one that runs was sent; 0: none runs */
    bool trial_by_probe;       /* the next one is a probe's: the samples that wait have too little time for it */
    bool broken;               /* HALF_OPEN after faults of its own: single requests even if it is the only one */
    int64_t probed_at_us;      /* the end of the last probe; 0: none yet */
    int64_t looked_us;         /* the beginning of the last probe */
    int64_t listed_us;         /* the beginning of the one that found `facts`, its models among them */
    struct engine_facts facts; /* of the last sound probes; see agrees_us */
    int64_t agrees_us;         /* since when it belongs to what defines its pool; 0: it does not */
    unsigned restarts;         /* how often it came back: after it could not be reached, or as another than before */

    size_t in_flight;
    size_t in_flight_limit;
    bool in_flight_learned;
    uint64_t picked; /* number of the last pick: ties go to the longest idle */
    struct retry_budget retries;
    struct engine_stats stats;

    int64_t context_tokens;         /* prompt and completion; 0: unknown */
    size_t slots;                   /* how many it works on at once; 0: unknown */
    struct sample_error last_error; /* the present fault; message "": none. stats.last_error remembers */

    /* the pool's own */
    struct pool *owner;
    bool model_is_set; /* by the settings, so that no probe replaces it */
    bool kind_is_set;
    size_t in_flight_setting;
    double learned_limit;
    int64_t slow_us;       /* how long a slow sample took lately; 0: none yet */
    double told_token_us;  /* a token's time in samples that are long enough to tell it, averaged; 0: none yet */
    double token_us;       /* a token's time, averaged; 0: none yet */
    double token_floor_us; /* the smallest such average */
    int64_t usable_us;     /* when pool_pick() last found it usable; 0: never */
    bool probing;
    bool look_now;           /* whatever check_us says */
    struct probe *probe;     /* while probing */
    bool gone;               /* since it was up it could not be reached, or cut its requests */
    unsigned check_failures; /* of checks in a row */
    unsigned asked_in_vain;  /* questions that came to no end */
    int64_t ask_at_us;       /* when they may be put again */
    size_t holds;
    uint64_t name_hash;
};

struct pool;

/* NULL with a message if a setting is wrong (unknown kind, bad URL, two of one name). */
struct pool *pool_create(const struct pool_engine *settings, size_t count, char ret_message[POOL_MESSAGE_BYTES]);
void pool_destroy(struct pool *pool);
void pool_set_rules(struct pool *pool, const struct pool_rules *rules); /* POOL_RULES_DEFAULT before */

/* Those that were not removed; the order is that of their coming. */
size_t pool_count(const struct pool *pool);
struct engine *pool_at(struct pool *pool, size_t index);
struct engine *pool_find(struct pool *pool, struct text name); /* NULL: none */
size_t pool_in_flight_limit(const struct pool *pool);          /* the sum: how many connections there may be */

/* At run time. NULL with a message: the settings are wrong, the name is taken, or there are POOL_ENGINES_MAX. The
 * engine is UNKNOWN, so the next pool_probe_due() names it. */
struct engine *pool_add(struct pool *pool, const struct pool_engine *settings, char ret_message[POOL_MESSAGE_BYTES]);
/* True if `settings` name the same engine: URL, kind, model, pool. The others can be changed in place. */
bool engine_is_as(const struct engine *engine, const struct pool_engine *settings);
/* Limit, sharing, token and source of an engine that stays. */
void pool_change(struct pool *pool, struct engine *engine, const struct pool_engine *settings);
/* Nothing new is sent there while it drains. */
void pool_drain(struct pool *pool, struct engine *engine, bool draining);
/* Moves it to the list of removed engines; its requests in flight may end. The pointer stays valid until pool_reap()
 * finds it idle. */
void pool_remove(struct pool *pool, struct engine *engine);
/* Those that were removed and have not been freed yet; most have something in flight. */
size_t pool_removed_count(const struct pool *pool);
struct engine *pool_removed_at(struct pool *pool, size_t index);
/* Frees removed engines that have nothing in flight, are not being probed, and have no holder. */
void pool_reap(struct pool *pool);
/* A pointer that is kept beyond a request in flight needs a hold. NULL is allowed in both. */
void engine_hold(struct engine *engine);
void engine_release(struct engine *engine);
/* It does not belong into its pool (another model, another tokenizer, not what the settings say): it gets nothing, and
 * is probed again after POOL_PAUSE_MAX_US. The next sound probe takes it back. */
void engine_refuse(struct engine *engine, const char *why, int64_t now_us);
/* As on the wire: DRAINING before everything else, PROBING during the first probe. */
enum engine_state engine_shown_state(const struct engine *engine);

/* --- named pools ---------------------------------------------------------------------------------- */

/* Of any name; made if no engine has it (a batch that is read back may name a pool whose engines are gone). */
struct named_pool *pool_named(struct pool *pool, struct text name);
struct named_pool *pool_named_find(struct pool *pool, struct text name); /* NULL: no engine ever had it */
const char *named_pool_name(const struct named_pool *named);
size_t named_pool_count(const struct named_pool *named);                            /* engines */
bool pool_named_is_shared(const struct pool *pool, const struct named_pool *named); /* all its engines are */

/* --- picking -------------------------------------------------------------------------------------- */

struct pool_want {
    struct named_pool *pool;         /* NULL: "default" */
    uint64_t prefix;                 /* a hash of the prompt: equal prompts go to one engine; 0: any */
    const struct engine *avoid;      /* where it failed before, or NULL */
    int64_t since_us;                /* since when it waits: a pool that is down is waited for from then on */
    int64_t left_us;                 /* how long the sample may take; 0: as long as it does */
    int64_t tokens;                  /* that it asks for at most */
    const struct sampling *sampling; /* what its engine must be able to be asked for; NULL: it is no sample */
    struct text model;               /* that its engine must serve; TEXT_NONE: any */
};

enum pool_answer {
    POOL_PICKED,
    POOL_BUSY,     /* every usable engine is at its limit: come back when a sample ends */
    POOL_WAIT,     /* none is usable now, one may be at ret_at_us: a pause, or a probe that still runs */
    POOL_DOWN,     /* none for it has been usable for rules.down_timeout_us: pool_down_error() says why */
    POOL_UNSUITED, /* none serves the model, or has all that the sampling asks for: pool_unsuited_error() */
};
/* The engine that had this prefix before, or the one that a rendezvous hash gives; another if that one cannot be used,
 * is at its limit, or has more than 1.5 times its share: then the usable engine with the smallest share of its limit in
 * flight. `avoid` only if there is no other. Engines whose pause is over become UP here. ret_at_us: for WAIT. NEVER_US:
 * something else has to happen first. */
enum pool_answer pool_pick(struct pool *pool, const struct pool_want *asked, int64_t now_us, struct engine **ret_engine,
                           int64_t *ret_at_us);
/* For pool_want.prefix; 0 is never given. */
uint64_t pool_prefix(struct text prompt);
/* After POOL_DOWN: the error of the engine for `want` that failed last. Not to be repeated. */
void pool_down_error(const struct pool *pool, const struct pool_want *want, struct sample_error *ret_error);
/* Of a pool that is UNSUITED: the models that it serves, or the field that it lacks. Not to be repeated. */
void pool_unsuited_error(const struct pool *pool, const struct pool_want *want, struct sample_error *ret_error);
/* False if the engine is up and lists its models without this one. TEXT_NONE: any. */
bool engine_may_serve(const struct engine *engine, struct text model);
/* For a message about a model that no engine serves: the nearest name, and those that are served. */
void pool_advise_model(const struct pool *pool, const struct named_pool *named, struct text model,
                       char ret_advice[ADVICE_BYTES]);
/* Another engine of this one's pool is sound, so that it may get a sample that this one failed at. */
bool pool_has_another(const struct pool *pool, const struct engine *engine);

/* --- requests ------------------------------------------------------------------------------------- */

struct pool_result {
    const struct sample_error *error; /* NULL: it gave a sample */
    int64_t began_us;                 /* when it was sent; 0: not known, no latency is noted */
    size_t token_count;               /* of the sample; 0: not known */
    int64_t allowed_us;               /* how long it might have taken; 0: as long as it did */
    int64_t tokens;                   /* that were asked for at most */
};
/* The longest usual time of a sample of so many tokens there, by the samples so far. A limit below that tells nothing
 * about the engine when it has passed. */
int64_t engine_usual_us(const struct engine *engine, int64_t tokens);
/* Around each request. A request that our own clock ended before its usual time is no failure of the engine's.
 * Preparing steps count like samples. A cancelled request ends with pool_end_cancelled(), which
 * says nothing about the engine. */
void pool_begin(struct pool *pool, struct engine *engine, int64_t now_us);
void pool_end(struct pool *pool, struct engine *engine, const struct pool_result *result, int64_t now_us);
void pool_end_cancelled(struct pool *pool, struct engine *engine);

/* A sample's first request went to this engine: both budgets earn. */
void pool_count_first(struct pool *pool, struct engine *engine, struct retry_budget *batch);
/* Its next one went there. */
void pool_count_retry(struct pool *pool, struct engine *engine);
/* Whether the request that just failed (after pool_end()) may be repeated; takes a token from the batch's budget and
 * from the engine's. Nothing is taken for what cost the engine no work (unreachable, overloaded), nor for the first
 * failure of a sample that another sound engine can take. */
bool pool_take_retry(struct pool *pool, struct engine *engine, struct retry_budget *batch,
                     const struct sample_error *error, bool failed_before, int64_t now_us);
/* The pause that the engine asked for, as far as the sample has to wait for it: 0 if another engine can take it. */
int64_t pool_retry_after_us(const struct pool *pool, const struct engine *engine, const struct sample_error *error);

const struct engine_stats *engine_stats(const struct engine *engine);
/* Over the last minute or so. */
void engine_latency(const struct engine *engine, int64_t now_us, struct engine_latency *ret_latency);

/* --- probing: kind, facts, and the agreement with the pool --------------------------------------------
 * The caller goes round: pool_probe_due() names an engine; send what engine_probe_build() says until
 * engine_probe_reply() returns false. Not counted as in flight.
 *
 * Probed are engines that are not known or lost, and, as long as nothing is wrong with them, every rules.check_us: with
 * GETs alone then. One that turns out to be another than before (version, model) is as good as unknown.
 *
 * The first engine of a named pool that is known defines the pool's model and tokenizer; one that disagrees is REFUSED.
 * The definition changes only while no other engine has it and the pool is not pinned. */

/* The next engine to be probed, now marked as being probed; NULL if none is due, then ret_at_us says when to ask again.
 */
struct engine *pool_probe_due(struct pool *pool, int64_t now_us, int64_t *ret_at_us);
/* Marks the engines last looked at more than a second ago as due for a probe. */
void pool_look_again(struct pool *pool, const struct named_pool *named, int64_t now_us);
/* A probe is due that was not when pool_probe_due() was asked last. */
bool pool_wants_probe(const struct pool *pool);
/* The next call, to be finished by the caller; ret_timeout_us: how long it may take. False: there is none, the probe
 * has ended. */
bool engine_probe_build(struct engine *engine, int64_t now_us, struct engine_call *ret_call, int64_t *ret_timeout_us);
/* reply NULL: none came, transport_error says why. True: one more call. */
bool engine_probe_reply(struct engine *engine, const struct engine_reply *reply,
                        const struct sample_error *transport_error, int64_t now_us);

/* While a pool is pinned (it has unfinished work) its model and tokenizer stay what they are. */
void pool_named_pin(struct named_pool *named);
void pool_named_unpin(struct named_pool *named);

#endif
