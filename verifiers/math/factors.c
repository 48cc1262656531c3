#include "verifiers/math/factors.h"

#include <flint/ulong_extras.h>

#define TRIAL_PRIMES 54     /* below 256 */
#define WORD_BITS 40        /* what is left is factored completely up to this size */
#define FACTORED_BITS 16384 /* not even tried beyond */

void math_factors_clear(struct math_factors *factors)
{
    for (size_t i = 0; i < factors->count; i++)
        fmpz_clear(&factors->bases[i]);
}

static void note(struct math_factors *factors, const fmpz_t base, slong exponent)
{
    if (exponent == 0 || factors->count == MATH_FACTORS)
        return;
    fmpz_init_set(&factors->bases[factors->count], base);
    factors->exponents[factors->count++] = exponent;
}

static void note_word(struct math_factors *factors, ulong value, slong sign)
{
    n_factor_t found;
    MATH_LOCAL_FMPZ(prime);

    n_factor_init(&found);
    n_factor(&found, value, 1);
    for (int i = 0; i < found.num; i++) {
        fmpz_set_ui(prime, found.p[i]);
        note(factors, prime, sign * (slong)found.exp[i]);
    }
}

static void note_cofactor(struct math_factors *factors, const fmpz_t cofactor, slong sign)
{
    MATH_LOCAL_FMPZ(root);
    int power = fmpz_is_perfect_power(root, cofactor);

    if (power)
        note(factors, root, sign * power);
    else
        note(factors, cofactor, sign);
}

/* At most 54 small primes and one more entry, or 15 primes of a word. */
static void factor(struct math_factors *factors, const fmpz_t value, slong sign)
{
    MATH_LOCAL_FMPZ(rest);
    MATH_LOCAL_FMPZ(prime);
    const ulong *primes = n_primes_arr_readonly(TRIAL_PRIMES);

    fmpz_abs(rest, value);
    for (size_t i = 0; i < TRIAL_PRIMES && fmpz_bits(rest) > WORD_BITS; i++) {
        fmpz_set_ui(prime, primes[i]);
        if (fmpz_fdiv_ui(rest, primes[i]) == 0)
            note(factors, prime, sign * fmpz_remove(rest, rest, prime));
    }
    if (fmpz_is_one(rest))
        return;
    if (fmpz_bits(rest) <= WORD_BITS)
        note_word(factors, fmpz_get_ui(rest), sign);
    else
        note_cofactor(factors, rest, sign);
}

enum math_outcome math_factors_of(struct math_decider *decider, const fmpq_t value, struct math_factors *ret_factors)
{
    ulong bits = fmpz_bits(fmpq_numref(value)) + fmpz_bits(fmpq_denref(value));

    if (bits > FACTORED_BITS || !math_spend(decider, 500 + (int64_t)(bits > 80 ? 5000 + bits * bits / 16 : bits * 50)))
        return MATH_TOO_LARGE_VALUE;
    factor(ret_factors, fmpq_numref(value), 1);
    factor(ret_factors, fmpq_denref(value), -1);
    return ret_factors->count < MATH_FACTORS ? MATH_VALUE : MATH_TOO_LARGE_VALUE;
}
