/* Trigrams of characters that a text has in common with another one. */
#include "verifiers/ifeval/parts.h"
#include "verifiers/ifeval/rules_private.h"
#include "verifiers/text/salt.h"

/* A set of trigrams: a bit each for those of ASCII, an open table for the others. */
#define ASCII_TRIGRAMS (1u << 21)

struct trigrams {
    uint64_t *ascii;
    uint64_t *others; /* 0: a free slot */
    size_t capacity;  /* of others: a power of two, twice as many as the text can have */
    size_t count;
    uint64_t salt;
};

static void trigrams_init(struct trigrams *set, struct text text)
{
    *set = (struct trigrams){.capacity = 16, .salt = salt_of_process()};
    while (set->capacity < 2 * text.length_bytes)
        set->capacity *= 2;
    set->ascii = xcalloc(ASCII_TRIGRAMS / 64, sizeof *set->ascii);
    set->others = xcalloc(set->capacity, sizeof *set->others);
}

static void trigrams_finish(struct trigrams *set)
{
    free(set->ascii);
    free(set->others);
}

/* 21 bits a character; never 0, which three NUL would be: those are ASCII. */
static bool is_ascii(uint64_t trigram)
{
    return (trigram & ~(UINT64_C(0x7f) | UINT64_C(0x7f) << 21 | UINT64_C(0x7f) << 42)) == 0;
}

static size_t ascii_index(uint64_t trigram)
{
    return (size_t)((trigram & 0x7f) | (trigram >> 21 & 0x7f) << 7 | (trigram >> 42 & 0x7f) << 14);
}

static uint64_t *slot_of(const struct trigrams *set, uint64_t trigram)
{
    size_t at = salt_mix(trigram, set->salt) & (set->capacity - 1);

    while (set->others[at] && set->others[at] != trigram)
        at = (at + 1) & (set->capacity - 1);
    return &set->others[at];
}

static bool has_trigram(const struct trigrams *set, uint64_t trigram)
{
    if (is_ascii(trigram))
        return set->ascii[ascii_index(trigram) / 64] >> ascii_index(trigram) % 64 & 1;
    return *slot_of(set, trigram) == trigram;
}

static void add_trigram(struct trigrams *set, uint64_t trigram)
{
    set->count++;
    if (is_ascii(trigram))
        set->ascii[ascii_index(trigram) / 64] |= UINT64_C(1) << ascii_index(trigram) % 64;
    else
        *slot_of(set, trigram) = trigram;
}

/* The next trigram of a walk that begins with `trigram` 0 and `count` 0. */
static bool next_trigram(struct text *rest, uint64_t *trigram, size_t *count)
{
    while (rest->length_bytes) {
        *trigram = (*trigram << 21 | character_take(rest)) & ((UINT64_C(1) << 63) - 1);
        if (++*count >= 3)
            return true;
    }
    return false;
}

static void add_text(struct trigrams *set, struct text text)
{
    uint64_t trigram = 0;
    size_t count = 0;

    while (next_trigram(&text, &trigram, &count))
        if (!has_trigram(set, trigram))
            add_trigram(set, trigram);
}

/* How many different trigrams of the text are in `other`, and how many there are. */
static size_t count_common(struct text text, const struct trigrams *other, size_t *ret_all)
{
    struct trigrams own;
    uint64_t trigram = 0;
    size_t count = 0;
    size_t common = 0;

    trigrams_init(&own, text);
    while (next_trigram(&text, &trigram, &count)) {
        if (has_trigram(&own, trigram))
            continue;
        add_trigram(&own, trigram);
        common += has_trigram(other, trigram);
    }
    *ret_all = own.count;
    trigrams_finish(&own);
    return common;
}

/* reference_text, percentage: of the different trigrams of the text, so many are in the other one, 2 more or less. */
RULE(has_overlap)
{
    struct trigrams other;
    size_t all;
    size_t common;

    trigrams_init(&other, kwarg[0].text);
    add_text(&other, kwarg[0].text);
    common = count_common(passage->text, &other, &all);
    trigrams_finish(&other);
    return all > 0 && (kwarg[1].number - 2) * (double)all <= (double)common * 100 &&
           (double)common * 100 <= (kwarg[1].number + 2) * (double)all;
}
