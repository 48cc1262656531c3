/* repetition: a penalty for words that come again. Of all runs of `ngram` words, the share of those that were there
 * before, times `max_penalty`: open-r1's rule, with its words (verifiers/text/ngrams.h). */
#include "verifiers/rows.h"
#include "verifiers/text/ngrams.h"

#define NGRAM_MAX 1e15
#define PENALTY_MIN (-1e9)

static const struct verifier_option options[] = {
    {"of", OPTION_TEXT, "null", NULL, 1, 64,
     "id of another verifier of the list: only what that one scores above 0 is punished"},
    {"ngram", OPTION_INT, NULL, NULL, 1, NGRAM_MAX, "words of a run"},
    {"max_penalty", OPTION_NUMBER, NULL, NULL, PENALTY_MIN, 0, "the score if every run is the same, without end"},
};

static void grade(const struct verifier_input *input, struct verdict *ret_verdict)
{
    size_t n = (size_t)option_number(input->options, "ngram", 1);
    struct ngrams found = ngrams_count(input->completion, n);
    size_t again = found.all - found.distinct;
    double share = found.all ? (double)again / (double)found.all : 0;

    verdict_set_score(ret_verdict, again ? share * option_number(input->options, "max_penalty", 0) : 0,
                      found.all == 0 ? "too_short"
                      : again        ? "repeated"
                                     : "distinct");
    ret_verdict->detail = json_pack("{s:I, s:I, s:I}", "words", (json_int_t)found.words, "runs", (json_int_t)found.all,
                                    "distinct", (json_int_t)found.distinct);
}

const struct verifier verifier_repetition = {
    .name = "repetition",
    .version = "1",
    .help = "a penalty of 0 down to max_penalty: the share of runs of words that were there before",
    .options = options,
    .option_count = ARRAY_LENGTH(options),
    .grade = grade,
    .settle = settle_correct_alone,
};
