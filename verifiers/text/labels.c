#include "verifiers/text/labels.h"

#include <string.h>

#include "server/base/cleanup.h"
#include "verifiers/text/extract.h"
#include "verifiers/text/option_text.h"
#include "verifiers/text/prose.h"

/* --- closed lists of words --- */

/* In front of a letter. */
static const char *const fillers[] = {
    "the",     "option", "options",    "choice",    "choices", "letter",  "letters",   "alternative", "answer",
    "answers", "is",     "are",        "be",        "it",      "it's",    "its",       "i",           "we",
    "choose",  "chose",  "pick",       "select",    "final",   "correct", "right",     "best",        "my",
    "our",     "that",   "definitely", "certainly", "surely",  "clearly", "obviously", "therefore",   "thus",
    "hence",   "then",   "simply",     "just",      "indeed",  "so",      "most",      "likely",      "exactly",
    "both",    "would",  "must",       "should",    NULL,
};

/* Between letters, or in front of one more. */
static const char *const joiners[] = {"and", "plus", NULL};
static const char *const choosers[] = {
    "or",     "nor",  "vs",   "versus", "maybe",   "perhaps", "possibly", "probably", "alternatively",
    "either", "also", "well", "but",    "however", NULL,
};
static const char *const well_as[] = {"as", NULL};
static const char *const nouns[] = {"option", "choice", "letter", "alternative", NULL};

static const char *const denials[] = {
    "not",
    "no",
    "none",
    "neither",
    "never",
    "nothing",
    "cannot",
    "can't",
    "isn't",
    "aren't",
    "isnt",
    "wasn't",
    "won't",
    "anything",
    "wrong",
    "incorrect",
    "false",
    "except",
    "all",
    "any",
    "anyone",
    "everything",
    "doesn't",
    "isn\xE2\x80\x99t",
    "can\xE2\x80\x99t",
    "aren\xE2\x80\x99t",
    "don't",
    "impossible",
    NULL,
};
/* Those that may begin an option's text: "B) False", "C) No change". */
static const char *const weak_denials[] = {
    "not",   "no",  "none", "neither",  "never",  "nothing",    "wrong",      "incorrect",
    "false", "all", "any",  "anything", "anyone", "everything", "impossible", NULL,
};
static const char *const retractions[] = {"no",         "wait", "actually", "sorry", "hmm",
                                          "correction", "oops", "scratch",  "nope",  NULL};

static const char *const verbs[] = {"is",     "was",  "are", "seems", "looks", "appears", "must", "would",
                                    "should", "does", "has", "could", "can",   "might",   "may",  NULL};
static const char *const verb_fillers[] = {"be",      "to",        "the",    "a",         "an",   "most", "definitely",
                                           "clearly", "obviously", "indeed", "therefore", "thus", NULL};
static const char *const praise[] = {"correct",  "right",  "best",   "true", "answer", "appropriate",
                                     "accurate", "choice", "option", "only", "likely", NULL};

/* Of explanations: nothing in them is another answer. */
static const char *const openers[] = {
    "because", "since", "as",     "which",   "where",     "that", "due",   "given", "for",   "by",      "from", "over",
    "based",   "with",  "rather", "instead", "therefore", "thus", "hence", "so",    "while", "whereas", NULL,
};

/* --- one value --- */

struct reading {
    const struct labels_rule *rule;
    struct prose rest;
    struct labels labels;
    size_t last;       /* the place of the last letter */
    bool small;        /* the first letter was a small one */
    bool text_is_read; /* the last letter's own text stood behind it */
};

#define SIGNS_MAX 16
#define SKIPPED_MAX 8    /* words such as "or maybe the option" in a row */
#define VALUE_BYTES 8192 /* of a longer value the beginning is read */

/* The signs between a letter and the next word, and that word. */
struct gap {
    bool list;           /* a comma, a semicolon, a slash */
    bool stop;           /* a full stop */
    bool hard;           /* a label's sign, a full stop, a decoration, or the option's text */
    bool own_text;       /* the letter's */
    bool other_text;     /* another letter's */
    struct prose before; /* the word */
    struct prose_word word;
};

size_t labels_place(const struct labels_rule *rule, char letter)
{
    char upper = letter >= 'a' && letter <= 'z' ? (char)(letter - 'a' + 'A') : letter;

    for (size_t i = 0; i < rule->letters.length_bytes; i++)
        if (rule->letters.data[i] == upper)
            return i;
    return LABELS_MAX;
}

