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

static void grade(const struct verifier_input *input, struct verdict *ret_verdict)
{
    char problem[PATTERN_PROBLEM_BYTES];
    _cleanup_(pattern_destroyp) struct pattern *pattern =
        pattern_create(option_text(input->options, "pattern"), problem);
    bool absent = option_is(input->options, "mode", "absent");

    if (!pattern) {
        verdict_fail(ret_verdict, "verifier_options", "the pattern does not compile");
        return;
    }
    switch (pattern_match(pattern, input->completion, 0, option_is(input->options, "mode", "fullmatch"))) {
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

const struct verifier verifier_regex = {
    .name = "regex",
    .version = "3",
    .help = "1 if a pattern matches (search, fullmatch) or does not match (absent) the completion",
    .options = options,
    .option_count = ARRAY_LENGTH(options),
    .check_options = check_options,
    .grade = grade,
};
