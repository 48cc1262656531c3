#include "verifiers/text/around.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "server/base/cleanup.h"

/* Commands that continue a product or sum, before a box or behind it. */
static const char *const parts[] = {"pi",  "sqrt", "frac", "dfrac", "tfrac", "cdot", "times", "div",   "pm",   "mp",
                                    "sin", "cos",  "tan",  "ln",    "log",   "exp",  "alpha", "theta", "bmod", "pmod"};
static const char *const multiples[] = {"million",   "billion",  "trillion",  "thousand", "hundred",  "dozen",
                                        "lakh",      "crore",    "percent",   "half",     "squared",  "cubed",
                                        "factorial", "million.", "thousands", "millions", "billions", "times"};

static bool is_space(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r' || byte == '~';
}

/* The text at `at`, or 0 beyond its end. */
static char byte_at(struct text text, size_t at)
{
    return at < text.length_bytes ? text.data[at] : 0;
}

static bool starts_with(struct text text, size_t at, const char *prefix)
{
    size_t length = strlen(prefix);

    return at <= text.length_bytes && text.length_bytes - at >= length && memcmp(text.data + at, prefix, length) == 0;
}

static bool is_listed(const char *const *list, size_t count, struct text word)
{
    for (size_t i = 0; word.length_bytes && i < count; i++)
        if (text_equals(word, list[i]))
            return true;
    return false;
}

static struct text word_at(struct text text, size_t at)
{
    struct text word = {text.data + at, 0};

    while (isalpha((unsigned char)byte_at(text, at + word.length_bytes)))
        word.length_bytes++;
    return word;
}

/* Is a formula open at `end`? */
static bool is_formula(struct text text, size_t end)
{
    bool dollars = false;
    bool brackets = false;

    for (size_t at = 0; at < end; at++) {
        char next = byte_at(text, at + 1);
        if (text.data[at] == '$') {
            dollars = !dollars;
            at += next == '$';
        } else if (text.data[at] == '\\') {
            if (next == '(' || next == '[')
                brackets = true;
            else if (next == ')' || next == ']')
                brackets = false;
            at++;
        }
    }
    return dollars || brackets;
}

/* --- behind it --- */

static size_t skip_spaces(struct text text, size_t at)
{
    while (is_space(byte_at(text, at)) ||
           (byte_at(text, at) == '\\' && byte_at(text, at + 1) && strchr(",;:! ", byte_at(text, at + 1))))
        at += byte_at(text, at) == '\\' ? 2 : 1;
    return at;
}

/* ^\circ, ^{\circ}: a unit. */
static bool is_degree(struct text text, size_t at)
{
    return starts_with(text, at, "^\\circ") || starts_with(text, at, "^{\\circ}");
}

/* \text{ million} */
static bool is_multiple(struct text text, size_t at)
{
    static const char *const fonts[] = {"\\text{", "\\mathrm{", "\\textbf{"};

    for (size_t i = 0; i < ARRAY_LENGTH(fonts); i++)
        if (starts_with(text, at, fonts[i])) {
            at += strlen(fonts[i]);
            break;
        }
    while (is_space(byte_at(text, at)))
        at++;
    return is_listed(multiples, ARRAY_LENGTH(multiples),
                     word_at(text, at < text.length_bytes ? at : text.length_bytes));
}

static enum around behind(struct text text, size_t end, bool formula)
{
    size_t at = formula ? skip_spaces(text, end) : end;
    char byte = byte_at(text, at);

    if (byte == '%' || starts_with(text, at, "\\%"))
        return AROUND_PERCENT;
    if (is_multiple(text, end < text.length_bytes ? skip_spaces(text, end) : end))
        return AROUND_MORE;
    if (byte == '\\')
        return is_listed(parts, ARRAY_LENGTH(parts), word_at(text, at + 1)) ? AROUND_MORE : AROUND_NOTHING;
    if (byte == '^' || byte == '_')
        return is_degree(text, at) ? AROUND_NOTHING : AROUND_MORE;
    if (!formula || byte == 0)
        return AROUND_NOTHING;
    if (strchr("!+-*/", byte) || isdigit((unsigned char)byte))
        return AROUND_MORE;
    return isalpha((unsigned char)byte) && word_at(text, at).length_bytes == 1 ? AROUND_MORE : AROUND_NOTHING;
}

/* --- before it --- */

/* The command whose name ends at `end`, without its backslash; empty: there is none. */
static struct text command_before(struct text text, size_t end)
{
    size_t start = end;

    while (start && isalpha((unsigned char)text.data[start - 1]))
        start--;
    return start && text.data[start - 1] == '\\' ? (struct text){text.data + start, end - start} : TEXT_LITERAL("");
}

/* Nothing that a minus could take something from: it is a sign. */
static bool begins_value(struct text text, size_t end)
{
    while (end && is_space(text.data[end - 1]))
        end--;
    return end == 0 || strchr("$([{=:,;.&", text.data[end - 1]) || command_before(text, end).length_bytes;
}

/* \frac{\boxed{3}}{4}, 2^{\boxed{3}} */
static bool is_in_part(struct text text, size_t end)
{
    struct text command = command_before(text, end);

    return (end && strchr("^_", text.data[end - 1])) || is_listed(parts, ARRAY_LENGTH(parts), command);
}

static enum around before(struct text text, size_t start, bool formula)
{
    size_t end = start;
    char byte;

    while (formula && end && is_space(text.data[end - 1]))
        end--;
    byte = end ? text.data[end - 1] : 0;
    if (byte == '-' && (formula || end == start))
        return !formula || begins_value(text, end - 1) ? AROUND_MINUS : AROUND_MORE;
    if (byte == '{' && is_in_part(text, end - 1))
        return AROUND_MORE;
    if (isalpha((unsigned char)byte)) {
        struct text command = command_before(text, end);
        bool part = is_listed(parts, ARRAY_LENGTH(parts), command);
        return part || (formula && command.length_bytes == 0 && end == start) ? AROUND_MORE : AROUND_NOTHING;
    }
    if (byte == 0 || (!formula && end == start && !isdigit((unsigned char)byte)))
        return AROUND_NOTHING;
    if (strchr("*/^_", byte) || (byte == '+' && !begins_value(text, end - 1)))
        return AROUND_MORE;
    return isdigit((unsigned char)byte) && end == start ? AROUND_MORE : AROUND_NOTHING;
}

enum around text_around(struct text text, struct text box)
{
    size_t start = (size_t)(box.data - text.data);
    size_t end = start + box.length_bytes;
    enum around after = behind(text, end, true);
    enum around front = before(text, start, true);

    /* Outside of a formula less belongs to it. Most boxes need no look at the whole text. */
    if ((after != AROUND_NOTHING || front != AROUND_NOTHING) && !is_formula(text, start)) {
        after = behind(text, end, false);
        front = before(text, start, false);
    }
    if (after == AROUND_NOTHING || front == AROUND_NOTHING)
        return after == AROUND_NOTHING ? front : after;
    return AROUND_MORE;
}