static bool is_small(struct text text)
{
    return text.length_bytes && text.data[0] >= 'a' && text.data[0] <= 'z';
}

/* The place of the letter that the word is, or LABELS_MAX. */
static size_t place_of(const struct labels_rule *rule, struct prose_word word)
{
    if (word.kind != PROSE_WORD || word.text.length_bytes != 1 || (rule->strict && is_small(word.text)))
        return LABELS_MAX;
    return labels_place(rule, word.text.data[0]);
}

static bool holds(const struct reading *reading, size_t place)
{
    return reading->labels.set >> place & 1;
}

static void add(struct reading *reading, size_t place)
{
    reading->labels.set |= UINT64_C(1) << place;
    reading->last = place;
    reading->text_is_read = false;
}

/* "A rocky planet", "A is a planet": is the letter an article? Not in front of a verb. */
static bool is_article(struct prose_word word, struct prose behind)
{
    struct prose_word next = prose_peek(behind);

    if (!strchr("aAI", word.text.data[0]) || next.kind != PROSE_WORD || next.decorated)
        return false;
    return (is_small(next.text) || (unsigned char)next.text.data[0] >= 0x80) && !prose_is_one_of(next, verbs) &&
           !prose_is_one_of(next, joiners) && !prose_is_one_of(next, choosers) && !prose_is_one_of(next, denials);
}

/* "A is wrong", and in a sentence of its own "A is a planet": said of the letter, which is no answer then. */
static bool is_told_of(struct prose behind, bool own_sentence)
{
    struct prose_word word = prose_next(&behind);

    if (!prose_is_one_of(word, verbs))
        return prose_is_one_of(word, denials);
    do
        word = prose_next(&behind);
    while (prose_is_one_of(word, verb_fillers));
    return prose_is_one_of(word, denials) ||
           (own_sentence && word.kind == PROSE_WORD && !prose_is_one_of(word, praise));
}

/* Another letter than those read, which can be no article. */
static bool is_other_letter(const struct reading *reading, struct prose_word word, struct prose behind,
                            bool own_sentence)
{
    size_t place = place_of(reading->rule, word);

    return place < LABELS_MAX && !holds(reading, place) && (!is_small(word.text) || reading->small) &&
           !is_article(word, behind) && !is_told_of(behind, own_sentence);
}

/* The options with the longest text that stands at *at: 0 for none. *at is then behind it. */
static uint64_t longest_texts(const struct labels_rule *rule, struct prose *at)
{
    struct prose start = *at;
    uint64_t set = 0;

    for (size_t i = 0; i < rule->letters.length_bytes; i++) {
        struct prose end = start;
        if (!option_text_take(rule->text[i], &end) || (set && end.at < at->at))
            continue;
        set = set && end.at == at->at ? set | UINT64_C(1) << i : UINT64_C(1) << i;
        *at = end;
    }
    return set;
}

/* The place of the only letter in a set, or LABELS_MAX. */
static size_t only_place(uint64_t set)
{
    return set && !(set & (set - 1)) ? (size_t)__builtin_ctzll(set) : LABELS_MAX;
}

/* Is the text of an option a letter of the options? */
static bool is_letter(const struct labels_rule *rule, size_t place)
{
    struct prose at = {rule->text[place], 0};
    struct prose_word word = prose_next(&at);

    return place_of(rule, word) < LABELS_MAX && prose_next(&at).kind == PROSE_END;
}

/* Is the text of another option here, as a whole? One that is a letter itself is that letter. */
static bool is_other_text(const struct reading *reading, struct prose at)
{
    uint64_t set = longest_texts(reading->rule, &at);
    struct prose_word word = prose_peek(at);

    return set && !(set & reading->labels.set) && !is_letter(reading->rule, (size_t)__builtin_ctzll(set)) &&
           word.kind != PROSE_WORD && word.kind != PROSE_UNKNOWN;
}

/* The last letter's own text, once. */
static bool take_own_text(struct reading *reading)
{
    struct prose at = reading->rest;

    if (reading->text_is_read || !(longest_texts(reading->rule, &at) >> reading->last & 1))
        return false;
    reading->rest = at;
    reading->text_is_read = true;
    return true;
}

/* Signs and texts of options up to the next word, which is taken. */
static struct gap take_gap(struct reading *reading)
{
    struct gap gap = {.word = {.kind = PROSE_UNKNOWN}};

