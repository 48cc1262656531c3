/* regex: does a pattern of PCRE2 match the completion?
 *
 * The work of one verdict is counted (text/pattern.h). A verdict beyond the count is incorrect with the reason
 * `work_limit`, in every mode: a completion that makes a pattern slow is not paid for it, and not excused either. */
#include "server/base/cleanup.h"
#include "verifiers/rows.h"
#include "verifiers/text/pattern.h"

#define PATTERN_BYTES 16384

static const char *const modes[] = {"search", "fullmatch", "absent", NULL};

static const struct verifier_option options[] = {
    {"pattern", OPTION_TEXT, NULL, NULL, 1, PATTERN_BYTES, "a PCRE2 pattern over UTF-8; \\d, \\w and \\s are ASCII"},
    {"mode", OPTION_CHOICE, "\"search\"", modes, 0, 0, "search anywhere, fullmatch of the whole text, or absent"},
};

static int check_options(const json_t *filled, struct verifier_problem *ret_problem)
{
    char problem[PATTERN_PROBLEM_BYTES];
    _cleanup_(pattern_destroyp) struct pattern *pattern = pattern_create(option_text(filled, "pattern"), problem);

    return pattern ? 0 : verifier_refuse(ret_problem, "pattern", "%s", problem);
}

static void grade_text(struct pattern *pattern, const json_t *filled, struct text text, struct verdict *ret_verdict)
{
    bool absent = option_is(filled, "mode", "absent");

    switch (pattern_match(pattern, text, 0, option_is(filled, "mode", "fullmatch"))) {
    case PATTERN_NO_MATCH:
        verdict_set(ret_verdict, absent, absent ? "absent" : "no_match");
        break;
    case PATTERN_MATCH:
        verdict_set(ret_verdict, !absent, absent ? "present" : "match");
        break;
    case PATTERN_WORK_LIMIT:
        verdict_set(ret_verdict, false, "work_limit");
        break;
    case PATTERN_GAVE_UP:
        verdict_fail(ret_verdict, "verifier_crashed", "PCRE2 gave up with its error %d", pattern_error(pattern));
        break;
    }
}

/* One count of work for all of them, and one pattern. */
static void grade_steps(struct pattern *pattern, const struct verifier_input *input, struct verdict *ret_verdict)
{
    _cleanup_free_ double *scores = xcalloc(input->piece_count, sizeof *scores);

    for (size_t i = 0; i < input->piece_count; i++) {
        struct verdict step = {.kind = VERDICT_UNSCORED};
        grade_text(pattern, input->options, input->pieces[i].text, &step);
        if (step.kind == VERDICT_UNSCORED) {
            verdict_fail(ret_verdict, step.failure_code, "step %zu: %s", i, step.failure_message);
            return;
        }
        scores[i] = step.score;
    }
    verdict_set_steps(ret_verdict, scores, input->piece_count);
}

static void grade(const struct verifier_input *input, struct verdict *ret_verdict)
{
    char problem[PATTERN_PROBLEM_BYTES];
    _cleanup_(pattern_destroyp) struct pattern *pattern =
        pattern_create(option_text(input->options, "pattern"), problem);

    if (!pattern)
        verdict_fail(ret_verdict, "verifier_options", "the pattern does not compile");
    else if (input->pieces)
        grade_steps(pattern, input, ret_verdict);
    else
        grade_text(pattern, input->options, input->completion, ret_verdict);
}

const struct verifier verifier_regex = {
    .name = "regex",
    .version = "4",
    .help = "1 if a pattern matches (search, fullmatch) or does not match (absent) the completion",
    .grades_pieces = true,
    .options = options,
    .option_count = ARRAY_LENGTH(options),
    .check_options = check_options,
    .grade = grade,
};
