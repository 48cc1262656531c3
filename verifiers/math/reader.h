/* Shared by the files of the parser: tokens, the reader over them, refusals. Private to them. */
#ifndef VERIFIERS_MATH_READER_H
#define VERIFIERS_MATH_READER_H

#include "verifiers/math/parse.h"

#define MATH_BITS_MAX 65536  /* of a literal's numerator or denominator */
#define MATH_DIGITS_MAX 8192 /* of one literal */

enum token_kind {
    TOKEN_END,
    TOKEN_DIGIT,    /* value: 0..9 */
    TOKEN_LETTER,   /* value: the byte; run: letters from here to the end of the word */
    TOKEN_GREEK,    /* value: index into math_greek */
    TOKEN_CONSTANT, /* value: enum math_constant */
    TOKEN_PLUS,
    TOKEN_MINUS,
    TOKEN_PLUS_MINUS,
    TOKEN_MINUS_PLUS,
    TOKEN_TIMES,
    TOKEN_SLASH,
    TOKEN_MODULO, /* a \bmod b */
    TOKEN_CARET,
    TOKEN_SUBSCRIPT,
    TOKEN_OPEN_BRACE,
    TOKEN_CLOSE_BRACE,
    TOKEN_OPEN_PAREN,
    TOKEN_CLOSE_PAREN,
    TOKEN_OPEN_SQUARE,
    TOKEN_CLOSE_SQUARE,
    TOKEN_OPEN_SET,
    TOKEN_CLOSE_SET,
    TOKEN_OPEN_ANGLE,
    TOKEN_CLOSE_ANGLE,
    TOKEN_OPEN_FLOOR,
    TOKEN_CLOSE_FLOOR,
    TOKEN_OPEN_CEILING,
    TOKEN_CLOSE_CEILING,
    TOKEN_BAR,
    TOKEN_OPEN_BAR,
    TOKEN_CLOSE_BAR,
    TOKEN_MID,
    TOKEN_COMMA,
    TOKEN_GROUP_COMMA, /* {,} and ,\! */
    TOKEN_SEMICOLON,
    TOKEN_COLON,
    TOKEN_POINT,
    TOKEN_BANG,
    TOKEN_PRIME,
    TOKEN_AMPERSAND,
    TOKEN_ROW,
    TOKEN_PERCENT,
    TOKEN_DEGREE,
    TOKEN_CIRCLE,   /* \circ: a degree only behind ^ */
    TOKEN_MONEY,    /* value: index into math_money */
    TOKEN_RELATION, /* value: enum math_relation */
    TOKEN_UNION,
    TOKEN_INTERSECTION,
    TOKEN_DIFFERENCE,
    TOKEN_EMPTY_SET,
    TOKEN_NUMBER_SET, /* value: the letter */
    TOKEN_FUNCTION,   /* value: enum math_function */
    TOKEN_LOG_TEN,    /* \lg */
    TOKEN_FRACTION,
    TOKEN_VULGAR, /* value: numerator * 16 + denominator */
    TOKEN_ROOT,
    TOKEN_NTH_ROOT, /* value: degree, of a root sign of its own */
    TOKEN_BINOMIAL,
    TOKEN_CHOOSE,
    TOKEN_OVER,
    TOKEN_OVERLINE,
    TOKEN_DOT_ABOVE,
    TOKEN_ACCENT,     /* value: index into math_accents */
    TOKEN_OPERATOR,   /* value: index into math_operators */
    TOKEN_CONGRUENCE, /* \pmod */
    TOKEN_BEGIN,      /* value: index into the table of environments */
    TOKEN_FINISH,
    TOKEN_TEXT, /* words; at, length: inside the braces */
    TOKEN_AND,
    TOKEN_OR,
    TOKEN_DETERMINANT,
    TOKEN_HEAD, /* value: index into math_heads: \angle, \dim, only of a name */
    TOKEN_THEREFORE,
    TOKEN_FOR_ALL,
    TOKEN_MAPS_TO,
    TOKEN_SPACE,   /* says so before the next token; never in the array */
    TOKEN_SIZE,    /* \left, \bigr: leaves no token, but a bracket must follow */
    TOKEN_NOTHING, /* a font, \displaystyle: leaves no token */
    TOKEN_GROUPED, /* its groups are no mathematics as they stand; value: which kind; leaves no token of its own */
    TOKEN_FORBIDDEN,
    TOKEN_KINDS
};

/* The first of their table; the others are plain matrices. */
enum { ENVIRONMENT_ARRAY, ENVIRONMENT_DETERMINANT, ENVIRONMENT_CASES, ENVIRONMENT_ALIGNED };

