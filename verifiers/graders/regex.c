/* regex: does a pattern of PCRE2 match the completion?
 *
 * The work of one verdict is counted, not timed: PCRE2 calls back before each item of the pattern, at every start and
 * after every step back. What is beyond the count is incorrect with the reason `work_limit`, in every mode: a
 * completion that makes a pattern slow is not paid for it, and not excused either. PCRE2's own match limit would not
 * do: it begins anew at each byte of the text, and does not see the characters that one item takes in a loop.
 *
 * No JIT: a worker may not map executable memory. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "verifiers/rows.h"

#define PATTERN_BYTES 16384
#define HEAP_LIMIT_KIB 16384 /* of PCRE2's frames, for the places to step back to */

/* One unit is about a nanosecond: a byte of the text that a simple item takes. */
#define WORK_UNITS 20000000
#define CALL_UNITS 20
#define ITEM_BYTES_A_UNIT 4 /* of an item's text: a class is searched one range after the other */
#define CLASS_BYTES_A_UNIT 8

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
    return pcre2_compile((PCRE2_SPTR)pattern.data, pattern.length_bytes,
                         PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C | PCRE2_AUTO_CALLOUT, ret_error, ret_offset, NULL);
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

/* --- the work --- */

/* Cost of one item of the pattern before PCRE2 calls back again. */
struct item {
    uint32_t bytes_units; /* for each byte of the text that it takes */
    uint32_t repeats;     /* how many times it must match: that many may be tried in vain */
    bool looks_behind;
    bool refers_back;
    bool takes_clusters; /* \X{2,}: of any length */
};

struct work {
    uint64_t units;
    struct text pattern;
    struct item *items; /* by their place in the pattern; one more for its end */
    const struct item *last;
    size_t last_at;
    uint32_t lookbehind;
    uint32_t captures;
    uint32_t class_units; /* of classes that the compiler made longer than they are written */
};

static bool begins(struct text item, const char *with)
{
    return item.length_bytes >= strlen(with) && memcmp(item.data, with, strlen(with)) == 0;
}

static bool is_back_reference(struct text item)
{
    return begins(item, "(?P=") ||
           (item.length_bytes > 1 && item.data[0] == '\\' && strchr("123456789gk", item.data[1]));
}

/* Of "x{20,}": 20. Braces that belong to the item (\x{41}) do no harm: then it is counted too dear, up to 65535. */
static uint32_t repeats_of(struct text item)
{
    const char *brace = item.data[item.length_bytes - 1] == '}' || item.length_bytes > 1
                            ? memrchr(item.data, '{', item.length_bytes)
                            : NULL;
    uint32_t count = 0;

    if (!brace || brace == item.data || item.data[0] == '(')
        return 1;
    for (const char *at = brace + 1; at < item.data + item.length_bytes && *at >= '0' && *at <= '9' && count < 65536;
         at++)
        count = count * 10 + (uint32_t)(*at - '0');
    return count > 1 ? count : 1;
}

static int describe_item(pcre2_callout_enumerate_block *block, void *arg)
{
    struct work *work = arg;
    struct text item = {work->pattern.data + block->pattern_position, block->next_item_length};
    struct item *described = &work->items[block->pattern_position];

    described->bytes_units = 1 + (uint32_t)(item.length_bytes / ITEM_BYTES_A_UNIT);
    if (!item.length_bytes)
        return 0;
    if (item.data[0] == '[')
        described->bytes_units += work->class_units;
    described->repeats = repeats_of(item);
    described->looks_behind = begins(item, "(?<") || begins(item, "(*");
    described->refers_back = is_back_reference(item);
    described->takes_clusters = begins(item, "\\X{");
    return 0;
}

/* (?i)[Ā-￿] becomes hundreds of ranges. What the pattern has become beyond what its items usually become. */
static uint32_t class_units_of(const pcre2_code *code, struct text pattern)
{
    size_t usual_bytes = 256 + 16 * pattern.length_bytes;
    size_t bytes = 0;

    pcre2_pattern_info(code, PCRE2_INFO_SIZE, &bytes);
    return bytes > usual_bytes ? (uint32_t)((bytes - usual_bytes) / CLASS_BYTES_A_UNIT) : 0;
}

static int work_init(struct work *work, const pcre2_code *code, struct text pattern)
{
    *work = (struct work){.pattern = pattern, .items = calloc(pattern.length_bytes + 1, sizeof work->items[0])};
    if (!work->items)
        return -1;
    work->last = &work->items[pattern.length_bytes];
    work->class_units = class_units_of(code, pattern);
    pcre2_pattern_info(code, PCRE2_INFO_MAXLOOKBEHIND, &work->lookbehind);
    pcre2_pattern_info(code, PCRE2_INFO_CAPTURECOUNT, &work->captures);
    return pcre2_callout_enumerate(code, describe_item, work);
}

