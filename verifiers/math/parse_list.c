/* The loose levels: lists, relations, unions, ratios, units. */
#include <string.h>

#include "server/base/cleanup.h"
#include "verifiers/math/words.h"

/* --- lists --- */

/* , ; and or: also ", and". *by_or: it was an "or". */
static bool take_separator(struct math_reader *reader, bool *by_or)
{
    bool taken = take(reader, TOKEN_COMMA) || take(reader, TOKEN_SEMICOLON);

    if (take(reader, TOKEN_OR)) {
        *by_or = true;
        return true;
    }
    return take(reader, TOKEN_AND) || taken;
}

/* 6k + 1 where k is an integer */
static bool push_conditions(struct math_reader *reader)
{
    while (math_sees_condition(reader, sees(reader, TOKEN_COMMA))) {
        take(reader, TOKEN_COMMA);
        if (!math_push(reader, math_read_condition(reader)))
            return false;
    }
    return true;
}

struct math_node *math_read_list(struct math_reader *reader)
{
    size_t mark = reader->stack_count;
    bool by_or = false;
    struct math_node *list;

    do {
        if (!math_push(reader, math_read_relation(reader)))
            return NULL;
    } while (!math_sees_condition(reader, sees(reader, TOKEN_COMMA)) && take_separator(reader, &by_or));
    if (!push_conditions(reader))
        return NULL;
    if (reader->stack_count == mark + 1)
        return reader->stack[--reader->stack_count];
    list = math_collect(reader, MATH_LIST, mark);
    if (list)
        list->flags = by_or ? MATH_BY_OR : 0;
    return list;
}

/* --- relations --- */

#define CALL_DEPTH_MAX 4 /* of brackets in arguments: looking ahead stays linear */

/* The brackets that open here hold names only, or anything where `any`; behind them stands an equals sign. */
static bool is_definition(const struct math_reader *reader, size_t ahead, bool any)
{
    size_t depth = 0;

    for (;; ahead++) {
        const struct math_token *token = peek_at(reader, ahead);
        if (token->kind == TOKEN_END || token->kind == TOKEN_RELATION || token->kind == TOKEN_AMPERSAND)
            return false;
        depth += token->kind == TOKEN_OPEN_PAREN;
        if (depth > CALL_DEPTH_MAX)
            return false;
        if (token->kind == TOKEN_CLOSE_PAREN && --depth == 0)
            break;
        if (!any && token->kind != TOKEN_LETTER && token->kind != TOKEN_GREEK && token->kind != TOKEN_COMMA &&
            token->kind != TOKEN_OPEN_PAREN)
            return false;
    }
    ahead++;
    return peek_at(reader, ahead)->kind == TOKEN_RELATION &&
           (peek_at(reader, ahead)->value == MATH_EQUALS || peek_at(reader, ahead)->value == MATH_CONGRUENT);
}

/* f(x) =, f'(x) =, f^{-1}(x) =: how many tokens the name has; 0 if it is something else. */
static size_t call_name_tokens(const struct math_reader *reader)
{
    static const uint8_t inverse[] = {TOKEN_CARET, TOKEN_OPEN_BRACE, TOKEN_MINUS, TOKEN_DIGIT, TOKEN_CLOSE_BRACE};
    const struct math_token *letter = peek(reader);
    size_t tokens = 1;
    bool any = letter->value && strchr("fghpqFGHPQ", letter->value);

    if (letter->kind != TOKEN_LETTER || letter->run != 1 || letter->value == 'e' || letter->value == 'i')
        return 0;
    while (peek_at(reader, tokens)->kind == TOKEN_PRIME)
        tokens++;
    if (peek_at(reader, tokens)->kind == TOKEN_CARET) {
        for (size_t i = 0; i < sizeof inverse; i++)
            if (peek_at(reader, tokens + i)->kind != inverse[i])
                return 0;
        if (peek_at(reader, tokens + 3)->value != 1)
            return 0;
        tokens += sizeof inverse;
    }
    return peek_at(reader, tokens)->kind == TOKEN_OPEN_PAREN && is_definition(reader, tokens, any) ? tokens : 0;
}

static struct math_node *read_call(struct math_reader *reader, size_t name_tokens)
{
    struct math_context outside = reader->context;
    size_t mark = reader->stack_count;
    char name[16];
    size_t length = 0;
    struct math_node *call;

    for (size_t i = 0; i < name_tokens && length < sizeof name - 6; i++) {
        enum token_kind kind = peek_at(reader, i)->kind;
        if (kind == TOKEN_CARET) {
            static const char inverse[] = {'^', '{', '-', '1', '}'};
            memcpy(name + length, inverse, sizeof inverse);
            length += sizeof inverse;
            break;
        }
        name[length++] = kind == TOKEN_PRIME ? '\'' : (char)peek_at(reader, i)->value;
    }
    reader->at += name_tokens + 1;
    reader->context = (struct math_context){.brackets = true};
    do {
        if (!math_push(reader, math_read_scalar(reader)))
            return NULL;
    } while (take(reader, TOKEN_COMMA));
    if (!take(reader, TOKEN_CLOSE_PAREN))
        return math_refuse(reader, "a closing bracket behind the arguments");
    reader->context = outside;
    call = math_collect(reader, MATH_CALL, mark);
    if (call)
        call->text = math_copy_text(reader->arena, (struct text){name, length});
    return call && call->text.data ? call : math_too_large(reader, "a smaller answer");
}