enum { GROUPED_COLOUR, GROUPED_FONT, GROUPED_NUMBER, GROUPED_QUANTITY };

enum token_flag {
    TOKEN_SPACED = 1 << 0, /* white space before it */
    TOKEN_STICKY = 1 << 1, /* a no-break space before it, which groups no digits */
    TOKEN_TIGHT = 1 << 2,  /* \! before it */
    TOKEN_ASCII = 1 << 3,  /* a word without a backslash: sqrt, pi, sin */
    TOKEN_UPRIGHT = 1 << 4 /* \mathrm{…}, \text{…} around it */
};

struct math_token {
    uint32_t at;
    uint16_t length, run;
    uint8_t kind, value, flags;
};

extern const char *const math_greek[];
extern const char *const math_accents[];
extern const char *const math_operators[];
extern const char *const math_money[];
extern const char *const math_heads[];

/* The meaning of the open bracket for the tokens inside it. */
struct math_context {
    int bars;       /* open | … */
    bool brackets;  /* a comma separates, it groups no digits */
    bool set;       /* between \{ and \}: a colon is no ratio */
    bool condition; /* of a set: its bar is no absolute value */
    bool integral;  /* d in front of a letter ends the integrand */
    bool exponent;  /* digits without braces behind ^: no groups of thousands */
};

struct math_reader {
    struct math_arena *arena;
    const struct math_reading *reading;
    bool dollars;              /* $ are the ends of formulas: $3$ and $4$ */
    struct text text;          /* without decorations; token.at counts from here */
    struct math_token *tokens; /* the last is TOKEN_END */
    size_t count, capacity;
    size_t at;
    struct math_node **stack; /* children of nodes that are not complete */
    size_t stack_count, stack_capacity;
    int depth;
    struct math_context context;
    enum math_parse_status status;
    struct math_parse_error error;
};

/* --- tokens.c --- */

/* Fills reader->tokens. false: a byte or command that is in no list. */
bool math_tokenize(struct math_reader *reader);

/* --- looking --- */

static inline const struct math_token *peek(const struct math_reader *reader)
{
    return &reader->tokens[reader->at];
}

static inline const struct math_token *peek_at(const struct math_reader *reader, size_t ahead)
{
    size_t at = reader->at + ahead;
    return &reader->tokens[at < reader->count ? at : reader->count - 1];
}

static inline bool sees(const struct math_reader *reader, enum token_kind kind)
{
    return peek(reader)->kind == kind;
}

static inline bool take(struct math_reader *reader, enum token_kind kind)
{
    if (!sees(reader, kind))
        return false;
    reader->at += kind != TOKEN_END;
    return true;
}

/* Nothing but the bytes of the two tokens stands here. */
static inline bool is_adjacent(const struct math_token *token)
{
    return !(token->flags & (TOKEN_SPACED | TOKEN_STICKY | TOKEN_TIGHT));
}

static inline struct text token_text(const struct math_reader *reader, const struct math_token *token)
{
    return (struct text){reader->text.data + token->at, token->length};
}

/* \max as max */
static inline struct text math_without_backslash(struct text word)
{
    size_t backslash = word.length_bytes && word.data[0] == '\\';
    return (struct text){word.data + backslash, word.length_bytes - backslash};
}

/* --- refusing: the first reason stands --- */

struct math_node *math_refuse(struct math_reader *reader, const char *expected);
struct math_node *math_too_large(struct math_reader *reader, const char *what);

/* Every way from the grammar back into itself leads through here; leave() only where the reading continues. */
static inline bool enter(struct math_reader *reader)
{
    if (++reader->depth <= reader->reading->max_depth + 1)
        return true;
    math_too_large(reader, "less depth");
    return false;
}

static inline struct math_node *leave(struct math_reader *reader, struct math_node *node)
{
    reader->depth--;
    return node;
}

/* --- building: NULL in, NULL out; a full arena is refused as too large --- */

struct math_node *math_make(struct math_reader *reader, enum math_kind kind, size_t count,
                            struct math_node *const children[]);
struct math_node *math_make_one(struct math_reader *reader, enum math_kind kind, struct math_node *child);
struct math_node *math_make_two(struct math_reader *reader, enum math_kind kind, struct math_node *first,
                                struct math_node *second);
struct math_node *math_make_text(struct math_reader *reader, enum math_kind kind, struct text text);
struct math_node *math_make_integer(struct math_reader *reader, unsigned long value);

/* Keeps a child until its parent is complete. false if it is NULL. */
bool math_push(struct math_reader *reader, struct math_node *child);
/* The children since `mark`, as one node. */
struct math_node *math_collect(struct math_reader *reader, enum math_kind kind, size_t mark);

