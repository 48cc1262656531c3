/* memory: the allocations of one result of a read. Everything is freed at once. One thread at a time. */
#ifndef SERVER_STORE_SQLITE_MEMORY_H
#define SERVER_STORE_SQLITE_MEMORY_H

#include "server/base/text.h"

#include <stdbool.h>
#include <stddef.h>

struct store_memory;

struct store_memory *store_memory_create(void); /* never NULL */
void store_memory_destroy(struct store_memory *memory);

/* Zeroed and aligned for anything. NULL if there is no memory, and then store_memory_failed() stays true. */
void *store_memory_take(struct store_memory *memory, size_t count, size_t size_bytes);
/* An array of `count` elements, NULL at first, with room for one more; it doubles, and may have moved. NULL: there is no
 * memory. */
void *store_memory_grow(struct store_memory *memory, void *array, size_t count, size_t *capacity, size_t size_bytes);
/* A copy, followed by a NUL. */
struct text store_memory_text(struct store_memory *memory, const void *bytes, size_t length_bytes);
/* Unpacks the bytes that store_pack() made; TEXT_NONE, and store_memory_failed(): they are damaged, or there is no memory. */
struct text store_memory_unpacked(struct store_memory *memory, struct text packed);
size_t store_memory_bytes(const struct store_memory *memory); /* taken so far */
/* Something of the result cannot be had: from now on store_memory_failed(). */
void store_memory_fail(struct store_memory *memory);
bool store_memory_failed(const struct store_memory *memory);

#endif
