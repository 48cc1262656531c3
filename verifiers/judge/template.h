/* template: the text that a judge is asked, with the values in the place of their marks.
 *
 * Marks are exactly {prompt}, {completion}, {reference} and {step}; any other brace stays. They are replaced in one
 * pass: a value that holds a mark pulls nothing in. Nothing is ever cut. Pure; linear; any thread.
 *
 * A value is put in as one JSON text: it cannot end itself. In its strings '<' is written \u003c, and '[' before '[', '/'
 * or a capital letter \u005b, so that no mark of a chat template ("<|im_end|>", "[INST]") and no label ("[[A]]")
 * of a completion reaches the judge as it is. Raw: a text as it is, any other value as JSON without these. */
#ifndef VERIFIERS_JUDGE_TEMPLATE_H
#define VERIFIERS_JUDGE_TEMPLATE_H

#include "server/base/buffer.h"
#include "server/base/text.h"

#include <jansson.h>
#include <stdbool.h>

enum mark { MARK_PROMPT, MARK_COMPLETION, MARK_REFERENCE, MARK_STEP, MARKS };

extern const char *const mark_names[MARKS]; /* "{prompt}" … */

struct mark_value {
    struct text text;   /* TEXT_NONE: it is `json`, or there is none */
    const json_t *json; /* any value; NULL: none */
};

static inline bool mark_value_is_there(const struct mark_value *value)
{
    return value->text.data || value->json;
}

/* A bit for each mark that stands in the template. */
unsigned template_marks(struct text template);

/* Every mark that stands in it must have a value. */
void template_fill(struct text template, const struct mark_value values[MARKS], bool raw, struct buffer *out);

/* One JSON value; guarded: with the two rules above. Doubles are the shortest that read back the same. */
void judge_put_json(struct buffer *out, const json_t *value, bool guarded);
void judge_put_json_text(struct buffer *out, struct text text, bool guarded);

#endif
