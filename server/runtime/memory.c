#include "server/runtime/memory.h"

#include "server/base/blocks.h"
#include "server/base/cleanup.h"
#include "server/base/clock.h"
#include "server/settings/settings.h"
#include "server/store/store.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TREES_MIN_BYTES (INT64_C(16) << 20) /* however small the budget is: ordinary bodies can be read */
#define CACHE_SHARE 128
#define CACHE_MIN_BYTES (INT64_C(1) << 20)
#define CACHE_MAX_BYTES (INT64_C(8) << 20)
#define MMAP_THRESHOLD_BYTES (1 << 20)
/* Each arena keeps its own peak. With one for each thread 4,096 samples of 1,024 tokens took 184 MiB, with two 142. */
#define ARENAS_MAX 2
#define LARGE_BYTES ((size_t)4 << 20)
#define GROWTH_BYTES (INT64_C(16) << 20)
#define TRIM_DELAY_US (200 * US_PER_MS) /* blocks freed together are trimmed together */

/* Rows are appended, and the kernel has the file in its own cache: 8 MiB are as fast as 4, and 64 cost 20 % more CPU,
 * for pages that are touched for the first time. */
size_t memory_cache_bytes(const struct settings *settings)
{
    int64_t share_bytes = settings->memory_budget_bytes / CACHE_SHARE;
    return (size_t)(share_bytes < CACHE_MIN_BYTES   ? CACHE_MIN_BYTES
                    : share_bytes > CACHE_MAX_BYTES ? CACHE_MAX_BYTES
                                                    : share_bytes);
}

/* Blocks wait so long, and so much of the budget, for the next request: 128 MiB of 1 GiB hold those of two million
 * tokens as JSON. */
#define KEPT_US (2 * US_PER_S)
#define KEPT_SHARE 8

int64_t memory_for_batches_bytes(const struct settings *settings)
{
    int64_t budget_bytes = settings->memory_budget_bytes;
    int64_t cache_bytes = (int64_t)memory_cache_bytes(settings);
    int64_t left_bytes = budget_bytes - cache_bytes -
                         (settings->workers + settings->readers) * cache_bytes / STORE_READER_SHARE -
                         budget_bytes / KEPT_SHARE;
    int64_t least_bytes = budget_bytes / 2;
    return left_bytes > least_bytes ? left_bytes : least_bytes;
}

int64_t memory_for_replies_bytes(const struct settings *settings)
{
    return settings->memory_budget_bytes / 2;
}

size_t memory_for_trees_bytes(const struct settings *settings)
{
    int64_t budget_bytes = settings->memory_budget_bytes;
    return (size_t)(budget_bytes > TREES_MIN_BYTES ? budget_bytes : TREES_MIN_BYTES);
}

/* Under a sanitizer no block is kept, so that it sees a use after the return. */
static size_t kept_bytes_max(int64_t budget_bytes)
{
#ifdef __SANITIZE_ADDRESS__
    (void)budget_bytes;
    return 0;
#else
    return (size_t)budget_bytes / KEPT_SHARE;
#endif
}

/* Large blocks are mapped one by one from the start, so they are gone as soon as they are freed; a threshold that glibc
 * moves by itself would end that. */
void memory_setup(const struct settings *settings)
{
    blocks_setup(kept_bytes_max(settings->memory_budget_bytes));
    (void)mallopt(M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES);
    (void)mallopt(M_ARENA_MAX, ARENAS_MAX);
}

static int64_t read_resident_bytes(void)
{
    char line[128] = "";
    _cleanup_close_ int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, line, sizeof(line) - 1) <= 0)
        return 0;
    const char *resident = strchr(line, ' '); /* behind the size of the address space */
    return resident ? strtoll(resident, NULL, 10) * sysconf(_SC_PAGESIZE) : 0;
}

/* Worker. glibc keeps freed pages between used ones: after large replies, or a wave of samples. */
static void trim(struct job *job, struct store_reader *reader)
{
    struct memory_trim *self = (struct memory_trim *)job;
    (void)reader;
    self->blocks_rest_us = blocks_release(KEPT_US);
    if (!self->wanted && read_resident_bytes() < self->resident_bytes + GROWTH_BYTES)
        return;
    (void)malloc_trim(0);
    self->resident_bytes = read_resident_bytes();
}

static void blocks_are_idle(void *arg);

static void trimmed(struct job *job)
{
    struct memory_trim *self = (struct memory_trim *)job;
    self->running = false;
    self->wanted = false;
    if (self->blocks_rest_us > 0)
        loop_timer_set(self->loop, &self->blocks_timer, loop_now_us(self->loop) + self->blocks_rest_us, blocks_are_idle,
                       self);
}

static void begin(struct memory_trim *self, bool wanted)
{
    if (self->running)
        return;
    self->running = true;
    self->wanted = wanted;
    self->job = (struct job){.lane = LANE_BATCH, .run = trim, .done = trimmed};
    workers_submit_reserved(self->workers, &self->job);
}

static void blocks_are_idle(void *arg)
{
    begin(arg, false);
}

static void soon(void *arg)
{
    begin(arg, true);
}

void memory_trim_init(struct memory_trim *self, struct loop *loop, struct workers *workers)
{
    *self = (struct memory_trim){.loop = loop, .workers = workers};
}

/* Many that are not large leave as much behind as one that is. */
void memory_freed(struct memory_trim *self, size_t bytes)
{
    self->freed_bytes += (int64_t)bytes;
    if (self->freed_bytes >= GROWTH_BYTES) {
        self->freed_bytes = 0;
        begin(self, false);
    }
    if (bytes >= LARGE_BYTES && !self->timer.place)
        loop_timer_set(self->loop, &self->timer, loop_now_us(self->loop) + TRIM_DELAY_US, soon, self);
}

void memory_trim_if_grown(struct memory_trim *self)
{
    begin(self, false);
}
