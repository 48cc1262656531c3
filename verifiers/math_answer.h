/* math_answer: what an answer is, and whether two of them are the same. Pure.
 *
 *   answer  := [name = | name \in] shape
 *   shape   := element | list | \{ list \} | ( list ) | [ list ) …        two or more elements in round or square
 * brackets list    := element { (, | ; | and | or) element } element := [name =] [\pm] [$] number [unit | %] based   :=
 * digits _ base
 *
 * Rules: a set and a bare list are unordered and repeats do not matter; brackets keep the order and must be the same; a
 * single value is not a list of one… unless it has no brackets. A unit on one side only is ignored, two different ones
 * differ. A percent sign counts by value (50% is 1/2) unless the options say that it is a unit and the reference has
 * none. x = 5 is 5, not y = 5. */
#ifndef VERIFIERS_MATH_ANSWER_H
#define VERIFIERS_MATH_ANSWER_H

#include "server/base/text.h"
#include "verifiers/math_number.h"

#include <stdbool.h>
#include <stddef.h>

#define MATH_ELEMENTS_MAX 64
#define MATH_NAME_BYTES 48

struct math_element {
    mpq_t value;
    bool percent;
    char unit[MATH_NAME_BYTES]; /* "" if none */
    char name[MATH_NAME_BYTES]; /* of name =; "" if none */
};

struct math_answer {
    char open, close; /* '(' '[' '{' and their ends; 0: none */
    char name[MATH_NAME_BYTES];
    unsigned base;      /* 0: decimal notation; else element 0 holds the value */
    struct text digits; /* of a based number, or of one plain literal: to be read in the reference's base */
    bool operations;
    bool unreduced;
    size_t count;
    struct math_element elements[MATH_ELEMENTS_MAX];
};

struct math_reading {
    int max_depth;
    bool decimal_comma;
    bool prose; /* words may follow the number, as in running text */
};

/* cleaned: of math_clean(), must outlive the answer. NUMBER_OK, or why it is none. Finish it either way. */
enum number_status math_answer_read(struct text cleaned, const struct math_reading *reading,
                                    struct math_answer *ret_answer);
void math_answer_finish(struct math_answer *answer);

struct math_tolerance {
    bool percent_is_unit;
    mpq_t relative; /* 0: exact */
    mpq_t absolute;
};

bool math_answer_same(const struct math_answer *reference, const struct math_answer *answer,
                      const struct math_tolerance *tolerance);

#endif
