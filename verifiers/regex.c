/* regex: does a pattern of PCRE2 match the completion?
 *
 * A pattern that hits its limits is decided once more by PCRE2's other algorithm (breadth first: no catastrophic
 * backtracking, but no back references either). If that cannot decide either, the verdict is a failure, not a score:
 * the time limit is the pattern's fault, not the completion's. No JIT: a worker may not map executable memory. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "verifiers/rows.h"

#define PATTERN_BYTES 16384
#define MATCH_LIMIT 1000000
#define DEPTH_LIMIT 100000
#define HEAP_LIMIT_KIB 16384
#define WORKSPACE_INTS 65536

static const char *const modes[] = {"search", "fullmatch", "absent", NULL};

static const struct verifier_option options[] = {
    {"pattern", OPTION_TEXT, NULL, NULL, 1, PATTERN_BYTES, "a PCRE2 pattern over UTF-8; \\d, \\w and \\s are ASCII"},
    {"mode", OPTION_CHOICE, "\"search\"", modes, 0, 0, "search anywhere, fullmatch of the whole text, or absent"},
};

static void free_code(pcre2_code **code)
{
    pcre2_code_free(*code);
}

static void free_match(pcre2_match_data **match)
{
    pcre2_match_data_free(*match);
}

static void free_context(pcre2_match_context **context)
{
    pcre2_match_context_free(*context);
}

static pcre2_code *compile(struct text pattern, int *ret_error, size_t *ret_offset)
{
    return pcre2_compile((PCRE2_SPTR)pattern.data, pattern.length_bytes, PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C, ret_error,
                         ret_offset, NULL);
}

static int check_options(const json_t *filled, struct verifier_problem *ret_problem)
{
    _cleanup_(free_code) pcre2_code *code = NULL;
    PCRE2_UCHAR message[120];
    size_t offset;
    int error;

    code = compile(option_text(filled, "pattern"), &error, &offset);
    if (code)
        return 0;
    pcre2_get_error_message(error, message, sizeof message);
    return verifier_refuse(ret_problem, "pattern", "%s (at byte %zu)", (const char *)message, offset);
}

static bool is_limit(int result)
{
    return result == PCRE2_ERROR_MATCHLIMIT || result == PCRE2_ERROR_DEPTHLIMIT || result == PCRE2_ERROR_HEAPLIMIT;
}

/* The first algorithm with limits, the second if they were hit. */
static int match(const pcre2_code *code, struct text text, uint32_t flags)
{
    _cleanup_(free_match) pcre2_match_data *data = pcre2_match_data_create_from_pattern(code, NULL);
    _cleanup_(free_context) pcre2_match_context *context = pcre2_match_context_create(NULL);
    _cleanup_free_ int *workspace = NULL;
    int result;

    if (!data || !context)
        return PCRE2_ERROR_NOMEMORY;
    pcre2_set_match_limit(context, MATCH_LIMIT);
    pcre2_set_depth_limit(context, DEPTH_LIMIT);
    pcre2_set_heap_limit(context, HEAP_LIMIT_KIB);
    result = pcre2_match(code, (PCRE2_SPTR)text.data, text.length_bytes, 0, flags, data, context);
    if (!is_limit(result))
        return result;
    workspace = malloc(WORKSPACE_INTS * sizeof *workspace);
    if (!workspace)
        return PCRE2_ERROR_NOMEMORY;
    return pcre2_dfa_match(code, (PCRE2_SPTR)text.data, text.length_bytes, 0, flags | PCRE2_DFA_SHORTEST, data, context,
                           workspace, WORKSPACE_INTS);
}

static void judge(const struct verifier_input *input, struct verdict *ret_verdict)
{
    _cleanup_(free_code) pcre2_code *code = NULL;
    bool absent = option_is(input->options, "mode", "absent");
    uint32_t flags = option_is(input->options, "mode", "fullmatch") ? PCRE2_ANCHORED | PCRE2_ENDANCHORED : 0;
    size_t offset;
    int result;

    code = compile(option_text(input->options, "pattern"), &result, &offset);
    if (!code) {
        verdict_fail(ret_verdict, "verifier_options", "the pattern does not compile");
        return;
    }
    result = match(code, input->completion, flags);
    if (result == PCRE2_ERROR_NOMATCH)
        verdict_set(ret_verdict, absent, absent ? "absent" : "no_match");
    else if (result >= 0)
        verdict_set(ret_verdict, !absent, absent ? "present" : "match");
    else
        verdict_fail(ret_verdict, "verifier_timeout", "the pattern cannot be decided within its limits (PCRE2 %d)",
                     result);
}

const struct verifier verifier_regex = {
    .name = "regex",
    .version = "2",
    .help = "1 if a pattern matches (search, fullmatch) or does not match (absent) the completion",
    .options = options,
    .option_count = ARRAY_LENGTH(options),
    .check_options = check_options,
    .judge = judge,
};
