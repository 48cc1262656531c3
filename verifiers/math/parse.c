#include "verifiers/math/parse.h"

#include <ctype.h>
#include <string.h>

#include "server/base/cleanup.h"
#include "verifiers/math/reader.h"

/* --- what stands around the whole --- */

static bool is_space(char byte)
{
    return byte == ' ' || byte == '\n' || byte == '\t' || byte == '\r';
}

static struct text trimmed(struct text text)
{
    while (text.length_bytes && is_space(text.data[0])) {
        text.data++;
        text.length_bytes--;
    }
    /* The space of "\ " belongs to the command. */
    while (text.length_bytes && is_space(text.data[text.length_bytes - 1]) &&
           !(text.length_bytes > 1 && text.data[text.length_bytes - 2] == '\\'))
        text.length_bytes--;
    return text;
}

static struct text without_ends(struct text text, size_t before, size_t after)
{
    return trimmed((struct text){text.data + before, text.length_bytes - before - after});
}

static bool is_wrapped(struct text text, const char *open, const char *close)
{
    size_t before = strlen(open);
    size_t after = strlen(close);

    return text.length_bytes >= before + after && memcmp(text.data, open, before) == 0 &&
           memcmp(text.data + text.length_bytes - after, close, after) == 0;
}

/* $3$ and $4$: an even number of them, one at each end. $$ at the ends is another decoration. */
static bool has_several_formulas(struct text text)
{
    size_t count = 0;

    for (size_t i = 0; i < text.length_bytes; i++)
        count += text.data[i] == '$' && (i == 0 || text.data[i - 1] != '\\');
    return count > 2 && count % 2 == 0 && is_wrapped(text, "$", "$") && !is_wrapped(text, "$$", "$$");
}

/* The bytes of a final full stop. Not of 0.333..., which is another number. */
static size_t final_stop(struct text text)
{
    static const char *const wide[] = {"\u3002", "\uff0e", "\uff61"};
    const char *end = text.data + text.length_bytes;

    if (text.length_bytes > 1 && end[-1] == '.' && end[-2] != '.')
        return 1;
    for (size_t i = 0; text.length_bytes && end[-1] & 0x80 && i < ARRAY_LENGTH(wide); i++)
        if (text.length_bytes > strlen(wide[i]) && memcmp(end - strlen(wide[i]), wide[i], strlen(wide[i])) == 0)
            return strlen(wide[i]);
    return 0;
}

static struct text undecorated(struct text text)
{
    static const char *const around[][2] = {{"$$", "$$"},   {"$", "$"},   {"\\(", "\\)"},
                                            {"\\[", "\\]"}, {"**", "**"}, {"`", "`"}};

    text = trimmed(text);
    for (size_t i = 0; i < 2 * ARRAY_LENGTH(around); i++) {
        const char *const *pair = around[i % ARRAY_LENGTH(around)];
        text = without_ends(text, 0, final_stop(text));
        if (is_wrapped(text, pair[0], pair[1]))
            text = without_ends(text, strlen(pair[0]), strlen(pair[1]));
    }
    return text;
}

/* Where $42$ or 42** ends that words follow, as in running text; else the text's end. $4 or $5 is money, $4$ and $5$
 * are formulas. */
static size_t end_before_words(struct text text, const char *mark)
{
    size_t length = strlen(mark);
    const char *end = text.length_bytes ? memmem(text.data + 1, text.length_bytes - 1, mark, length) : NULL;
    size_t at = end ? (size_t)(end - text.data) : 0;
    struct text rest = {end, text.length_bytes - at};
    struct text words;

    if (!end || is_space(end[-1]) || end[-1] == '\\' || rest.length_bytes == length || !is_space(end[length]))
        return text.length_bytes;
    words = without_ends(rest, length, 0);
    return words.length_bytes && isalpha((unsigned char)words.data[0]) &&
                   !memmem(words.data, words.length_bytes, mark, length)
               ? at
               : text.length_bytes;
}

/* Running text with spaces where such an end stands: $42$ cm. */
static struct text without_marks(struct math_arena *arena, struct text text)
{
    static const struct {
        const char *mark, *opening; /* at the text's beginning; "": anywhere, and it stays */
    } ends[] = {{"**", ""}, {"`", ""}, {"$", "$"}, {"\\)", "\\("}};
    struct text copy = math_copy_text(arena, text);
    char *bytes = (char *)(uintptr_t)copy.data;

    for (size_t i = 0; bytes && i < ARRAY_LENGTH(ends); i++) {
        size_t end = end_before_words(copy, ends[i].mark);
        size_t opening = strlen(ends[i].opening);
        if (end == copy.length_bytes || (opening && (memcmp(bytes, ends[i].opening, opening) != 0 || bytes[1] == '$')))
            continue;
        memset(bytes + end, ' ', strlen(ends[i].mark));
        memset(bytes, ' ', opening);
    }
    return bytes ? copy : text;
}

/* --- the whole --- */

static struct math_node *read_answer(struct math_reader *reader)
{
    struct math_node *node;

    if (!math_tokenize(reader)) {
        reader->status = MATH_UNPARSED;
        reader->error.expected = "a sign or command that is in the list";
        return NULL;
    }
    node = math_read_prose(reader);
    if (node || reader->status != MATH_PARSED)
        return node;
    math_skip_labels(reader);
    node = math_read_stacked(reader);
    if (node && !sees(reader, TOKEN_END))
        return math_refuse(reader, "an operator, or the end");
    return node;
}

enum math_parse_status math_parse(struct math_arena *arena, struct text answer, const struct math_reading *reading,
                                  struct math_node **ret_node, struct math_parse_error *ret_error)
{
    struct text text = reading->prose ? without_marks(arena, answer) : answer;
    struct math_reader reader = {.arena = arena, .reading = reading, .text = trimmed(text)};

    reader.dollars = has_several_formulas(reader.text);
    reader.text = undecorated(reader.text);

    *ret_node = NULL;
    if (answer.length_bytes > MATH_ANSWER_BYTES) {
        reader.status = MATH_TOO_LARGE;
        reader.error = (struct math_parse_error){MATH_ANSWER_BYTES, "a shorter answer"};
    } else if (reader.text.length_bytes == 0) {
        reader.status = MATH_UNPARSED;
        reader.error.expected = "an answer";
    } else {
        *ret_node = read_answer(&reader);
        reader.error.at_bytes += (size_t)(reader.text.data - text.data);
    }
    free(reader.tokens);
    free(reader.stack);
    if (ret_error && reader.status != MATH_PARSED)
        *ret_error = reader.error;
    return reader.status;
}
