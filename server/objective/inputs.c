/* Arrays as they come in and go out: looked at, and made narrower. */
#include "server/objective/terms_private.h"

#include <float.h>

/* Comparisons only, so that they are loops of vectors. */
OBJECTIVE_CLONES
static bool all_within_f32(size_t n, const float *values, float most)
{
    uint32_t out = 0;

    for (size_t k = 0; k < n; k++)
        out |= (uint32_t) !((values[k] <= most) & (values[k] >= -FLT_MAX));
    return !out;
}

OBJECTIVE_CLONES
static bool all_within_f64(size_t n, const double *values, double most)
{
    uint64_t out = 0;

    for (size_t k = 0; k < n; k++)
        out |= (uint64_t) !((values[k] <= most) & (values[k] >= -DBL_MAX));
    return !out;
}

size_t objective_find_outside(const struct objective_sequence *sequence, struct objective_values values, double most)
{
    size_t n = sequence->tokens;

    if (!is_present(values) || (values.f64 ? all_within_f64(n, values.f64, most)
                                           : all_within_f32(n, values.f32, most < FLT_MAX ? (float)most : FLT_MAX)))
        return n;
    for (size_t t = 0; t < n; t++) {
        double value = value_at(values, t);
        if (!is_masked(sequence, t) && !(value <= most && value >= -DBL_MAX))
            return t;
    }
    return n;
}

OBJECTIVE_CLONES
static bool narrow(size_t n, const double *restrict values, float *restrict ret_values)
{
    uint64_t far = 0;

    for (size_t k = 0; k < n; k++) {
        ret_values[k] = (float)values[k];
        far |= objective_is_far((double)ret_values[k], INFINITY);
    }
    return !(far >> 63);
}

/* Behind a plain symbol: clang 14 gives a cloned function another name in its own file than its callers ask for. */
bool objective_narrow(size_t n, const double *values, float *ret_values)
{
    return narrow(n, values, ret_values);
}
