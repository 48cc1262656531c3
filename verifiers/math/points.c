#include "verifiers/math/points.h"

#include "verifiers/math/ball.h"
#include "verifiers/math/breaks.h"
#include "verifiers/math/exact.h"
#include "verifiers/math/rational.h"

#define NAMES_MAX 8
#define DRAWS_MAX 32
#define AGREEING 10 /* enough points */
#define AGREEING_MIN 4
#define EXACT_POINTS 3
#define LANDMARKS 8
#define BEYOND_BITS 512
#define NARROW_BITS 16 /* of what two balls have in common, beside their size */
#define TINY_BITS 128  /* or without regard to it */

struct draw {
    struct math_decider *decider;
    const struct math_node *left, *right;
    struct text names[NAMES_MAX];
    size_t name_count;
    bool integer[NAMES_MAX];   /* the name stands for a positive integer */
    bool complex;              /* i occurs */
    bool pieces;               /* different formulas for different ranges: absolute values, rounding, choices */
    fmpq landmarks[LANDMARKS]; /* numbers in the trees */
    size_t landmark_count;
    struct math_breaks breaks; /* between them, of each name */
    fmpz_t beyond;             /* above what can be made of the numbers in the trees: their product */
    uint64_t state;
};

static inline void draw_clear(struct draw *draw)
{
    fmpz_clear(draw->beyond);
    math_breaks_clear(&draw->breaks);
    for (size_t i = 0; i < draw->landmark_count; i++)
        fmpq_clear(&draw->landmarks[i]);
}

/* --- looking through the trees --- */

static bool note_name(struct draw *draw, struct text name)
{
    for (size_t i = 0; i < draw->name_count; i++)
        if (text_same(draw->names[i], name))
            return true;
    if (draw->name_count == NAMES_MAX)
        return false;
    draw->names[draw->name_count++] = name;
    return true;
}

static bool is_power_of_negative(const struct math_node *node)
{
    return node->kind == MATH_POWER && math_has_names(node->children[1]) && !math_has_names(node->children[0]) &&
           math_has_kind(node->children[0], MATH_NEGATE);
}

/* Names in factorials, binomials and exponents of negative numbers. */
static void mark_integers(struct draw *draw, const struct math_node *node, bool inside)
{
    inside = inside || node->kind == MATH_FACTORIAL || node->kind == MATH_BINOMIAL || is_power_of_negative(node);
    for (size_t i = 0; i < draw->name_count && inside && node->kind == MATH_NAME; i++)
        draw->integer[i] = draw->integer[i] || text_same(draw->names[i], node->text);
    for (size_t i = 0; i < node->count; i++)
        mark_integers(draw, node->children[i], inside);
}

static bool has_pieces(const struct math_node *node)
{
    if (node->kind == MATH_FUNCTION)
        return node->function >= MATH_GCD && node->function <= MATH_SIGN;
    return node->kind == MATH_ABSOLUTE || node->kind == MATH_FLOOR || node->kind == MATH_CEILING ||
           node->kind == MATH_ROOT || node->kind == MATH_POWER;
}

static uint64_t mix(uint64_t value)
{
    value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
    return value ^ (value >> 31);
}

/* Each node adds to the state, in whatever order, so that left and right can be exchanged. */
static void stir(struct draw *draw, const struct math_node *node)
{
    uint64_t hash = mix((uint64_t)node->kind * 64 + node->count);

    for (size_t i = 0; i < node->text.length_bytes; i++)
        hash = mix(hash + (unsigned char)node->text.data[i]);
    if (node->kind == MATH_NUMBER)
        hash = mix(hash + fmpz_fdiv_ui(fmpq_numref(node->value), UWORD(2305843009213693951)));
    draw->state += hash;
}

static void note_landmark(struct draw *draw, const fmpq_t value)
{
    MATH_LOCAL_FMPZ(size);

    fmpz_abs(size, fmpq_numref(value));
    fmpz_add(size, size, fmpq_denref(value));
    if (fmpz_bits(size) + fmpz_bits(draw->beyond) > BEYOND_BITS)
        return;
    fmpz_mul(draw->beyond, draw->beyond, size);
    if (draw->landmark_count == LANDMARKS)
        return;
    fmpq_init(&draw->landmarks[draw->landmark_count]);
    fmpq_set(&draw->landmarks[draw->landmark_count++], value);
}