/* a \equiv b \pmod n: the right side is b mod n. */
static struct math_node *read_congruence(struct math_reader *reader, struct math_node *value)
{
    struct math_node *modulus;
    struct math_node *node;

    if (!value || !take(reader, TOKEN_CONGRUENCE))
        return value;
    if (!math_can_combine(value))
        return math_refuse(reader, "a number or expression in front of the modulus");
    modulus = math_read_argument(reader, true);
    node = math_make_two(reader, MATH_FUNCTION, value, modulus);
    if (node)
        node->function = MATH_MOD;
    return node;
}

static struct math_node *read_side(struct math_reader *reader)
{
    size_t call = call_name_tokens(reader);

    return call ? read_call(reader, call) : read_congruence(reader, math_read_operand(reader));
}

/* f: x \mapsto x^2 says f(x) = x^2. */
static bool is_map(const struct math_reader *reader)
{
    const struct math_token *name = peek(reader);
    const struct math_token *argument = peek_at(reader, 2);

    return name->kind == TOKEN_LETTER && name->run == 1 && peek_at(reader, 1)->kind == TOKEN_COLON &&
           argument->kind == TOKEN_LETTER && argument->run == 1 && peek_at(reader, 3)->kind == TOKEN_MAPS_TO;
}

static struct math_node *read_map(struct math_reader *reader)
{
    char name = (char)peek(reader)->value;
    struct math_node *call;

    reader->at += 2;
    call = math_make_one(reader, MATH_CALL, math_read_name(reader));
    if (call)
        call->text = math_copy_text(reader->arena, (struct text){&name, 1});
    return call && call->text.data ? call : math_too_large(reader, "a smaller answer");
}

static struct math_node *read_first_side(struct math_reader *reader)
{
    struct math_node *subject = is_map(reader) ? read_map(reader) : math_read_subject(reader);

    return subject || reader->status != MATH_PARSED ? subject : read_side(reader);
}

static bool take_relation(struct math_reader *reader, enum math_relation *ret_relation)
{
    const struct math_token *token = peek(reader);

    if (token->kind == TOKEN_MAPS_TO && reader->stack[reader->stack_count - 1]->kind == MATH_CALL) {
        *ret_relation = MATH_EQUALS;
        reader->at++;
        return true;
    }
    if (token->kind == TOKEN_RELATION) {
        *ret_relation = token->value;
        reader->at++;
        return true;
    }
    if (!math_sees_in(reader))
        return false;
    reader->at += 2;
    *ret_relation = MATH_IN;
    return true;
}

#define SIDES_MAX 64

static struct math_node *read_relation(struct math_reader *reader, bool aligned)
{
    size_t mark = reader->stack_count;
    enum math_relation relations[SIDES_MAX];
    size_t count = 0;
    struct math_node *node;

    if (!math_push(reader, read_first_side(reader)))
        return NULL;
    if (aligned)
        take(reader, TOKEN_AMPERSAND);
    while (count < SIDES_MAX && take_relation(reader, &relations[count])) {
        count++;
        if (aligned)
            take(reader, TOKEN_AMPERSAND);
        if (!math_push(reader, read_side(reader)))
            return NULL;
    }
    if (count == SIDES_MAX)
        return math_too_large(reader, "fewer relations");
    if (count == 0)
        return reader->stack[--reader->stack_count];
    node = math_collect(reader, MATH_RELATION, mark);
    if (node)
        node->relations = math_allocate(reader->arena, count * sizeof *relations);
    if (!node || !node->relations)
        return math_too_large(reader, "a smaller answer");
    memcpy(node->relations, relations, count * sizeof *relations);
    if (node->children[0]->kind == MATH_CALL && relations[0] == MATH_CONGRUENT) /* f(x) \equiv x: everywhere */
        node->relations[0] = MATH_EQUALS;
    return node;
}

struct math_node *math_read_relation(struct math_reader *reader)
{
    return read_relation(reader, false);
}

struct math_node *math_read_aligned(struct math_reader *reader, bool signs)
{
    if (signs)
        take(reader, TOKEN_AMPERSAND);
    return read_relation(reader, signs);
}

/* --- ratios, unions --- */

/* 3 to 4 */
static bool take_to(struct math_reader *reader)
{
    bool text = sees(reader, TOKEN_TEXT) && text_equals(math_trimmed(token_text(reader, peek(reader)), ""), "to");

    if (!text && !math_sees_word(reader, "to"))
        return false;
    reader->at += text ? 1 : 2;
    return true;
}

