/* A table of answers and what they are read as. */
#ifndef TESTS_VERIFIERS_READINGS_H
#define TESTS_VERIFIERS_READINGS_H

#include <stddef.h>

#include "server/base/cleanup.h"

#define REFUSED NULL
extern const char TOO_LARGE[];

struct reading_row {
    const char *answer;
    const char *printed; /* the normal form, REFUSED or TOO_LARGE */
};

/* Fails at the first row that is read differently, or whose normal form does not read back as the same tree. */
void check_readings(const struct reading_row *rows, size_t count);

#endif
