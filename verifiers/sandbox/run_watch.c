/* The watch over programs that run: time, memory, and whether there is anything to wait for. */
#include "verifiers/sandbox/run_parts_private.h"

#include "server/base/cleanup.h"
#include "server/base/clock.h"
#include "verifiers/sandbox/usage_private.h"

#define BEGIN_GRACE_US (60 * US_PER_S) /* for the set-up; with that of a zygote */
#define KILL_GRACE_US (10 * US_PER_S)  /* from the kill to the end */
#define WAIT_FACTOR 9                  /* of its wall time: so much longer may it take on a machine that is busy */

/* Its own processes may be the ones that have the processors, and hide what they compute by ending soon: so waiting has an
 * end, too. */
static int64_t wall_limit_us(const struct run *run)
{
    int64_t limit_us = run->job->task.limits.wall_ms * US_PER_MS;
    int64_t most_us = WAIT_FACTOR * limit_us;

    return limit_us + (run->waited_us < most_us ? run->waited_us : most_us);
}

/* The program and the first process of its namespace, among the launcher's children. */
static void find_roots(struct run *run)
{
    pid_t children[256];
    size_t count = usage_children(run->launcher, children, ARRAY_LENGTH(children));
    struct usage own = {0};

    for (size_t i = 0; i < count; i++) {
        pid_t inner = usage_inner_pid(run->launcher, children[i]);
        if (inner && inner == run->program)
            run->root = children[i];
        if (inner && inner == run->init)
            run->init_root = children[i];
    }
    if (run->job->python)
        usage_add_process(run->launcher, &own);
    run->own_bytes = own.memory_bytes;
}

/* Processes that have lost their parent: children of the first process of the namespace, which has the launcher's memory
 * itself; without namespaces, of the launcher, and in the program's group still. */
static size_t find_orphans(const struct run *run, pid_t *ret_pids, size_t room)
{
    size_t count = usage_children(run->init_root ? run->init_root : run->launcher, ret_pids, room);
    size_t kept = 0;

    for (size_t i = 0; i < count; i++)
        if (run->init_root || (ret_pids[i] != run->root && usage_group(ret_pids[i]) == run->root))
            ret_pids[kept++] = ret_pids[i];
    return kept;
}

static struct usage look(const struct run *run, const pid_t *orphans, size_t count)
{
    struct usage usage = {0};
    int64_t own_bytes;

    usage_add_tree(run->root, &usage);
    for (size_t i = 0; i < count; i++)
        usage_add_tree(orphans[i], &usage);
    own_bytes = (int64_t)usage.processes * run->own_bytes;
    usage.memory_bytes -= own_bytes < usage.memory_bytes ? own_bytes : usage.memory_bytes;
    return usage;
}

/* Shared pages have been counted once for each process: what is beyond the limit then is counted with care. */
static int64_t exact_memory(const struct run *run, const pid_t *orphans, size_t count, int64_t memory_bytes)
{
    int64_t sum_bytes = usage_exact_memory(run->root);

    for (size_t i = 0; i < count && sum_bytes >= 0; i++) {
        int64_t part_bytes = usage_exact_memory(orphans[i]);
        sum_bytes = part_bytes < 0 ? -1 : sum_bytes + part_bytes;
    }
    return sum_bytes < 0 ? memory_bytes : sum_bytes;
}

/* Shared memory that no resident set shows. All that is mapped is more than it, and costs nothing to know. */
static bool has_too_much_mapped(const struct run *run, const pid_t *orphans, size_t count, int64_t mapped_bytes)
{
    int64_t limit_bytes = run->job->task.limits.memory_bytes;

    return mapped_bytes > limit_bytes &&
           usage_shared_mappings(&run->root, 1) + usage_shared_mappings(orphans, count) > limit_bytes;
}

