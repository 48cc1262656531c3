/* verifier: a grader of one completion, and its verdict.
 *
 * A verifier is a row (registry.h) with pure functions: text, reference and options in, verdict out; no I/O, no clock,
 * no state. `plan` and `grade` see text from a model and therefore run in a locked-down worker process only (worker.h);
 * the checks see what a client sent and may run anywhere. The same input gives the same verdict on every machine. A
 * verifier that has to ask a server names its calls in `plan`; the service makes them, and `grade` gets the replies.
 *
 * A wrong completion is score 0 with a reason. A completion that could not be graded (a broken reference, a limit of the
 * grader) has no score and a failure: never both, never neither. */
#ifndef VERIFIERS_VERIFIER_H
#define VERIFIERS_VERIFIER_H

#include "server/base/cleanup.h"
#include "server/base/text.h"
#include "verifiers/text/pieces.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum verdict_kind { VERDICT_CORRECT, VERDICT_INCORRECT, VERDICT_SCORED, VERDICT_UNSCORED, VERDICT_KINDS };

/* "correct", "incorrect", "scored", "unscored", NULL */
extern const char *const verdict_kind_names[VERDICT_KINDS + 1];

#define VERDICT_MESSAGE_BYTES 200
#define VERDICT_REASON_BYTES 48 /* of a-z 0-9 _ */
#define VERDICT_VERSION_BYTES 72

/* Of a score, in both directions, as of one that a client gives: no sum of weighted ones is beyond double. */
#define VERDICT_SCORE_MAX 1e100

struct verdict {
    enum verdict_kind kind;
    double score;       /* up to VERDICT_SCORE_MAX; means nothing if kind is VERDICT_UNSCORED */
    const char *reason; /* a code: static text or `own_reason`, never NULL after grade */
    char own_reason[VERDICT_REASON_BYTES];
    const char *failure_code; /* static text; NULL unless kind is VERDICT_UNSCORED */
    char failure_message[VERDICT_MESSAGE_BYTES];
    bool retryable;                          /* the same could be graded another time: a server was away */
    char own_version[VERDICT_VERSION_BYTES]; /* of what graded, where that says one; "": the verifier's */
    json_t *detail; /* an object or NULL: what was read from the text, never the reference. verdict_finish() frees it */
    double *step_scores; /* [step_count], finite: of input->pieces, freed likewise; NULL: it grades no steps */
    size_t step_count;
};

void verdict_set(struct verdict *verdict, bool correct, const char *reason); /* 1/correct or 0/incorrect */
void verdict_set_score(struct verdict *verdict, double score, const char *reason);
void verdict_fail(struct verdict *verdict, const char *code, const char *format, ...) _printf_(3, 4);
/* A grade for each step: the score is their mean. scores: copied; one that is not finite makes the verdict unscored,
 * verifier_crashed. Without a step it is 0/incorrect, no_answer. */
void verdict_set_steps(struct verdict *verdict, const double *scores, size_t count);
void verdict_finish(struct verdict *verdict);

/* Adds to `detail` what was read: {"extracted": text cut at 256 bytes, "start", "end": byte span in the completion}. */
void verdict_note_extracted(struct verdict *verdict, struct text completion, struct text extracted);

struct verifier_input {
    struct text completion;    /* any bytes, NUL included */
    struct text prompt;        /* of messages what a user said last; TEXT_NONE if unknown */
    const json_t *reference;   /* NULL if there is none */
    const json_t *options;     /* every option of the table is present: registry_fill_options() */
    int64_t completion_tokens; /* -1 if unknown */
    int sandbox_fd;            /* of the worker's own slot, for a verifier that runs programs; -1: there is none */
    const json_t *request;     /* the whole of it, as it came (worker.h): for one that asks an external */
    const json_t *external;    /* likewise: its entry in the settings */
    /* One for each call of `plan`, in their order: {"status", "body": text, "engine", "model", "version"} or {"failure":
     * {"code", "message", "retryable"}, "engine", …}; "mended": true beside a body that was no UTF-8. NULL: no call was made. */
    const json_t *replies;
    /* The steps of the completion, if its list entry says "steps": for a verifier that grades_pieces itself. NULL: none
     * are asked for. */
    const struct piece *pieces;
    size_t piece_count; /* 1 to PIECES_MAX */
};

/* Where the verifier needs the number of tokens: fails the verdict with missing_field if it is unknown, else notes it as
 * `length` of the detail. True: it is missing. */
bool verdict_misses_length(struct verdict *verdict, const struct verifier_input *input);

