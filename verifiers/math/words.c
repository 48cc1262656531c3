/* The words of the notation: what each command, ASCII word and sign beyond ASCII means. Everything else is refused. */
#include "verifiers/math/words.h"

#include <ctype.h>
#include <string.h>

#include "server/base/cleanup.h"

const char *const math_greek[] = {
    "\\alpha", "\\beta",     "\\gamma", "\\delta", "\\epsilon", "\\varepsilon", "\\zeta",   "\\eta",
    "\\theta", "\\vartheta", "\\iota",  "\\kappa", "\\lambda",  "\\mu",         "\\nu",     "\\xi",
    "\\rho",   "\\varrho",   "\\sigma", "\\tau",   "\\upsilon", "\\phi",        "\\varphi", "\\chi",
    "\\psi",   "\\omega",    "\\Gamma", "\\Delta", "\\Theta",   "\\Lambda",     "\\Xi",     "\\Pi",
    "\\Sigma", "\\Upsilon",  "\\Phi",   "\\Psi",   "\\Omega",   "\\ell",        "\\hbar"};
const char *const math_accents[] = {"vec", "hat", "tilde", "overrightarrow", "widehat", "overleftrightarrow", "ddot"};
const char *const math_operators[] = {"sum", "prod", "int", "lim"};
const char *const math_heads[] = {"\\angle", "\\triangle", "\\dim", "\\deg", "\\Pr", "\\ker", "\\sup", "\\inf"};
const char *const math_money[] = {"$", "€", "£", "¥"};

/* With a backslash or, as whole words of ASCII letters, without one. */
static const struct word names[] = {
    {"arccos", TOKEN_FUNCTION, MATH_ACOS},
    {"arccosh", TOKEN_FUNCTION, MATH_ACOSH},
    {"arccot", TOKEN_FUNCTION, MATH_ACOT},
    {"arccsc", TOKEN_FUNCTION, MATH_ACSC},
    {"arcosh", TOKEN_FUNCTION, MATH_ACOSH},
    {"arcsec", TOKEN_FUNCTION, MATH_ASEC},
    {"arcsin", TOKEN_FUNCTION, MATH_ASIN},
    {"arcsinh", TOKEN_FUNCTION, MATH_ASINH},
    {"arctan", TOKEN_FUNCTION, MATH_ATAN},
    {"arctanh", TOKEN_FUNCTION, MATH_ATANH},
    {"arctg", TOKEN_FUNCTION, MATH_ATAN},
    {"arsinh", TOKEN_FUNCTION, MATH_ASINH},
    {"artanh", TOKEN_FUNCTION, MATH_ATANH},
    {"cos", TOKEN_FUNCTION, MATH_COS},
    {"cosec", TOKEN_FUNCTION, MATH_CSC},
    {"cosh", TOKEN_FUNCTION, MATH_COSH},
    {"cot", TOKEN_FUNCTION, MATH_COT},
    {"csc", TOKEN_FUNCTION, MATH_CSC},
    {"exp", TOKEN_FUNCTION, MATH_EXP},
    {"gcd", TOKEN_FUNCTION, MATH_GCD},
    {"infty", TOKEN_CONSTANT, MATH_INFINITY},
    {"lcm", TOKEN_FUNCTION, MATH_LCM},
    {"lg", TOKEN_LOG_TEN, 0},
    {"ln", TOKEN_FUNCTION, MATH_LN},
    {"log", TOKEN_FUNCTION, MATH_LOG_PLAIN},
    {"max", TOKEN_FUNCTION, MATH_MAX},
    {"min", TOKEN_FUNCTION, MATH_MIN},
    {"mod", TOKEN_MODULO, 0},
    {"pi", TOKEN_CONSTANT, MATH_PI},
    {"sec", TOKEN_FUNCTION, MATH_SEC},
    {"sgn", TOKEN_FUNCTION, MATH_SIGN},
    {"sin", TOKEN_FUNCTION, MATH_SIN},
    {"sinh", TOKEN_FUNCTION, MATH_SINH},
    {"sqrt", TOKEN_ROOT, 0},
    {"tan", TOKEN_FUNCTION, MATH_TAN},
    {"tanh", TOKEN_FUNCTION, MATH_TANH},
};