/* --- words --- */

struct text math_word_at(const struct math_reader *reader, size_t at); /* the whole word of letters that starts there */
bool math_sees_in(const struct math_reader *reader);                   /* x in [0, 1] */
bool math_sees_word(const struct math_reader *reader, const char *word); /* a whole word of letters */

/* --- the grammar, from loose to tight; nothing is read twice --- */

/* parse_list.c */
struct math_node *math_read_list(struct math_reader *reader);     /* a, b and c */
struct math_node *math_read_relation(struct math_reader *reader); /* x = 5, 0 < x < 1, or less */
/* A relation as one line of several; with & around its sign where `signs`. */
struct math_node *math_read_aligned(struct math_reader *reader, bool signs);
struct math_node *math_read_operand(struct math_reader *reader); /* unions, ratios, units, or less */

/* parse_sum.c */
struct math_node *math_read_sum(struct math_reader *reader); /* or less: anything that may stand alone */
struct math_node *math_read_term(struct math_reader *reader);
struct math_node *math_read_scalar(struct math_reader *reader); /* a sum that is no structure */
bool math_starts_factor(const struct math_reader *reader);      /* does a product continue here, without a sign? */
bool math_ends_integrand(const struct math_reader *reader);     /* dx */
bool math_can_combine(const struct math_node *node);            /* may it be a part of a sum or product? */
bool math_is_set(const struct math_node *node);                 /* is it one, and nothing else? */

/* parse_power.c */
struct math_node *math_read_power(struct math_reader *reader); /* what hangs on an atom: ^ ! % degrees */
struct math_node *math_read_exponent(struct math_reader *reader);
bool math_sees_degree_mark(const struct math_reader *reader);

/* parse_atom.c */
struct math_node *math_read_atom(struct math_reader *reader);
struct math_node *math_read_argument(struct math_reader *reader, bool digits); /* of a command; all digits or one */
struct math_node *math_read_name(struct math_reader *reader); /* a letter and its subscript and primes */
struct math_node *math_make_name(struct math_reader *reader, struct text name); /* or the constant e or i */
/* Of a name whose exponent came first: v^2_0. */
struct math_node *math_read_late_subscript(struct math_reader *reader, const struct math_node *name);

/* parse_subject.c */
void math_skip_labels(struct math_reader *reader);               /* \text{Answer: }, \therefore, a lone = */
struct math_node *math_read_subject(struct math_reader *reader); /* \angle ABC =, P(A\mid B) =; NULL: something else */

/* parse_condition.c */
bool math_sees_condition(const struct math_reader *reader, size_t ahead); /* "for all", "where", (k \in Z) */
struct math_node *math_read_condition(struct math_reader *reader);        /* of one name: k \in Z, n \ge 1 */

/* parse_choose.c */
struct math_node *math_read_combination(struct math_reader *reader); /* C_{10}^3; NULL without a refusal: it is none */
struct math_node *math_read_raised(struct math_reader *reader);      /* ^{3}/_{4}, {}^{10}C_3, {}_{10}C_3 */

/* parse_function.c */
struct math_node *math_read_function(struct math_reader *reader);
struct math_node *math_read_operator(struct math_reader *reader); /* \sum, \int, \lim */

/* parse_bracket.c */
struct math_node *math_read_stacked(struct math_reader *reader); /* all between two braces, or the whole answer */
struct math_node *math_read_group(struct math_reader *reader);   /* { } */
struct math_node *math_read_bracket(struct math_reader *reader); /* ( [ */
struct math_node *math_read_set(struct math_reader *reader);
struct math_node *math_read_fence(struct math_reader *reader); /* bars, floor, ceiling, angles */
struct math_node *math_read_matrix(struct math_reader *reader);

/* parse_number.c */
struct math_node *math_read_literal(struct math_reader *reader);
struct math_node *math_read_digits_in_base(struct math_reader *reader); /* NULL without a refusal: it is none */

/* parse_text.c */
struct math_node *math_read_text(struct math_reader *reader);
struct math_node *math_read_prose(struct math_reader *reader); /* the whole answer is words; NULL without a refusal */
struct math_node *math_make_words(struct math_reader *reader, struct text words); /* lower case, single spaces */
bool math_is_answer_word(struct text word); /* "yes", "none": never a product of variables */

/* parse_unit.c */
struct math_node *math_read_unit(struct math_reader *reader, struct math_node *value); /* the value, if there is none */
bool math_starts_unit(const struct math_reader *reader);
bool math_starts_forbidden_word(const struct math_reader *reader); /* "maybe", "million": no unit */
bool math_sees_temperature(const struct math_reader *reader);      /* C or F behind a degree sign */

#endif
