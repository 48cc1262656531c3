/* The loops of kernels_private.h for one width, included by kernels_*.c. LANES_BYTES: bytes of a vector; KERNELS: name of the
 * table; LANES_TARGET: the instruction set, if it is not the compiler's own. */
#include "server/objective/kernels_private.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif
#include <math.h>
#include <string.h>

#define LANES_PRAGMA_OF(text) _Pragma(#text)
#define LANES_PRAGMA(text) LANES_PRAGMA_OF(text)
#if defined(LANES_TARGET) && defined(__clang__)
LANES_PRAGMA(clang attribute push(__attribute__((target(LANES_TARGET))), apply_to = function))
#elif defined(LANES_TARGET)
LANES_PRAGMA(GCC push_options)
LANES_PRAGMA(GCC target(LANES_TARGET))
#endif

#include "server/objective/lanes_exp_private.h"

/* Vectors of a step of OBJECTIVE_LANES tokens, one after the other. */
#define PARTS (OBJECTIVE_LANES / LANES_WIDTH)
#if defined(__clang__)
#define EACH_PART _Pragma("clang loop unroll(full)") for (int part = 0; part < PARTS; part++)
#else
#define EACH_PART _Pragma("GCC unroll 8") for (int part = 0; part < PARTS; part++)
#endif

/* One running vector for each part. */
struct running {
    lanes part[PARTS];
};

LANES_INLINE struct running running_zero(void)
{
    return (struct running){0};
}

LANES_INLINE void running_add_to(const struct running *running, double *sum)
{
    EACH_PART
    {
        double *place = sum + part * LANES_WIDTH;
        lanes_write(place, lanes_read(place) + running->part[part]);
    }
}

/* Neither infinite nor no number, in any lane: an input that is one of them stays visible in a sum over it. */
LANES_INLINE bool running_is_finite(const struct running *running)
{
    lanes none = {0};

    EACH_PART none += running->part[part] * 0;
    for (int lane = 0; lane < LANES_WIDTH; lane++)
        if (none[lane] != 0)
            return false;
    return true;
}

LANES_INLINE double running_most(const struct running *running) /* at least 0 */
{
    lanes largest = {0};
    double most = 0;

    EACH_PART largest = lanes_more(largest, running->part[part]);
    for (int lane = 0; lane < LANES_WIDTH; lane++)
        most = largest[lane] > most ? largest[lane] : most;
    return most;
}

LANES_INLINE size_t padded(size_t n)
{
    return (n + OBJECTIVE_LANES - 1) / OBJECTIVE_LANES * OBJECTIVE_LANES;
}

LANES_INLINE void pad(size_t n, double *values)
{
    for (size_t k = n; k < padded(n); k++)
        values[k] = 0;
}

/* Prefetches the memory of the next block: a block is too short for the processor to do it by itself. Harmless beyond
 * the end of an array. */
#define AHEAD_BYTES(type) (256 * sizeof(type))
LANES_INLINE void fetch_ahead(const void *place, size_t ahead_bytes)
{
    __builtin_prefetch((const void *)((uintptr_t)place + ahead_bytes));
}

/* --- inputs --- */

LANES_INLINE void subtract_step(const double *from, const double *what, double *ret_difference, struct running *seen)
{
    EACH_PART
    {
        size_t at = part * LANES_WIDTH;
        lanes difference = lanes_read(from + at) - lanes_read(what + at);
        lanes_write(ret_difference + at, difference);
        seen->part[part] += difference;
    }
}

static bool subtract(size_t n, const double *from, const double *what, double *ret_difference)
{
    double last_from[OBJECTIVE_LANES] = {0};
    double last_what[OBJECTIVE_LANES] = {0};
    struct running seen = running_zero();
    size_t k;

    for (k = 0; k + OBJECTIVE_LANES <= n; k += OBJECTIVE_LANES)
        subtract_step(from + k, what + k, ret_difference + k, &seen);
    if (k < n) {
        memcpy(last_from, from + k, (n - k) * sizeof last_from[0]);
        memcpy(last_what, what + k, (n - k) * sizeof last_what[0]);
        subtract_step(last_from, last_what, ret_difference + k, &seen);
    }
    return running_is_finite(&seen);
}

