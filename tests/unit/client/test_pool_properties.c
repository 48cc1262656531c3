/* The pool's promises, under random sequences of whatever may happen to it: compared with what a simple model allows.
 * The sequences are made from fixed seeds, so that each run is the same. */
#include "support.h"

#include "client/pool/pool.h"
#include "server/base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS INT64_C(1000)
#define S INT64_C(1000000)
#define BEGAN_US (100 * S)
#define SEQUENCES 300
#define STEPS 600
#define REQUESTS_MAX 256
#define ENGINES_MAX 64 /* of one sequence, the removed ones included */

static const struct pool_rules rules = {.pause_max_us = 3 * S, .down_timeout_us = 20 * S, .retry_ratio = 0.05};

/* The model's knowledge of an engine: its events, not the conclusions of the pool. */
struct known {
    struct engine *engine;
    size_t in_flight;
    int64_t quiet_until_us; /* it asked for that, or was refused a connection */
    bool told_down;         /* not connected, and no probe since */
    bool drained;
    bool removed;
    bool refused;
    uint64_t firsts;
    uint64_t repeats;
};

static const char *const pool_names[] = {"default", "other"};

struct world {
    uint64_t random;
    uint64_t failing; /* of ten requests */
    uint64_t pace;    /* milliseconds between steps at most */
    int64_t now_us;
    struct pool *pool;
    struct known known[ENGINES_MAX];
    size_t known_count;
    struct known *requests[REQUESTS_MAX];
    size_t request_count;
    struct retry_budget batch;
    uint64_t firsts;
    uint64_t repeats;
};

static uint64_t draw(struct world *world, uint64_t below)
{
    world->random ^= world->random << 13;
    world->random ^= world->random >> 7;
    world->random ^= world->random << 17;
    return world->random % below;
}

static struct known *known_of(struct world *world, const struct engine *engine)
{
    for (size_t i = 0; i < world->known_count; i++)
        if (world->known[i].engine == engine && !(world->known[i].removed && world->known[i].in_flight == 0))
            return &world->known[i];
    fail_msg("an engine that was never added, or is gone");
    return NULL;
}

static void add_engine(struct world *world)
{
    static const char *const pools[] = {"default", "other"};
    char name[16];
    char message[POOL_MESSAGE_BYTES];
    struct pool_engine settings = {.name = name,
                                   .pool = pools[draw(world, 3) == 0],
                                   .url = "http://127.0.0.1:1",
                                   .kind = "llamacpp",
                                   .in_flight_limit = 1 + draw(world, 12),
                                   .in_flight_learned = draw(world, 4) == 0};

    if (world->known_count == ENGINES_MAX || pool_count(world->pool) == 6)
        return;
    snprintf(name, sizeof(name), "n%zu", world->known_count);
    struct known *known = &world->known[world->known_count++];
    *known = (struct known){.engine = pool_add(world->pool, &settings, message), .told_down = true};
    assert_non_null(known->engine);
}

/* --- what may happen ----------------------------------------------------------------------------- */

static bool is_open_for_work(const struct known *known, const struct named_pool *pool)
{
    return !known->removed && !known->drained && known->engine->pool == pool &&
           (known->engine->state == ENGINE_UP || known->engine->state == ENGINE_HALF_OPEN);
}

static void check_picked(struct world *world, struct engine *engine, const struct named_pool *pool)
{
    struct known *known = known_of(world, engine);

    assert_ptr_equal(engine->pool, pool);
    assert_false(known->removed);
    assert_false(known->drained);
    assert_false(known->refused);
    assert_false(known->told_down);
    assert_true(world->now_us >= known->quiet_until_us);
    assert_true(known->in_flight < engine->in_flight_limit);
    if (engine->state == ENGINE_HALF_OPEN && pool_has_another(world->pool, engine))
        assert_int_equal(known->in_flight, 0); /* a trial is a single request */
}

/* Nobody waits beside an engine that is up and has room. */
static void check_none(struct world *world, const struct named_pool *pool, enum pool_answer answer, int64_t at_us)
{
    bool usable = false;
    bool probe_due = false;

    for (size_t i = 0; i < world->known_count; i++) {
        const struct known *known = &world->known[i];

        if (known->removed || !is_open_for_work(known, pool)) {
            probe_due = probe_due || (!known->removed && known->engine->paused_until_us <= world->now_us);
            continue;
        }
        usable = true;
        assert_false(known->engine->state == ENGINE_UP && known->in_flight < known->engine->in_flight_limit);
    }
    if (answer == POOL_BUSY)
        assert_true(usable);
    if (answer == POOL_DOWN)
        assert_false(usable);
    if (answer == POOL_WAIT)
        assert_true(at_us > world->now_us || probe_due);
}

