/* generators: the variables that a form (form.h) is written in, and the relations between them. Private to form*.c. */
#ifndef VERIFIERS_MATH_GENERATORS_H
#define VERIFIERS_MATH_GENERATORS_H

#include "verifiers/math/polynomial.h"

#define MATH_GENERATORS 24

enum generator_kind {
    GENERATOR_NAME, /* name */
    GENERATOR_PI,
    GENERATOR_I,           /* i^2 = -1 */
    GENERATOR_POWER,       /* argument^(exponent / parts); of a prime and 1: to the power parts it is the prime */
    GENERATOR_EXPONENTIAL, /* e^(argument / parts) */
    GENERATOR_ROOT,        /* argument^(1/degree); to the power degree it is the argument */
    GENERATOR_LOG,         /* ln argument */
    GENERATOR_COSINE,
    GENERATOR_SINE,     /* sin^2 = 1 - cos^2 */
    GENERATOR_ABSOLUTE, /* of something real: its square is the argument's */
    GENERATOR_FACTORIAL,
    GENERATOR_FUNCTION, /* function, argument, perhaps exponent as the second one */
    GENERATOR_NOTATION, /* node: an operator */
};

struct generator {
    enum generator_kind kind;
    struct text name;
    ulong degree;
    enum math_function function;
    const struct math_node *node;
    bool real;          /* surely a real number, names being real */
    bool has_fractions; /* argument, exponent, relation are initialised */
    struct math_fraction argument, exponent;
    ulong relation_degree; /* generator^relation_degree = relation; 0: none */
    struct math_fraction relation;
};

struct math_form {
    struct math_decider *decider;
    struct math_ring ring;
    struct generator generators[MATH_GENERATORS];
    slong count;
    ulong parts;       /* exponents of primes and of e are multiples of 1/parts */
    ulong angle_parts; /* angles are whole multiples of something / angle_parts */
    bool divisions;    /* by something that is not proven to be different from 0 */
};

void math_form_init(struct math_form *form, struct math_decider *decider);
void math_form_clear(struct math_form *form);

/* ret_value := the generator like the wanted one, found or made. wanted: kind and what belongs to it; its fractions are
 * copied. MATH_TOO_LARGE_VALUE: the table is full. */
enum math_outcome math_form_generator(struct math_form *form, const struct generator *wanted,
                                      struct math_fraction *ret_value);

/* By the relations: every generator below its relation_degree. */
enum math_outcome math_form_reduce(struct math_form *form, struct math_fraction *value);

/* Square roots of integers, i and single factors go out of the denominator, as far as that is cheap. */
enum math_outcome math_form_rationalise(struct math_form *form, struct math_fraction *value);

/* Common factors of one variable each. */
void math_form_cancel_monomial(struct math_form *form, struct math_fraction *value);

/* MATH_VALUE: *ret_equal: the difference reduces to 0. */
enum math_outcome math_form_equal(struct math_form *form, const struct math_fraction *left,
                                  const struct math_fraction *right, bool *ret_equal);

/* Only names, so that not 0 is really not 0. */
bool math_form_is_free(const struct math_form *form, const fmpz_mpoly_t value);

#endif
