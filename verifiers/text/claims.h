/* claims: where a completion names the letter that it answers with.
 *
 * A claim is a box, an answer tag, or a marker: a word such as "Answer" with a colon, "=", "is" or a line break behind it. The
 * final part of the completion (extract.h) is looked at, and its last claim counts, readable or not: an earlier one never
 * stands in for it. A marker does not claim where it is part of a condition or a question ("if the answer is", "a wrong
 * answer:"), or of a remark about the answer ("the answer is consistent with …").
 *
 * Pure, linear in the completion. */
#ifndef VERIFIERS_TEXT_CLAIMS_H
#define VERIFIERS_TEXT_CLAIMS_H

#include "verifiers/text/labels.h"

/* In the order of choice's option `mode`. */
enum claims_mode {
    CLAIMS_AUTO,       /* the box, tag or marker that ends last */
    CLAIMS_LENIENT,    /* the same; without a readable one lines that are a letter, then "I pick B", then "option B" */
    CLAIMS_STRICT_BOX, /* the last box */
    CLAIMS_ANSWER_TAG, /* the last <answer>…</answer> */
    CLAIMS_MARKER,     /* the last marker */
};

struct claims_rule {
    const struct labels_rule *labels;
    const struct text *markers; /* none is blank; one that ends in no letter or digit needs no colon */
    size_t marker_count;
    size_t boxes_max; /* more different boxes make every claim LABELS_SEVERAL */
};

struct claim {
    struct text value;    /* in the completion; TEXT_NONE: there is none */
    struct labels labels; /* LABELS_BLANK where there is none */
};

void claims_find(const struct claims_rule *rule, struct text completion, enum claims_mode mode,
                 struct claim *ret_claim);

#endif