static void do_pick(struct world *world)
{
    struct named_pool *pool = pool_named(world->pool, text_of(pool_names[draw(world, 3) ? 0 : 1]));
    struct pool_want want = {.pool = pool, .prefix = draw(world, 8), .since_us = world->now_us - 10 * S};
    struct engine *engine;
    int64_t at_us;

    if (world->request_count == REQUESTS_MAX)
        return;
    if (pool_count(world->pool) > 0 && draw(world, 4) == 0)
        want.avoid = pool_at(world->pool, draw(world, pool_count(world->pool)));
    enum pool_answer answer = pool_pick(world->pool, &want, world->now_us, &engine, &at_us);
    if (answer != POOL_PICKED) {
        check_none(world, pool, answer, at_us);
        return;
    }
    check_picked(world, engine, pool);
    struct known *known = known_of(world, engine);
    pool_begin(world->pool, engine, world->now_us);
    pool_count_first(world->pool, engine, &world->batch);
    known->in_flight++;
    known->firsts++;
    world->firsts++;
    world->requests[world->request_count++] = known;
}

static const struct sample_error failures[] = {
    {.code = SAMPLE_ENGINE_UNREACHABLE, .retryable = true, .not_connected = true, .message = "refused"},
    {.code = SAMPLE_ENGINE_UNREACHABLE, .retryable = true, .message = "cut"},
    {.code = SAMPLE_ENGINE_OVERLOADED, .retryable = true, .message = "429"},
    {.code = SAMPLE_ENGINE_OVERLOADED, .retryable = true, .retry_after_us = 2 * S, .message = "429"},
    {.code = SAMPLE_ENGINE_OVERLOADED, .retryable = true, .retry_after_us = 3600 * S, .message = "429"},
    {.code = SAMPLE_ENGINE_ERROR, .retryable = true, .message = "500"},
    {.code = SAMPLE_ENGINE_ERROR, .message = "400"},
    {.code = SAMPLE_ENGINE_TIMEOUT, .retryable = true, .message = "late"},
    {.code = SAMPLE_INVALID_REPLY, .retryable = true, .resample = true, .message = "no JSON"},
};

static void repeat(struct world *world, struct known *known, const struct sample_error *error)
{
    bool failed_before = draw(world, 2);
    bool is_free = error->code == SAMPLE_ENGINE_UNREACHABLE || error->code == SAMPLE_ENGINE_OVERLOADED ||
                   (!failed_before && pool_has_another(world->pool, known->engine));
    bool again = pool_take_retry(world->pool, known->engine, &world->batch, error, failed_before, world->now_us);

    if (is_free) {
        assert_true(again);
        return;
    }
    known->repeats += again;
    world->repeats += again;
    assert_true(again || world->batch.tokens < 1 || known->engine->retries.tokens < 1);
    assert_true((double)world->repeats <= RETRY_TOKENS_MIN + rules.retry_ratio * (double)world->firsts + 1e-6);
    assert_true((double)known->repeats <= RETRY_TOKENS_MIN + rules.retry_ratio * (double)known->firsts +
                                              (double)(world->now_us - BEGAN_US) / (double)S + 1e-6);
}

/* F10: what our own clock ended before the engine had its usual time leaves everything as it was. */
static void end_hurried(struct world *world, struct known *known)
{
    static const struct sample_error late = {.code = SAMPLE_ENGINE_TIMEOUT, .retryable = true, .message = "late"};
    struct engine *engine = known->engine;
    struct engine_stats stats = engine->stats;
    enum engine_state state = engine->state;
    unsigned faults = engine->failures;
    unsigned doubts = engine->doubts;
    unsigned trials = engine->trials;
    size_t limit = engine->in_flight_limit;
    int64_t tokens = (int64_t)draw(world, 5000);
    int64_t usual_us = engine_usual_us(engine, tokens);

    pool_end(world->pool, engine,
             &(struct pool_result){.error = &late,
                                   .began_us = world->now_us - 1,
                                   .allowed_us = 1 + (int64_t)draw(world, (uint64_t)usual_us * 98 / 100),
                                   .tokens = tokens},
             world->now_us);
    assert_memory_equal(&stats, &engine->stats, sizeof(stats));
    assert_int_equal(engine->state, state);
    assert_int_equal(engine->failures, faults);
    assert_int_equal(engine->doubts, doubts);
    assert_int_equal(engine->trials, trials);
    assert_int_equal(engine->in_flight_limit, limit);
}

