/* choice: is the letter that the completion answers with the reference's?
 *
 *   reference  a letter, "B"; with `multi` several, "A,C" or ["A", "C"]
 *   answer     by `mode`: the last box, the last <answer>…</answer>, what stands behind the last marker ("Answer:"), or the
 *              one of them that ends last; lenient also takes a line that is a letter, and "option B"
 *
 * The text there is read as a whole (labels.h). An answer that was cut off, taken back or unreadable is no answer, and an
 * earlier one never stands in for it. Reasons, a closed set: equal, different, no_answer, several_answers,
 * unparsed_answer. */
#include "server/base/buffer.h"
#include "verifiers/rows.h"
#include "verifiers/text/claims.h"
#include "verifiers/text/extract.h"
#include "verifiers/text/labels.h"
#include "verifiers/text/lookalikes.h"

#define TEXT_BYTES 4096
#define MARKERS_MAX 32
#define MARKER_BYTES 64

static const char *const modes[] = {"auto", "lenient", "strict_box", "answer_tag", "marker", NULL};
static const char *const unicode_letters[] = {"reject", "nfkc", NULL};

static const struct verifier_option options[] = {
    {"mode", OPTION_CHOICE, "\"auto\"", modes, 0, 0,
     "where the letter stands; auto: the box, answer tag or marker that ends last; lenient: also a line that is a "
     "letter, "
     "or \"option B\"; strict_box: a capital letter in the last box"},
    {"letters", OPTION_TEXT, "\"ABCD\"", NULL, 1, LABELS_MAX, "letters of the options: capitals and digits"},
    {"texts", OPTION_OBJECT, "{}", NULL, 0, 0,
     "the options' texts by their letters: a whole text then is an answer, too, and one behind another letter is none"},
    {"multi", OPTION_BOOL, "false", NULL, 0, 0, "several letters are one answer; their order does not count"},
    {"markers", OPTION_TEXTS,
     "[\"answer\", \"correct option\", \"correct choice\", \"right option\", \"right choice\", \"best option\", \"best "
     "choice\"]",
     NULL, 1, MARKERS_MAX, "words in front of an answer, with a colon, an equals sign or \"is\" behind them"},
    {"max_boxes", OPTION_INT, "null", NULL, 1, EXTRACT_BOXES_MAX, "more different boxes than this are refused"},
    {"unicode_letters", OPTION_CHOICE, "\"reject\"", unicode_letters, 0, 0,
     "nfkc: full-width, circled and mathematical letters count as letters"},
    {"strip_zero_width", OPTION_BOOL, "false", NULL, 0, 0, "characters without width are taken out first"},
};

/* --- options and references --- */

