/* Shared by the fuzz targets. A target is one file with LLVMFuzzerTestOneInput(): libFuzzer drives it (option
 * `fuzzing`), and in every other build replay.c, over the files of corpus/ and seeds.py. An input never leaves anything
 * behind. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include "server/base/text.h"
#include "server/http/call.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

/* Also where NDEBUG is set. */
#define FUZZ_CHECK(claim)                                                                                              \
    do {                                                                                                               \
        if (!(claim)) {                                                                                                \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #claim);                                 \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

/* Parts of an input end at this byte, which is legal in no JSON. */
#define FUZZ_SEPARATOR 0x1E

/* Takes the first part off, as a copy of exactly its bytes and a NUL behind them, for the caller to free. Parts
 * behind the last one are empty; *ret_length_bytes may be NULL. */
char *fuzz_take_part(struct text *rest, size_t *ret_length_bytes);
uint8_t fuzz_take_byte(struct text *rest); /* 0 at the end */

/* A call as a worker would get it: default settings, no token, a reader of an empty record. */
void fuzz_call_init(struct call *call, const uint8_t *body, size_t body_bytes);
/* Any reply must be one of the table's refusals, as JSON with its code, or a success that is JSON. */
void fuzz_check_reply(const struct call *call);

#endif