/* Only with a backslash. */
static const struct word commands[] = {
    {"Big", TOKEN_SIZE, 0},
    {"Bigg", TOKEN_SIZE, 0},
    {"Biggl", TOKEN_SIZE, 0},
    {"Biggr", TOKEN_SIZE, 0},
    {"Bigl", TOKEN_SIZE, 0},
    {"Bigr", TOKEN_SIZE, 0},
    {"C", TOKEN_NUMBER_SET, 'C'},
    {"Delta", TOKEN_GREEK, 27},
    {"EUR", TOKEN_MONEY, 1},
    {"Gamma", TOKEN_GREEK, 26},
    {"Huge", TOKEN_NOTHING, 0},
    {"Im", TOKEN_FUNCTION, MATH_IM},
    {"LARGE", TOKEN_NOTHING, 0},
    {"Lambda", TOKEN_GREEK, 29},
    {"Large", TOKEN_NOTHING, 0},
    {"N", TOKEN_NUMBER_SET, 'N'},
    {"Omega", TOKEN_GREEK, 36},
    {"Phi", TOKEN_GREEK, 34},
    {"Pi", TOKEN_GREEK, 31},
    {"Pr", TOKEN_HEAD, 4},
    {"Psi", TOKEN_GREEK, 35},
    {"Q", TOKEN_NUMBER_SET, 'Q'},
    {"R", TOKEN_NUMBER_SET, 'R'},
    {"Re", TOKEN_FUNCTION, MATH_RE},
    {"Rightarrow", TOKEN_THEREFORE, 0},
    {"SI", TOKEN_GROUPED, GROUPED_QUANTITY},
    {"Sigma", TOKEN_GREEK, 32},
    {"Theta", TOKEN_GREEK, 28},
    {"Upsilon", TOKEN_GREEK, 33},
    {"Vert", TOKEN_BAR, 0},
    {"Xi", TOKEN_GREEK, 30},
    {"Z", TOKEN_NUMBER_SET, 'Z'},
    {"alpha", TOKEN_GREEK, 0},
    {"angle", TOKEN_HEAD, 0},
    {"approx", TOKEN_RELATION, MATH_APPROXIMATELY},
    {"arg", TOKEN_FUNCTION, MATH_ARG},
    {"ast", TOKEN_TIMES, 0},
    {"backslash", TOKEN_DIFFERENCE, 0},
    {"bar", TOKEN_OVERLINE, 0},
    {"beta", TOKEN_GREEK, 1},
    {"bf", TOKEN_NOTHING, 0},
    {"big", TOKEN_SIZE, 0},
    {"bigcap", TOKEN_INTERSECTION, 0},
    {"bigcup", TOKEN_UNION, 0},
    {"bigg", TOKEN_SIZE, 0},
    {"biggl", TOKEN_SIZE, 0},
    {"biggr", TOKEN_SIZE, 0},
    {"bigl", TOKEN_SIZE, 0},
    {"bigr", TOKEN_SIZE, 0},
    {"binom", TOKEN_BINOMIAL, 0},
    {"bm", TOKEN_GROUPED, GROUPED_FONT},
    {"bmod", TOKEN_MODULO, 0},
    {"bold", TOKEN_GROUPED, GROUPED_FONT},
    {"boldsymbol", TOKEN_GROUPED, GROUPED_FONT},
    {"boxed", TOKEN_NOTHING, 0},
    {"cap", TOKEN_INTERSECTION, 0},
    {"cdot", TOKEN_TIMES, 0},
    {"cfrac", TOKEN_FRACTION, 0},
    {"chi", TOKEN_GREEK, 23},
    {"choose", TOKEN_CHOOSE, 0},
    {"circ", TOKEN_CIRCLE, 0},
    {"colon", TOKEN_COLON, 0},
    {"color", TOKEN_GROUPED, GROUPED_COLOUR},
    {"colorbox", TOKEN_GROUPED, GROUPED_COLOUR},
    {"cr", TOKEN_ROW, 0},
    {"ctg", TOKEN_FUNCTION, MATH_COT},
    {"cup", TOKEN_UNION, 0},
    {"dbinom", TOKEN_BINOMIAL, 0},
    {"ddot", TOKEN_ACCENT, 6},
    {"deg", TOKEN_HEAD, 3},
    {"degree", TOKEN_DEGREE, 0},
    {"delta", TOKEN_GREEK, 3},
    {"det", TOKEN_DETERMINANT, 0},
    {"dfrac", TOKEN_FRACTION, 0},
    {"dim", TOKEN_HEAD, 2},
    {"displaystyle", TOKEN_NOTHING, 0},
    {"div", TOKEN_SLASH, 0},
    {"dot", TOKEN_DOT_ABOVE, 0},
    {"ell", TOKEN_GREEK, 37},
    {"emptyset", TOKEN_EMPTY_SET, 0},
    {"enspace", TOKEN_SPACE, 0},
    {"epsilon", TOKEN_GREEK, 4},
    {"equiv", TOKEN_RELATION, MATH_CONGRUENT},
    {"eta", TOKEN_GREEK, 7},
    {"euro", TOKEN_MONEY, 1},
    {"fbox", TOKEN_NOTHING, 0},
    {"footnotesize", TOKEN_NOTHING, 0},
    {"forall", TOKEN_FOR_ALL, 0},
    {"frac", TOKEN_FRACTION, 0},
    {"gamma", TOKEN_GREEK, 2},
    {"ge", TOKEN_RELATION, MATH_GREATER_EQUAL},
    {"geq", TOKEN_RELATION, MATH_GREATER_EQUAL},
    {"geqq", TOKEN_RELATION, MATH_GREATER_EQUAL},
    {"geqslant", TOKEN_RELATION, MATH_GREATER_EQUAL},
    {"gt", TOKEN_RELATION, MATH_GREATER},
    {"hat", TOKEN_ACCENT, 1},
    {"hbar", TOKEN_GREEK, 38},
    {"hline", TOKEN_NOTHING, 0},
    {"huge", TOKEN_NOTHING, 0},
    {"implies", TOKEN_THEREFORE, 0},
    {"in", TOKEN_RELATION, MATH_IN},
    {"inf", TOKEN_HEAD, 7},
    {"int", TOKEN_OPERATOR, 2},
    {"iota", TOKEN_GREEK, 10},
    {"it", TOKEN_NOTHING, 0},
    {"kappa", TOKEN_GREEK, 11},
    {"ker", TOKEN_HEAD, 5},
    {"lVert", TOKEN_OPEN_BAR, 0},
    {"lambda", TOKEN_GREEK, 12},
    {"land", TOKEN_AND, 0},
    {"langle", TOKEN_OPEN_ANGLE, 0},
    {"large", TOKEN_NOTHING, 0},
    {"lbrace", TOKEN_OPEN_SET, 0},
    {"lbrack", TOKEN_OPEN_SQUARE, 0},
    {"lceil", TOKEN_OPEN_CEILING, 0},
    {"le", TOKEN_RELATION, MATH_LESS_EQUAL},
    {"left", TOKEN_SIZE, 0},
    {"leq", TOKEN_RELATION, MATH_LESS_EQUAL},
    {"leqq", TOKEN_RELATION, MATH_LESS_EQUAL},
    {"leqslant", TOKEN_RELATION, MATH_LESS_EQUAL},
    {"lfloor", TOKEN_OPEN_FLOOR, 0},
    {"lim", TOKEN_OPERATOR, 3},
    {"limits", TOKEN_NOTHING, 0},
    {"longrightarrow", TOKEN_RELATION, MATH_APPROACHES},
    {"lor", TOKEN_OR, 0},
    {"lparen", TOKEN_OPEN_PAREN, 0},
    {"lt", TOKEN_RELATION, MATH_LESS},
    {"lvert", TOKEN_OPEN_BAR, 0},
    {"mapsto", TOKEN_MAPS_TO, 0},
    {"mathbf", TOKEN_GROUPED, GROUPED_FONT},
    {"mathbin", TOKEN_NOTHING, 0},
    {"mathcal", TOKEN_NOTHING, 0},
    {"mathit", TOKEN_GROUPED, GROUPED_FONT},
    {"mathnormal", TOKEN_NOTHING, 0},
    {"mathop", TOKEN_NOTHING, 0},
    {"mathord", TOKEN_NOTHING, 0},
    {"mathrel", TOKEN_NOTHING, 0},
    {"mathstrut", TOKEN_NOTHING, 0},
    {"measuredangle", TOKEN_HEAD, 0},
    {"medspace", TOKEN_SPACE, 0},
    {"mid", TOKEN_MID, 0},
    {"middle", TOKEN_SIZE, 0},
    {"mp", TOKEN_MINUS_PLUS, 0},
    {"mu", TOKEN_GREEK, 13},
    {"ne", TOKEN_RELATION, MATH_NOT_EQUAL},
    {"neq", TOKEN_RELATION, MATH_NOT_EQUAL},
    {"nicefrac", TOKEN_FRACTION, 0},
    {"nolimits", TOKEN_NOTHING, 0},
    {"nonumber", TOKEN_NOTHING, 0},
    {"normalsize", TOKEN_NOTHING, 0},
    {"notag", TOKEN_NOTHING, 0},
    {"notin", TOKEN_RELATION, MATH_NOT_IN},
    {"nu", TOKEN_GREEK, 14},
    {"num", TOKEN_GROUPED, GROUPED_NUMBER},
    {"omega", TOKEN_GREEK, 25},
    {"over", TOKEN_OVER, 0},
    {"overleftrightarrow", TOKEN_ACCENT, 5},
    {"overline", TOKEN_OVERLINE, 0},
    {"overrightarrow", TOKEN_ACCENT, 3},
    {"phi", TOKEN_GREEK, 21},
    {"pm", TOKEN_PLUS_MINUS, 0},
    {"pmb", TOKEN_NOTHING, 0},
    {"pmod", TOKEN_CONGRUENCE, 0},
    {"pounds", TOKEN_MONEY, 2},
    {"prime", TOKEN_PRIME, 0},
    {"prod", TOKEN_OPERATOR, 1},
    {"psi", TOKEN_GREEK, 24},
    {"qquad", TOKEN_SPACE, 0},
    {"qty", TOKEN_GROUPED, GROUPED_QUANTITY},
    {"quad", TOKEN_SPACE, 0},
    {"rVert", TOKEN_CLOSE_BAR, 0},
    {"rangle", TOKEN_CLOSE_ANGLE, 0},
    {"rbrace", TOKEN_CLOSE_SET, 0},
    {"rbrack", TOKEN_CLOSE_SQUARE, 0},
    {"rceil", TOKEN_CLOSE_CEILING, 0},
    {"reals", TOKEN_NUMBER_SET, 'R'},
    {"relax", TOKEN_NOTHING, 0},
    {"rfloor", TOKEN_CLOSE_FLOOR, 0},
    {"rho", TOKEN_GREEK, 16},
    {"right", TOKEN_SIZE, 0},
    {"rightarrow", TOKEN_RELATION, MATH_APPROACHES},
    {"rm", TOKEN_NOTHING, 0},
    {"rparen", TOKEN_CLOSE_PAREN, 0},
    {"rvert", TOKEN_CLOSE_BAR, 0},
    {"scriptscriptstyle", TOKEN_NOTHING, 0},
    {"scriptsize", TOKEN_NOTHING, 0},
    {"scriptstyle", TOKEN_NOTHING, 0},
    {"setminus", TOKEN_DIFFERENCE, 0},
    {"sf", TOKEN_NOTHING, 0},
    {"sfrac", TOKEN_FRACTION, 0},
    {"sigma", TOKEN_GREEK, 18},
    {"small", TOKEN_NOTHING, 0},
    {"smallsetminus", TOKEN_DIFFERENCE, 0},
    {"strut", TOKEN_NOTHING, 0},
    {"sum", TOKEN_OPERATOR, 0},
    {"sup", TOKEN_HEAD, 6},
    {"tau", TOKEN_GREEK, 19},
    {"tbinom", TOKEN_BINOMIAL, 0},
    {"textcolor", TOKEN_GROUPED, GROUPED_COLOUR},
    {"textdollar", TOKEN_MONEY, 0},
    {"texteuro", TOKEN_MONEY, 1},
    {"textsterling", TOKEN_MONEY, 2},
    {"textstyle", TOKEN_NOTHING, 0},
    {"tfrac", TOKEN_FRACTION, 0},
    {"tg", TOKEN_FUNCTION, MATH_TAN},
    {"therefore", TOKEN_THEREFORE, 0},
    {"theta", TOKEN_GREEK, 8},
    {"thickspace", TOKEN_SPACE, 0},
    {"thinspace", TOKEN_SPACE, 0},
    {"tilde", TOKEN_ACCENT, 2},
    {"times", TOKEN_TIMES, 0},
    {"tiny", TOKEN_NOTHING, 0},
    {"to", TOKEN_RELATION, MATH_APPROACHES},
    {"triangle", TOKEN_HEAD, 1},
    {"tt", TOKEN_NOTHING, 0},
    {"underline", TOKEN_NOTHING, 0},
    {"upsilon", TOKEN_GREEK, 20},
    {"varepsilon", TOKEN_GREEK, 5},
    {"varnothing", TOKEN_EMPTY_SET, 0},
    {"varphi", TOKEN_GREEK, 22},
    {"varrho", TOKEN_GREEK, 17},
    {"vartheta", TOKEN_GREEK, 9},
    {"vec", TOKEN_ACCENT, 0},
    {"vee", TOKEN_OR, 0},
    {"vert", TOKEN_BAR, 0},
    {"wedge", TOKEN_AND, 0},
    {"widehat", TOKEN_ACCENT, 4},
    {"xi", TOKEN_GREEK, 15},
    {"yen", TOKEN_MONEY, 3},
    {"zeta", TOKEN_GREEK, 6},
};