LANES_INLINE void subtract_floats_step(const float *from, const float *what, double *ret_from, double *ret_what,
                                       double *ret_difference, struct running *seen)
{
    EACH_PART
    {
        size_t at = part * LANES_WIDTH;
        lanes one = lanes_widen(from + at);
        lanes other = lanes_widen(what + at);
        lanes difference = one - other;
        lanes_write(ret_from + at, one);
        lanes_write(ret_what + at, other);
        lanes_write(ret_difference + at, difference);
        seen->part[part] += difference;
    }
}

static bool subtract_floats(size_t n, const float *from, const float *what, double *ret_from, double *ret_what,
                            double *ret_difference)
{
    float last_from[OBJECTIVE_LANES] = {0};
    float last_what[OBJECTIVE_LANES] = {0};
    struct running seen = running_zero();
    size_t k;

    for (k = 0; k + OBJECTIVE_LANES <= n; k += OBJECTIVE_LANES) {
        fetch_ahead(from + k, AHEAD_BYTES(float));
        fetch_ahead(what + k, AHEAD_BYTES(float));
        subtract_floats_step(from + k, what + k, ret_from + k, ret_what + k, ret_difference + k, &seen);
    }
    if (k < n) {
        memcpy(last_from, from + k, (n - k) * sizeof last_from[0]);
        memcpy(last_what, what + k, (n - k) * sizeof last_what[0]);
        subtract_floats_step(last_from, last_what, ret_from + k, ret_what + k, ret_difference + k, &seen);
    }
    return running_is_finite(&seen);
}

/* --- exponentials --- */

/* Tokens whose exponentials are split before the first is completed: they stay in the first cache. */
#define TILE 64

struct tile {
    double high[TILE], low[TILE], scale[TILE];
};

struct seen {
    struct running size; /* the largest |x| */
    struct running sum;  /* what is no number would be lost by a maximum, but not by a sum */
};

LANES_INLINE bool all_plain(const struct seen *seen)
{
    return running_most(&seen->size) < EXP_PLAIN && running_is_finite(&seen->sum);
}

/* Of sign * x. */
LANES_INLINE void split_tile(size_t count, const double *x, double sign, struct tile *ret_tile, struct seen *seen)
{
    for (size_t k = 0; k < count; k += OBJECTIVE_LANES)
        EACH_PART
        {
            size_t at = k + part * LANES_WIDTH;
            lanes value = lanes_read(x + at) * sign;
            struct lanes_power power = lanes_split(value);
            lanes_write(ret_tile->high + at, power.high);
            lanes_write(ret_tile->low + at, power.low);
            lanes_write(ret_tile->scale + at, power.scale);
            seen->size.part[part] = lanes_more(seen->size.part[part], lanes_size(value));
            seen->sum.part[part] += value;
        }
}

LANES_INLINE struct lanes_power complete(const struct tile *tile, size_t at)
{
    return lanes_complete((struct lanes_power){
        .high = lanes_read(tile->high + at), .low = lanes_read(tile->low + at), .scale = lanes_read(tile->scale + at)});
}

LANES_INLINE size_t tile_count(size_t n, size_t first)
{
    return n - first < TILE ? n - first : TILE;
}

static bool powers(size_t n, double *x, double *ret_powers, struct lane_ratio_sums *sums)
{
    struct seen seen = {0};
    struct running k3 = running_zero();
    struct tile tile;

    pad(n, x);
    n = padded(n);
    for (size_t first = 0; first < n; first += TILE) {
        size_t count = tile_count(n, first);
        split_tile(count, x + first, 1, &tile, &seen);
        for (size_t k = 0; k < count; k += OBJECTIVE_LANES)
            EACH_PART
            {
                size_t at = k + part * LANES_WIDTH;
                struct lanes_power power = complete(&tile, at);
                lanes_write(ret_powers + first + at, lanes_exp(power));
                k3.part[part] += lanes_k3(power, lanes_read(x + first + at));
            }
    }
    if (!all_plain(&seen))
        return false;
    running_add_to(&seen.sum, sums->x.sum);
    running_add_to(&k3, sums->k3.sum);
    return true;
}

static bool exps(size_t n, const double *x, double *ret_powers)
{
    struct seen seen = {0};
    struct tile tile;

    for (size_t first = 0; first < n; first += TILE) {
        size_t count = tile_count(n, first);
        split_tile(count, x + first, 1, &tile, &seen);
        for (size_t at = 0; at < count; at += LANES_WIDTH)
            lanes_write(ret_powers + first + at, lanes_exp(complete(&tile, at)));
    }
    return all_plain(&seen);
}