    for (int sign = 0; sign < SIGNS_MAX; sign++) {
        gap.own_text |= take_own_text(reading);
        gap.before = reading->rest;
        gap.word = prose_next(&reading->rest);
        gap.hard |= gap.word.decorated || gap.own_text;
        gap.other_text |= gap.hard && is_other_text(reading, gap.before);
        if (gap.word.kind == PROSE_LIST)
            gap.list = true;
        else if (gap.word.kind == PROSE_STOP)
            gap.hard = gap.stop = true;
        else if (gap.word.kind == PROSE_LABEL)
            gap.hard = true;
        else
            return gap;
    }
    return gap;
}

/* Behind "or", "and" and the like: one more letter or option's text? *rest is then behind it. *ret_place is LABELS_MAX
 * unless it is a letter that is joined without a choice. */
static bool takes_another(const struct reading *reading, struct prose *rest, bool own_sentence, size_t *ret_place)
{
    struct prose at = *rest;
    struct prose before = at;
    struct prose_word word = prose_next(&at);
    bool chosen = false;

    *ret_place = LABELS_MAX;
    for (int skipped = 0; skipped < SKIPPED_MAX; skipped++) {
        if (!prose_is_one_of(word, fillers) && !prose_is_one_of(word, joiners) && !prose_is_one_of(word, choosers) &&
            !prose_is_one_of(word, well_as) && word.kind != PROSE_LIST)
            break;
        chosen |= prose_is_one_of(word, choosers);
        before = at;
        word = prose_next(&at);
    }
    if (is_other_letter(reading, word, at, own_sentence)) {
        *ret_place = chosen ? LABELS_MAX : place_of(reading->rule, word);
        *rest = at;
        return true;
    }
    return is_other_text(reading, before);
}

/* An explanation: to the end of its sentence. "or A" in it is another answer, "than A or C" speaks of others. */
static enum labels_outcome read_prose(const struct reading *reading, struct prose rest)
{
    struct prose_word word = prose_next(&rest);
    bool behind_other = false;
    size_t place;

    for (; word.kind != PROSE_END && word.kind != PROSE_STOP; word = prose_next(&rest)) {
        struct prose at = rest;
        if (!behind_other && prose_is_one_of(word, choosers) && takes_another(reading, &at, false, &place))
            return LABELS_SEVERAL;
        behind_other = is_other_letter(reading, word, rest, false);
    }
    return LABELS_READ;
}

/* Behind a verb: "is the right answer", "is wrong". */
static enum labels_outcome read_verdict(const struct reading *reading, struct prose rest, bool hard)
{
    struct prose_word word = prose_next(&rest);

    while (prose_is_one_of(word, verb_fillers))
        word = prose_next(&rest);
    if (prose_is_one_of(word, denials))
        return LABELS_DENIED;
    if (prose_is_one_of(word, praise))
        return read_prose(reading, rest);
    return hard ? read_prose(reading, rest) : LABELS_UNREADABLE;
}

/* "B, not A" is B; "B is not …" was a verdict. */
static enum labels_outcome read_denial(const struct reading *reading, struct prose_word word, struct prose rest)
{
    static const char *const nots[] = {"not", NULL};
    size_t place;

    if (!prose_is_one_of(word, nots) || !takes_another(reading, &rest, false, &place))
        return LABELS_DENIED;
    return read_prose(reading, rest);
}

/* "B) False" is a text, "B (wrong)" is none. */
static bool begins_text(struct gap gap)
{
    char before = gap.word.text.data > gap.before.text.data ? gap.word.text.data[-1] : 0;

    return gap.hard && !gap.list && before != '(' && before != '[' && prose_is_one_of(gap.word, weak_denials);
}

/* "B and not A", "B but not A" */
static enum labels_outcome read_contrast(const struct reading *reading, struct prose rest)
{
    static const char *const nots[] = {"not", NULL};
    struct prose_word word = prose_next(&rest);

    return prose_is_one_of(word, nots) ? read_denial(reading, word, rest) : LABELS_UNREADABLE;
}

/* A word behind the letters that is neither a letter nor joins one. */
static enum labels_outcome read_word(const struct reading *reading, struct gap gap)
{
    static const char *const contrasts[] = {"and", "but", NULL};
    static const char *const plural[] = {"are", "aren't", NULL};

