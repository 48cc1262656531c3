#include "verifiers/text/ngrams.h"

#include "server/base/cleanup.h"
#include "verifiers/text/salt.h"

struct word {
    uint32_t start;
    uint32_t length_bytes;
};

/* Positions by what stands there, each 1 more; 0: free. Twice as many slots as positions. */
struct table {
    uint32_t *slots;
    size_t mask;
    uint64_t salt;
};

static void table_init(struct table *table, size_t positions)
{
    size_t slots = 4;

    while (slots < positions * 2)
        slots *= 2;
    table->slots = xcalloc(slots, sizeof table->slots[0]);
    table->mask = slots - 1;
    table->salt = salt_of_process();
}

static void table_clear(struct table *table)
{
    memset(table->slots, 0, (table->mask + 1) * sizeof table->slots[0]);
}

/* --- words --- */

static bool is_space(char byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

/* The next word at or after *at, which moves behind it. False: there is none. */
static bool next_word(struct text text, size_t *at, struct word *ret_word)
{
    size_t start;

    while (*at < text.length_bytes && is_space(text.data[*at]))
        ++*at;
    start = *at;
    while (*at < text.length_bytes && !is_space(text.data[*at]))
        ++*at;
    *ret_word = (struct word){(uint32_t)start, (uint32_t)(*at - start)};
    return *at > start;
}

static size_t count_words(struct text text)
{
    struct word word;
    size_t count = 0;
    size_t at = 0;

    while (count < NGRAMS_WORDS_MAX && next_word(text, &at, &word))
        count++;
    return count;
}

static uint64_t hash_word(const char *bytes, size_t length_bytes, uint64_t salt)
{
    uint64_t hash = length_bytes;

    for (; length_bytes >= 8; bytes += 8, length_bytes -= 8) {
        uint64_t part;
        memcpy(&part, bytes, 8);
        hash = salt_mix(hash ^ part, salt);
    }
    uint64_t rest = 0;
    memcpy(&rest, bytes, length_bytes);
    return salt_mix(hash ^ rest, salt);
}

static bool is_same(struct text text, struct word left, struct word right)
{
    return left.length_bytes == right.length_bytes &&
           memcmp(text.data + left.start, text.data + right.start, left.length_bytes) == 0;
}

/* ret_first[i]: the first position that has the word of position i. Returns how many differ. */
static size_t rank_words(struct text text, size_t count, struct table *table, uint32_t *ret_first)
{
    _cleanup_free_ struct word *words = xcalloc(count + 1, sizeof words[0]);
    size_t distinct = 0;
    size_t at = 0;

    for (size_t i = 0; i < count && next_word(text, &at, &words[i]); i++) {
        size_t slot = hash_word(text.data + words[i].start, words[i].length_bytes, table->salt) & table->mask;
        while (table->slots[slot] && !is_same(text, words[table->slots[slot] - 1], words[i]))
            slot = (slot + 1) & table->mask;
        if (!table->slots[slot]) {
            table->slots[slot] = (uint32_t)i + 1;
            distinct++;
        }
        ret_first[i] = table->slots[slot] - 1;
    }
    return distinct;
}

/* --- longer runs --- */

#define PARTS 4

/* Where in a longer run those begin whose ranks tell it apart: they may overlap, and cover it. */
struct parts {
    size_t length; /* of the longer run */
    size_t at[PARTS];
};

static struct parts cut(size_t longer, size_t length)
{
    struct parts parts = {.length = longer};

    for (size_t i = 1; i < PARTS; i++)
        parts.at[i] = i * length < longer - length ? i * length : longer - length;
    return parts;
}

static bool same_parts(const uint32_t *left, const uint32_t *right, const struct parts *parts)
{
    return left[0] == right[0] && left[parts->at[1]] == right[parts->at[1]] &&
           left[parts->at[2]] == right[parts->at[2]] && left[parts->at[3]] == right[parts->at[3]];
}

static uint64_t hash_parts(const uint32_t *first, const struct parts *parts, uint64_t salt)
{
    uint64_t hash = salt_mix((uint64_t)first[0] << 32 | first[parts->at[1]], salt);

    return salt_mix(hash ^ ((uint64_t)first[parts->at[2]] << 32 | first[parts->at[3]]), salt);
}

/* The same of `count` longer runs, by the ranks of their parts. */
static size_t rank_runs(const uint32_t *first, const struct parts *parts, size_t count, struct table *table,
                        uint32_t *ret_first)
{
    size_t distinct = 0;

    table_clear(table);
    for (size_t i = 0; i < count; i++) {
        size_t slot = hash_parts(first + i, parts, table->salt) & table->mask;
        while (table->slots[slot] && !same_parts(first + table->slots[slot] - 1, first + i, parts))
            slot = (slot + 1) & table->mask;
        if (!table->slots[slot]) {
            table->slots[slot] = (uint32_t)i + 1;
            distinct++;
        }
        ret_first[i] = table->slots[slot] - 1;
    }
    return distinct;
}

static void swap(uint32_t **left, uint32_t **right)
{
    uint32_t *kept = *left;

    *left = *right;
    *right = kept;
}

struct ngrams ngrams_count(struct text text, size_t n)
{
    struct ngrams found = {.words = count_words(text)};
    _cleanup_free_ uint32_t *first = xcalloc(found.words + 1, sizeof first[0]);
    _cleanup_free_ uint32_t *next = xcalloc(found.words + 1, sizeof next[0]);
    struct table table;
    size_t length = 1;

    if (n > found.words)
        return found;
    found.all = found.words - n + 1;
    table_init(&table, found.words);
    found.distinct = rank_words(text, found.words, &table, first);
    /* Where all of a length differ, all longer ones do. */
    while (length < n && found.distinct < found.words - length + 1) {
        struct parts parts = cut(length * PARTS < n ? length * PARTS : n, length);
        found.distinct = rank_runs(first, &parts, found.words - parts.length + 1, &table, next);
        swap(&first, &next);
        length = parts.length;
    }
    if (length < n)
        found.distinct = found.all;
    free(table.slots);
    return found;
}
