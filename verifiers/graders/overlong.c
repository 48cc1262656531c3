/* overlong: the soft penalty of DAPO (arXiv 2503.14476) on long completions: 0 up to max_length - cache tokens, then
 * falling to -1 at max_length. */
#include "verifiers/rows.h"

#define LENGTH_MAX 1e15

static const struct verifier_option options[] = {
    {"of", OPTION_TEXT, "null", NULL, 1, 64,
     "id of another verifier of the list: only what that one scores above 0 is punished"},
    {"max_length", OPTION_INT, NULL, NULL, 1, LENGTH_MAX, "tokens from which on the score is -1"},
    {"cache", OPTION_INT, NULL, NULL, 0, LENGTH_MAX,
     "tokens before max_length over which the score falls from 0 to -1; 0: no penalty"},
};

static int check_options(const json_t *filled, struct verifier_problem *ret_problem)
{
    if (option_number(filled, "cache", 0) > option_number(filled, "max_length", 0))
        return verifier_refuse(ret_problem, "cache", "must be at most max_length");
    return 0;
}

static void grade(const struct verifier_input *input, struct verdict *ret_verdict)
{
    double cache = option_number(input->options, "cache", 0);
    double excess = (double)input->completion_tokens - (option_number(input->options, "max_length", 0) - cache);

    if (verdict_misses_length(ret_verdict, input))
        return;
    if (cache == 0 || excess <= 0)
        verdict_set_score(ret_verdict, 0, "within");
    else
        verdict_set_score(ret_verdict, excess >= cache ? -1 : -excess / cache, "overlong");
}

const struct verifier verifier_overlong = {
    .name = "overlong",
    .version = "1",
    .help = "a penalty of 0 down to -1 on the last tokens before a maximum",
    .options = options,
    .option_count = ARRAY_LENGTH(options),
    .check_options = check_options,
    .grade = grade,
    .settle = settle_correct_alone,
};