    if (gap.stop && !is_small(gap.word.text))
        return prose_is_one_of(gap.word, retractions) ? LABELS_DENIED : LABELS_READ;
    if (prose_is_one_of(gap.word, verbs))
        return read_verdict(reading, reading->rest, gap.hard);
    if (prose_is_one_of(gap.word, denials) && !begins_text(gap))
        return read_denial(reading, gap.word, reading->rest);
    if (!gap.hard && prose_is_one_of(gap.word, contrasts))
        return read_contrast(reading, reading->rest);
    if (place_of(reading->rule, gap.word) < LABELS_MAX && is_told_of(reading->rest, gap.stop) &&
        !prose_is_one_of(prose_peek(reading->rest), plural)) /* "A, C are wrong" */
        return read_prose(reading, reading->rest);
    if (gap.hard || (!reading->rule->strict && prose_is_one_of(gap.word, openers)))
        return read_prose(reading, reading->rest);
    return LABELS_UNREADABLE;
}

/* An unknown sign behind a letter: "B: +3" is B, "B+1" and "B?" are not. */
static enum labels_outcome read_sign(const struct reading *reading, struct gap gap)
{
    bool text_begins = gap.hard && gap.word.text.data && gap.word.text.data[0] && !strchr("?>", gap.word.text.data[0]);

    return text_begins ? read_prose(reading, reading->rest) : LABELS_UNREADABLE;
}

/* Another letter behind the gap, joined or listed. *ret_place is LABELS_MAX where it is none of a list. */
static bool finds_another(const struct reading *reading, struct gap gap, struct prose *ret_behind, size_t *ret_place)
{
    bool chosen = prose_is_one_of(gap.word, choosers);

    *ret_behind = reading->rest;
    *ret_place = LABELS_MAX;
    if (gap.other_text)
        return true;
    if (is_other_letter(reading, gap.word, reading->rest, gap.stop)) {
        *ret_place = place_of(reading->rule, gap.word);
        return true;
    }
    if (!chosen && !prose_is_one_of(gap.word, joiners) && !prose_is_one_of(gap.word, nouns))
        return false;
    if (!takes_another(reading, ret_behind, gap.stop, ret_place))
        return false;
    if (chosen)
        *ret_place = LABELS_MAX;
    return true;
}

/* One step behind a letter. false: *ret_outcome is the end. */
static bool take_more(struct reading *reading, enum labels_outcome *ret_outcome)
{
    struct gap gap = take_gap(reading);
    size_t same = place_of(reading->rule, gap.word);
    struct prose behind;
    size_t place;

    *ret_outcome = LABELS_READ;
    reading->labels.alone &= !gap.own_text;
    if (gap.word.kind == PROSE_END && !gap.other_text)
        return false;
    if (same < LABELS_MAX && holds(reading, same) && !is_article(gap.word, reading->rest))
        return true;
    if (finds_another(reading, gap, &behind, &place)) {
        *ret_outcome = LABELS_SEVERAL;
        if (!reading->rule->multi || place == LABELS_MAX)
            return false;
        reading->rest = behind;
        add(reading, place);
        return true;
    }
    reading->labels.alone = false;
    *ret_outcome = gap.word.kind == PROSE_UNKNOWN ? read_sign(reading, gap) : read_word(reading, gap);
    return false;
}

static struct labels finish(struct reading *reading, enum labels_outcome outcome)
{
    reading->labels.outcome = outcome;
    return reading->labels;
}

static struct labels read_on(struct reading *reading)
{
    enum labels_outcome outcome = LABELS_READ;

    reading->labels.alone = true;
    while (take_more(reading, &outcome))
        ;
    return finish(reading, outcome);
}

/* "AC": capitals that are all letters of options. */
static bool take_run(struct reading *reading, struct prose_word word)
{
    if (word.kind != PROSE_WORD || word.text.length_bytes < 2 || word.text.length_bytes > LABELS_MAX)
        return false;
    for (size_t i = 0; i < word.text.length_bytes; i++) {
        struct text letter = {word.text.data + i, 1};
        size_t place = is_small(letter) ? LABELS_MAX : labels_place(reading->rule, letter.data[0]);
        if (place == LABELS_MAX || holds(reading, place)) {
            reading->labels.set = 0;
            return false;
        }
        add(reading, place);
    }
    return true;
}

/* Steps over words such as "option" and a colon behind them. */
static struct prose_word take_fillers(struct reading *reading)
{
    struct prose_word word = prose_next(&reading->rest);
    bool any = false;