static bool k3(size_t n, double *distance, double *ret_kl, double *ret_slope)
{
    struct seen seen = {0};
    struct tile tile;

    pad(n, distance);
    n = padded(n);
    for (size_t first = 0; first < n; first += TILE) {
        size_t count = tile_count(n, first);
        split_tile(count, distance + first, -1, &tile, &seen);
        for (size_t at = 0; at < count; at += LANES_WIDTH) {
            struct lanes_power power = complete(&tile, at);
            lanes_write(ret_kl + first + at, lanes_k3(power, -lanes_read(distance + first + at)));
            lanes_write(ret_slope + first + at, -lanes_expm1(power));
        }
    }
    return all_plain(&seen);
}

/* --- the loss --- */

/* The larger one of -r A and -clip(r) A; where that is the second, the derivative is 0. */
static void clip(size_t n, const struct lane_clip *clip, double advantage, const double *ratio, double *ret_value,
                 double *ret_slope, double *ret_side)
{
    lanes low = lanes_of(clip->low);
    lanes high = lanes_of(clip->high);
    lanes factor = lanes_of(-advantage);
    lanes above = lanes_of(advantage > 0 ? 1 : 0);
    lanes below = lanes_of(advantage < 0 ? -1 : 0);

    for (size_t k = 0; k < n; k += LANES_WIDTH) {
        lanes own = lanes_read(ratio + k);
        lanes held = lanes_more(lanes_less(own, high), low);
        lanes own_term = own * factor;
        lanes held_term = held * factor;
        lane_bits is_held = held_term > own_term;
        lanes_write(ret_value + k, lanes_more(held_term, own_term));
        lanes_write(ret_slope + k, lanes_keep(~is_held, own_term));
        lanes_write(ret_side + k, lanes_keep(own > high, above) + lanes_keep(own < low, below));
    }
}

/* An advantage of 0 contributes nothing, whatever the ratio: 0 times an infinite ratio would be no number. */
static void clip_any(size_t n, const struct lane_clip *clip, const double *advantage, const double *live,
                     const double *ratio, double *ret_value, double *ret_slope, double *ret_side)
{
    lanes one = lanes_of(1);

    for (size_t k = 0; k < n; k += LANES_WIDTH) {
        lanes factor = -lanes_read(advantage + k);
        lanes own = lanes_read(ratio + k);
        lanes capped = lanes_less(own, lanes_of(clip->delta));
        lanes held = lanes_more(lanes_less(own, lanes_of(clip->high)), lanes_of(clip->low));
        lanes capped_term = capped * factor;
        lanes held_term = held * factor;
        lanes most = clip->dual_c * factor;
        lanes loss = lanes_more(held_term, capped_term);
        lanes chosen = lanes_pick(held_term > capped_term, held, capped);
        lane_bits is_bad = factor > 0;
        lane_bits is_good = factor < 0;
        lane_bits is_most = is_bad & (loss > most); /* dual_c acts only there */
        lanes slope = lanes_keep((chosen == own) & ~is_most & (is_bad | is_good), own * factor * lanes_read(live + k));
        lanes side = lanes_keep(is_good & (own > clip->high), one) - lanes_keep(is_bad & (own < clip->low), one);
        lanes_write(ret_value + k, lanes_keep(is_bad | is_good, lanes_pick(is_most, most, loss)));
        lanes_write(ret_slope + k, slope);
        lanes_write(ret_side + k, lanes_pick(is_most, one + one, side));
    }
}

static void reweigh(size_t n, const double *weight, const double *kept, double *values)
{
    lanes one = lanes_of(1);

    for (size_t k = 0; k < n; k += LANES_WIDTH) {
        lanes value = lanes_read(values + k);
        lane_bits stays = value != 0;
        if (kept)
            stays &= lanes_read(kept + k) != 0;
        lanes_write(values + k, lanes_keep(stays, value * (weight ? lanes_read(weight + k) : one)));
    }
}

/* --- the way out --- */