/* Only without. */
static const struct word words[] = {
    {"Infinity", TOKEN_CONSTANT, MATH_INFINITY},
    {"acos", TOKEN_FUNCTION, MATH_ACOS},
    {"and", TOKEN_AND, 0},
    {"asin", TOKEN_FUNCTION, MATH_ASIN},
    {"atan", TOKEN_FUNCTION, MATH_ATAN},
    {"cbrt", TOKEN_NTH_ROOT, 3},
    {"inf", TOKEN_CONSTANT, MATH_INFINITY},
    {"infinity", TOKEN_CONSTANT, MATH_INFINITY},
    {"oo", TOKEN_CONSTANT, MATH_INFINITY},
    {"or", TOKEN_OR, 0},
};

/* The closed list beyond ASCII, in the order of their bytes. */
static const struct word signs[] = {
    {"\u00a3", TOKEN_MONEY, 2},
    {"\u00a5", TOKEN_MONEY, 3},
    {"\u00b0", TOKEN_DEGREE, 0},
    {"\u00b1", TOKEN_PLUS_MINUS, 0},
    {"\u00b7", TOKEN_TIMES, 0},
    {"\u00ba", TOKEN_DEGREE, 0},
    {"\u00bc", TOKEN_VULGAR, 1 * 16 + 4},
    {"\u00bd", TOKEN_VULGAR, 1 * 16 + 2},
    {"\u00be", TOKEN_VULGAR, 3 * 16 + 4},
    {"\u00d7", TOKEN_TIMES, 0},
    {"\u00f7", TOKEN_SLASH, 0},
    {"\u0393", TOKEN_GREEK, 26},
    {"\u0394", TOKEN_GREEK, 27},
    {"\u0398", TOKEN_GREEK, 28},
    {"\u039b", TOKEN_GREEK, 29},
    {"\u03a3", TOKEN_GREEK, 32},
    {"\u03a6", TOKEN_GREEK, 34},
    {"\u03a8", TOKEN_GREEK, 35},
    {"\u03a9", TOKEN_GREEK, 36},
    {"\u03b1", TOKEN_GREEK, 0},
    {"\u03b2", TOKEN_GREEK, 1},
    {"\u03b3", TOKEN_GREEK, 2},
    {"\u03b4", TOKEN_GREEK, 3},
    {"\u03b5", TOKEN_GREEK, 5},
    {"\u03b6", TOKEN_GREEK, 6},
    {"\u03b7", TOKEN_GREEK, 7},
    {"\u03b8", TOKEN_GREEK, 8},
    {"\u03ba", TOKEN_GREEK, 11},
    {"\u03bb", TOKEN_GREEK, 12},
    {"\u03bc", TOKEN_GREEK, 13},
    {"\u03bd", TOKEN_GREEK, 14},
    {"\u03be", TOKEN_GREEK, 15},
    {"\u03c0", TOKEN_CONSTANT, MATH_PI},
    {"\u03c1", TOKEN_GREEK, 16},
    {"\u03c3", TOKEN_GREEK, 18},
    {"\u03c4", TOKEN_GREEK, 19},
    {"\u03c6", TOKEN_GREEK, 22},
    {"\u03c7", TOKEN_GREEK, 23},
    {"\u03c8", TOKEN_GREEK, 24},
    {"\u03c9", TOKEN_GREEK, 25},
    {"\u03d5", TOKEN_GREEK, 21},
    {"\u2032", TOKEN_PRIME, 0},
    {"\u20ac", TOKEN_MONEY, 1},
    {"\u2102", TOKEN_NUMBER_SET, 'C'},
    {"\u2115", TOKEN_NUMBER_SET, 'N'},
    {"\u211a", TOKEN_NUMBER_SET, 'Q'},
    {"\u211d", TOKEN_NUMBER_SET, 'R'},
    {"\u2124", TOKEN_NUMBER_SET, 'Z'},
    {"\u2150", TOKEN_VULGAR, 1 * 16 + 7},
    {"\u2151", TOKEN_VULGAR, 1 * 16 + 9},
    {"\u2153", TOKEN_VULGAR, 1 * 16 + 3},
    {"\u2154", TOKEN_VULGAR, 2 * 16 + 3},
    {"\u2155", TOKEN_VULGAR, 1 * 16 + 5},
    {"\u2156", TOKEN_VULGAR, 2 * 16 + 5},
    {"\u2157", TOKEN_VULGAR, 3 * 16 + 5},
    {"\u2158", TOKEN_VULGAR, 4 * 16 + 5},
    {"\u2159", TOKEN_VULGAR, 1 * 16 + 6},
    {"\u215a", TOKEN_VULGAR, 5 * 16 + 6},
    {"\u215b", TOKEN_VULGAR, 1 * 16 + 8},
    {"\u215c", TOKEN_VULGAR, 3 * 16 + 8},
    {"\u215d", TOKEN_VULGAR, 5 * 16 + 8},
    {"\u215e", TOKEN_VULGAR, 7 * 16 + 8},
    {"\u2192", TOKEN_RELATION, MATH_APPROACHES},
    {"\u21a6", TOKEN_MAPS_TO, 0},
    {"\u21d2", TOKEN_THEREFORE, 0},
    {"\u2200", TOKEN_FOR_ALL, 0},
    {"\u2205", TOKEN_EMPTY_SET, 0},
    {"\u2208", TOKEN_RELATION, MATH_IN},
    {"\u2209", TOKEN_RELATION, MATH_NOT_IN},
    {"\u220f", TOKEN_OPERATOR, 1},
    {"\u2211", TOKEN_OPERATOR, 0},
    {"\u2212", TOKEN_MINUS, 0},
    {"\u2213", TOKEN_MINUS_PLUS, 0},
    {"\u2215", TOKEN_SLASH, 0},
    {"\u2216", TOKEN_DIFFERENCE, 0},
    {"\u2219", TOKEN_TIMES, 0},
    {"\u221a", TOKEN_ROOT, 0},
    {"\u221b", TOKEN_NTH_ROOT, 3},
    {"\u221c", TOKEN_NTH_ROOT, 4},
    {"\u221e", TOKEN_CONSTANT, MATH_INFINITY},
    {"\u2220", TOKEN_HEAD, 0},
    {"\u2223", TOKEN_BAR, 0},
    {"\u2228", TOKEN_OR, 0},
    {"\u2229", TOKEN_INTERSECTION, 0},
    {"\u222a", TOKEN_UNION, 0},
    {"\u222b", TOKEN_OPERATOR, 2},
    {"\u2234", TOKEN_THEREFORE, 0},
    {"\u2236", TOKEN_COLON, 0},
    {"\u2248", TOKEN_RELATION, MATH_APPROXIMATELY},
    {"\u2260", TOKEN_RELATION, MATH_NOT_EQUAL},
    {"\u2261", TOKEN_RELATION, MATH_CONGRUENT},
    {"\u2264", TOKEN_RELATION, MATH_LESS_EQUAL},
    {"\u2265", TOKEN_RELATION, MATH_GREATER_EQUAL},
    {"\u22c5", TOKEN_TIMES, 0},
    {"\u2308", TOKEN_OPEN_CEILING, 0},
    {"\u2309", TOKEN_CLOSE_CEILING, 0},
    {"\u230a", TOKEN_OPEN_FLOOR, 0},
    {"\u230b", TOKEN_CLOSE_FLOOR, 0},
    {"\u25b3", TOKEN_HEAD, 1},
    {"\u27e8", TOKEN_OPEN_ANGLE, 0},
    {"\u27e9", TOKEN_CLOSE_ANGLE, 0},
    {"\u2a7d", TOKEN_RELATION, MATH_LESS_EQUAL},
    {"\u2a7e", TOKEN_RELATION, MATH_GREATER_EQUAL},
    {"\u3001", TOKEN_SEMICOLON, 0},
    {"\u4e0e", TOKEN_AND, 0},
    {"\u4e14", TOKEN_AND, 0},
    {"\u548c", TOKEN_AND, 0},
    {"\u6216", TOKEN_OR, 0},
};

