/* Text workers that judge for several runs: how many verdicts a second two of them give when the jobs of so many runs
 * alternate. A process judges for one run only, so this is what fresh processes cost.
 *
 *     runs [jobs]
 *
 * A 4 KiB completion for `exact`, 512 jobs waiting at any time. One line of JSON for each number of runs. */
#include "server/verify/pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "server/base/buffer.h"
#include "server/base/clock.h"
#include "verifiers/worker/worker.h"

enum { WAITING = 512, RUNS_MAX = 64 };

static struct loop *loop;
static struct verify_pool *pool;
static struct verify_job jobs[WAITING];
static char names[RUNS_MAX][16];
static struct buffer frame;
static size_t runs, wanted, submitted, ended;

static void done(struct verify_job *job);

static void submit(struct verify_job *job)
{
    *job = (struct verify_job){.frame = frame.data,
                               .frame_bytes = frame.length_bytes,
                               .verifier_count = 1,
                               .parts[WORKER_TEXT].timeout_us = 60 * US_PER_S,
                               .run = names[submitted++ % runs],
                               .done = done};
    if (!verify_submit(pool, job))
        exit(3);
}

static void done(struct verify_job *job)
{
    if (!job->parts[WORKER_TEXT].reply)
        exit(3);
    free(job->parts[WORKER_TEXT].reply);
    if (++ended == wanted)
        loop_stop(loop);
    else if (submitted < wanted)
        submit(job);
}

static void make_frame(void)
{
    buffer_init(&frame, 1 << 16);
    buffer_append(&frame, (char[REQUEST_HEADER_BYTES]){0}, REQUEST_HEADER_BYTES);
    buffer_append_string(&frame, "{\"completion\":\"");
    while (frame.length_bytes < 4096)
        buffer_append_string(&frame, "reasoning ");
    buffer_append_string(&frame, "\",\"reference\":\"4\",\"verifiers\":[{\"name\":\"exact\",\"options\":{}}]}");
    frame_put_length(frame.data, frame.length_bytes - REQUEST_HEADER_BYTES);
}

/* Of this process and of all that it has reaped: the spawner with its workers, once it is stopped. */
static double cpu_s(void)
{
    struct rusage own, children;

    getrusage(RUSAGE_SELF, &own);
    getrusage(RUSAGE_CHILDREN, &children);
    return (double)(own.ru_utime.tv_sec + own.ru_stime.tv_sec + children.ru_utime.tv_sec + children.ru_stime.tv_sec) +
           1e-6 * (double)(own.ru_utime.tv_usec + own.ru_stime.tv_usec + children.ru_utime.tv_usec +
                           children.ru_stime.tv_usec);
}

static void measure(size_t number_of_runs)
{
    struct verify_pool_counts counts;
    struct spawner spawner;
    double cpu_before_s = cpu_s();

    runs = number_of_runs;
    submitted = ended = 0;
    loop = loop_create();
    if (!loop || spawner_start(&spawner) < 0)
        exit(3);
    pool = verify_pool_create(loop, &spawner, &(struct verify_pool_limits){WORKER_TEXT, 2, WAITING});
    int64_t began_us = clock_monotonic_us();
    for (size_t i = 0; i < WAITING && i < wanted; i++)
        submit(&jobs[i]);
    loop_run(loop, NULL, NULL);
    int64_t took_us = clock_monotonic_us() - began_us;
    verify_pool_count(pool, &counts);
    verify_pool_destroy(pool);
    loop_destroy(loop);
    printf("{\"runs\":%zu,\"jobs\":%zu,\"per_s\":%.0f,\"cpu_us_a_job\":%.1f,\"processes\":%llu}\n", runs, wanted,
           (double)wanted * 1e6 / (double)took_us, (cpu_s() - cpu_before_s) * 1e6 / (double)wanted,
           (unsigned long long)counts.workers_started);
}

int main(int argc, char **argv)
{
    static const size_t numbers[] = {1, 2, 8, 64};

    spawner_main(argc, argv);
    wanted = argc > 1 ? (size_t)atol(argv[1]) : 50000;
    make_frame();
    for (size_t i = 0; i < RUNS_MAX; i++)
        snprintf(names[i], sizeof names[i], "run-%zu", i);
    for (size_t i = 0; i < ARRAY_LENGTH(numbers); i++)
        measure(numbers[i]);
    buffer_finish(&frame);
    return 0;
}
