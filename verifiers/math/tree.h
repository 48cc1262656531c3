/* tree: an answer, as it was written.
 *
 * The parser (parse.h) makes trees, everything else reads them: decide.h takes scalars, compare.h takes all of it. A
 * tree keeps the notation (1/2 is a quotient of two numbers, not a rational), so that `form` can be graded; it keeps no
 * layout: \dfrac and \frac, \left( and (, fonts, spaces are the same tree.
 *
 * Nodes live in an arena: nothing is freed one by one, math_arena_destroy() ends all of them. Nodes are not changed
 * after the parser made them. Pure; one thread. */
#ifndef VERIFIERS_MATH_TREE_H
#define VERIFIERS_MATH_TREE_H

#include "server/base/buffer.h"
#include "server/base/text.h"

#include <flint/fmpq.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum math_kind {
    /* scalars */
    MATH_NUMBER,     /* value: a literal, never negative; 2.50, 1,000, 0.\overline{3}, 2.5e3 */
    MATH_MIXED,      /* 1\frac{5}{12}, 1 5/12: children whole (NUMBER), fraction (QUOTIENT of NUMBERs); their sum */
    MATH_CONSTANT,   /* constant */
    MATH_NAME,       /* text: a variable with its subscript, e.g. "x", "x_{1}", "\alpha", "A'" */
    MATH_SUM,        /* 2 or more terms; a - b is SUM(a, NEGATE(b)) */
    MATH_PRODUCT,    /* 2 or more factors; MATH_JUXTAPOSED if no sign stands between any of them */
    MATH_QUOTIENT,   /* numerator, denominator: \frac, / and \div */
    MATH_NEGATE,     /* one child; a leading + leaves no node */
    MATH_POWER,      /* base, exponent */
    MATH_ROOT,       /* radicand, degree; a degree that is not written is NUMBER 2 */
    MATH_FACTORIAL,  /* one child; MATH_DOUBLED for n!! */
    MATH_BINOMIAL,   /* upper, lower */
    MATH_ABSOLUTE,   /* one child: |x|, \lvert x\rvert, also of a complex number */
    MATH_FLOOR,      /* one child */
    MATH_CEILING,    /* one child */
    MATH_FUNCTION,   /* function; argument, for MATH_LOG also the base (2 children) */
    MATH_PLUS_MINUS, /* one child: \pm child; MATH_FLIPPED for \mp. a \pm b is SUM(a, PLUS_MINUS(b)). All signs of one
                        answer belong together: two values, not four */
    MATH_DEGREES,    /* one child: 60^\circ. Inside a trigonometric function an angle, elsewhere a unit */
    MATH_PERCENT,    /* one child */
    MATH_OPERATOR,   /* text: "sum", "prod", "int", "lim", …; children as written: lower, upper, body (MATH_NOTHING if
                        absent); for an integral the variable comes last. Decided by notation only, unless finite */
    MATH_CALL,     /* text: a name that is no known function; arguments. Only on the left of a definition f(x) = … */
    MATH_QUANTITY, /* one child, text: the unit as it was written, unknown ones too ("apples"): "cm", "m^2", "$", "km/h"
                    */
    /* structures */
    MATH_LIST,        /* 1 or more elements without brackets, separated by , ; and; MATH_BY_OR if by "or" */
    MATH_SET,         /* 0 or more elements in \{ \}; \emptyset is the empty SET */
    MATH_SET_BUILDER, /* \{x : condition\}: variable (NAME or RELATION x \in S), condition */
    MATH_TUPLE, /* 2 or more elements in ( ) or [ ], (a,b] too: opening, closing. Two elements can be an interval */
    MATH_UNION, /* 2 or more */
    MATH_INTERSECTION, /* 2 or more */
    MATH_DIFFERENCE,   /* \setminus: 2 */
    MATH_NUMBER_SET,   /* text: "R", "N", "Z", "Q", "C", perhaps with ^+ or so behind it */
    MATH_MATRIX, /* rows × columns elements, row by row; MATH_DETERMINANT for vmatrix and \det; also \langle a,b\rangle
                    (MATH_ANGLED, a column of it) */
    MATH_RELATION, /* n children, relations[n - 1] between them: x = 5, 0 \le x < 1, a = b = c */
    MATH_RATIO,    /* 2 or more parts: 3:4; also a time of day. The parts' digits are in their text */
    MATH_BASED,    /* text: digits as written, upper case; base: 2..36. value: what it is worth (valid digits only) */
    MATH_TEXT,     /* text: words, lower case, single spaces, no punctuation at the end */
    MATH_NOTHING,  /* an absent part of a MATH_OPERATOR */
    MATH_KINDS
};

enum math_constant { MATH_PI, MATH_E, MATH_I, MATH_INFINITY, MATH_CONSTANTS };

