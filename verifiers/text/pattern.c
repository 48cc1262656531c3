#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "server/base/cleanup.h"
#include "verifiers/text/pattern.h"

#include <stdio.h>
#include <string.h>

#define HEAP_LIMIT_KIB 16384 /* of PCRE2's frames, for the places to step back to */

/* One unit is about a nanosecond: a byte of the text that a simple item takes. */
#define WORK_UNITS 20000000
#define RELEASE_UNITS 5000 /* of one match: at most some 80 KiB of frames */
#define CALL_UNITS 20
#define ITEM_BYTES_A_UNIT 4 /* of an item's text: a class is searched one range after the other */
#define CLASS_BYTES_A_UNIT 8

/* Cost of one item of the pattern before PCRE2 calls back again. */
struct item {
    uint32_t bytes_units; /* for each byte of the text that it takes */
    uint32_t repeats;     /* how many times it must match: that many may be tried in vain */
    bool looks_behind;
    bool refers_back;
    bool takes_clusters; /* \X{2,}: of any length */
};

struct work {
    uint64_t *units;
    uint64_t units_max;
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

/* Units for the bytes of the compiled pattern that go beyond the usual size of its items: (?i)[Ā-￿] becomes hundreds of ranges. */
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
    return pcre2_callout_enumerate(code, describe_item, work) == 0 ? 0 : -1;
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
        *work->units += work->captures;
        work->last_at = block->start_match;
    }
    if (block->current_position > work->last_at)
        *work->units += (uint64_t)(block->current_position - work->last_at) * work->last->bytes_units;
    *work->units += units_ahead(work, item, block);
    work->last_at = block->current_position;
    work->last = item;
    return *work->units > work->units_max ? PCRE2_ERROR_CALLOUT : 0;
}

/* --- the pattern --- */

struct pattern {
    pcre2_code *code;
    pcre2_match_data *match;
    pcre2_match_context *context;
    struct work work;
    uint64_t units;   /* where it shares no count */
    struct text text; /* searched last */
    int error;
};

static pcre2_code *compile(struct text source, char ret_problem[PATTERN_PROBLEM_BYTES])
{
    PCRE2_UCHAR message[120];
    size_t offset;
    int error;
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)source.data, source.length_bytes,
                                     PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C | PCRE2_AUTO_CALLOUT, &error, &offset, NULL);

    if (code)
        return code;
    pcre2_get_error_message(error, message, sizeof message);
    snprintf(ret_problem, PATTERN_PROBLEM_BYTES, "%s (at byte %zu)", (const char *)message, offset);
    return NULL;
}

/* The frames' memory is the limit of depth, the work that of their number. */
static void set_limits(struct pattern *pattern)
{
    pcre2_set_match_limit(pattern->context, UINT32_MAX);
    pcre2_set_depth_limit(pattern->context, UINT32_MAX);
    pcre2_set_heap_limit(pattern->context, HEAP_LIMIT_KIB);
    pcre2_set_callout(pattern->context, count_work, &pattern->work);
}

struct pattern *pattern_create(struct text source, char ret_problem[PATTERN_PROBLEM_BYTES])
{
    _cleanup_(pattern_destroyp) struct pattern *pattern = xcalloc(1, sizeof *pattern);

    pattern->code = compile(source, ret_problem);
    if (!pattern->code)
        return NULL;
    pattern->match = pcre2_match_data_create_from_pattern(pattern->code, NULL);
    pattern->context = pcre2_match_context_create(NULL);
    if (!pattern->match || !pattern->context || work_init(&pattern->work, pattern->code, source) < 0) {
        snprintf(ret_problem, PATTERN_PROBLEM_BYTES, "there is no memory for it");
        return NULL;
    }
    pattern_share_work(pattern, &pattern->units, WORK_UNITS);
    set_limits(pattern);
    return TAKE_PTR(pattern);
}

void pattern_destroy(struct pattern *pattern)
{
    if (!pattern)
        return;
    free(pattern->work.items);
    pcre2_match_context_free(pattern->context);
    pcre2_match_data_free(pattern->match);
    pcre2_code_free(pattern->code);
    free(pattern);
}

uint32_t pattern_group_count(const struct pattern *pattern)
{
    return pattern->work.captures;
}

static bool is_limit(int result)
{
    return result == PCRE2_ERROR_CALLOUT || result == PCRE2_ERROR_MATCHLIMIT || result == PCRE2_ERROR_DEPTHLIMIT ||
           result == PCRE2_ERROR_HEAPLIMIT || result == PCRE2_ERROR_RECURSELOOP;
}

/* PCRE2 keeps the frames of its largest match with the match data. Those of many patterns would fill the memory. */
static void release_frames(struct pattern *pattern, uint64_t units)
{
    if (units < RELEASE_UNITS)
        return;
    pcre2_match_data_free(pattern->match);
    pattern->match = NULL;
}

enum pattern_result pattern_match(struct pattern *pattern, struct text text, size_t from_bytes, bool whole)
{
    uint64_t units = *pattern->work.units;
    uint32_t flags = (whole ? PCRE2_ANCHORED | PCRE2_ENDANCHORED : 0) | (from_bytes ? PCRE2_NO_UTF_CHECK : 0);

    pattern->text = text;
    pattern->work.last = &pattern->work.items[pattern->work.pattern.length_bytes];
    pattern->work.last_at = from_bytes;
    if (!pattern->match)
        pattern->match = pcre2_match_data_create_from_pattern(pattern->code, NULL);
    pattern->error = pattern->match ? pcre2_match(pattern->code, (PCRE2_SPTR)text.data, text.length_bytes, from_bytes,
                                                  flags, pattern->match, pattern->context)
                                    : PCRE2_ERROR_NOMEMORY;
    release_frames(pattern, *pattern->work.units - units);
    if (pattern->error >= 0)
        return PATTERN_MATCH;
    if (pattern->error == PCRE2_ERROR_NOMATCH)
        return PATTERN_NO_MATCH;
    return is_limit(pattern->error) ? PATTERN_WORK_LIMIT : PATTERN_GAVE_UP;
}

void pattern_share_work(struct pattern *pattern, uint64_t *units, uint64_t units_max)
{
    pattern->work.units = units;
    pattern->work.units_max = units_max;
}

struct text pattern_group(const struct pattern *pattern, uint32_t group)
{
    const size_t *offsets = pcre2_get_ovector_pointer(pattern->match);
    size_t start = offsets[2 * group];
    size_t end = offsets[2 * group + 1];

    /* \K in a look-ahead can set the start behind the end. */
    if (start == PCRE2_UNSET || end == PCRE2_UNSET || start > end)
        return TEXT_NONE;
    return (struct text){pattern->text.data + start, end - start};
}

int pattern_error(const struct pattern *pattern)
{
    return pattern->error;
}
