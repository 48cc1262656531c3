/* Time. Inside the service CLOCK_MONOTONIC, on record UTC; both in microseconds. Any thread. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include "server/base/text.h"

#include <stdbool.h>
#include <stdint.h>

#define US_PER_S INT64_C(1000000)
#define US_PER_MS INT64_C(1000)
#define NEVER_US INT64_MAX

int64_t clock_monotonic_us(void);
int64_t clock_utc_us(void);

/* The pause before another try. It doubles from min_us with each of the tries that were made (1 or more), up to max_us; then it
 * is cut to a part in [0.5, 1) that `spread` decides (splitmix64), so that those that failed together do not come back together. */
int64_t backoff_us(unsigned tries, int64_t min_us, int64_t max_us, uint64_t spread);

#define RFC3339_BYTES 28 /* "2026-11-29T16:16:56.000000Z" and its NUL */

/* utc_us from 0 to the end of year 9999. */
void clock_format_rfc3339(int64_t utc_us, char ret_text[RFC3339_BYTES]);
bool clock_parse_rfc3339(struct text text,
                         int64_t *ret_utc_us); /* UTC or a numeric offset, 0 to 6 digits of fraction */

/* "250us" "250ms" "30s" "5m" "2h" "1d"; digits and one unit, no sign. False (ret untouched) for anything else or beyond
 * 100 years. */
bool duration_parse(struct text text, int64_t *ret_us);
void duration_format(int64_t us, char ret_text[32]); /* the largest unit that is exact: "30s", "1500ms" */

/* "64MiB" "10KiB" "1GiB" "500B" or plain digits; powers of 1024. */
bool size_parse(struct text text, int64_t *ret_bytes);
void size_format(int64_t bytes, char ret_text[32]);

#endif