/* A part without names is a landmark, if it is rational. */
static bool look(struct draw *draw, const struct math_node *node)
{
    MATH_LOCAL_FMPQ(value);

    if (!math_spend(draw->decider, 20))
        return false;
    stir(draw, node);
    draw->pieces = draw->pieces || has_pieces(node);
    draw->complex = draw->complex || (node->kind == MATH_CONSTANT && node->constant == MATH_I);
    if (node->kind == MATH_NAME && !note_name(draw, node->text))
        return false;
    bool landmark = !math_has_names(node) && math_rational(draw->decider, node, value) == MATH_VALUE;
    if (landmark)
        note_landmark(draw, value);
    for (size_t i = 0; i < node->count && !landmark; i++)
        if (!look(draw, node->children[i]))
            return false;
    return true;
}

/* --- drawing --- */

static slong below(struct draw *draw, slong limit)
{
    draw->state += UINT64_C(0x9e3779b97f4a7c15);
    return (slong)(mix(draw->state) % (uint64_t)limit);
}

/* numerator / denominator within ranges: above 1 small, below 1, negative, large, … */
static const struct range {
    slong from, to, denominator;
    int sign;
} ranges[] = {
    {8, 24, 7, 1},  {2, 9, 1, 1},  {1, 6, 7, 1},   {8, 40, 7, -1},   {1, 6, 7, -1},
    {30, 90, 4, 1}, {2, 9, 1, -1}, {1, 9, 100, 1}, {200, 900, 3, 1}, {200, 900, 3, -1},
};

static void draw_rational(struct draw *draw, size_t attempt, size_t name, fmpq_t ret_value)
{
    /* The first points: all names alike; then each name its own range. */
    size_t index = attempt < 4 ? attempt : attempt + name * (1 + attempt / ARRAY_LENGTH(ranges));
    const struct range *range = &ranges[index % ARRAY_LENGTH(ranges)];
    slong numerator = range->from + below(draw, range->to - range->from + 1);
    slong denominator = range->denominator == 1 ? 1 : 2 + below(draw, range->denominator);

    if (range->denominator == 7 && range->to < 7)
        denominator = range->to + 1 + below(draw, 4); /* below 1 */
    fmpq_set_si(ret_value, range->sign * numerator, (ulong)denominator);
}

static void draw_integer(struct draw *draw, size_t attempt, size_t name, fmpq_t ret_value)
{
    slong value = (slong)attempt / 2 + 1 + below(draw, 3 + 2 * (slong)name + (slong)attempt);

    if (draw->name_count == 1)
        value = (slong)attempt + 1 + (attempt > 8 ? below(draw, 20) : 0);
    if (attempt % 10 >= 8) /* beyond the zeros of (n - 1)(n - 2)… */
        value += attempt % 10 == 8 ? 20 + below(draw, 20) : 60 + below(draw, 60);
    fmpq_set_si(ret_value, value, 1);
}

/* For formulas in pieces: far out on both sides, close to 0 on both sides, and on both sides of each number. */
static void draw_extreme(struct draw *draw, size_t index, fmpq_t ret_value)
{
    MATH_LOCAL_FMPQ(shift);

    if (index < 4) {
        fmpq_set_fmpz(ret_value, draw->beyond);
        fmpq_mul_si(ret_value, ret_value, 2 + below(draw, 5));
        fmpq_add_si(ret_value, ret_value, 3);
        if (index >= 2)
            fmpq_inv(ret_value, ret_value);
    } else {
        fmpq_set_si(shift, 1, 3 + (ulong)below(draw, 5));
        fmpq_add(ret_value, &draw->landmarks[(index - 4) / 2], shift);
    }
    if (index % 2)
        fmpq_neg(ret_value, ret_value);
}

static bool has_integers(const struct draw *draw)
{
    for (size_t i = 0; i < draw->name_count; i++)
        if (draw->integer[i])
            return true;
    return false;
}

