#include "server/base/names.h"

#include "server/base/hash.h"

#include <stdlib.h>
#include <string.h>

enum { SLOTS_AT_FIRST = 64, ROWS_AT_FIRST = 32, BYTES_AT_FIRST = 1024 };

void names_finish(struct names *names)
{
    free(names->bytes);
    free(names->rows);
    free(names->slots);
    *names = (struct names){0};
}

/* Multiply and fold, 8 bytes at a time. */
static uint64_t mix(uint64_t a, uint64_t b)
{
    unsigned __int128 product =
        (unsigned __int128)(a ^ UINT64_C(0x9E3779B97F4A7C15)) * (b ^ UINT64_C(0xD6E8FEB86659FD93));
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t hash_of(uint64_t seed, struct text key)
{
    uint64_t hash = mix(seed, key.length_bytes);
    for (size_t at = 0; at < key.length_bytes; at += sizeof(uint64_t)) {
        uint64_t word = 0;
        size_t left = key.length_bytes - at;
        memcpy(&word, key.data + at, left < sizeof word ? left : sizeof word);
        hash = mix(hash, word);
    }
    return hash;
}

static uint32_t *slot_of(struct names *names, struct text key, uint64_t hash)
{
    size_t at = hash & (names->slot_count - 1);
    while (names->slots[at]) {
        const struct name_row *row = &names->rows[names->slots[at] - 1];
        if (row->hash == hash && text_same((struct text){names->bytes + row->offset, row->length_bytes}, key))
            break;
        at = (at + 1) & (names->slot_count - 1);
    }
    return &names->slots[at];
}

/* At most half of the slots are taken. */
static int make_slots(struct names *names)
{
    if (2 * (names->count + 1) <= names->slot_count)
        return 0;
    size_t slot_count = names->slot_count ? 2 * names->slot_count : SLOTS_AT_FIRST;
    uint32_t *slots = calloc(slot_count, sizeof *slots);
    if (!slots)
        return -1;
    if (!names->slots)
        random_bytes(&names->seed, sizeof names->seed);
    free(names->slots);
    names->slots = slots;
    names->slot_count = slot_count;
    for (size_t i = 0; i < names->count; i++) {
        size_t at = names->rows[i].hash & (slot_count - 1);
        while (slots[at])
            at = (at + 1) & (slot_count - 1);
        slots[at] = (uint32_t)i + 1;
    }
    return 0;
}

static int make_row(struct names *names)
{
    if (names->count < names->room)
        return 0;
    size_t room = names->room ? 2 * names->room : ROWS_AT_FIRST;
    struct name_row *rows = reallocarray(names->rows, room, sizeof *rows);
    if (!rows || room > NAMES_NONE - 1) {
        names->rows = rows ? rows : names->rows;
        return -1;
    }
    names->rows = rows;
    names->room = room;
    return 0;
}

static int make_bytes(struct names *names, size_t more_bytes)
{
    size_t capacity_bytes = names->capacity_bytes ? names->capacity_bytes : BYTES_AT_FIRST;
    while (capacity_bytes - names->length_bytes < more_bytes)
        capacity_bytes *= 2;
    if (capacity_bytes == names->capacity_bytes)
        return 0;
    char *bytes = realloc(names->bytes, capacity_bytes);
    if (!bytes)
        return -1;
    names->bytes = bytes;
    names->capacity_bytes = capacity_bytes;
    return 0;
}

uint32_t names_number(struct names *names, struct text key)
{
    if (make_slots(names) < 0)
        return NAMES_NONE;
    uint64_t hash = hash_of(names->seed, key);
    uint32_t *slot = slot_of(names, key, hash);
    if (*slot)
        return *slot - 1;
    if (make_row(names) < 0 || make_bytes(names, key.length_bytes) < 0)
        return NAMES_NONE;
    if (key.length_bytes)
        memcpy(names->bytes + names->length_bytes, key.data, key.length_bytes);
    names->rows[names->count++] = (struct name_row){names->length_bytes, key.length_bytes, hash};
    names->length_bytes += key.length_bytes;
    *slot = (uint32_t)names->count;
    return *slot - 1;
}

struct text names_key(const struct names *names, uint32_t number)
{
    const struct name_row *row = &names->rows[number];
    return (struct text){names->bytes + row->offset, row->length_bytes};
}