static void do_end(struct world *world)
{
    if (world->request_count == 0)
        return;
    size_t index = draw(world, world->request_count);
    struct known *known = world->requests[index];
    const struct sample_error *error =
        draw(world, 10) >= world->failing ? NULL : &failures[draw(world, ARRAY_LENGTH(failures))];
    bool was_quiet = known->engine->state == ENGINE_COOLING && known->engine->paused_until_us > world->now_us;

    world->requests[index] = world->requests[--world->request_count];
    known->in_flight--;
    if (draw(world, 10) == 0) {
        end_hurried(world, known);
        return;
    }
    if (draw(world, 10) == 0) {
        pool_end_cancelled(world->pool, known->engine);
        return;
    }
    pool_end(world->pool, known->engine,
             &(struct pool_result){.error = error, .began_us = world->now_us - 1, .token_count = draw(world, 100)},
             world->now_us);
    if (!error)
        return;
    known->told_down = known->told_down || error->not_connected;
    if (error->not_connected)
        known->quiet_until_us = 0; /* whatever comes back has been started anew */
    if (error->retry_after_us > 0 && !known->told_down && !was_quiet && known->engine->state == ENGINE_COOLING)
        known->quiet_until_us = world->now_us + (error->retry_after_us < 3 * S ? error->retry_after_us : 3 * S);
    if (error->retryable && !known->removed)
        repeat(world, known, error);
}

static void do_probe(struct world *world)
{
    static const struct sample_error no_answer = {.code = SAMPLE_ENGINE_UNREACHABLE, .message = "refused"};
    const struct engine_reply props = {.status = 200, .body = text_of("{\"total_slots\":4}")};
    int64_t at_us;
    struct engine *engine = pool_probe_due(world->pool, world->now_us, &at_us);

    if (!engine)
        return;
    struct known *known = known_of(world, engine);
    assert_false(known->removed);
    if (draw(world, 3) == 0) {
        assert_false(engine_probe_reply(engine, NULL, &no_answer, world->now_us));
        known->told_down = true;
        return;
    }
    while (engine_probe_reply(engine, &props, NULL, world->now_us))
        ;
    known->told_down = known->refused = false;
}

static void do_something_to_an_engine(struct world *world)
{
    if (pool_count(world->pool) == 0)
        return;
    struct known *known = known_of(world, pool_at(world->pool, draw(world, pool_count(world->pool))));

    switch (draw(world, 4)) {
    case 0:
        pool_remove(world->pool, known->engine);
        assert_null(pool_find(world->pool, text_of(known->engine->name)));
        known->removed = true;
        break;
    case 1:
        if (!known->engine->probing) {
            engine_refuse(known->engine, "another model", world->now_us);
            known->refused = true;
            known->quiet_until_us = 0;
        }
        break;
    default:
        known->drained = !known->drained;
        pool_drain(world->pool, known->engine, known->drained);
        break;
    }
}

static void step(struct world *world)
{
    uint64_t what = draw(world, 100);

    if (what < 45)
        do_pick(world);
    else if (what < 75)
        do_end(world);
    else if (what < 85)
        do_probe(world);
    else if (what < 88)
        do_something_to_an_engine(world);
    else if (what < 90)
        add_engine(world);
    else if (what < 92)
        pool_reap(world->pool);
    else if (what < 94) {
        world->batch = RETRY_BUDGET_NEW; /* another batch */
        world->firsts = world->repeats = 0;
    } else
        world->now_us += (int64_t)draw(world, world->pace) * MS;
    for (size_t i = 0; i < world->known_count; i++)
        if (!world->known[i].removed)
            assert_int_equal(world->known[i].engine->in_flight, world->known[i].in_flight);
}

/* --- afterwards ---------------------------------------------------------------------------------- */