/* precise_sum_add() in each lane. */
LANES_INLINE void add_part(lanes value, lanes *sum, lanes *lost)
{
    lanes after = *sum + value;
    lanes taken = after - *sum;

    *lost += (*sum - (after - taken)) + (value - taken);
    *sum = after;
}

struct settling {
    struct running policy, policy_lost, kl, kl_lost;
    struct running slopes; /* only to see whether one is not finite */
};

LANES_INLINE void settle_step(size_t k, const struct lane_terms *terms, bool with_kl, double *ret_contributions,
                              double *ret_slopes, struct settling *settling)
{
    lanes weight = lanes_of(terms->weight);
    lanes beta = lanes_of(terms->beta);

    EACH_PART
    {
        size_t at = k + part * LANES_WIDTH;
        lanes policy = weight * lanes_read(terms->value + at);
        lanes slope = weight * lanes_read(terms->slope + at);
        lanes contribution = policy;
        add_part(policy, &settling->policy.part[part], &settling->policy_lost.part[part]);
        if (with_kl) {
            lanes kl = weight * (beta * lanes_read(terms->kl + at));
            contribution += kl;
            slope += weight * (beta * lanes_read(terms->kl_slope + at));
            add_part(kl, &settling->kl.part[part], &settling->kl_lost.part[part]);
        }
        settling->slopes.part[part] += slope;
        lanes_write(ret_contributions + part * LANES_WIDTH, contribution + 0.0);
        lanes_write(ret_slopes + part * LANES_WIDTH, slope + 0.0);
    }
}

LANES_INLINE void settle_all(size_t n, const struct lane_terms *terms, bool with_kl, struct settling *settling)
{
    double contributions[OBJECTIVE_LANES];
    double slopes[OBJECTIVE_LANES];
    size_t k;

    for (k = 0; k + OBJECTIVE_LANES <= n; k += OBJECTIVE_LANES) {
        fetch_ahead(terms->contributions + k, AHEAD_BYTES(double));
        fetch_ahead(terms->slopes + k, AHEAD_BYTES(double));
        settle_step(k, terms, with_kl, terms->contributions + k, terms->slopes + k, settling);
    }
    if (k == n)
        return;
    settle_step(k, terms, with_kl, contributions, slopes, settling);
    memcpy(terms->contributions + k, contributions, (n - k) * sizeof contributions[0]);
    memcpy(terms->slopes + k, slopes, (n - k) * sizeof slopes[0]);
}

LANES_INLINE void load_sum(const struct lane_exact_sum *sum, struct running *ret_sum, struct running *ret_lost)
{
    memcpy(ret_sum, sum->sum, sizeof sum->sum);
    memcpy(ret_lost, sum->lost, sizeof sum->lost);
}

LANES_INLINE void store_sum(const struct running *sum, const struct running *lost, struct lane_exact_sum *ret_sum)
{
    memcpy(ret_sum->sum, sum, sizeof ret_sum->sum);
    memcpy(ret_sum->lost, lost, sizeof ret_sum->lost);
}

static bool settle(size_t n, const struct lane_terms *terms, struct lane_exact_sum *policy, struct lane_exact_sum *kl)
{
    struct settling settling = {0};

    load_sum(policy, &settling.policy, &settling.policy_lost);
    pad(n, terms->value);
    pad(n, terms->slope);
    if (!terms->kl) {
        settle_all(n, terms, false, &settling);
        store_sum(&settling.policy, &settling.policy_lost, policy);
        return running_is_finite(&settling.policy) && running_is_finite(&settling.slopes);
    }
    load_sum(kl, &settling.kl, &settling.kl_lost);
    pad(n, terms->kl);
    pad(n, terms->kl_slope);
    settle_all(n, terms, true, &settling);
    store_sum(&settling.policy, &settling.policy_lost, policy);
    store_sum(&settling.kl, &settling.kl_lost, kl);
    return running_is_finite(&settling.policy) && running_is_finite(&settling.slopes) &&
           running_is_finite(&settling.kl);
}

/* --- metrics --- */

static void add(size_t n, double *values, struct lane_sum *sum)
{
    struct running running = running_zero();

    pad(n, values);
    for (size_t k = 0; k < n; k += OBJECTIVE_LANES)
        EACH_PART running.part[part] += lanes_read(values + k + part * LANES_WIDTH);
    running_add_to(&running, sum->sum);
}

