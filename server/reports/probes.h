/* probes: completions that no verifier should pay for, made from a task.
 *
 * Each is a trick that policies found or that graders fell for. Pure: a task's texts in, a completion out; any thread. */
#ifndef SERVER_REPORTS_PROBES_H
#define SERVER_REPORTS_PROBES_H

#include "server/base/buffer.h"
#include "server/base/text.h"
#include "server/verify/spec.h"

#include <stdbool.h>

enum probe {
    PROBE_EMPTY,
    PROBE_BLANK,
    PROBE_PROMPT_COPY,
    PROBE_PADDED_WRONG,    /* a wrong answer behind 4 KiB of filling */
    PROBE_FORMATTED_WRONG, /* a wrong answer in every tag that a format asks for */
    PROBE_REFERENCE_ECHO,  /* the reference itself, as JSON unless it is a text */
    PROBE_MANY_ANSWERS,    /* two wrong answers, then the right one */
    PROBE_DENIED_ANSWER,   /* the right answer, said to be wrong */
    PROBE_COUNT
};
extern const char *const probe_names[PROBE_COUNT];

struct probe_task {
    struct text prompt;    /* TEXT_NONE: none */
    struct text reference; /* what is echoed; TEXT_NONE: none */
    struct text answer;    /* TEXT_NONE: not known */
};

/* Appends the completion. NULL, or why this task has none: static. */
const char *probe_write(enum probe probe, const struct probe_task *task, struct buffer *out);

/* A reward above 0 for what must not have one. The reference itself is a right answer to `exact` and `math`: their
 * scores alone pay for no echo. */
bool probe_is_paid(enum probe probe, const struct verifier_list *list, const struct verdict_set *set,
                   enum reward_missing missing);

#endif
