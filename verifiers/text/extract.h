/* extract: where in a completion the final answer stands.
 *
 * Pure and linear in the text. One declared rule, no priorities across rules: what the rule does not find is no answer.
 * First, for every rule: the text ends with the turn, at the first token that ends one or begins another, and
 * everything up to the last </think> is reasoning; reasoning that was opened and never closed leaves no answer.
 *
 *   boxed       the last \boxed{…} or \fbox{…}, braces matched, or \boxed 42 where nothing could belong to the number;
 *               a truncated last box is no answer, never an earlier one
 *   answer_tag  the last <answer>…</answer>
 *   auto        boxed; answer_tag only if there is no box at all
 *   answer_is   after the last "answer is" or "answer:", to the end of the sentence or line, without emphasis, quotes
 *   gsm8k       after the last "####", to the end of the line, the same way
 *   last_number the last number in the text, with a sign (- or U+2212) that does not stand between two values */
#ifndef VERIFIERS_TEXT_EXTRACT_H
#define VERIFIERS_TEXT_EXTRACT_H

#include "server/base/text.h"

#include <stdbool.h>
#include <stddef.h>

/* The completion up to the first token that ends a turn or, not at the very beginning, begins one. */
struct text extract_turn(struct text completion);
/* The final part of a completion: after the reasoning, before the end of the turn. TEXT_NONE if the reasoning never
 * ended. */
struct text extract_final_part(struct text completion);

#define EXTRACT_BOXES_MAX 64

struct boxes {
    size_t count;                       /* all, also beyond the maximum */
    size_t distinct;                    /* different contents, as far as they were kept */
    struct text box[EXTRACT_BOXES_MAX]; /* the different contents, in order of first appearance */
    struct text last;                   /* TEXT_NONE if there was none */
    struct text last_whole;             /* with its command and braces; TEXT_NONE if it has none */
    bool truncated;                     /* the last one was never closed, or continues behind a number without braces */
};

/* Boxes at the top level: one inside another is part of its content. */
void extract_boxes(struct text text, struct boxes *ret_boxes);

enum extract_rule {
    EXTRACT_AUTO,
    EXTRACT_BOXED,
    EXTRACT_ANSWER_IS,
    EXTRACT_GSM8K,
    EXTRACT_ANSWER_TAG,
    EXTRACT_LAST_NUMBER,
    EXTRACT_RULES
};

extern const char *const extract_rule_names[EXTRACT_RULES + 1]; /* NULL-terminated */

struct extracted {
    struct text answer; /* TEXT_NONE: none; points into the completion */
    struct text text;   /* the part of the completion that was looked at; TEXT_NONE: none */
    struct text whole;  /* the box that the answer stands in, with its command; TEXT_NONE: in none with braces */
    size_t distinct;    /* how many different candidates the rule saw: boxes, tags */
    bool prose;         /* from running text: words may follow the value (sentence.h) */
    bool truncated;     /* the last box or tag was never closed */
};

void extract_answer(struct text completion, enum extract_rule rule, struct extracted *ret_extracted);

/* White space at both ends taken off (ASCII). */
struct text text_trimmed(struct text text);
/* Index of the first occurrence at or after `from`, or length_bytes. */
size_t text_find(struct text text, size_t from, const char *needle);

#endif