static size_t count_extremes(const struct draw *draw)
{
    return draw->pieces ? 4 + 2 * draw->landmark_count : 0;
}

/* The breaks of one name in order; their number. */
static size_t sort_breaks(const struct draw *draw, struct text name, const fmpq *sorted[MATH_BREAKS])
{
    size_t count = 0;

    for (size_t i = 0; i < draw->breaks.count; i++) {
        if (!text_same(draw->breaks.name[i], name))
            continue;
        size_t at = count++;
        for (; at && fmpq_cmp(&draw->breaks.at[i], sorted[at - 1]) < 0; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = &draw->breaks.at[i];
    }
    return count;
}

/* Somewhere in each interval between two breaks of the name, in turn; of several names, in changing company. */
static void draw_between(struct draw *draw, size_t index, size_t name, fmpq_t ret_value)
{
    const fmpq *sorted[MATH_BREAKS];
    size_t count = sort_breaks(draw, draw->names[name], sorted);
    size_t interval = (index + name * (index / (draw->breaks.count + 1))) % (count + 1);
    MATH_LOCAL_FMPQ(share);

    if (!count) {
        draw_rational(draw, index, name, ret_value);
        return;
    }
    fmpq_set_si(share, 2 + below(draw, 5), 8);
    if (interval == 0) {
        fmpq_sub(ret_value, sorted[0], share);
    } else if (interval == count) {
        fmpq_add(ret_value, sorted[count - 1], share);
    } else {
        fmpq_sub(ret_value, sorted[interval], sorted[interval - 1]);
        fmpq_mul(ret_value, ret_value, share);
        fmpq_add(ret_value, ret_value, sorted[interval - 1]);
    }
}

static size_t count_between(const struct draw *draw)
{
    return draw->breaks.count ? 3 * (draw->breaks.count + 1) : 0;
}

/* So that no sine or rounding of a multiple is 0 at all points: their denominators would have to divide it. */
static void draw_odd(struct draw *draw, fmpq_t value)
{
    MATH_LOCAL_FMPQ(shift);

    fmpq_set_si(shift, 1, (UWORD(1) << 30) + 2 * (ulong)below(draw, 1 << 29) + 1);
    fmpq_add(value, value, shift);
}

/* The extremes come last, so that the first points are small. */
static void draw_point(struct draw *draw, size_t attempt, fmpq *values)
{
    size_t extremes = count_extremes(draw);

    for (size_t i = 0; i < draw->name_count; i++) {
        if (draw->integer[i])
            draw_integer(draw, attempt, i, &values[i]);
        else if (attempt >= DRAWS_MAX + extremes)
            draw_between(draw, attempt - DRAWS_MAX - extremes, i, &values[i]);
        else if (attempt >= DRAWS_MAX)
            draw_extreme(draw, attempt - DRAWS_MAX, &values[i]);
        else
            draw_rational(draw, attempt, i, &values[i]);
        if (attempt % 10 >= 7 && attempt < DRAWS_MAX && !draw->integer[i])
            draw_odd(draw, &values[i]);
    }
}

/* --- deciding --- */

struct point {
    fmpq values[NAMES_MAX];
    struct math_binding bindings[NAMES_MAX];
};

static void point_init(struct point *point)
{
    for (size_t i = 0; i < NAMES_MAX; i++)
        fmpq_init(&point->values[i]);
}

static void point_clear(struct point *point)
{
    for (size_t i = 0; i < NAMES_MAX; i++)
        fmpq_clear(&point->values[i]);
}

static void bind(struct draw *draw, struct point *point, size_t attempt)
{
    uint64_t state = draw->state;

    draw->state += attempt * UINT64_C(0x632be59bd9b4e019);
    draw_point(draw, attempt, point->values);
    draw->state = state;
    draw->decider->bindings = NULL;
    for (size_t i = 0; i < draw->name_count; i++) {
        point->bindings[i] = (struct math_binding){draw->names[i], &point->values[i], draw->decider->bindings};
        draw->decider->bindings = &point->bindings[i];
    }
}

/* A ball of the whole plane overlaps with everything. */
static bool is_narrow(const acb_t one, const acb_t other)
{
    MATH_LOCAL_ACB(difference);
    mag_t distance;
    mag_t size;

    mag_init(distance);
    mag_init(size);
    acb_sub(difference, one, other, MAG_BITS);
    acb_get_mag(distance, difference);
    acb_get_mag(size, one);
    mag_mul_2exp_si(size, size, -NARROW_BITS);
    bool narrow = mag_cmp(distance, size) <= 0 || mag_cmp_2exp_si(distance, -TINY_BITS) < 0;
    mag_clear(size);
    mag_clear(distance);
    return narrow;
}

/* MATH_EQUAL: narrow balls overlap. */
static enum math_decision compare_at(struct draw *draw, slong bits)
{
    MATH_LOCAL_ACB(one);
    MATH_LOCAL_ACB(other);

    if (math_ball(draw->decider, draw->left, bits, one) || math_ball(draw->decider, draw->right, bits, other))
        return MATH_UNDEFINED;
    if (!acb_overlaps(one, other))
        return MATH_DIFFERENT;
    return is_narrow(one, other) ? MATH_EQUAL : MATH_UNDECIDED;
}

/* MATH_EQUAL: the balls overlap. MATH_DIFFERENT: apart. Else the point does not count. */
static enum math_decision try_point(struct draw *draw, size_t attempt)
{
    static const slong precisions[] = {64, 256, 1024};
    size_t first = attempt >= 8 && has_integers(draw) ? 2 : 0; /* n! hides much */
    _cleanup_(point_clear) struct point point;
    enum math_decision decision = MATH_UNDECIDED;

    point_init(&point);
    bind(draw, &point, attempt);
    draw->decider->real_only = !draw->complex;
    for (size_t i = first; i < ARRAY_LENGTH(precisions) && decision == MATH_UNDECIDED; i++)
        decision = compare_at(draw, precisions[i]);
    draw->decider->real_only = false;
    draw->decider->bindings = NULL;
    return decision;
}

static enum math_decision decide_exactly(struct draw *draw, size_t attempt)
{
    _cleanup_(point_clear) struct point point;

    point_init(&point);
    bind(draw, &point, attempt);
    enum math_decision decision = math_decide_overlapping(draw->decider, draw->left, draw->right);
    draw->decider->bindings = NULL;
    return decision;
}

/* The first points are the small ones. */
static enum math_decision confirm(struct draw *draw, const size_t *attempts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        enum math_decision decision = decide_exactly(draw, attempts[i]);
        if (decision != MATH_EQUAL)
            return decision == MATH_UNDEFINED ? MATH_UNDECIDED : decision;
    }
    draw->decider->method = "points";
    return MATH_EQUAL;
}

