#include "server/base/blocks.h"

#include "server/base/cleanup.h"
#include "server/base/clock.h"

#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { KEPT_MAX = 32 };

#define HUGE_BYTES ((size_t)4 << 20)

static struct {
    pthread_mutex_t lock;
    void *blocks[KEPT_MAX];
    size_t count;
    size_t kept_bytes;
    size_t kept_bytes_max;
    int64_t used_us; /* when one was last taken or given */
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

void blocks_setup(size_t kept_bytes_max)
{
    kept.kept_bytes_max = kept_bytes_max;
}

static void *remove_block(size_t index)
{
    void *block = kept.blocks[index];
    kept.blocks[index] = kept.blocks[--kept.count];
    kept.kept_bytes -= malloc_usable_size(block);
    return block;
}

/* KEPT_MAX: none is large enough. */
static size_t smallest_of(size_t size_bytes)
{
    size_t best = KEPT_MAX;
    size_t best_bytes = SIZE_MAX;
    for (size_t i = 0; i < kept.count; i++) {
        size_t bytes = malloc_usable_size(kept.blocks[i]);
        if (bytes >= size_bytes && bytes < best_bytes) {
            best = i;
            best_bytes = bytes;
        }
    }
    return best;
}

void *block_find(size_t size_bytes, size_t *ret_capacity_bytes)
{
    void *block = NULL;
    pthread_mutex_lock(&kept.lock);
    size_t index = smallest_of(size_bytes);
    if (index < KEPT_MAX) {
        block = remove_block(index);
        kept.used_us = clock_monotonic_us();
    }
    pthread_mutex_unlock(&kept.lock);
    if (block)
        *ret_capacity_bytes = malloc_usable_size(block);
    return block;
}

/* From 4 MiB the kernel may use pages of 2 MiB: one fault instead of 512. Not where a buffer grows: it asks for twice
 * what it needs, and the last page of what it has would be whole. */
static void advise(void *block, size_t size_bytes)
{
    uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = ((uintptr_t)block + page_bytes - 1) & ~(page_bytes - 1);
    uintptr_t end = ((uintptr_t)block + size_bytes) & ~(page_bytes - 1);
    if (size_bytes >= HUGE_BYTES)
        (void)madvise((void *)begin, end - begin, MADV_HUGEPAGE);
}

void *block_take(size_t size_bytes)
{
    size_t ignored;
    void *block = size_bytes >= BLOCK_BYTES ? block_find(size_bytes, &ignored) : NULL;
    if (block)
        return block;
    block = malloc(size_bytes);
    if (block)
        advise(block, size_bytes);
    return block;
}

void block_give(void *block)
{
    size_t bytes = block ? malloc_usable_size(block) : 0;
    if (bytes >= BLOCK_BYTES) {
        pthread_mutex_lock(&kept.lock);
        if (kept.count < KEPT_MAX && bytes <= kept.kept_bytes_max - kept.kept_bytes) {
            kept.blocks[kept.count++] = TAKE_PTR(block);
            kept.kept_bytes += bytes;
            kept.used_us = clock_monotonic_us();
        }
        pthread_mutex_unlock(&kept.lock);
    }
    free(block);
}

int64_t blocks_release(int64_t idle_us)
{
    void *blocks[KEPT_MAX];
    size_t count = 0;
    pthread_mutex_lock(&kept.lock);
    int64_t rest_us = kept.count ? kept.used_us + idle_us - clock_monotonic_us() : -1;
    while (rest_us <= 0 && kept.count)
        blocks[count++] = remove_block(kept.count - 1);
    pthread_mutex_unlock(&kept.lock);
    for (size_t i = 0; i < count; i++)
        free(blocks[i]);
    return rest_us > 0 ? rest_us : -1;
}
