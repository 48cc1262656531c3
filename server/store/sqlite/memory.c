#include "server/store/sqlite/memory.h"

#include "server/base/cleanup.h"
#include "server/store/packed.h"

#include <stdint.h>

enum { CHUNK_BYTES = 16 * 1024, ALIGNMENT_BYTES = 16 };

struct chunk {
    struct chunk *next;
    size_t used_bytes;
    size_t size_bytes;
    _Alignas(ALIGNMENT_BYTES) char bytes[];
};

struct store_memory {
    struct chunk *first; /* the one that is being filled */
    size_t taken_bytes;
    bool failed;
};

struct store_memory *store_memory_create(void)
{
    return xcalloc(1, sizeof(struct store_memory));
}

void store_memory_destroy(struct store_memory *memory)
{
    if (!memory)
        return;
    while (memory->first) {
        struct chunk *chunk = memory->first;
        memory->first = chunk->next;
        free(chunk);
    }
    free(memory);
}

static struct chunk *chunk_create(size_t size_bytes)
{
    struct chunk *chunk = calloc(1, sizeof(*chunk) + size_bytes);
    if (chunk)
        chunk->size_bytes = size_bytes;
    return chunk;
}

/* A large piece gets a chunk of its own, behind the one that is being filled. */
static void *take_large(struct store_memory *memory, size_t size_bytes)
{
    struct chunk *chunk = chunk_create(size_bytes);
    if (!chunk)
        return NULL;
    chunk->used_bytes = size_bytes;
    struct chunk **place = memory->first ? &memory->first->next : &memory->first;
    chunk->next = *place;
    *place = chunk;
    return chunk->bytes;
}

static void *take_small(struct store_memory *memory, size_t size_bytes)
{
    if (!memory->first || memory->first->size_bytes - memory->first->used_bytes < size_bytes) {
        struct chunk *chunk = chunk_create(CHUNK_BYTES);
        if (!chunk)
            return NULL;
        chunk->next = memory->first;
        memory->first = chunk;
    }
    void *piece = memory->first->bytes + memory->first->used_bytes;
    memory->first->used_bytes += size_bytes;
    return piece;
}

void *store_memory_take(struct store_memory *memory, size_t count, size_t size_bytes)
{
    size_t total_bytes = 0;
    void *piece = NULL;
    if (!__builtin_mul_overflow(count, size_bytes, &total_bytes) && total_bytes < SIZE_MAX / 2) {
        total_bytes = (total_bytes + ALIGNMENT_BYTES) / ALIGNMENT_BYTES * ALIGNMENT_BYTES; /* never an empty piece */
        piece = total_bytes > CHUNK_BYTES / 4 ? take_large(memory, total_bytes) : take_small(memory, total_bytes);
    }
    if (!piece)
        memory->failed = true;
    memory->taken_bytes += total_bytes;
    return piece;
}

void *store_memory_grow(struct store_memory *memory, void *array, size_t count, size_t *capacity, size_t size_bytes)
{
    enum { CAPACITY_AT_FIRST = 16 };
    if (count < *capacity)
        return array;
    size_t larger = *capacity ? *capacity * 2 : CAPACITY_AT_FIRST;
    void *moved = store_memory_take(memory, larger, size_bytes);
    if (!moved)
        return NULL;
    if (count)
        memcpy(moved, array, count * size_bytes);
    *capacity = larger;
    return moved;
}

struct text store_memory_text(struct store_memory *memory, const void *bytes, size_t length_bytes)
{
    char *copy = store_memory_take(memory, length_bytes + 1, 1);
    if (!copy)
        return TEXT_NONE;
    if (length_bytes)
        memcpy(copy, bytes, length_bytes);
    return (struct text){copy, length_bytes};
}

struct text store_memory_unpacked(struct store_memory *memory, struct text packed)
{
    size_t plain_bytes;
    char *plain = NULL;
    if (store_unpacked_bytes(packed, &plain_bytes))
        plain = store_memory_take(memory, plain_bytes + 1, 1);
    if (plain && store_unpack(STORE_CODEC_ZSTD, packed, plain, plain_bytes))
        return (struct text){plain, plain_bytes};
    memory->failed = true;
    return TEXT_NONE;
}

void store_memory_fail(struct store_memory *memory)
{
    memory->failed = true;
}

bool store_memory_failed(const struct store_memory *memory)
{
    return memory->failed;
}

size_t store_memory_bytes(const struct store_memory *memory)
{
    return memory->taken_bytes;
}