static void work_finish(struct work *work)
{
    free(work->items);
}

static size_t longest_capture(const pcre2_callout_block *block)
{
    size_t longest = 0;

    for (uint32_t i = 1; i < block->capture_top; i++) {
        size_t start = block->offset_vector[2 * i];
        size_t end = block->offset_vector[2 * i + 1];
        if (start != PCRE2_UNSET && end > start && end - start > longest)
            longest = end - start;
    }
    return longest;
}

/* Upper bound of the work of the next item. */
static uint64_t units_ahead(const struct work *work, const struct item *item, const pcre2_callout_block *block)
{
    size_t rest = block->subject_length - block->current_position;
    size_t bytes = item->repeats;

    if (item->refers_back)
        bytes *= longest_capture(block);
    if (item->takes_clusters || bytes > rest)
        bytes = rest;
    return CALL_UNITS + block->capture_top + (uint64_t)bytes * item->bytes_units +
           (item->looks_behind ? work->lookbehind : 0);
}

static int count_work(pcre2_callout_block *block, void *arg)
{
    struct work *work = arg;
    const struct item *item = &work->items[block->pattern_position];

    if (block->callout_flags & PCRE2_CALLOUT_STARTMATCH) {
        work->units += work->captures;
        work->last_at = block->start_match;
    }
    if (block->current_position > work->last_at)
        work->units += (uint64_t)(block->current_position - work->last_at) * work->last->bytes_units;
    work->units += units_ahead(work, item, block);
    work->last_at = block->current_position;
    work->last = item;
    return work->units > WORK_UNITS ? PCRE2_ERROR_CALLOUT : 0;
}

/* --- the verdict --- */

static bool is_limit(int result)
{
    return result == PCRE2_ERROR_CALLOUT || result == PCRE2_ERROR_MATCHLIMIT || result == PCRE2_ERROR_DEPTHLIMIT ||
           result == PCRE2_ERROR_HEAPLIMIT || result == PCRE2_ERROR_RECURSELOOP;
}

static int match(const pcre2_code *code, struct text pattern, struct text text, uint32_t flags)
{
    _cleanup_(free_match) pcre2_match_data *data = pcre2_match_data_create_from_pattern(code, NULL);
    _cleanup_(free_context) pcre2_match_context *context = pcre2_match_context_create(NULL);
    _cleanup_(work_finish) struct work work = {.items = NULL};

    if (!data || !context || work_init(&work, code, pattern) != 0)
        return PCRE2_ERROR_NOMEMORY;
    /* The frames' memory is the limit of depth, the work that of their number. */
    pcre2_set_match_limit(context, UINT32_MAX);
    pcre2_set_depth_limit(context, UINT32_MAX);
    pcre2_set_heap_limit(context, HEAP_LIMIT_KIB);
    pcre2_set_callout(context, count_work, &work);
    return pcre2_match(code, (PCRE2_SPTR)text.data, text.length_bytes, 0, flags, data, context);
}

static void judge(const struct verifier_input *input, struct verdict *ret_verdict)
{
    _cleanup_(free_code) pcre2_code *code = NULL;
    struct text pattern = option_text(input->options, "pattern");
    bool absent = option_is(input->options, "mode", "absent");
    uint32_t flags = option_is(input->options, "mode", "fullmatch") ? PCRE2_ANCHORED | PCRE2_ENDANCHORED : 0;
    size_t offset;
    int result;

    code = compile(pattern, &result, &offset);
    if (!code) {
        verdict_fail(ret_verdict, "verifier_options", "the pattern does not compile");
        return;
    }
    result = match(code, pattern, input->completion, flags);
    if (result == PCRE2_ERROR_NOMATCH)
        verdict_set(ret_verdict, absent, absent ? "absent" : "no_match");
    else if (result >= 0)
        verdict_set(ret_verdict, !absent, absent ? "present" : "match");
    else if (is_limit(result))
        verdict_set(ret_verdict, false, "work_limit");
    else
        verdict_fail(ret_verdict, "verifier_crashed", "PCRE2 gave up with its error %d", result);
}

const struct verifier verifier_regex = {
    .name = "regex",
    .version = "3",
    .help = "1 if a pattern matches (search, fullmatch) or does not match (absent) the completion",
    .options = options,
    .option_count = ARRAY_LENGTH(options),
    .check_options = check_options,
    .judge = judge,
};
