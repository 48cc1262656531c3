#include "verifiers/schema/schema_private.h"

const struct keyword_row keyword_rows[KEYWORDS] = {
#define KEYWORD(ENUMERATOR, NAME, SHAPE) [KEYWORD_##ENUMERATOR] = {NAME, SHAPE_##SHAPE},
#include "verifiers/schema/keywords.def"
#undef KEYWORD
};

/* As strcmp() of two strings: the table is sorted by it. */
static int order(struct text name, const char *other)
{
    size_t other_bytes = strlen(other);
    size_t shorter = name.length_bytes < other_bytes ? name.length_bytes : other_bytes;
    int result = memcmp(name.data, other, shorter);

    return result ? result : (name.length_bytes > other_bytes) - (name.length_bytes < other_bytes);
}

enum keyword keyword_find(struct text name)
{
    size_t low = 0;
    size_t high = KEYWORDS;

    while (low < high) {
        size_t middle = (low + high) / 2;
        int result = order(name, keyword_rows[middle].name);
        if (result == 0)
            return (enum keyword)middle;
        if (result < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return KEYWORDS;
}