/* Points from `from` on, until enough agree. False: one is apart. */
static bool agree(struct draw *draw, size_t from, size_t to, size_t needed, size_t *attempts, size_t *ret_count)
{
    *ret_count = 0;
    for (size_t attempt = from; attempt < to && *ret_count < needed; attempt++) {
        enum math_decision decision = try_point(draw, attempt);
        if (decision == MATH_DIFFERENT)
            return false;
        if (decision == MATH_EQUAL && *ret_count < AGREEING)
            attempts[*ret_count] = attempt;
        *ret_count += decision == MATH_EQUAL;
    }
    return true;
}

/* A positive integer is on the same side of everything below 1; beyond that it is not looked for. */
static bool find_breaks(struct draw *draw)
{
    if (!math_find_breaks(draw->decider, draw->left, &draw->breaks) ||
        !math_find_breaks(draw->decider, draw->right, &draw->breaks))
        return false;
    for (size_t i = 0; i < draw->breaks.count; i++)
        for (size_t k = 0; k < draw->name_count; k++)
            if (draw->integer[k] && text_same(draw->names[k], draw->breaks.name[i]) &&
                fmpq_cmp_si(&draw->breaks.at[i], 1) >= 0)
                return false;
    return true;
}

static enum math_decision decide(struct draw *draw, bool proven)
{
    size_t agreeing[AGREEING];
    size_t more[AGREEING];
    size_t count;
    size_t between;
    size_t extremes = count_extremes(draw);

