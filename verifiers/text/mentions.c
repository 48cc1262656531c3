#include "verifiers/text/mentions_private.h"

#include <string.h>

#include "server/base/cleanup.h"
#include "verifiers/text/extract.h"
#include "verifiers/text/prose.h"

#define LINES_MAX 256
#define MENTIONS_MAX 256
#define MENTION_BYTES 1024
#define TAIL_BYTES 65536 /* of a longer text the end is searched */

static const char *const picks[] = {"pick",     "choose",   "select",  "chose", "picked",
                                    "selected", "choosing", "picking", NULL};
static const char *const nouns[] = {"option", "choice", "letter", "alternative", NULL};
static const char *const negations[] = {"not",     "never",     "than",     "over",    "of",     "except",
                                        "neither", "nor",       "unlike",   "don't",   "didn't", "cannot",
                                        "can't",   "won't",     "wouldn't", "without", "isn't",  "against",
                                        "exclude", "eliminate", "reject",   "if",      NULL};

/* Adds a claim to those before it. false: they disagree. */
static bool agree(struct claim *claim, struct text value, struct labels labels)
{
    bool first = claim->labels.outcome == LABELS_BLANK;
    bool same = first || (claim->labels.outcome == LABELS_READ && claim->labels.set == labels.set);

    *claim = (struct claim){value, labels};
    if (!same)
        claim->labels.outcome = LABELS_SEVERAL;
    return same;
}

static struct text without_last_line(struct text text, struct text *ret_line)
{
    size_t start = text.length_bytes;

    while (start && text.data[start - 1] != '\n' && text.data[start - 1] != '\r')
        start--;
    *ret_line = text_trimmed((struct text){text.data + start, text.length_bytes - start});
    return (struct text){text.data, start ? start - 1 : 0};
}

/* From the last line up. */
static void find_line(const struct labels_rule *rule, struct text text, struct claim *ret_claim)
{
    struct text line;
    bool last = true;
    bool alone = false; /* the last line is a letter alone: labels above it do not count */

    for (int lines = 0; lines < LINES_MAX && text.length_bytes; lines++) {
        text = without_last_line(text, &line);
        if (!line.length_bytes)
            continue;
        struct labels labels = labels_read(rule, line);
        bool counts = labels.outcome == LABELS_READ && (labels.alone || !alone);
        if (counts && !agree(ret_claim, line, labels))
            return;
        alone |= last && counts && labels.alone;
        if (last && labels.outcome == LABELS_SEVERAL) {
            *ret_claim = (struct claim){line, labels};
            return;
        }
        last = false;
    }
}

static struct text rest_of_line(struct text text, const char *start, size_t limit)
{
    struct text rest = {start, 0};
    size_t room = (size_t)(text.data + text.length_bytes - start);

    while (rest.length_bytes < room && rest.length_bytes < limit && start[rest.length_bytes] != '\n')
        rest.length_bytes++;
    return rest;
}

/* The text behind the last "I pick" and the like. */
static void find_pick(const struct labels_rule *rule, struct text text, struct claim *ret_claim)
{
    static const char *const going[] = {"go", "going", "went", "opt", "opting", NULL};
    static const char *const with[] = {"with", "for", NULL};
    struct prose at = {text, 0};
    struct prose_word before = {.kind = PROSE_END};
    const char *picked = NULL;

    for (struct prose_word word = prose_next(&at); word.kind != PROSE_END; before = word, word = prose_next(&at))
        if ((prose_is_one_of(word, picks) && !prose_is_one_of(before, negations)) ||
            (prose_is_one_of(word, with) && prose_is_one_of(before, going)))
            picked = text.data + at.at;
    if (!picked)
        return;
    ret_claim->value = rest_of_line(text, picked, MENTION_BYTES);
    ret_claim->labels = labels_read(rule, ret_claim->value);
    if (ret_claim->labels.outcome == LABELS_UNREADABLE)
        *ret_claim = (struct claim){TEXT_NONE, {.outcome = LABELS_BLANK}};
}

/* A capital that stands alone, and is no article. */
static bool is_letter(const struct labels_rule *rule, struct prose_word word)
{
    return word.kind == PROSE_WORD && word.text.length_bytes == 1 &&
           !(word.text.data[0] >= 'a' && word.text.data[0] <= 'z') &&
           labels_place(rule, word.text.data[0]) < LABELS_MAX;
}

static bool is_praised(struct prose at)
{
    static const char *const verbs[] = {"is", "seems", "must", "be", "the", "most", "clearly", "definitely", NULL};
    static const char *const praise[] = {"correct", "right", "best", "answer", NULL};
    struct prose_word word = prose_next(&at);
    bool any = false;

    for (; prose_is_one_of(word, verbs); word = prose_next(&at))
        any = true;
    return any && prose_is_one_of(word, praise);
}

static void find_mentions(const struct labels_rule *rule, struct text text, struct claim *ret_claim)
{
    struct prose at = {text, 0};
    struct prose_word word = {.kind = PROSE_END};
    struct prose_word first = {.kind = PROSE_END}; /* before the word */
    struct prose_word before;                      /* before that */
    int mentions = 0;

    for (;;) {
        before = first;
        first = word;
        word = prose_next(&at);
        if (word.kind == PROSE_END || mentions == MENTIONS_MAX)
            break;
        bool named = prose_is_one_of(first, nouns);
        if (!is_letter(rule, word) || !(named || is_praised(at)) || prose_is_one_of(named ? before : first, negations))
            continue;
        mentions++;
        struct text value = rest_of_line(text, word.text.data, MENTION_BYTES);
        struct labels labels = labels_read(rule, value);
        if (labels.outcome == LABELS_READ && !agree(ret_claim, value, labels))
            break;
        if (labels.outcome == LABELS_SEVERAL) {
            *ret_claim = (struct claim){value, labels};
            break;
        }
    }
}

void mentions_find(const struct labels_rule *rule, struct text text, struct claim *ret_claim)
{
    static void (*const ways[])(const struct labels_rule *rule, struct text text,
                                struct claim *ret_claim) = {find_line, find_pick, find_mentions};

    *ret_claim = (struct claim){TEXT_NONE, {.outcome = LABELS_BLANK}};
    if (text.length_bytes > TAIL_BYTES)
        text = (struct text){text.data + text.length_bytes - TAIL_BYTES, TAIL_BYTES};
    for (size_t i = 0; i < ARRAY_LENGTH(ways) && ret_claim->labels.outcome == LABELS_BLANK; i++)
        ways[i](rule, text, ret_claim);
}