enum math_function {
    MATH_LN,  /* natural */
    MATH_LOG, /* argument, base; \lg has the base 10 */
    MATH_EXP,
    MATH_SIN,
    MATH_COS,
    MATH_TAN,
    MATH_COT,
    MATH_SEC,
    MATH_CSC,
    MATH_ASIN,
    MATH_ACOS,
    MATH_ATAN,
    MATH_ACOT,
    MATH_ASEC,
    MATH_ACSC,
    MATH_SINH,
    MATH_COSH,
    MATH_TANH,
    MATH_ASINH,
    MATH_ACOSH,
    MATH_ATANH,
    MATH_GCD, /* 2 or more */
    MATH_LCM,
    MATH_MIN,
    MATH_MAX,
    MATH_MOD, /* a, m */
    MATH_SIGN,
    MATH_RE,
    MATH_IM,
    MATH_ARG,
    MATH_CONJUGATE, /* \overline{z} of what is no digit */
    MATH_LOG_PLAIN, /* \log without a base: 10 or e, nobody knows. decide.h says how it is read */
    MATH_FUNCTIONS
};

enum math_relation {
    MATH_EQUALS,
    MATH_NOT_EQUAL,
    MATH_LESS,
    MATH_LESS_EQUAL,
    MATH_GREATER,
    MATH_GREATER_EQUAL,
    MATH_APPROXIMATELY,
    MATH_IN,
    MATH_NOT_IN,
    MATH_CONGRUENT,  /* \equiv; a \pmod n behind it is a MOD around the right side */
    MATH_APPROACHES, /* \to: only below \lim */
    MATH_RELATIONS
};

enum math_flag {
    MATH_JUXTAPOSED = 1 << 0,
    MATH_DOUBLED = 1 << 1,
    MATH_FLIPPED = 1 << 2,
    MATH_BY_OR = 1 << 3,
    MATH_DETERMINANT = 1 << 4,
    MATH_ANGLED = 1 << 5,
    MATH_DECIMAL = 1 << 6, /* a NUMBER with a point, a period or an exponent: 0.5, 2.0, 1e3 */
    MATH_WORD = 1 << 7, /* a PRODUCT of 3 or more NAMEs written as one bare word, or alone: "abc", "even"; text: it */
    MATH_BRACKETED = 1 << 8, /* stood in ( ) of its own */
    MATH_BY_TO = 1 << 9      /* a RATIO written 3 to 4 */
};

struct math_node {
    enum math_kind kind;
    unsigned flags;
    unsigned
        height; /* 0 for a leaf; the parser makes no tree higher than 4 · max_depth, so recursion over it is safe */
    size_t count;
    struct math_node **children;
    struct text text; /* by kind; of a NUMBER its digits as written; in the arena */
    union {
        enum math_constant constant;
        enum math_function function;
        unsigned base;
        struct {
            char opening, closing; /* '(' '[' and ')' ']' */
        };
        size_t columns;
    };
    enum math_relation *relations;
    fmpq *value; /* NUMBER, BASED: reduced, not negative */
};

/* --- memory --- */

struct math_arena;

/* limit_bytes: of nodes and texts together. The maker of a node answers NULL beyond it, and the caller reports a limit.
 */
struct math_arena *math_arena_create(size_t limit_bytes);
void math_arena_destroy(struct math_arena *arena); /* NULL is fine; ends all nodes and their values */
static inline void math_arena_destroyp(struct math_arena **arena)
{
    math_arena_destroy(*arena);
}
#define _cleanup_math_arena_ _cleanup_(math_arena_destroyp)

void *math_allocate(struct math_arena *arena, size_t bytes); /* zeroed; NULL beyond the limit */
struct text math_copy_text(struct math_arena *arena, struct text text);
struct math_node *math_node_create(struct math_arena *arena, enum math_kind kind, size_t count);
struct math_node *math_number_create(struct math_arena *arena, const fmpq_t value);
/* children: NULL-free; NULL among them gives NULL, so that makers can be nested */
struct math_node *math_node_of(struct math_arena *arena, enum math_kind kind, size_t count,
                               struct math_node *const children[]);

/* --- looking --- */

extern const char *const math_kind_names[MATH_KINDS];
extern const char *const math_function_names[MATH_FUNCTIONS];

bool math_is_scalar(const struct math_node *node); /* the node and everything below it are scalars */
bool math_has_names(const struct math_node *node); /* any NAME below it */
bool math_has_kind(const struct math_node *node, enum math_kind kind);
bool math_same_tree(const struct math_node *left, const struct math_node *right); /* the same notation */

/* The normal form in LaTeX, with braces and brackets where they are needed: what `detail` and the command line show.
 * Reading it again gives an equal tree. Cut by the buffer's limit. */
void math_print(const struct math_node *node, struct buffer *out);

#endif
