/* The objective's handlers without HTTP: a request goes in as text, the reply comes out as JSON. The record behind the
 * stored form is made up: five rollouts of one batch (objective_fixture.c). */
#ifndef SERVER_OBJECTIVE_FIXTURE_H
#define SERVER_OBJECTIVE_FIXTURE_H

#include "server/api/objective.h"
#include "server/api/routes.h"

#include <jansson.h>
#include <stdbool.h>

#define BATCH "b_01jdwx3m8k9q2v5r7t0a1b2c3d"
#define ROLLOUT(group, sample) "r_01jdwx3m8k9q2v5r7t0a1b2c3d-0000" #group "-0000" #sample

struct asked {
    struct call call;
    json_t *reply;
};

void ask(struct asked *asked, const char *body);
void finish(struct asked *asked);
json_t *find(json_t *value, const char *path); /* "sequences.0.contributions.1" */
double number(const struct asked *asked, const char *path);
void assert_number(const struct asked *asked, const char *path, double want);
void assert_is_null(const struct asked *asked, const char *path);
bool has_note(const struct asked *asked, const char *part);
void assert_refused(const char *body, int status, const char *code, const char *path); /* path NULL: any */

#define ONE_OF(group, reward, rest) "{\"group\":\"" group "\",\"reward\":" reward "," rest "}"
#define PAIR "\"sequences\":[" ONE_OF("a", "1", "\"logprobs\":[-1]") "," ONE_OF("a", "0", "\"logprobs\":[-1]") "]"

#endif
