/* returns: the arrays of numbers in a batch's reply, and the request's `return`, which chooses among them. */
#ifndef SERVER_SPEC_RETURNS_H
#define SERVER_SPEC_RETURNS_H

#include "server/http/call.h"

#include <jansson.h>

/* The one list of their names: prompt_ids is the group's, the others are members of a rollout. */
enum returns_array {
    RETURNS_PROMPT_IDS,
    RETURNS_COMPLETION_IDS,
    RETURNS_LOGPROBS,
    RETURNS_COMPLETION_MASK,
    RETURNS_SURROGATES,
    RETURNS_CONTRIBUTIONS,
    RETURNS_COUNT,
};
extern const char *const returns_names[RETURNS_COUNT];

/* A set of them: 1U << enum returns_array. */
#define RETURNS_ALL ((1U << RETURNS_COUNT) - 1)

/* Loop thread or worker. `return` of a request, a list of names. list NULL: all. 0, or -1 with the call refused (400,
 * path return[i]). */
int returns_read(struct call *call, const json_t *list, unsigned *ret_arrays);
/* The set of a list on record, which returns_read() has checked. TEXT_NONE, or unreadable: all. Any thread. */
unsigned returns_stored(struct text list);

#endif