/* Everything is well again: before long, every engine works to its limit. */
static void check_recovery(struct world *world)
{
    struct engine *engine;
    int64_t at_us;
    size_t room = 0;
    size_t given = 0;

    while (world->request_count > 0) {
        pool_end_cancelled(world->pool, world->requests[--world->request_count]->engine);
        world->requests[world->request_count]->in_flight--;
    }
    for (size_t i = 0; i < pool_count(world->pool); i++)
        pool_drain(world->pool, pool_at(world->pool, i), false);
    for (int round = 0; round < 40; round++) { /* probes answer, and each request gives a sample */
        world->now_us += S;
        while ((engine = pool_probe_due(world->pool, world->now_us, &at_us)))
            while (engine_probe_reply(engine,
                                      &(struct engine_reply){.status = 200, .body = text_of("{\"total_slots\":0}")},
                                      NULL, world->now_us))
                ;
        for (size_t i = 0; i < ARRAY_LENGTH(pool_names); i++) {
            struct pool_want want = {.pool = pool_named(world->pool, text_of(pool_names[i])), .prefix = draw(world, 8)};
            if (pool_pick(world->pool, &want, world->now_us, &engine, &at_us) != POOL_PICKED)
                continue;
            pool_begin(world->pool, engine, world->now_us);
            pool_end(world->pool, engine, &(struct pool_result){0}, world->now_us);
        }
    }
    for (size_t i = 0; i < pool_count(world->pool); i++) {
        assert_int_equal(pool_at(world->pool, i)->state, ENGINE_UP);
        room += pool_at(world->pool, i)->in_flight_limit;
    }
    for (size_t i = 0; i < ARRAY_LENGTH(pool_names); i++) {
        struct pool_want want = {.pool = pool_named(world->pool, text_of(pool_names[i])), .prefix = 1 + draw(world, 8)};
        for (; pool_pick(world->pool, &want, world->now_us, &engine, &at_us) == POOL_PICKED; given++)
            pool_begin(world->pool, engine, world->now_us);
    }
    assert_int_equal(given, room);
}

static void test_the_promises_hold_after_any_events(void **state)
{
    char message[POOL_MESSAGE_BYTES];

    (void)state;
    for (uint64_t sequence = 1; sequence <= SEQUENCES; sequence++) {
        struct world world = {.random = sequence * UINT64_C(0x9e3779b97f4a7c15),
                              .failing = sequence % 10,
                              .pace = sequence % 3 ? 2000 : 100,
                              .now_us = BEGAN_US,
                              .pool = pool_create(NULL, 0, message),
                              .batch = RETRY_BUDGET_NEW};
        pool_set_rules(world.pool, &rules);
        for (int i = 0; i < 3; i++)
            add_engine(&world);
        for (int i = 0; i < STEPS; i++)
            step(&world);
        check_recovery(&world);
        pool_destroy(world.pool);
    }
}

/* --- prefixes ------------------------------------------------------------------------------------ */

#define PREFIXES 400
#define ENGINES 4

static struct pool *pool_that_is_up(size_t limit)
{
    struct pool_engine settings[ENGINES];
    char message[POOL_MESSAGE_BYTES];
    struct engine *engine;
    int64_t at_us;

    for (size_t i = 0; i < ENGINES; i++)
        settings[i] = (struct pool_engine){.url = "http://127.0.0.1:1", .kind = "llamacpp", .in_flight_limit = limit};
    struct pool *pool = pool_create(settings, ENGINES, message);
    while ((engine = pool_probe_due(pool, 0, &at_us)))
        while (engine_probe_reply(engine, &(struct engine_reply){.status = 200, .body = text_of("{\"total_slots\":0}")},
                                  NULL, 0))
            ;
    for (size_t i = 0; i < ENGINES; i++) { /* each has prefixes computed */
        pool_begin(pool, pool_at(pool, i), 0);
        pool_end(pool, pool_at(pool, i), &(struct pool_result){0}, 0);
    }
    return pool;
}

static struct engine *picked(struct pool *pool, uint64_t number, int64_t now_us)
{
    char prompt[32];
    struct engine *engine;
    int64_t at_us;
    int length = snprintf(prompt, sizeof(prompt), "prompt %llu", (unsigned long long)number);
    struct pool_want want = {.prefix = pool_prefix((struct text){prompt, (size_t)length})};

    assert_int_equal(pool_pick(pool, &want, now_us, &engine, &at_us), POOL_PICKED);
    return engine;
}

