/* instruction: the table of instructions that a completion can be held against, and references that name some.
 *
 * An instruction is an id of the published sets (IFEval, IF-TRAIN, IFBench), its kwargs as those sets have them, and a pure
 * rule. Rules see valid UTF-8 and are linear in it. Any thread. */
#ifndef VERIFIERS_IFEVAL_INSTRUCTION_H
#define VERIFIERS_IFEVAL_INSTRUCTION_H

#include "verifiers/ifeval/passage.h"
#include "verifiers/verifier.h"

#define KWARGS_MAX 5
#define INSTRUCTIONS_MAX 64 /* of one reference */

enum kwarg_kind {
    KWARG_NONE,     /* ends a list */
    KWARG_COUNT,    /* a whole number from 0 */
    KWARG_PLACE,    /* a whole number from 1 */
    KWARG_PERCENT,  /* a number, 0 to 100 */
    KWARG_TEXT,     /* not blank */
    KWARG_RAW,      /* the same, as it is: characters of it are counted */
    KWARG_WORD,     /* a text, or a list of one */
    KWARG_WORDS,    /* a list of texts, none of them empty */
    KWARG_LETTER,   /* one character */
    KWARG_RELATION, /* "less than" or "at least" */
    KWARG_LANGUAGE, /* language_is_known() */
    KWARG_PROMPT,   /* a text; null: the prompt's */
    KWARG_IGNORED,
    KWARG_KINDS
};

enum relation { RELATION_LESS_THAN, RELATION_AT_LEAST, RELATION_EXACTLY };

/* One value; which member counts is the kind's affair. */
struct kwarg {
    int64_t whole; /* also: enum relation */
    double number;
    struct text text; /* of the reference; words and texts without white space around */
    const json_t *list;
};

struct kwarg_rule {
    const char *name;
    enum kwarg_kind kind;
    bool optional; /* a relation: RELATION_EXACTLY */
};

struct instruction {
    const char *id;
    struct kwarg_rule kwargs[KWARGS_MAX + 1]; /* the last one has no name */
    /* Not followed, too, if passage->undecided was set. */
    bool (*follows)(struct passage *passage, const struct kwarg *kwarg);
    bool of_marks; /* its rule is about marks, or about another text, alone: a text without a word may follow it, too */
};

extern const struct instruction instructions[];
extern const size_t instruction_count;

struct wanted {
    const struct instruction *instruction;
    struct kwarg kwarg[KWARGS_MAX];
};

struct wanted_list {
    struct wanted item[INSTRUCTIONS_MAX];
    size_t count;
    json_t *owned; /* what a reference that is a text holds; NULL otherwise */
};

/* {"instruction_id_list": [ids], "kwargs": [objects]}, a list of one such object, or a text that holds either as JSON or as Python writes it. The
 * list points into the reference and the prompt. With TEXT_NONE as prompt an instruction that needs one is refused;
 * `any_prompt` says that there will be one. 0, or -1 with the problem; to be finished in both cases. */
int wanted_read(const json_t *reference, struct text prompt, bool any_prompt, struct wanted_list *ret_list,
                struct verifier_problem *ret_problem);
void wanted_finish(struct wanted_list *list);

#define _cleanup_wanted_ _cleanup_(wanted_finish)

#endif