/* Small digits and signs: x² is x^{2}, x₁ is x_{1}. */
static const struct {
    struct word sign;
    bool above;
} scripts[] = {
    {{"\u2070", TOKEN_DIGIT, 0}, true},  {{"\u00b9", TOKEN_DIGIT, 1}, true},    {{"\u00b2", TOKEN_DIGIT, 2}, true},
    {{"\u00b3", TOKEN_DIGIT, 3}, true},  {{"\u2074", TOKEN_DIGIT, 4}, true},    {{"\u2075", TOKEN_DIGIT, 5}, true},
    {{"\u2076", TOKEN_DIGIT, 6}, true},  {{"\u2077", TOKEN_DIGIT, 7}, true},    {{"\u2078", TOKEN_DIGIT, 8}, true},
    {{"\u2079", TOKEN_DIGIT, 9}, true},  {{"\u2080", TOKEN_DIGIT, 0}, false},   {{"\u2081", TOKEN_DIGIT, 1}, false},
    {{"\u2082", TOKEN_DIGIT, 2}, false}, {{"\u2083", TOKEN_DIGIT, 3}, false},   {{"\u2084", TOKEN_DIGIT, 4}, false},
    {{"\u2085", TOKEN_DIGIT, 5}, false}, {{"\u2086", TOKEN_DIGIT, 6}, false},   {{"\u2087", TOKEN_DIGIT, 7}, false},
    {{"\u2088", TOKEN_DIGIT, 8}, false}, {{"\u2089", TOKEN_DIGIT, 9}, false},   {{"\u207a", TOKEN_PLUS, 0}, true},
    {{"\u207b", TOKEN_MINUS, 0}, true},  {{"\u207f", TOKEN_LETTER, 'n'}, true}, {{"\u2071", TOKEN_LETTER, 'i'}, true},
    {{"\u208a", TOKEN_PLUS, 0}, false},  {{"\u208b", TOKEN_MINUS, 0}, false},   {{"\u2099", TOKEN_LETTER, 'n'}, false},
};