static struct math_node *read_ratio(struct math_reader *reader)
{
    size_t mark = reader->stack_count;
    struct math_node *first = math_read_sum(reader);
    bool by_to = first && first->kind == MATH_NUMBER && !reader->context.set && take_to(reader);

    if (!first || reader->context.set || (!by_to && !take(reader, TOKEN_COLON)))
        return first;
    if (!math_push(reader, first))
        return NULL;
    do {
        if (!math_push(reader, math_read_scalar(reader)))
            return NULL;
    } while (by_to ? take_to(reader) : take(reader, TOKEN_COLON));
    if (!math_can_combine(first))
        return math_refuse(reader, "numbers in a ratio");
    first = math_collect(reader, MATH_RATIO, mark);
    if (first && by_to)
        first->flags = MATH_BY_TO;
    return first;
}

static bool is_set(const struct math_node *node)
{
    return (node->kind >= MATH_SET && node->kind <= MATH_NUMBER_SET) || node->kind == MATH_NAME;
}

/* How the sets here are combined, or MATH_KINDS. A capital U between intervals is a union. */
static enum math_kind set_operation(const struct math_reader *reader, const struct math_node *left)
{
    if (!is_set(left))
        return MATH_KINDS;
    if (sees(reader, TOKEN_UNION) || (left->kind != MATH_NAME && math_sees_word(reader, "U")))
        return MATH_UNION;
    if (sees(reader, TOKEN_INTERSECTION))
        return MATH_INTERSECTION;
    if (sees(reader, TOKEN_MINUS) && math_is_set(left))
        return MATH_DIFFERENCE;
    return sees(reader, TOKEN_DIFFERENCE) ? MATH_DIFFERENCE : MATH_KINDS;
}

static struct math_node *read_sets(struct math_reader *reader)
{
    size_t mark = reader->stack_count;
    struct math_node *first = read_ratio(reader);
    enum math_kind operation = first ? set_operation(reader, first) : MATH_KINDS;

    if (operation == MATH_KINDS)
        return first;
    math_push(reader, first);
    while (set_operation(reader, first) == operation) {
        reader->at++;
        if (!math_push(reader, read_ratio(reader)))
            return NULL;
        if (!is_set(reader->stack[reader->stack_count - 1]))
            return math_refuse(reader, "a set");
    }
    if (operation == MATH_DIFFERENCE && reader->stack_count != mark + 2)
        return math_refuse(reader, "one difference of sets");
    return math_collect(reader, operation, mark);
}

/* --- money and units around a value --- */

static struct math_node *make_quantity(struct math_reader *reader, struct math_node *value, const char *unit)
{
    struct math_node *quantity = math_make_one(reader, MATH_QUANTITY, value);

    if (quantity)
        quantity->text = math_copy_text(reader->arena, text_of(unit));
    return quantity && quantity->text.data ? quantity : math_too_large(reader, "a smaller answer");
}

static struct math_node *read_money(struct math_reader *reader)
{
    bool minus = take(reader, TOKEN_MINUS);
    unsigned money = peek(reader)->value;
    struct math_node *value;

    reader->at++;
    value = math_read_scalar(reader);
    if (value && minus)
        value = math_make_one(reader, MATH_NEGATE, value);
    return value ? math_read_unit(reader, make_quantity(reader, value, math_money[money])) : NULL;
}

/* 4 ft \times 12 ft */
static struct math_node *read_dimension(struct math_reader *reader, const struct math_node *before)
{
    struct math_node *factor = math_read_term(reader);
    struct math_node *next = factor && math_can_combine(factor) ? math_read_unit(reader, factor) : NULL;
    struct math_node *product;
    char unit[2 * MATH_WORD_BYTES];

    if (!next || next->kind != MATH_QUANTITY)
        return math_refuse(reader, "another quantity");
    snprintf(unit, sizeof unit, "%.*s*%.*s", (int)before->text.length_bytes, before->text.data,
             (int)next->text.length_bytes, next->text.data);
    if (before->text.length_bytes + next->text.length_bytes + 2 > sizeof unit)
        return math_too_large(reader, "a shorter unit");
    product = math_make_two(reader, MATH_PRODUCT, before->children[0], next->children[0]);
    return product ? make_quantity(reader, product, unit) : NULL;
}

struct math_node *math_read_operand(struct math_reader *reader)
{
    struct math_node *value;

    if (sees(reader, TOKEN_MONEY) || (sees(reader, TOKEN_MINUS) && peek_at(reader, 1)->kind == TOKEN_MONEY))
        return read_money(reader);
    value = read_sets(reader);
    value = value ? math_read_unit(reader, value) : NULL;
    while (value && value->kind == MATH_QUANTITY && take(reader, TOKEN_TIMES))
        value = read_dimension(reader, value);
    return value;
}