static void watch(struct runs *runs, struct run *run)
{
    const struct sandbox_limits *limits = &run->job->task.limits;
    pid_t orphans[256];
    size_t count;
    struct usage usage;

    run->watch_us = clock_monotonic_us() + WATCH_US;
    if (!run->root)
        find_roots(run);
    if (!run->root)
        return;
    count = find_orphans(run, orphans, ARRAY_LENGTH(orphans));
    usage = look(run, orphans, count);
    usage.cpu_us -= run->cpu_before_us;
    if (usage.memory_bytes > limits->memory_bytes)
        usage.memory_bytes = exact_memory(run, orphans, count, usage.memory_bytes);
    if (usage.cpu_us > run->peak.cpu_us)
        run->peak.cpu_us = usage.cpu_us;
    if (usage.memory_bytes > run->peak.memory_bytes)
        run->peak.memory_bytes = usage.memory_bytes;
    if (usage.memory_bytes > limits->memory_bytes || has_too_much_mapped(run, orphans, count, usage.mapped_bytes))
        run_kill(runs, run, REASON_MEMORY);
    if (usage.cpu_us > limits->cpu_ms * US_PER_MS)
        run_kill(runs, run, REASON_CPU);
}

/* When something must be looked at again. */
int64_t run_next_us(const struct run *run)
{
    int64_t next_us;

    if (run->ended)
        return NEVER_US;
    if (run->reason != REASON_NONE)
        return run->kill_us + KILL_GRACE_US;
    if (!run->began)
        return run->sent_us + BEGIN_GRACE_US;
    next_us = run->began_us + wall_limit_us(run);
    if (run->give_up_us && run->give_up_us < next_us)
        next_us = run->give_up_us;
    return run->watch_us < next_us ? run->watch_us : next_us;
}

/* The kernel adds what a process has waited when it gets its processor: one that waits now gets another moment, as long
 * as it computes for less than half of it. */
static bool is_waiting(struct run *run, int64_t now_us)
{
    struct usage usage = {0};
    bool computes;

    if (!usage_is_ready(run->root))
        return false;
    usage_add_process(run->root, &usage);
    computes = run->late_us && 2 * (usage.cpu_us - run->late_cpu_us) > now_us - run->late_us;
    run->late_us = now_us;
    run->late_cpu_us = usage.cpu_us;
    return !computes;
}

/* A slow machine is no fault of the program. A program that tries to seem slow pays with processor time. */
static bool is_late(struct run *run, int64_t now_us)
{
    int64_t waited_us;

    if (now_us < run->began_us + wall_limit_us(run) || !run->root)
        return now_us >= run->began_us + wall_limit_us(run);
    waited_us = usage_waited_us(run->root) - run->waited_before_us;
    if (waited_us > run->waited_us)
        run->waited_us = waited_us;
    if (now_us >= run->began_us + wall_limit_us(run) && is_waiting(run, now_us))
        run->waited_us += now_us - run->began_us - wall_limit_us(run) + WATCH_US;
    return now_us >= run->began_us + wall_limit_us(run);
}

void run_check_time(struct runs *runs, struct run *run, int64_t now_us)
{
    if (run->ended)
        return;
    if (run->reason != REASON_NONE) {
        if (now_us >= run->kill_us + KILL_GRACE_US)
            run_end_broken(run, "a program did not end when it was killed");
    } else if (!run->began) {
        if (now_us >= run->sent_us + BEGIN_GRACE_US)
            run_kill(runs, run, REASON_BROKEN);
    } else if (is_late(run, now_us))
        run_kill(runs, run, REASON_WALL);
    else if (run->give_up_us && now_us >= run->give_up_us)
        run_kill(runs, run, REASON_PEER);
    else if (now_us >= run->watch_us)
        watch(runs, run);
}

void run_begin_again(struct run *run)
{
    pid_t orphans[256];
    struct usage usage = {0};

    if (!run->root)
        find_roots(run);
    if (run->root)
        usage = look(run, orphans, find_orphans(run, orphans, ARRAY_LENGTH(orphans)));
    run->cpu_before_us = usage.cpu_us;
    run->waited_before_us = run->root ? usage_waited_us(run->root) : 0;
    run->began_us = clock_monotonic_us();
    run->watch_us = run->began_us + WATCH_US;
    run->waited_us = run->late_us = run->late_cpu_us = 0;
    run->peak = (struct usage){0};
}