static int compare_names(struct text name, const char *with)
{
    size_t length_bytes = strlen(with);
    size_t common = name.length_bytes < length_bytes ? name.length_bytes : length_bytes;
    int order = memcmp(name.data, with, common);

    if (order != 0)
        return order;
    return name.length_bytes < length_bytes ? -1 : name.length_bytes > length_bytes;
}

static const struct word *find(const struct word *table, size_t count, struct text name)
{
    size_t low = 0;

    while (low < count) {
        size_t middle = low + (count - low) / 2;
        int order = compare_names(name, table[middle].name);
        if (order == 0)
            return &table[middle];
        if (order < 0)
            count = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

const struct word *math_find_command(struct text name)
{
    const struct word *command = find(commands, ARRAY_LENGTH(commands), name);

    return command ? command : find(names, ARRAY_LENGTH(names), name);
}

const struct word *math_find_word(struct text name)
{
    const struct word *word = find(names, ARRAY_LENGTH(names), name);

    return word ? word : find(words, ARRAY_LENGTH(words), name);
}

static size_t sign_length(struct text text)
{
    unsigned char first = (unsigned char)text.data[0];
    size_t length = first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;

    return length <= text.length_bytes ? length : text.length_bytes;
}

const struct word *math_find_sign(struct text text, size_t *ret_length)
{
    *ret_length = sign_length(text);
    return find(signs, ARRAY_LENGTH(signs), (struct text){text.data, *ret_length});
}

const struct word *math_find_script(struct text text, size_t *ret_length, bool *ret_above)
{
    struct text sign = {text.data, sign_length(text)};

    *ret_length = sign.length_bytes;
    for (size_t i = 0; i < ARRAY_LENGTH(scripts); i++) {
        *ret_above = scripts[i].above;
        if (text_equals(sign, scripts[i].sign.name))
            return &scripts[i].sign;
    }
    return NULL;
}

size_t math_raised_digit(struct text text)
{
    size_t length;
    bool above;
    const struct word *sign = text.length_bytes ? math_find_script(text, &length, &above) : NULL;

    return sign && above && sign->kind == TOKEN_DIGIT ? length : 0;
}

bool math_is_listed(const char *const *list, size_t count, struct text word)
{
    for (size_t i = 0; i < count; i++)
        if (text_equals(word, list[i]))
            return true;
    return false;
}

struct text math_lowered(struct text word, char lower[MATH_WORD_BYTES])
{
    if (word.length_bytes > MATH_WORD_BYTES)
        return TEXT_LITERAL("");
    for (size_t i = 0; i < word.length_bytes; i++)
        lower[i] = (char)tolower((unsigned char)word.data[i]);
    return (struct text){lower, word.length_bytes};
}

bool math_is_escaped_space(const char *at)
{
    return at[0] == '\\' && at[1] && strchr(",;: ", at[1]);
}

struct text math_trimmed(struct text text, const char *others)
{
    for (size_t step = 1; text.length_bytes && step;) {
        bool escaped = text.length_bytes > 1 && math_is_escaped_space(text.data);
        step = escaped ? 2 : math_is_space(text.data[0]) || strchr(others, text.data[0]);
        text.data += step;
        text.length_bytes -= step;
    }
    for (size_t step = 1; text.length_bytes && step;) {
        const char *last = text.data + text.length_bytes - 1;
        bool escaped = text.length_bytes > 1 && math_is_escaped_space(last - 1);
        step = escaped ? 2 : math_is_space(*last) || strchr(others, *last);
        text.length_bytes -= step;
    }
    return text;
}
