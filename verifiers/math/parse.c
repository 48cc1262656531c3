#include "verifiers/math/parse.h"

#include <ctype.h>
#include <string.h>

#include "server/base/cleanup.h"
#include "verifiers/math/reader.h"

#define HEIGHT_FACTOR 4

/* --- refusing --- */

static void stop(struct math_reader *reader, enum math_parse_status status, const char *expected)
{
    if (reader->status != MATH_PARSED)
        return;
    reader->status = status;
    reader->error = (struct math_parse_error){peek(reader)->at, expected};
}

struct math_node *math_refuse(struct math_reader *reader, const char *expected)
{
    stop(reader, MATH_UNPARSED, expected);
    return NULL;
}

struct math_node *math_too_large(struct math_reader *reader, const char *what)
{
    stop(reader, MATH_TOO_LARGE, what);
    return NULL;
}

/* --- building --- */

static struct math_node *made(struct math_reader *reader, struct math_node *node)
{
    return node ? node : math_too_large(reader, "a smaller answer");
}

struct math_node *math_make(struct math_reader *reader, enum math_kind kind, size_t count,
                            struct math_node *const children[])
{
    struct math_node *node;

    for (size_t i = 0; i < count; i++)
        if (!children[i])
            return NULL;
    node = made(reader, math_node_of(reader->arena, kind, count, children));
    /* 1/1/1/1 is deep too, without any bracket. */
    if (node && node->height > HEIGHT_FACTOR * (unsigned)reader->reading->max_depth)
        return math_too_large(reader, "less depth");
    return node;
}

struct math_node *math_make_one(struct math_reader *reader, enum math_kind kind, struct math_node *child)
{
    return math_make(reader, kind, 1, &child);
}

struct math_node *math_make_two(struct math_reader *reader, enum math_kind kind, struct math_node *first,
                                struct math_node *second)
{
    return math_make(reader, kind, 2, (struct math_node *const[]){first, second});
}

struct math_node *math_make_text(struct math_reader *reader, enum math_kind kind, struct text text)
{
    struct math_node *node = made(reader, math_node_create(reader->arena, kind, 0));

    if (!node)
        return NULL;
    node->text = math_copy_text(reader->arena, text);
    return made(reader, node->text.data ? node : NULL);
}

struct math_node *math_make_integer(struct math_reader *reader, unsigned long value)
{
    struct math_node *node;
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%lu", value);
    fmpq_t number;

    fmpq_init(number);
    fmpq_set_ui(number, value, 1);
    node = math_number_create(reader->arena, number);
    fmpq_clear(number);
    if (node)
        node->text = math_copy_text(reader->arena, (struct text){digits, (size_t)length});
    return made(reader, node && node->text.data ? node : NULL);
}

bool math_push(struct math_reader *reader, struct math_node *child)
{
    if (!child)
        return false;
    if (reader->stack_count == reader->stack_capacity) {
        reader->stack_capacity = reader->stack_capacity ? 2 * reader->stack_capacity : 32;
        reader->stack = xrealloc(reader->stack, reader->stack_capacity * sizeof(struct math_node *));
    }
    reader->stack[reader->stack_count++] = child;
    return true;
}

struct math_node *math_collect(struct math_reader *reader, enum math_kind kind, size_t mark)
{
    struct math_node *node = math_make(reader, kind, reader->stack_count - mark, reader->stack + mark);

    reader->stack_count = mark;
    return node;
}

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

static struct text undecorated(struct text text)
{
    static const char *const around[][2] = {{"$$", "$$"}, {"$", "$"}, {"\\(", "\\)"}, {"\\[", "\\]"}, {"**", "**"}};

    text = trimmed(text);
    for (size_t i = 0; i < 2 * ARRAY_LENGTH(around); i++) {
        const char *const *pair = around[i % ARRAY_LENGTH(around)];
        /* Not of 0.333..., which is another number. */
        if (text.length_bytes > 1 && text.data[text.length_bytes - 1] == '.' && text.data[text.length_bytes - 2] != '.')
            text = without_ends(text, 0, 1);
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
    static const char *const marks[] = {"**", "`", "$"};
    struct text copy = math_copy_text(arena, text);
    char *bytes = (char *)(uintptr_t)copy.data;

    for (size_t i = 0; bytes && i < ARRAY_LENGTH(marks); i++) {
        size_t end = end_before_words(copy, marks[i]);
        bool formula = marks[i][0] == '$';
        if (end == copy.length_bytes || (formula && (bytes[0] != '$' || bytes[1] == '$')))
            continue;
        memset(bytes + end, ' ', strlen(marks[i]));
        if (formula)
            bytes[0] = ' ';
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