static void add_exactly(size_t n, double *values, struct lane_exact_sum *sum)
{
    struct running running;
    struct running lost;

    load_sum(sum, &running, &lost);
    pad(n, values);
    for (size_t k = 0; k < n; k += OBJECTIVE_LANES)
        EACH_PART add_part(lanes_read(values + k + part * LANES_WIDTH), &running.part[part], &lost.part[part]);
    store_sum(&running, &lost, sum);
}

struct metering {
    struct running ratio, most;
    struct {
        lane_bits part[PARTS];
    } outside, above, below; /* minus the count */
};

LANES_INLINE void meter_part(lanes shown, lanes side, double low, double high, int part, struct metering *metering)
{
    metering->ratio.part[part] += shown;
    metering->most.part[part] = lanes_more(metering->most.part[part], shown);
    metering->outside.part[part] += (shown < low) | (shown > high);
    metering->above.part[part] += side == 1;
    metering->below.part[part] += side == -1;
}

LANES_INLINE double count_of(const lane_bits parts[PARTS])
{
    int64_t count = 0;

    for (int lane = 0; lane < OBJECTIVE_LANES; lane++)
        count -= parts[lane / LANES_WIDTH][lane % LANES_WIDTH];
    return (double)count;
}

static void meter(size_t n, double low, double high, double *shown, double *side, struct lane_shown_sums *sums)
{
    struct metering metering = {0};
    double padding = (double)(padded(n) - n);

    pad(n, shown);
    pad(n, side);
    for (size_t k = 0; k < n; k += OBJECTIVE_LANES)
        EACH_PART
        {
            size_t at = k + part * LANES_WIDTH;
            meter_part(lanes_read(shown + at), lanes_read(side + at), low, high, part, &metering);
        }
    double most = running_most(&metering.most);
    sums->most = most > sums->most ? most : sums->most;
    sums->outside += count_of(metering.outside.part) - (low > 0 ? padding : 0);
    sums->above += count_of(metering.above.part);
    sums->below += count_of(metering.below.part);
    running_add_to(&metering.ratio, sums->ratio.sum);
}

struct weighing {
    struct running weight, square, gap, most;
    lanes least;
};

LANES_INLINE void weights_step(const double *x, const double *weights, struct weighing *weighing)
{
    EACH_PART
    {
        size_t at = part * LANES_WIDTH;
        lanes weight = lanes_read(weights + at);
        weighing->weight.part[part] += weight;
        weighing->square.part[part] += weight * weight;
        weighing->gap.part[part] += lanes_size(lanes_read(x + at));
        weighing->most.part[part] = lanes_more(weighing->most.part[part], weight);
        weighing->least = lanes_less(weighing->least, weight);
    }
}

static void meter_weights(size_t n, double *x, double *weights, struct lane_weight_sums *sums)
{
    struct weighing weighing = {.least = lanes_of(sums->least)};
    size_t k;

    for (k = 0; k + OBJECTIVE_LANES <= n; k += OBJECTIVE_LANES)
        weights_step(x + k, weights + k, &weighing);
    for (int lane = 0; lane < LANES_WIDTH; lane++)
        sums->least = weighing.least[lane] < sums->least ? weighing.least[lane] : sums->least;
    for (size_t last = k; last < n; last++)
        sums->least = weights[last] < sums->least ? weights[last] : sums->least;
    pad(n, x);
    pad(n, weights);
    if (k < n)
        weights_step(x + k, weights + k, &weighing);
    double most = running_most(&weighing.most);
    sums->most = most > sums->most ? most : sums->most;
    running_add_to(&weighing.weight, sums->weight.sum);
    running_add_to(&weighing.square, sums->square.sum);
    running_add_to(&weighing.gap, sums->gap.sum);
}

const struct objective_kernels KERNELS = {
    .subtract = subtract,
    .subtract_floats = subtract_floats,
    .powers = powers,
    .exps = exps,
    .k3 = k3,
    .clip = clip,
    .clip_any = clip_any,
    .reweigh = reweigh,
    .settle = settle,
    .add = add,
    .add_exactly = add_exactly,
    .meter = meter,
    .meter_weights = meter_weights,
};

#if defined(LANES_TARGET) && defined(__clang__)
LANES_PRAGMA(clang attribute pop)
#elif defined(LANES_TARGET)
LANES_PRAGMA(GCC pop_options)
#endif
