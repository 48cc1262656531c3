/* storage: the size of the record, its free space, and the time until that is full. Loop thread. */
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

/* Called periodically; keeps at most one sample a minute. */
void storage_look(struct storage_history *history, const struct store *store);

#endif