static int check_letters(struct text letters, struct verifier_problem *ret_problem)
{
    for (size_t i = 0; i < letters.length_bytes; i++) {
        char letter = letters.data[i];
        if (!letter || !strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", letter))
            return verifier_refuse(ret_problem, "letters", "must be capital letters and digits");
        if (memchr(letters.data, letter, i))
            return verifier_refuse(ret_problem, "letters", "has %c twice", letter);
    }
    return 0;
}

static int check_texts(const json_t *texts, struct text letters, struct verifier_problem *ret_problem)
{
    const char *key;
    const json_t *value;

    json_object_foreach ((json_t *)(uintptr_t)texts, key, value) {
        if (strlen(key) != 1 || !memchr(letters.data, key[0], letters.length_bytes))
            return verifier_refuse(ret_problem, "texts", "has a key that is none of the letters %.*s",
                                   (int)letters.length_bytes, letters.data);
        if (!json_is_string(value) || text_trimmed(json_text_of(value)).length_bytes == 0 ||
            json_string_length(value) > TEXT_BYTES)
            return verifier_refuse(ret_problem, "texts", "the text of %s is blank, no text, or above %d bytes", key,
                                   TEXT_BYTES);
    }
    return 0;
}

static int check_options(const json_t *filled, struct verifier_problem *ret_problem)
{
    struct text letters = option_text(filled, "letters");
    size_t i;
    const json_t *marker;

    json_array_foreach (json_object_get(filled, "markers"), i, marker)
        if (text_trimmed(json_text_of(marker)).length_bytes == 0 || json_string_length(marker) > MARKER_BYTES)
            return verifier_refuse(ret_problem, "markers", "element %zu is blank, or above %d bytes", i, MARKER_BYTES);
    if (check_letters(letters, ret_problem) < 0)
        return -1;
    return check_texts(json_object_get(filled, "texts"), letters, ret_problem);
}

static bool is_sign_of_option(char byte)
{
    return (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9');
}

static char upper(char byte)
{
    return byte >= 'a' && byte <= 'z' ? (char)(byte - 'a' + 'A') : byte;
}

/* Appends the letters of "B" or, of several, of "A,C", "A, C" and "AC". false: anything else. */
static bool take_letters(struct text text, bool several, char letters[LABELS_MAX + 1])
{
    size_t count = strlen(letters);
    size_t before = count;

    text = text_trimmed(text);
    for (size_t i = 0; i < text.length_bytes; i++) {
        if (several && (text.data[i] == ',' || text.data[i] == ' '))
            continue;
        if (!is_sign_of_option(text.data[i]) || (!several && count > before))
            return false;
        if (strchr(letters, upper(text.data[i])))
            continue;
        if (count == LABELS_MAX)
            return false;
        letters[count++] = upper(text.data[i]);
        letters[count] = 0;
    }
    return count > before || (several && before > 0);
}

static bool read_reference(const json_t *reference, bool multi, char ret_letters[LABELS_MAX + 1])
{
    size_t i;
    const json_t *element;

    ret_letters[0] = 0;
    if (json_is_string(reference))
        return take_letters(json_text_of(reference), multi, ret_letters);
    if (!multi || json_array_size(reference) == 0)
        return false;
    json_array_foreach (reference, i, element)
        if (!json_is_string(element) || !take_letters(json_text_of(element), false, ret_letters))
            return false;
    return true;
}

static int check_reference(const json_t *reference, const json_t *filled, struct verifier_problem *ret_problem)
{
    char letters[LABELS_MAX + 1];
    bool multi = option_is_true(filled, "multi");

    if (read_reference(reference, multi, letters))
        return 0;
    return verifier_refuse(ret_problem, "",
                           multi ? "the reference is neither letters, \"A,C\", nor a list of letters"
                                 : "the reference is no letter; several need the option multi");
}

/* --- the verdict --- */

static struct labels_rule rule_of(const json_t *filled)
{
    struct labels_rule rule = {
        .letters = option_text(filled, "letters"),
        .multi = option_is_true(filled, "multi"),
        .strict = option_is(filled, "mode", "strict_box"),
    };
    const json_t *texts = json_object_get(filled, "texts");

    for (size_t i = 0; i < rule.letters.length_bytes; i++)
        rule.text[i] = json_text_of(json_object_get(texts, (char[]){rule.letters.data[i], 0}));
    return rule;
}

static struct claims_rule markers_of(const json_t *filled, struct text room[MARKERS_MAX])
{
    struct claims_rule rule = {.markers = room};
    size_t i;
    const json_t *marker;

    json_array_foreach (json_object_get(filled, "markers"), i, marker)
        room[rule.marker_count++] = json_text_of(marker);
    return rule;
}

static const char *const reasons[] = {
    [LABELS_READ] = "equal",
    [LABELS_BLANK] = "no_answer",
    [LABELS_UNREADABLE] = "unparsed_answer",
    [LABELS_SEVERAL] = "several_answers",
    [LABELS_DENIED] = "unparsed_answer",
};

/* {"read": "A,C"} */
static void note_letters(struct verdict *verdict, const struct labels_rule *rule, uint64_t set)
{
    char letters[2 * LABELS_MAX + 1];
    size_t length = 0;

    for (size_t i = 0; i < rule->letters.length_bytes; i++)
        if (set >> i & 1) {
            letters[length++] = rule->letters.data[i];
            letters[length++] = ',';
        }
    json_object_set_new(verdict->detail, "read", json_stringn(letters, length ? length - 1 : 0));
}

/* A letter of the reference that is no option's is in no set. */
static bool is_equal(const struct labels_rule *rule, uint64_t set, const char *wanted)
{
    uint64_t wanted_set = 0;

    for (; *wanted; wanted++) {
        size_t place = labels_place(rule, *wanted);
        if (place == LABELS_MAX)
            return false;
        wanted_set |= UINT64_C(1) << place;
    }
    return set == wanted_set;
}

static void grade_claim(const struct verifier_input *input, const struct labels_rule *rule, const struct claim *claim,
                        const char *wanted, struct verdict *ret_verdict)
{
    bool equal = claim->labels.outcome == LABELS_READ && is_equal(rule, claim->labels.set, wanted);

    verdict_set(ret_verdict, equal,
                equal || claim->labels.outcome != LABELS_READ ? reasons[claim->labels.outcome] : "different");
    if (!claim->value.data)
        return;
    verdict_note_extracted(ret_verdict, input->completion, claim->value);
    if (claim->labels.outcome == LABELS_READ)
        note_letters(ret_verdict, rule, claim->labels.set);
}

static enum claims_mode mode_of(const json_t *filled)
{
    enum claims_mode mode = CLAIMS_AUTO;

    for (; modes[mode]; mode++)
        if (option_is(filled, "mode", modes[mode]))
            break;
    return mode;
}

static void grade(const struct verifier_input *input, struct verdict *ret_verdict)
{
    _cleanup_buffer_ struct buffer plain;
    struct text room[MARKERS_MAX];
    struct labels_rule rule = rule_of(input->options);
    struct claims_rule where = markers_of(input->options, room);
    char wanted[LABELS_MAX + 1];
    struct claim claim;

    buffer_init(&plain, input->completion.length_bytes + 1);
    if (!read_reference(input->reference, rule.multi, wanted)) {
        struct verifier_problem problem;
        check_reference(input->reference, input->options, &problem);
        verdict_fail(ret_verdict, "reference_unreadable", "%s", problem.message);
        return;
    }
    where.labels = &rule;
    where.boxes_max = (size_t)option_number(input->options, "max_boxes", INT32_MAX);
    claims_find(&where,
                lookalikes_plain(input->completion, option_is(input->options, "unicode_letters", "nfkc"),
                                 option_is_true(input->options, "strip_zero_width"), &plain),
                mode_of(input->options), &claim);
    grade_claim(input, &rule, &claim, wanted, ret_verdict);
}

const struct verifier verifier_choice = {
    .name = "choice",
    .version = "2",
    .help = "1 if the completion answers with the reference's letter",
    .needs_reference = true,
    .options = options,
    .option_count = ARRAY_LENGTH(options),
    .check_options = check_options,
    .check_reference = check_reference,
    .grade = grade,
};
