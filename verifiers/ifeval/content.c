/* Marks that a completion must have: brackets, bullets, titles, sections, endings. */
#include "verifiers/ifeval/parts.h"
#include "verifiers/ifeval/rules_private.h"

/* [ … ] on one line */
RULE(has_placeholders)
{
    struct parts lines = parts_of(passage->text);
    struct text line;
    int64_t count = 0;

    while (next_line(&lines, &line)) {
        for (size_t open = text_index_of(line, TEXT_LITERAL("[")); open < line.length_bytes;
             open = text_index_of(line, TEXT_LITERAL("["))) {
            line = text_from(line, open + 1);
            size_t close = text_index_of(line, TEXT_LITERAL("]"));
            if (close == line.length_bytes)
                break;
            line = text_from(line, close + 1);
            count++;
        }
    }
    return count >= kwarg[0].whole;
}

/* Does the text begin with the marker, where white space may stand behind each of its dots? */
static bool begins_with_marker(struct text text, struct text marker)
{
    for (size_t i = 0; i < marker.length_bytes; i++) {
        struct text ahead = text;
        if (i > 0 && marker.data[i - 1] == '.' && text.length_bytes &&
            character_classes(character_take(&ahead)) & CHARACTER_SPACE)
            text = ahead;
        if (!text.length_bytes || *text.data != marker.data[i])
            return false;
        text = text_from(text, 1);
    }
    return true;
}

RULE(has_postscript)
{
    struct text rest = passage_lowered(passage);
    _cleanup_buffer_ struct buffer marker;

    buffer_init(&marker, 2 * kwarg[0].text.length_bytes + 16);
    text_append_lower(&marker, kwarg[0].text);
    struct text first = {marker.data, 1};
    for (size_t at = text_index_of(rest, first); at < rest.length_bytes; at = text_index_of(rest, first)) {
        if (begins_with_marker(text_from(rest, at), buffer_text(&marker)))
            return true;
        rest = text_from(rest, at + 1);
    }
    return false;
}

/* Lines that begin with - or with one * that something follows. */
static bool is_bullet(struct text line)
{
    line = text_stripped(line);
    if (text_begins_with(line, TEXT_LITERAL("-")))
        return true;
    return line.length_bytes > 1 && *line.data == '*' && line.data[1] != '*';
}

RULE(has_bullets)
{
    struct parts lines = parts_of(passage->text);
    struct text line;
    int64_t count = 0;

    while (next_line(&lines, &line))
        count += is_bullet(line);
    return count == kwarg[0].whole;
}

RULE(is_constrained_response)
{
    static const char *const options[] = {"My answer is yes.", "My answer is no.", "My answer is maybe."};
    struct text text = text_stripped(passage->text);

    for (size_t i = 0; i < ARRAY_LENGTH(options); i++)
        if (text_equals(text, options[i]))
            return true;
    return false;
}

/* The next *…* or **…** (`marks` of them) on one line with something between them, stars aside. */
static bool next_highlight(struct text text, size_t marks, size_t *at, struct text *ret_span)
{
    while (*at + 2 * marks <= text.length_bytes) {
        size_t start = *at;
        size_t end = start + marks;
        if (memcmp(text.data + start, "**", marks) != 0) {
            const char *star = memchr(text.data + start, '*', text.length_bytes - start);
            *at = !star ? text.length_bytes : star > text.data + start ? (size_t)(star - text.data) : start + 1;
            continue;
        }
        while (end < text.length_bytes && text.data[end] != '\n' && text.data[end] != '*')
            end++;
        if (end + marks > text.length_bytes || memcmp(text.data + end, "**", marks) != 0) {
            *at = end > start + marks ? end : start + 1;
            continue;
        }
        *at = end + marks;
        *ret_span = (struct text){text.data + start, *at - start};
        if (!text_is_blank((struct text){text.data + start + marks, end - start - marks}))
            return true;
    }
    return false;
}

