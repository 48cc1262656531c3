/* characters_private: the tables behind characters.c. */
#ifndef VERIFIERS_TEXT_CHARACTERS_PRIVATE_H
#define VERIFIERS_TEXT_CHARACTERS_PRIVATE_H

#include "server/base/cleanup.h"

#include <stddef.h>
#include <stdint.h>

struct character_range {
    uint32_t first, last;
};

struct character_ranges {
    const struct character_range *range;
    size_t count;
};

struct character_stride {
    uint32_t first, last, step;
};

struct character_mapping {
    uint32_t first, last, step;
    int32_t delta; /* from a letter to its small form */
};

struct character_tables {
    struct character_ranges letters, numbers, digits, punctuation, spaces, emoji;
    const struct character_stride *lower;
    size_t lower_count;
    const struct character_mapping *mappings;
    size_t mapping_count;
};

extern const struct character_tables character_tables;

#endif
