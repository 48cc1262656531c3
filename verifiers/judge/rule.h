/* rule: the options of a judge, read once: its questions, the reading of a reply, the combination of several replies.
 *
 * Everything points into the options. Pure; any thread. */
#ifndef VERIFIERS_JUDGE_RULE_H
#define VERIFIERS_JUDGE_RULE_H

#include "verifiers/verifier.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define JUDGE_LABELS_MAX 32
#define JUDGE_LABEL_BYTES 64
#define JUDGE_VOTES_MAX 64
#define JUDGE_SEED_MAX 2147483647 /* llama.cpp draws one at random for 2^32 - 1 */

enum judge_kind {
    JUDGE_YES_NO,
    JUDGE_LETTER,
    JUDGE_BRACKETS,
    JUDGE_JSON_SCORE,
    JUDGE_RATING,
    JUDGE_REWARD_MODEL,
    JUDGE_KINDS
};

enum judge_position { JUDGE_ONLY, JUDGE_FIRST, JUDGE_LAST, JUDGE_LAST_WORD, JUDGE_POSITIONS };

enum judge_disagree { JUDGE_UNSCORED, JUDGE_MEAN, JUDGE_MIN };

extern const char *const judge_kind_names[JUDGE_KINDS + 1];         /* "yes_no" …, NULL */
extern const char *const judge_position_names[JUDGE_POSITIONS + 1]; /* "only" …, NULL */

struct judge_label {
    struct text name;
    double score;
    size_t swapped; /* index of the label that it means in the first order when the judge was asked in the second */
};

struct reward_payload;

struct judge_rule {
    /* the question */
    struct text template;   /* TEXT_NONE: `messages`, or built in */
    const json_t *messages; /* NULL: none */
    unsigned marks;         /* in all of it (template.h) */
    bool raw;
    double temperature;
    int64_t seed;
    int64_t max_tokens;   /* -1: what the engine takes */
    struct text endpoint; /* of the kind, if the option is null */

    /* a reply */
    enum judge_kind kind;
    enum judge_position position;
    struct judge_label labels[JUDGE_LABELS_MAX];
    size_t label_count; /* 0: a number is read */
    double minimum, maximum;
    struct text field;
    struct text pattern;
    const struct reward_payload *payload; /* NULL: it is no reward model */
    struct text path;                     /* TEXT_NONE: the payload's */
    struct text label;                    /* TEXT_NONE: none */
    bool has_index;
    json_int_t index;

    /* several replies */
    size_t votes;
    bool mean; /* of the votes, in place of their majority */
    bool swap;
    enum judge_disagree disagree;
};

/* options: complete. 0, or -1 with the problem. */
int judge_rule_read(const json_t *options, struct judge_rule *ret_rule, struct verifier_problem *ret_problem);

static inline bool judge_rule_is_built_in(const struct judge_rule *rule)
{
    return !rule->template.data && !rule->messages;
}

#endif