/* Each span counts once: a single one inside a double one is the same. */
RULE(has_highlights)
{
    size_t at_double = 0;
    size_t at_single = 0;
    struct text pair = TEXT_NONE;
    struct text single;
    bool is_pair = next_highlight(passage->text, 2, &at_double, &pair);
    int64_t count = is_pair;

    while (next_highlight(passage->text, 1, &at_single, &single)) {
        while (is_pair && pair.data + pair.length_bytes <= single.data) {
            is_pair = next_highlight(passage->text, 2, &at_double, &pair);
            count += is_pair;
        }
        count += !(is_pair && pair.data < single.data + single.length_bytes);
    }
    while (is_pair) {
        is_pair = next_highlight(passage->text, 2, &at_double, &pair);
        count += is_pair;
    }
    return count >= kwarg[0].whole;
}

/* section_spliter, num_sections: the splitter, white space or none, a number. */
RULE(has_sections)
{
    struct text rest = passage->text;
    int64_t count = 0;

    for (size_t at = text_index_of(rest, kwarg[0].text); at < rest.length_bytes;
         at = text_index_of(rest, kwarg[0].text)) {
        rest = text_from(rest, at + kwarg[0].text.length_bytes);
        struct text ahead = rest;
        unsigned classes = ahead.length_bytes ? character_classes(character_take(&ahead)) : 0;
        if (classes & CHARACTER_SPACE)
            classes = ahead.length_bytes ? character_classes(character_take(&ahead)) : 0;
        count += (classes & CHARACTER_DIGIT) != 0;
    }
    return count >= kwarg[1].whole;
}

/* Without ``` around it, tagged json or not. */
RULE(is_json)
{
    struct text text = text_stripped(passage->text);

    if (text_begins_with(text, TEXT_LITERAL("```"))) {
        text = text_from(text, 3);
        if (text.length_bytes >= 4 && text_same_letters((struct text){text.data, 4}, TEXT_LITERAL("json")))
            text = text_from(text, 4);
    }
    if (text_ends_with(text, TEXT_LITERAL("```")))
        text.length_bytes -= 3;
    return is_json_text(text);
}

/* << … >> on one line, with more than angle brackets in it. */
RULE(has_title)
{
    struct parts lines = parts_of(passage->text);
    struct text line;

    while (next_line(&lines, &line)) {
        line = text_from(line, text_index_of(line, TEXT_LITERAL("<<")));
        while (line.length_bytes > 4 && !text_ends_with(line, TEXT_LITERAL(">>")))
            line.length_bytes--;
        while (line.length_bytes && *line.data == '<')
            line = text_from(line, 1);
        bool closed = text_ends_with(line, TEXT_LITERAL(">>"));
        while (line.length_bytes && line.data[line.length_bytes - 1] == '>')
            line.length_bytes--;
        if (closed && !text_is_blank(line))
            return true;
    }
    return false;
}

/* Two that differ, with ****** between them; blank ones may stand at the ends. */
RULE(has_two_responses)
{
    struct parts parts = parts_of(passage->text);
    struct text responses[2];
    struct text part;
    size_t count = 0;

    for (bool first = true; next_part(&parts, TEXT_LITERAL("******"), &part); first = false) {
        if (text_is_blank(part)) {
            if (!first && parts.rest.data)
                return false;
            continue;
        }
        if (count == 2)
            return false;
        responses[count++] = text_stripped(part);
    }
    return count == 2 && !text_same(responses[0], responses[1]);
}

RULE(ends_with_phrase)
{
    struct text text = text_stripped(passage_lowered(passage));
    _cleanup_buffer_ struct buffer phrase;

    buffer_init(&phrase, 2 * kwarg[0].text.length_bytes + 16);
    text_append_lower(&phrase, kwarg[0].text);
    if (text_ends_with(text, buffer_text(&phrase)))
        return true;
    while (text_ends_with(text, TEXT_LITERAL("\"")))
        text.length_bytes--;
    return text_ends_with(text, buffer_text(&phrase));
}

RULE(is_quoted)
{
    struct text text = text_stripped(passage->text);

    return text.length_bytes > 1 && *text.data == '"' && text.data[text.length_bytes - 1] == '"';
}

RULE(has_no_comma)
{
    return !text_contains(passage->text, TEXT_LITERAL(","));
}

RULE(has_no_dot)
{
    return !text_contains(passage->text, TEXT_LITERAL("."));
}

RULE(has_no_exclamation)
{
    return !text_contains(passage->text, TEXT_LITERAL("!"));
}
