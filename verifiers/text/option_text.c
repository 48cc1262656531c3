#include "verifiers/text/option_text.h"

#include <strings.h>

/* Is the brace at `at` that of a group, x^{2}, and of no set? */
static bool is_group(struct text text, size_t at)
{
    char before = at ? text.data[at - 1] : 0;

    return before == '^' || before == '_' || before == '}' || (before >= 'a' && before <= 'z');
}

/* The next bracket or apostrophe between *from and `to`, or 0; *from is then behind it. Of braces the opening ones of sets. */
static char next_bracket(struct text text, size_t *from, size_t to)
{
    while (*from < to) {
        size_t at = (*from)++;
        char byte = text.data[at];
        if (byte == '{' && !is_group(text, at))
            return byte;
        if (byte && strchr("()[]'", byte) && !(at && text.data[at - 1] == '\\'))
            return byte;
    }
    return 0;
}

static bool has_brackets(struct text text, size_t from, size_t to)
{
    return next_bracket(text, &from, to) != 0;
}

/* The same brackets in both gaps; of the second only the first ones if more text may follow. */
static bool same_brackets(struct prose wanted, size_t wanted_to, struct prose got, size_t got_to, bool may_go_on)
{
    for (;;) {
        char bracket = next_bracket(wanted.text, &wanted.at, wanted_to);
        if (!bracket && may_go_on)
            return true;
        if (next_bracket(got.text, &got.at, got_to) != bracket)
            return false;
        if (!bracket)
            return true;
    }
}

static size_t start_of(struct prose_word word, struct prose behind)
{
    return behind.at - word.text.length_bytes;
}

static bool same_word(struct prose_word left, struct prose_word right)
{
    return left.kind == right.kind && left.text.length_bytes == right.text.length_bytes &&
           strncasecmp(left.text.data, right.text.data, left.text.length_bytes) == 0;
}

bool option_text_take(struct text option, struct prose *at)
{
    struct prose wanted = {option, 0};
    struct prose got = *at;
    struct prose wanted_gap = wanted;
    struct prose got_gap = got;
    struct prose_word word;
    struct prose_word found;
    bool first = true;

    if (!option.data)
        return false;
    for (word = prose_next(&wanted); word.kind != PROSE_END; word = prose_next(&wanted)) {
        found = prose_next(&got);
        /* A value may be in brackets where the option's text is not. */
        bool compared = !first || has_brackets(option, 0, start_of(word, wanted));
        if (!same_word(word, found) ||
            (compared && !same_brackets(wanted_gap, start_of(word, wanted), got_gap, start_of(found, got), false)))
            return false;
        first = false;
        wanted_gap = wanted;
        got_gap = got;
    }
    found = prose_next(&got);
    if (first || !same_brackets(wanted_gap, option.length_bytes, got_gap, start_of(found, got), true))
        return false;
    *at = got_gap;
    return true;
}

bool option_text_is(struct text option, struct text value)
{
    struct prose at = {value, 0};
    struct prose_word word;

    if (!option_text_take(option, &at))
        return false;
    do
        word = prose_next(&at);
    while (word.kind == PROSE_STOP);
    return word.kind == PROSE_END;
}