enum option_kind {
    OPTION_BOOL,
    OPTION_INT,
    OPTION_NUMBER,
    OPTION_TEXT,
    OPTION_CHOICE,
    OPTION_TEXTS,
    OPTION_OBJECT,
    OPTION_ANY,
    OPTION_MESSAGES,
    OPTION_SWITCH,
    OPTION_KINDS
};

/* "boolean", "integer", "number", "string", "choice", "array of strings", "object", "any", "string or messages", "boolean or
 * object" */
extern const char *const option_kind_names[OPTION_KINDS];

struct verifier_option {
    const char *name;
    enum option_kind kind;
    const char *fallback; /* the default as JSON text; NULL: required; "null": unset (null is then a legal value) */
    const char *const *choices; /* OPTION_CHOICE: NULL-terminated */
    double minimum; /* numbers: smallest and largest value; texts: smallest and largest number of bytes or elements;
                       messages: of bytes, in all their contents */
    double maximum;
    const char *help;
};

/* Where and why options or a reference are refused. `name` is "" or the option's name. */
struct verifier_problem {
    char name[64];
    char message[640]; /* holds the names of all options of a verifier */
};

/* Fills the problem; returns -1 always, so that `return verifier_refuse(…)` reads well. */
int verifier_refuse(struct verifier_problem *problem, const char *name, const char *format, ...) _printf_(3, 4);

/* The last word of a verifier about a score that it gave before. */
struct settled {
    double score;
    const char *reason; /* static text; NULL: as grade said it */
};

struct verifier {
    const char *name;
    const char *version; /* changes whenever the same input could get another verdict */
    const char *help;
    bool needs_reference;
    bool reads_big_numbers; /* whole numbers beyond 63 bits (base/json_big.h) may be in its reference */
    bool asks_external;     /* its option `name` is that of a reward function of the settings */
    bool asks_engine;       /* its option `engine` names the pool that its calls go to */
    bool runs_programs;     /* grade needs input->sandbox_fd, and says sandbox_unavailable without it */
    /* With "steps" it is called once with input->pieces, and says verdict_set_steps(). Any other one is called for each
     * piece as if that were the completion. */
    bool grades_pieces;
    const struct verifier_option *options;
    size_t option_count;
    /* Beyond the table's types and ranges. May be NULL. 0, or -1 with the problem. */
    int (*check_options)(const json_t *options, struct verifier_problem *ret_problem);
    /* Can this reference be graded against at all? May be NULL: anything can. 0, or -1 with the problem. */
    int (*check_reference)(const json_t *reference, const json_t *options, struct verifier_problem *ret_problem);
    /* Has one that can be read a value, too? Works it out, so not for the service's own process. May be NULL. */
    int (*check_value)(const json_t *reference, const json_t *options, struct verifier_problem *ret_problem);
    /* The calls that it needs before it can grade. True: appended to `calls` as {"path": "/v1/…", "body": text of a JSON
     * object, "model": true}, at most VERIFIER_CALLS_MAX; with "model" the service puts the name of the engine's model
     * first into that object. False: there is nothing to ask, the verdict is said. NULL: it never asks.
     * Called through registry_plan() only, under the same conditions as grade. */
    bool (*plan)(const struct verifier_input *input, json_t *calls, struct verdict *ret_verdict);
    /* Called through registry_grade() only: the options are complete, a needed reference is there, but unchecked. With a
     * plan: the replies to its calls are there, one for each. */
    void (*grade)(const struct verifier_input *input, struct verdict *ret_verdict);
    /* Second stage, of a verifier with an option `of`, a text that names another verifier of its list. own: the score
     * that grade gave; of: the other's. Pure arithmetic, called in the service once both are known, and not where `of`
     * is null. NULL: grade says all. */
    struct settled (*settle)(const json_t *options, double own, double of);
};

/* A second stage: 0 where the other one's score is not above 0. */
struct settled settle_correct_alone(const json_t *options, double own, double of);

/* Options of a complete object, for the verifiers' own use. */
bool option_is_true(const json_t *options, const char *name);
double option_number(const json_t *options, const char *name, double if_null);
struct text option_text(const json_t *options, const char *name); /* TEXT_NONE for null */
bool option_is(const json_t *options, const char *name, const char *value);

static inline struct text json_text_of(const json_t *string) /* TEXT_NONE if it is no string */
{
    return json_is_string(string) ? (struct text){json_string_value(string), json_string_length(string)} : TEXT_NONE;
}

#endif