static void test_prefixes_are_spread_and_each_stays_where_it_is(void **state)
{
    struct pool *pool = pool_that_is_up(64);
    size_t shares[ENGINES] = {0};

    (void)state;
    for (uint64_t number = 0; number < PREFIXES; number++) {
        struct engine *home = picked(pool, number, 0);
        shares[home->name[1] - '1']++;
        assert_ptr_equal(picked(pool, number, 0), home);
    }
    for (size_t i = 0; i < ENGINES; i++)
        assert_in_range(shares[i], PREFIXES / ENGINES / 2, PREFIXES / ENGINES * 2);
    pool_destroy(pool);
}

static void go_down(struct pool *pool, struct engine *engine, int64_t now_us)
{
    static const struct sample_error refused = {
        .code = SAMPLE_ENGINE_UNREACHABLE, .retryable = true, .not_connected = true, .message = "refused"};

    pool_begin(pool, engine, now_us);
    pool_end(pool, engine, &(struct pool_result){.error = &refused}, now_us);
    assert_int_equal(engine->state, ENGINE_DOWN);
}

static void come_back(struct pool *pool, struct engine *engine, int64_t now_us)
{
    int64_t at_us;

    assert_ptr_equal(pool_probe_due(pool, now_us, &at_us), engine);
    while (engine_probe_reply(engine, &(struct engine_reply){.status = 200, .body = text_of("{\"total_slots\":0}")},
                              NULL, now_us))
        ;
    pool_begin(pool, engine, now_us); /* the trial, if it was half open */
    pool_end(pool, engine, &(struct pool_result){0}, now_us);
    assert_int_equal(engine->state, ENGINE_UP);
}

/* prime-rl #3255: a replica that comes and goes must not take prefixes to and fro with it. */
static void test_a_flapping_engine_moves_its_own_prefixes_once_and_no_others(void **state)
{
    struct pool *pool = pool_that_is_up(64);
    struct engine *flapping = pool_at(pool, 2);
    struct engine *homes[PREFIXES];
    size_t moved = 0;
    int64_t now_us = 0;

    (void)state;
    for (uint64_t number = 0; number < PREFIXES; number++)
        homes[number] = picked(pool, number, now_us);
    for (int flap = 0; flap < 10; flap++) {
        go_down(pool, flapping, now_us);
        for (uint64_t number = 0; number < PREFIXES; number++) {
            struct engine *home = picked(pool, number, now_us);
            assert_ptr_not_equal(home, flapping);
            moved += home != homes[number];
            assert_true(homes[number] == home || (homes[number] == flapping && flap == 0));
            homes[number] = home;
        }
        now_us += 10 * S;
        come_back(pool, flapping, now_us);
        for (uint64_t number = 0; number < PREFIXES; number++)
            assert_ptr_equal(picked(pool, number, now_us), homes[number]);
    }
    assert_true(moved > 0);
    /* new prompts go there again */
    size_t new_ones = 0;
    for (uint64_t number = PREFIXES; number < 2 * PREFIXES; number++)
        new_ones += picked(pool, number, now_us) == flapping;
    assert_in_range(new_ones, PREFIXES / ENGINES / 2, PREFIXES / ENGINES * 2);
    pool_destroy(pool);
}

static void test_one_prompt_for_all_spills_and_fills_every_engine(void **state)
{
    struct pool *pool = pool_that_is_up(64);
    struct engine *home = picked(pool, 7, 0);
    struct engine *engine;

    (void)state;
    for (size_t i = 0; i < 8; i++) { /* an eighth of its limit */
        engine = picked(pool, 7, 0);
        assert_ptr_equal(engine, home);
        pool_begin(pool, engine, 0);
    }
    for (size_t i = 8; i < ENGINES * 64; i++) {
        size_t total = 0;
        engine = picked(pool, 7, 0);
        pool_begin(pool, engine, 0);
        for (size_t k = 0; k < ENGINES; k++)
            total += pool_at(pool, k)->in_flight;
        assert_true(home->in_flight <= 8 || (double)home->in_flight <= 1.5 * (double)total / ENGINES);
    }
    for (size_t k = 0; k < ENGINES; k++)
        assert_int_equal(pool_at(pool, k)->in_flight, 64);
    pool_destroy(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_promises_hold_after_any_events),
        cmocka_unit_test(test_prefixes_are_spread_and_each_stays_where_it_is),
        cmocka_unit_test(test_a_flapping_engine_moves_its_own_prefixes_once_and_no_others),
        cmocka_unit_test(test_one_prompt_for_all_spills_and_fills_every_engine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
