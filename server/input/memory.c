#include "server/input/memory.h"

#include <jansson.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#define HEAP_TRIM_BYTES                                                                                                \
    ((size_t)128 * 1024)                /* freeing more than 64 KiB makes glibc 2.36 look at the end of its heap       \
                                         */
#define STEP_BYTES ((size_t)256 * 1024) /* taken from the limit at once; a tree within the first step always fits */

static size_t limit_bytes = SIZE_MAX;
static atomic_size_t taken_bytes;

static _Thread_local struct {
    bool parsing;
    size_t used_bytes;
    size_t held_bytes; /* of taken_bytes */
    enum json_memory_end end;
} here;

static bool take_step(size_t size_bytes)
{
    size_t step_bytes = size_bytes > STEP_BYTES ? size_bytes : STEP_BYTES;

    if (here.held_bytes + step_bytes > limit_bytes)
        here.end = JSON_MEMORY_TOO_LARGE;
    else if (atomic_fetch_add(&taken_bytes, step_bytes) + step_bytes > limit_bytes && here.held_bytes > 0) {
        atomic_fetch_sub(&taken_bytes, step_bytes);
        here.end = JSON_MEMORY_BUSY;
    } else
        here.held_bytes += step_bytes;
    return here.end == JSON_MEMORY_FITS;
}

static void *allocate(size_t size_bytes)
{
    void *memory;

    if (!here.parsing)
        return malloc(size_bytes);
    if (here.end != JSON_MEMORY_FITS)
        return NULL;
    if (here.used_bytes + size_bytes > here.held_bytes && !take_step(size_bytes))
        return NULL;
    memory = malloc(size_bytes);
    here.used_bytes += memory ? malloc_usable_size(memory) + sizeof(size_t) : 0;
    return memory;
}

static void release(void *memory)
{
    size_t size_bytes = memory && here.parsing ? malloc_usable_size(memory) + sizeof(size_t) : 0;

    here.used_bytes -= size_bytes < here.used_bytes ? size_bytes : here.used_bytes;
    free(memory);
}

void json_memory_setup(size_t limit)
{
    limit_bytes = limit > STEP_BYTES ? limit : STEP_BYTES;
    json_set_alloc_funcs(allocate, release);
}

void json_memory_begin(void)
{
    here.parsing = true;
    here.used_bytes = here.held_bytes = 0;
    here.end = JSON_MEMORY_FITS;
}

enum json_memory_end json_memory_end(size_t *ret_held_bytes)
{
    here.parsing = false;
    *ret_held_bytes = here.held_bytes;
    return here.end;
}

void json_memory_give(size_t held_bytes)
{
    atomic_fetch_sub(&taken_bytes, held_bytes);
}

/* malloc_trim() leaves the end of every arena but the main one as it is: in one of four runs 30 MiB stayed with it. */
void json_memory_trim(void)
{
    void *volatile last = malloc(HEAP_TRIM_BYTES);

    (void)malloc_trim(0);
    free(last);
}
