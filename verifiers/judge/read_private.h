/* read: the verdict that stands in a judge's reply.
 *
 * A reading is one of the rule's labels, or a number from its minimum to its maximum. Where position is `only`, all
 * verdicts in the text must be the same one. A verdict off the form (a number out of range, a key twice) is one that
 * cannot be read, never one that is not there. Pure; linear in the text; any thread. */
#ifndef VERIFIERS_JUDGE_READ_PRIVATE_H
#define VERIFIERS_JUDGE_READ_PRIVATE_H

#include "verifiers/judge/rule.h"

struct judge_reading {
    size_t label;  /* index in the rule; of no meaning where a number is read */
    double number; /* as it was read */
    double score;
};

/* text: UTF-8, without the judge's reasoning (chat.h). False: it has no verdict, or not one. */
bool judge_read(const struct judge_rule *rule, struct text text, struct judge_reading *ret_reading);

/* --- what the files that read share --- */

/* The verdict so far, as the rule's position wants it. */
struct judge_search {
    const struct judge_rule *rule;
    bool found;
    bool fine; /* that one can be read, and none contradicts it */
    struct judge_reading reading;
};

/* A verdict stands here; NULL: one that cannot be read. Called in the order of the text. */
void judge_search_add(struct judge_search *search, const struct judge_reading *reading);
void judge_search_add_label(struct judge_search *search, size_t label);
void judge_search_add_number(struct judge_search *search, double number); /* not finite: cannot be read */

void judge_search_words(struct judge_search *search, struct text text);    /* yes_no, letter */
void judge_search_brackets(struct judge_search *search, struct text text); /* brackets */
void judge_search_objects(struct judge_search *search, struct text text);  /* json_score */
void judge_search_ratings(struct judge_search *search, struct text text);  /* rating */

#endif
