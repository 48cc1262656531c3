/* storage: how large the record is, how much room it has, and when that is used up. Loop thread. */
#ifndef SERVER_API_STORAGE_H
#define SERVER_API_STORAGE_H

#include <stddef.h>
#include <stdint.h>

struct store;

#define STORAGE_SAMPLES 1440
#define STORAGE_PERIOD_US (60 * INT64_C(1000000))

/* Bytes in use over the last day, a sample a minute. */
struct storage_history {
    struct storage_sample {
        int64_t at_us; /* monotonic */
        int64_t used_bytes;
    } samples[STORAGE_SAMPLES];
    size_t count; /* taken since the start */
};

/* Now and then; at most one sample a minute is kept. */
void storage_look(struct storage_history *history, const struct store *store);

#endif
