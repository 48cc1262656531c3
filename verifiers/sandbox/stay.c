#include "verifiers/sandbox/stay_private.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "server/base/cleanup.h"
#include "server/base/clock.h"

void stayers_init(struct stayers *stayers)
{
    *stayers = (struct stayers){.uses = 0};
    for (size_t i = 0; i < LAUNCH_STAYERS_MAX; i++)
        stayers->list[i].finished.pump = PUMP_NONE;
}

void stayers_forget(struct stayers *stayers)
{
    for (size_t i = 0; i < LAUNCH_STAYERS_MAX; i++)
        stayers->list[i].lives = false;
}

static struct stayer *find(struct stayers *stayers, const uint8_t key[SHA256_BYTES])
{
    for (size_t i = 0; i < LAUNCH_STAYERS_MAX; i++)
        if (stayers->list[i].lives && memcmp(stayers->list[i].key, key, SHA256_BYTES) == 0)
            return &stayers->list[i];
    return NULL;
}

static struct stayer *least_used(struct stayers *stayers)
{
    struct stayer *least = &stayers->list[0];

    for (size_t i = 1; i < LAUNCH_STAYERS_MAX; i++) {
        struct stayer *other = &stayers->list[i];
        if (other->lives < least->lives || (other->lives == least->lives && other->used < least->used))
            least = other;
    }
    return least;
}

/* --- one run --- */

static struct buffer *written(struct run *run)
{
    return &run->finished->pump.gathered[PUMP_OUTPUT];
}

static bool has_line(struct run *run)
{
    return run->reason == REASON_NONE && memchr(buffer_text(written(run)).data, '\n', written(run)->length_bytes);
}

/* Until it has ended; or, if a line is enough, until there is one. */
static enum run_end wait_for(struct stayer *stayer, struct runs *runs, bool line_is_enough)
{
    struct run *run = &runs->list[0];

    while (!run->ended && !(line_is_enough && has_line(run)))
        if (!run_turn(runs))
            return RUN_CLIENT_GONE;
    stayer->run = *run;
    stayer->lives = !run->ended;
    return run->ended ? run_sum_up(runs) : RUN_DONE;
}

static enum run_end end_stayer(struct stayer *stayer, struct holder *holder, int client)
{
    struct runs runs = {.holder = holder, .client = client, .count = 1, .list = {stayer->run}};

    run_kill(&runs, &runs.list[0], REASON_PEER);
    return wait_for(stayer, &runs, false);
}

/* It has said a line: is that all? One that ends with its answer has answered, too. */
static enum run_end take_answer(struct stayer *stayer, struct holder *holder, int client)
{
    struct finished *finished = &stayer->finished;
    struct buffer *line = &finished->pump.gathered[PUMP_OUTPUT];
    enum run_end end = RUN_DONE;

    if (stayer->lives)
        pump_take(&finished->pump, PUMP_OUTPUT);
    bool clean =
        !finished->pump.over && memchr(line->data, '\n', line->length_bytes) == line->data + line->length_bytes - 1;
    if (!clean && stayer->lives)
        end = end_stayer(stayer, holder, client);
    finished->outcome = SANDBOX_ANSWERED;
    finished->wall_us = clock_monotonic_us() - stayer->run.began_us;
    finished->began = true;
    snprintf(finished->message, sizeof finished->message, "%s", clean ? "" : "more than one line");
    line->length_bytes -= clean;
    return end;
}

static enum run_end serve(struct stayer *stayer, struct runs *runs)
{
    enum run_end end = wait_for(stayer, runs, true);

    if (end != RUN_DONE)
        return end;
    stayer->runs++;
    if (!has_line(&stayer->run) || (!stayer->lives && stayer->finished.outcome != SANDBOX_ENDED))
        return end;
    return take_answer(stayer, runs->holder, runs->client);
}

/* --- a process --- */

/* Nothing may come from it while nobody has asked. */
static bool has_said_something(const struct stayer *stayer)
{
    struct pollfd polled = {stayer->finished.pump.fds[PUMP_OUTPUT], POLLIN, 0};

    return polled.fd < 0 || poll(&polled, 1, 0) != 0;
}

static enum run_end begin(struct stayers *stayers, struct stayer *stayer, struct holder *holder, int client,
                          const struct job *job, const uint8_t key[SHA256_BYTES])
{
    size_t place = (size_t)(stayer - stayers->list);
    struct runs runs = {.holder = holder, .client = client, .count = 1};

    pump_finish(&stayer->finished.pump);
    *stayer = (struct stayer){.job = *job, .finished = {.outcome = SANDBOX_BROKEN, .exit_code = -1, .pump = PUMP_NONE}};
    memcpy(stayer->key, key, SHA256_BYTES);
    stayer->used = ++stayers->uses;
    holder->left[place] = false;
    holder->launched++;
    runs.list[0] =
        (struct run){.job = &stayer->job, .finished = &stayer->finished, .index = (uint32_t)(LAUNCH_TASKS_MAX + place)};
    run_start(&runs, &runs.list[0], -1);
    return serve(stayer, &runs);
}

static enum run_end go_on(struct stayers *stayers, struct stayer *stayer, struct holder *holder, int client,
                          struct text input)
{
    struct runs runs = {.holder = holder, .client = client, .count = 1, .list = {stayer->run}};
    struct finished *finished = &stayer->finished;

    stayer->used = ++stayers->uses;
    finished->outcome = SANDBOX_BROKEN;
    finished->message[0] = '\0';
    run_begin_again(&runs.list[0]);
    pump_feed_again(&finished->pump, input);
    return serve(stayer, &runs);
}

/* It ended by itself with all of the input still in the pipe: what ended it was not this run. */
static bool has_not_begun(const struct stayer *stayer, size_t untaken_bytes, struct text input)
{
    return !stayer->lives && stayer->run.reason == REASON_NONE && stayer->finished.outcome != SANDBOX_ANSWERED &&
           untaken_bytes == input.length_bytes;
}

enum run_end stay_run(struct stayers *stayers, struct holder *holder, int client, const struct job *job,
                      const uint8_t key[SHA256_BYTES], const struct finished **ret_finished)
{
    struct stayer *stayer = find(stayers, key);
    enum run_end end = RUN_DONE;

    if (!stayer)
        stayer = least_used(stayers);
    *ret_finished = &stayer->finished;
    if (stayer->lives && holder->left[stayer - stayers->list])
        stayer->lives = false;
    if (stayer->lives &&
        (memcmp(stayer->key, key, SHA256_BYTES) != 0 || stayer->runs >= STAY_RUNS_MAX || has_said_something(stayer)))
        end = end_stayer(stayer, holder, client);
    if (end != RUN_DONE)
        return end;
    if (stayer->lives) {
        end = go_on(stayers, stayer, holder, client, job->input);
        if (end != RUN_DONE || !has_not_begun(stayer, pump_untaken_bytes(&stayer->finished.pump), job->input))
            return end;
    }
    return begin(stayers, stayer, holder, client, job, key);
}

enum run_end stay_leave(struct stayers *stayers, struct holder *holder, int client, const uint8_t key[SHA256_BYTES])
{
    struct stayer *stayer = find(stayers, key);

    if (!stayer || holder->left[stayer - stayers->list])
        return RUN_DONE;
    return end_stayer(stayer, holder, client);
}