    draw->decider->method = "points";
    if (!agree(draw, 0, DRAWS_MAX, proven ? 1 : AGREEING, agreeing, &count))
        return MATH_DIFFERENT;
    if (proven) {
        draw->decider->method = "rational function";
        return count ? MATH_EQUAL : MATH_UNDECIDED;
    }
    if (count < AGREEING_MIN)
        return draw->decider->exhausted ? MATH_LIMIT : MATH_UNDECIDED;
    if (!agree(draw, DRAWS_MAX, DRAWS_MAX + extremes, extremes, more, &(size_t){0}))
        return MATH_DIFFERENT;
    if (!find_breaks(draw))
        return draw->decider->exhausted ? MATH_LIMIT : MATH_UNDECIDED;
    between = count_between(draw);
    if (!agree(draw, DRAWS_MAX + extremes, DRAWS_MAX + extremes + between, between, more, &(size_t){0}))
        return MATH_DIFFERENT;
    return confirm(draw, agreeing, EXACT_POINTS);
}

/* Looks at the names of both sides, for the draws. False: too many names, or no work is left. */
static bool look_at_both(struct draw *draw)
{
    fmpz_one(draw->beyond);
    if (!look(draw, draw->left) || !look(draw, draw->right))
        return false;
    mark_integers(draw, draw->left, false);
    mark_integers(draw, draw->right, false);
    return true;
}

enum math_decision math_decide_at_points(struct math_decider *decider, const struct math_node *left,
                                         const struct math_node *right, bool proven)
{
    _cleanup_(draw_clear) struct draw draw = {.decider = decider, .left = left, .right = right};

    if (!look_at_both(&draw))
        return MATH_UNDECIDED;
    return decide(&draw, proven);
}

/* --- quotients --- */

/* MATH_VALUE: the quotient at the point. */
static enum math_outcome quotient_at(struct draw *draw, size_t attempt, acb_t ret_quotient)
{
    _cleanup_(point_clear) struct point point;
    MATH_LOCAL_ACB(denominator);

    point_init(&point);
    bind(draw, &point, attempt);
    draw->decider->real_only = !draw->complex;
    enum math_outcome outcome = math_ball(draw->decider, draw->left, 64, ret_quotient);
    if (!outcome)
        outcome = math_ball(draw->decider, draw->right, 64, denominator);
    draw->decider->real_only = false;
    draw->decider->bindings = NULL;
    if (outcome || acb_contains_zero(denominator) || acb_contains_zero(ret_quotient))
        return MATH_OTHERWISE;
    acb_div(ret_quotient, ret_quotient, denominator, 64);
    return MATH_VALUE;
}

static int sign_of(const acb_t value)
{
    if (!acb_is_real(value))
        return 0;
    return arb_is_positive(acb_realref(value)) ? 1 : arb_is_negative(acb_realref(value)) ? -1 : 0;
}

static enum math_decision compare_quotients(struct draw *draw, int *ret_sign)
{
    MATH_LOCAL_ACB(first);
    MATH_LOCAL_ACB(other);
    size_t count = 0;
    bool apart = false, same_sign = true;

    for (size_t attempt = 0; attempt < DRAWS_MAX && count < AGREEING; attempt++) {
        if (quotient_at(draw, attempt, count ? other : first))
            continue;
        apart = apart || (count && !acb_overlaps(first, other));
        same_sign = same_sign && (!count || sign_of(first) == sign_of(other));
        count++;
    }
    *ret_sign = count >= AGREEING_MIN && same_sign ? sign_of(first) : 0;
    return apart ? MATH_DIFFERENT : MATH_UNDECIDED;
}

enum math_decision math_quotient_at_points(struct math_decider *decider, const struct math_node *left,
                                           const struct math_node *right, int *ret_sign)
{
    _cleanup_(draw_clear) struct draw draw = {.decider = decider, .left = left, .right = right};

    *ret_sign = 0;
    if (!look_at_both(&draw))
        return MATH_UNDECIDED;
    return compare_quotients(&draw, ret_sign);
}