    while (!reading->rule->strict && place_of(reading->rule, word) == LABELS_MAX &&
           (prose_is_one_of(word, fillers) || (any && (word.kind == PROSE_LABEL || text_equals(word.text, ","))))) {
        any = true;
        word = prose_next(&reading->rest);
    }
    if (any && word.kind == PROSE_END)
        word.kind = PROSE_UNKNOWN;
    return word;
}

static struct labels read_letters(const struct labels_rule *rule, struct text value)
{
    struct reading reading = {.rule = rule, .rest = {value, 0}};
    struct prose_word word = take_fillers(&reading);
    size_t place = place_of(rule, word);

    if (place < LABELS_MAX) {
        reading.small = is_small(word.text);
        add(&reading, place);
        return read_on(&reading);
    }
    if (take_run(&reading, word))
        return rule->multi ? read_on(&reading) : finish(&reading, LABELS_SEVERAL);
    if (word.kind == PROSE_END)
        return finish(&reading, LABELS_BLANK);
    return finish(&reading, prose_is_one_of(word, denials) ? LABELS_DENIED : LABELS_UNREADABLE);
}

/* --- by the options' texts --- */

/* Without spaces, dollars, emphasis and full stops at both ends. */
static struct text inner(struct text text)
{
    while (text.length_bytes && text.data[0] && strchr(" \t\r\n$*.", text.data[0]))
        text = (struct text){text.data + 1, text.length_bytes - 1};
    while (text.length_bytes && text.data[text.length_bytes - 1] &&
           strchr(" \t\r\n$*.", text.data[text.length_bytes - 1]))
        text.length_bytes--;
    return text;
}

/* The options whose text is the whole value; of several the one that is it byte for byte. */
static uint64_t whole_texts(const struct labels_rule *rule, struct text value)
{
    uint64_t set = 0;
    uint64_t exact = 0;

    for (size_t i = 0; i < rule->letters.length_bytes; i++) {
        if (!option_text_is(rule->text[i], value))
            continue;
        set |= UINT64_C(1) << i;
        if (text_same(inner(rule->text[i]), inner(value)))
            exact |= UINT64_C(1) << i;
    }
    return exact ? exact : set;
}

/* The longest text of an option that the value begins with, behind words such as "it is". */
static struct labels read_text(const struct labels_rule *rule, struct text value)
{
    struct reading reading = {.rule = rule, .rest = {value, 0}};
    uint64_t set = longest_texts(rule, &reading.rest);

    for (int skipped = 0; !set; skipped++) {
        struct prose_word word = prose_next(&reading.rest);
        if (skipped == SKIPPED_MAX || !prose_is_one_of(word, fillers))
            return finish(&reading, LABELS_UNREADABLE);
        set = longest_texts(rule, &reading.rest);
    }
    if (only_place(set) == LABELS_MAX)
        return finish(&reading, LABELS_SEVERAL);
    add(&reading, only_place(set));
    reading.text_is_read = true;
    return read_on(&reading);
}

/* Without the mark of a list, a quotation or a heading. */
static struct text without_mark(struct text value)
{
    static const char *const marks[] = {"- ", "> ", "# ", "## ", "### ", "#### ", "* ", "\xE2\x80\xA2 "};

    value = text_trimmed(value);
    for (size_t i = 0; i < ARRAY_LENGTH(marks); i++) {
        size_t length = strlen(marks[i]);
        if (value.length_bytes > length && memcmp(value.data, marks[i], length) == 0)
            return text_trimmed((struct text){value.data + length, value.length_bytes - length});
    }
    return value;
}

/* A letter alone is that letter, then comes a whole text of an option, then a letter in front of something. */
struct labels labels_read(const struct labels_rule *rule, struct text value)
{
    struct text bare = without_mark(value);
    struct labels by_letters;
    struct labels by_text = {.outcome = LABELS_READ};

    if (bare.length_bytes > VALUE_BYTES)
        bare.length_bytes = VALUE_BYTES;
    by_letters = read_letters(rule, bare);
    if (rule->strict || (by_letters.outcome == LABELS_READ && by_letters.alone))
        return by_letters;
    by_text.set = whole_texts(rule, bare);
    if (by_text.set && only_place(by_text.set) == LABELS_MAX)
        by_text.outcome = LABELS_SEVERAL;
    if (by_text.set)
        return by_text;
    if (by_letters.outcome != LABELS_UNREADABLE && by_letters.outcome != LABELS_DENIED)
        return by_letters;
    by_text = read_text(rule, bare);
    return by_text.outcome == LABELS_UNREADABLE ? by_letters : by_text;
}
