/* Shared by the tests of judge: what it asks, and its verdict on replies that are made here. */
#ifndef TESTS_VERIFIERS_JUDGE_FIXTURE_H
#define TESTS_VERIFIERS_JUDGE_FIXTURE_H

#include "tests/unit/verifiers/grade.h"

/* Options of judge, as the inside of a JSON object; most are to be closed with "}". */
#define YES_NO "\"parse\":{\"kind\":\"yes_no\"}"
#define LETTERS "\"parse\":{\"kind\":\"letter\",\"labels\":{\"A\":1,\"B\":0,\"C\":0.5}"
#define BRACKETS "\"parse\":{\"kind\":\"brackets\",\"labels\":{\"[[A]]\":0,\"[[B]]\":1,\"[[TIE]]\":0.5}"
#define SCORE "\"parse\":{\"kind\":\"json_score\",\"min\":0,\"max\":10"
#define RATING "\"parse\":{\"kind\":\"rating\",\"pattern\":\"Rating: (\\\\S+)\",\"min\":-1,\"max\":1"
#define REWARD "\"parse\":{\"kind\":\"reward_model\",\"payload\":"

/* The options with an engine, checked and complete; NULL with the problem. */
json_t *fill(const char *options, struct verifier_problem *ret_problem);

/* A completion with what is beside it. */
struct asked {
    const char *options;
    const char *prompt; /* NULL: none */
    const char *completion;
    const char *reference; /* JSON text; NULL: none */
    const struct piece *pieces;
    size_t piece_count;
};

/* replies: NULL: what it asks is added to `calls`, and the verdict has no reason, unless it asks nothing; else the
 * verdict on them. */
struct verdict run(const struct asked *asked, json_t *calls, const json_t *replies);

json_t *ask(const struct asked *asked);             /* its calls; it must have some */
json_t *body_of(const json_t *calls, size_t index); /* of one call, as a value */
struct text content_of(const json_t *body, size_t message);

/* Replies of an engine: one that says this, and one with this body. */
json_t *said(const char *content);
json_t *body_text(const char *body);

/* A verdict on the completion C of the prompt Q and the reference R. Takes the replies. */
struct verdict hear(const char *options, json_t *replies);

/* code: of the failure; NULL: it has the score. */
void expect_verdict(const char *about, struct verdict verdict, double score, const char *code);

/* "2+2=4\nso 5" */
extern const struct piece two_steps[2];

#endif
