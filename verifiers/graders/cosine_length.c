/* cosine_length: a correct completion earns more if it is short, a wrong one loses less if it is long: the cosine of
 * arXiv 2502.03373 between the values at 0 and max_length tokens. A longer completion counts as max_length.
 *
 * grade says the place on the cosine, 1 at 0 tokens and 0 at max_length; the values follow when `of` is known. */
#include <math.h>

#include "verifiers/rows.h"

#define LENGTH_MAX 1e15
#define VALUE_MAX 1e9

static const struct verifier_option options[] = {
    {"of", OPTION_TEXT, NULL, NULL, 1, 64,
     "id of another verifier of the list: correct is what that one scores above 0"},
    {"max_length", OPTION_INT, NULL, NULL, 1, LENGTH_MAX, "tokens at which the score no longer changes"},
    {"min_correct", OPTION_NUMBER, "0.5", NULL, -VALUE_MAX, VALUE_MAX, "of a correct one of max_length tokens"},
    {"max_correct", OPTION_NUMBER, "1.0", NULL, -VALUE_MAX, VALUE_MAX, "of a correct one of no tokens"},
    {"min_wrong", OPTION_NUMBER, "-1.0", NULL, -VALUE_MAX, VALUE_MAX, "of a wrong one of no tokens"},
    {"max_wrong", OPTION_NUMBER, "-0.5", NULL, -VALUE_MAX, VALUE_MAX, "of a wrong one of max_length tokens"},
};

static void grade(const struct verifier_input *input, struct verdict *ret_verdict)
{
    double share = (double)input->completion_tokens / option_number(input->options, "max_length", 1);

    if (verdict_misses_length(ret_verdict, input))
        return;
    verdict_set_score(ret_verdict, (1 + cos(M_PI * fmin(share, 1))) / 2, "cosine");
}

/* Exact at both ends. */
static double between(double at_none, double at_max, double place)
{
    return place * at_none + (1 - place) * at_max;
}

static struct settled settle(const json_t *filled, double place, double of)
{
    if (of > 0)
        return (struct settled){
            between(option_number(filled, "max_correct", 0), option_number(filled, "min_correct", 0), place),
            "of_correct"};
    return (struct settled){
        between(option_number(filled, "min_wrong", 0), option_number(filled, "max_wrong", 0), place), "of_wrong"};
}

const struct verifier verifier_cosine_length = {
    .name = "cosine_length",
    .version = "1",
    .help = "a correct completion earns more if it is short, a wrong one loses less if it is long",
    .options = options,
    .option_count = ARRAY_LENGTH(options),
    .grade = grade,
    .settle = settle,
};
