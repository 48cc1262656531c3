/* Shared by the levels of the grammar: refusing, building, words of letters. */
#include "verifiers/math/reader.h"

#include <stdio.h>

#include "server/base/cleanup.h"

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

/* --- words --- */

/* The whole word of letters that starts here; empty where none starts. */
struct text math_word_at(const struct math_reader *reader, size_t at)
{
    const struct math_token *token = &reader->tokens[at];

    if (token->kind != TOKEN_LETTER || token->flags & TOKEN_UPRIGHT ||
        (at && token[-1].kind == TOKEN_LETTER && is_adjacent(token) && token[-1].run == token->run + 1))
        return TEXT_LITERAL("");
    return (struct text){reader->text.data + token->at, token->run};
}

bool math_sees_word(const struct math_reader *reader, const char *word)
{
    return sees(reader, TOKEN_LETTER) && text_equals(math_word_at(reader, reader->at), word);
}

bool math_sees_in(const struct math_reader *reader)
{
    static const uint8_t sets[TOKEN_KINDS] = {[TOKEN_OPEN_PAREN] = true,
                                              [TOKEN_OPEN_SQUARE] = true,
                                              [TOKEN_OPEN_SET] = true,
                                              [TOKEN_NUMBER_SET] = true,
                                              [TOKEN_EMPTY_SET] = true};

    return math_sees_word(reader, "in") && sets[peek_at(reader, 2)->kind];
}
