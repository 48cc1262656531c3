#include "verifiers/ifeval/rules_private.h"
#include "verifiers/text/salt.h"

struct word_slot {
    const char *word;
    uint32_t length_bytes;
    uint32_t times; /* 0: free */
};

static uint64_t hash_of(struct text word, uint64_t salt)
{
    uint64_t hash = word.length_bytes;
    uint64_t part;

    for (; word.length_bytes >= sizeof part; word.data += sizeof part, word.length_bytes -= sizeof part) {
        memcpy(&part, word.data, sizeof part);
        hash = salt_mix(hash ^ part, salt);
    }
    part = 0;
    if (word.length_bytes)
        memcpy(&part, word.data, word.length_bytes);
    return salt_mix(hash ^ part, salt);
}

static struct text word_of(const struct word_slot *slot)
{
    return (struct text){slot->word, slot->length_bytes};
}

static struct word_slot *find_slot(const struct word_set *set, struct text word)
{
    size_t at = hash_of(word, set->salt) & (set->capacity - 1);

    while (set->slots[at].times && !text_same(word_of(&set->slots[at]), word))
        at = (at + 1) & (set->capacity - 1);
    return &set->slots[at];
}

static void grow(struct word_set *set)
{
    struct word_set larger = {.capacity = set->capacity ? 2 * set->capacity : 512,
                              .salt = set->capacity ? set->salt : salt_of_process()};

    larger.slots = xcalloc(larger.capacity, sizeof *larger.slots);
    for (size_t i = 0; i < set->capacity; i++)
        if (set->slots[i].times)
            *find_slot(&larger, word_of(&set->slots[i])) = set->slots[i];
    free(set->slots);
    set->slots = larger.slots;
    set->capacity = larger.capacity;
    set->salt = larger.salt;
}

size_t word_set_add(struct word_set *set, struct text word)
{
    struct word_slot *slot;

    if (2 * set->count >= set->capacity)
        grow(set);
    slot = find_slot(set, word);
    if (slot->times == 0) {
        slot->word = word.data;
        slot->length_bytes = (uint32_t)word.length_bytes;
        set->count++;
    }
    return ++slot->times;
}

void word_set_finish(struct word_set *set)
{
    free(set->slots);
    *set = (struct word_set){0};
}
