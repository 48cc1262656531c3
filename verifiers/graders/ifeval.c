/* ifeval: does the completion follow each of the instructions that the reference names? The rules are verifiers/ifeval's.
 *
 * Graded is the final part of the completion: what stands behind the reasoning, up to the end of the turn. */
#include "server/base/utf8.h"
#include "verifiers/ifeval/instruction.h"
#include "verifiers/ifeval/parts.h"
#include "verifiers/rows.h"
#include "verifiers/text/extract.h"

static const char *const modes[] = {"strict", "loose", NULL};
static const char *const aggregates[] = {"all", "mean", NULL};

static const struct verifier_option options[] = {
    {"mode", OPTION_CHOICE, "\"strict\"", modes, 0, 0,
     "loose: also without the first line, the last one, both, and each without asterisks"},
    {"aggregate", OPTION_CHOICE, "\"all\"", aggregates, 0, 0,
     "all: 1 if every instruction is followed; mean: the share of those that are"},
};

static int check_reference(const json_t *reference, const json_t *filled, struct verifier_problem *ret_problem)
{
    _cleanup_wanted_ struct wanted_list list;

    (void)filled;
    return wanted_read(reference, TEXT_NONE, true, &list, ret_problem);
}

/* --- versions of a text --- */

#define VERSIONS_MAX 8
/* A longer text is graded as it is only: eight versions of it would take too long. */
#define LOOSE_BYTES 131072

struct versions {
    struct passage passage[VERSIONS_MAX];
    struct buffer without_stars; /* holds the second half of them */
    size_t count;
    bool cut; /* some were left out */
};

/* A blank version follows nothing; one that is there already says nothing new. */
static void add_version(struct versions *versions, struct text text)
{
    if (text_is_blank(text))
        return;
    for (size_t i = 0; i < versions->count; i++)
        if (text_same(versions->passage[i].text, text))
            return;
    passage_init(&versions->passage[versions->count++], text);
}

static struct text without_first_line(struct text text)
{
    size_t end = text_index_of(text, TEXT_LITERAL("\n"));

    return text_stripped(end < text.length_bytes ? text_from(text, end + 1) : (struct text){"", 0});
}

static struct text without_last_line(struct text text)
{
    const char *end = memrchr(text.data, '\n', text.length_bytes);

    return text_stripped(end ? (struct text){text.data, (size_t)(end - text.data)} : (struct text){"", 0});
}

/* A line that is the first and the last one is taken off once. */
static struct text without_both_lines(struct text text)
{
    size_t end = text_index_of(text, TEXT_LITERAL("\n"));

    return end < text.length_bytes ? without_last_line(text_from(text, end + 1)) : (struct text){"", 0};
}

static void append_without_stars(struct buffer *out, struct text text)
{
    while (text.length_bytes) {
        size_t end = text_index_of(text, TEXT_LITERAL("*"));
        buffer_append(out, text.data, end);
        text = end < text.length_bytes ? text_from(text, end + 1) : (struct text){"", 0};
    }
}

static void add_loose(struct versions *versions, struct text text)
{
    struct text cut[] = {text, without_first_line(text), without_last_line(text), without_both_lines(text)};

    buffer_init(&versions->without_stars, VERSIONS_MAX * text.length_bytes);
    buffer_reserve(&versions->without_stars, ARRAY_LENGTH(cut) * text.length_bytes); /* so that nothing moves */
    for (size_t i = 1; i < ARRAY_LENGTH(cut); i++)
        add_version(versions, cut[i]);
    for (size_t i = 0; i < ARRAY_LENGTH(cut) && text_contains(text, TEXT_LITERAL("*")); i++) {
        size_t start = versions->without_stars.length_bytes;
        append_without_stars(&versions->without_stars, cut[i]);
        add_version(versions, text_from(buffer_text(&versions->without_stars), start));
    }
}

static void versions_init(struct versions *versions, struct text text, bool loose)
{
    versions->count = 0;
    versions->cut = loose && text.length_bytes > LOOSE_BYTES;
    buffer_init(&versions->without_stars, 0);
    add_version(versions, text);
    if (loose && !versions->cut && versions->count)
        add_loose(versions, text);
}

static void versions_finish(struct versions *versions)
{
    for (size_t i = 0; i < versions->count; i++)
        passage_finish(&versions->passage[i]);
    buffer_finish(&versions->without_stars);
}

/* --- the verdict --- */

enum followed { FOLLOWED_NO, FOLLOWED_YES, FOLLOWED_UNDECIDED };

