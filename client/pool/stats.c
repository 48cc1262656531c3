/* The counters of an engine, and latencies of the last minute in fixed logarithmic buckets. */
#include "client/pool/pool_private.h"

#include <string.h>

#define WINDOW_US INT64_C(10000000)
#define FIRST_BUCKET_US 100
#define BUCKETS_PER_OCTAVE 6

/* The upper ends of the buckets within an octave, in units of 2^-16: 2^(i/6). */
static const uint32_t steps[BUCKETS_PER_OCTAVE] = {73562, 82570, 92682, 104032, 116772, 131072};

static size_t bucket_of(int64_t latency_us)
{
    uint64_t relative = latency_us > 0 ? (uint64_t)latency_us / FIRST_BUCKET_US : 0;
    size_t octave = relative ? (size_t)(63 - __builtin_clzll(relative)) : 0;
    uint64_t scaled = latency_us > FIRST_BUCKET_US ? ((uint64_t)latency_us << 16) / FIRST_BUCKET_US >> octave : 0;
    size_t step = 0;

    while (step < BUCKETS_PER_OCTAVE - 1 && scaled > steps[step])
        step++;
    size_t bucket = octave * BUCKETS_PER_OCTAVE + step;
    return bucket < LATENCY_BUCKETS ? bucket : LATENCY_BUCKETS - 1;
}

static int64_t upper_end_us(size_t bucket)
{
    return (int64_t)(((uint64_t)FIRST_BUCKET_US << bucket / BUCKETS_PER_OCTAVE) * steps[bucket % BUCKETS_PER_OCTAVE] >>
                     16);
}

/* Windows that ended meanwhile are emptied. */
static void turn_windows(struct engine_stats *stats, int64_t now_us)
{
    if (now_us - stats->window_began_us >= LATENCY_WINDOWS * WINDOW_US) {
        memset(stats->latencies, 0, sizeof(stats->latencies));
        stats->window_began_us = now_us;
    }
    while (now_us - stats->window_began_us >= WINDOW_US) {
        stats->window_began_us += WINDOW_US;
        stats->window = (stats->window + 1) % LATENCY_WINDOWS;
        memset(stats->latencies[stats->window], 0, sizeof(stats->latencies[0]));
    }
}

void stats_note(struct engine *engine, const struct pool_result *result, int64_t now_us)
{
    struct engine_stats *stats = &engine->stats;

    if (result->error) {
        stats->failures[result->error->code]++;
        stats->last_error = *result->error;
        stats->last_error_us = now_us;
        return;
    }
    stats->samples++;
    if (!result->began_us)
        return;
    turn_windows(stats, now_us);
    stats->latencies[stats->window][bucket_of(now_us - result->began_us)]++;
}

const struct engine_stats *engine_stats(const struct engine *engine)
{
    return &engine->stats;
}

static int64_t percentile_us(const uint64_t counts[LATENCY_BUCKETS], uint64_t total, unsigned percent)
{
    uint64_t rank = (total * percent + 99) / 100;
    uint64_t seen = 0;

    for (size_t i = 0; i < LATENCY_BUCKETS; i++) {
        seen += counts[i];
        if (seen >= rank)
            return upper_end_us(i);
    }
    return 0;
}

void engine_latency(const struct engine *engine, int64_t now_us, struct engine_latency *ret_latency)
{
    const struct engine_stats *stats = &engine->stats;
    uint64_t counts[LATENCY_BUCKETS] = {0};
    uint64_t total = 0;

    *ret_latency = (struct engine_latency){0};
    for (unsigned back = 0; back < LATENCY_WINDOWS; back++) {
        unsigned window = (stats->window + LATENCY_WINDOWS - back) % LATENCY_WINDOWS;

        if (now_us - stats->window_began_us + back * WINDOW_US >= LATENCY_WINDOWS * WINDOW_US)
            break; /* it began longer ago than the last minute */
        for (size_t i = 0; i < LATENCY_BUCKETS; i++) {
            counts[i] += stats->latencies[window][i];
            total += stats->latencies[window][i];
        }
    }
    if (total == 0)
        return;
    ret_latency->samples = (size_t)total;
    ret_latency->p50_us = percentile_us(counts, total, 50);
    ret_latency->p90_us = percentile_us(counts, total, 90);
    ret_latency->p99_us = percentile_us(counts, total, 99);
}
