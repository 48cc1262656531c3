/* pattern: a PCRE2 pattern over UTF-8 whose work is bounded, whatever the pattern and the text.
 *
 * The work is counted, not timed: PCRE2 calls back before each item of the pattern, at every start and after every step
 * back. PCRE2's own match limit would not do: it begins anew at each byte of the text, and does not see the characters
 * that one item takes in a loop. \d, \w and \s are ASCII.
 *
 * No JIT: a worker may not map executable memory. One thread at a time for each pattern. */
#ifndef VERIFIERS_TEXT_PATTERN_H
#define VERIFIERS_TEXT_PATTERN_H

#include "server/base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PATTERN_PROBLEM_BYTES 160

struct pattern;

/* NULL if it does not compile, with a sentence; `source` must outlive the pattern. */
struct pattern *pattern_create(struct text source, char ret_problem[PATTERN_PROBLEM_BYTES]);
void pattern_destroy(struct pattern *pattern); /* NULL is allowed */
static inline void pattern_destroyp(struct pattern **pattern)
{
    pattern_destroy(*pattern);
}

uint32_t pattern_group_count(const struct pattern *pattern);

enum pattern_result {
    PATTERN_MATCH,
    PATTERN_NO_MATCH,
    PATTERN_WORK_LIMIT, /* of all matches of this pattern together */
    PATTERN_GAVE_UP     /* no memory, or a text that is no UTF-8 */
};

/* The first match that begins at `from_bytes` or later; whole: only one that begins at `from_bytes` and takes the rest.
 * A text is searched from 0 first. */
enum pattern_result pattern_match(struct pattern *pattern, struct text text, size_t from_bytes, bool whole);

/* From now on its work is counted in *units, which several patterns may share and others may add to. Beyond units_max
 * there are no more matches. A unit is about a nanosecond: a byte of the text that a simple item takes. */
void pattern_share_work(struct pattern *pattern, uint64_t *units, uint64_t units_max);

/* A group of the last match (0: all of it), in the text that was searched; TEXT_NONE if it took no part. */
struct text pattern_group(const struct pattern *pattern, uint32_t group);

/* PCRE2's number of the last PATTERN_GAVE_UP. */
int pattern_error(const struct pattern *pattern);

#endif