struct outcome {
    size_t count;
    size_t followed;
    size_t undecided;
    const char *why; /* the first one is not decided; static text */
    const char *id;  /* its instruction's */
    const char *no;  /* the reason of a verdict that is not full */
};

/* By any version; undecided if one might be the one. */
static enum followed is_followed(const struct wanted *wanted, struct versions *versions, const char **ret_why)
{
    enum followed answer = FOLLOWED_NO;

    for (size_t i = 0; i < versions->count; i++) {
        struct passage *passage = &versions->passage[i];
        passage->undecided = NULL;
        if (!passage->has_word && !wanted->instruction->of_marks)
            continue;
        if (wanted->instruction->follows(passage, wanted->kwarg))
            return FOLLOWED_YES;
        if (passage->undecided) {
            *ret_why = passage->undecided;
            answer = FOLLOWED_UNDECIDED;
        }
    }
    return answer;
}

static void note(json_t *notes, const struct instruction *instruction, enum followed followed)
{
    json_t *said = followed == FOLLOWED_UNDECIDED ? json_null() : json_boolean(followed == FOLLOWED_YES);

    json_array_append_new(notes, json_pack("{s:s, s:o}", "id", instruction->id, "followed", said));
}

static void follow_all(const struct wanted_list *list, struct versions *versions, json_t *notes,
                       struct outcome *ret_outcome)
{
    *ret_outcome = (struct outcome){.count = list->count, .no = versions->cut ? "too_long" : "not_followed"};
    for (size_t i = 0; i < list->count; i++) {
        const char *why = NULL;
        enum followed followed = is_followed(&list->item[i], versions, &why);
        note(notes, list->item[i].instruction, followed);
        ret_outcome->followed += followed == FOLLOWED_YES;
        if (followed == FOLLOWED_UNDECIDED && ret_outcome->undecided++ == 0) {
            ret_outcome->why = why;
            ret_outcome->id = list->item[i].instruction->id;
        }
    }
}

/* One that is not followed decides on all, whatever is not decided beside it. */
static void say(const struct outcome *outcome, bool mean, struct verdict *ret_verdict)
{
    size_t broken = outcome->count - outcome->followed - outcome->undecided;
    bool all = outcome->followed == outcome->count;

    if (outcome->undecided && (mean || broken == 0))
        verdict_fail(ret_verdict, "unsupported", "%s: %s", outcome->id, outcome->why);
    else if (mean)
        verdict_set_score(ret_verdict, (double)outcome->followed / (double)outcome->count,
                          all ? "followed" : outcome->no);
    else
        verdict_set(ret_verdict, all, all ? "followed" : outcome->no);
}

static void grade_text(const struct wanted_list *list, struct text text, const json_t *filled,
                       struct verdict *ret_verdict)
{
    struct versions versions;
    struct outcome outcome;
    json_t *notes = json_array();

    versions_init(&versions, text, option_is(filled, "mode", "loose"));
    follow_all(list, &versions, notes, &outcome);
    if (versions.count == 0)
        verdict_set(ret_verdict, false, "no_answer");
    else
        say(&outcome, option_is(filled, "aggregate", "mean"), ret_verdict);
    ret_verdict->detail = json_pack("{s:o}", "instructions", notes);
    versions_finish(&versions);
}

static void grade(const struct verifier_input *input, struct verdict *ret_verdict)
{
    _cleanup_wanted_ struct wanted_list list;
    _cleanup_buffer_ struct buffer mended;
    struct verifier_problem problem;
    struct text text = extract_final_part(input->completion);

    if (!text.data)
        text = TEXT_LITERAL("");
    buffer_init(&mended, 3 * text.length_bytes);
    if (wanted_read(input->reference, input->prompt, false, &list, &problem) < 0) {
        verdict_fail(ret_verdict, "reference_unreadable", "%s", problem.message);
        return;
    }
    if (!utf8_is_valid(text, NULL)) {
        utf8_append_mended(&mended, text);
        text = buffer_text(&mended);
    }
    grade_text(&list, text, input->options, ret_verdict);
}

const struct verifier verifier_ifeval = {
    .name = "ifeval",
    .version = "3",
    .help = "do its instructions hold: IFEval's 25, IF-TRAIN's 29 and IFBench's 58",
    .needs_reference = true,
    .options = options,
    .option_count = ARRAY_LENGTH(options),
    .check_reference = check_reference,
    .grade = grade,
};
