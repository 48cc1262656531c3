#include "server/base/nearest.h"

#include <string.h>

enum { LONGEST_BYTES = 32 };

static size_t distance(const char *left, const char *right)
{
    size_t row[LONGEST_BYTES + 1];
    size_t right_length = strlen(right);
    for (size_t j = 0; j <= right_length; j++)
        row[j] = j;
    for (size_t i = 0; left[i]; i++) {
        size_t diagonal = row[0]++;
        for (size_t j = 0; j < right_length; j++) {
            size_t changed = diagonal + (left[i] != right[j]);
            size_t inserted = (row[j] < row[j + 1] ? row[j] : row[j + 1]) + 1;
            diagonal = row[j + 1];
            row[j + 1] = changed < inserted ? changed : inserted;
        }
    }
    return row[right_length];
}

const char *nearest_name(const char *name, const void *rows, size_t row_bytes, size_t count)
{
    const char *nearest = NULL;
    size_t length = strnlen(name, LONGEST_BYTES + 1);
    size_t bound = length / 3 + 2; /* a swap of two letters counts as two */
    if (length > LONGEST_BYTES || length < 2)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        const char *candidate = *(const char *const *)((const char *)rows + i * row_bytes);
        if (strlen(candidate) > LONGEST_BYTES)
            continue;
        size_t apart = distance(name, candidate);
        if (apart < bound && apart < length) {
            nearest = candidate;
            bound = apart;
        }
    }
    return nearest;
}
