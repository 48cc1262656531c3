/* The values of field.h. Private to field*.c. */
#ifndef VERIFIERS_MATH_FIELD_VALUE_H
#define VERIFIERS_MATH_FIELD_VALUE_H

#include "verifiers/math/field.h"

struct field_local {
    ca_t value;
    struct math_decider *decider;
};

static inline void field_local_clear(struct field_local *local)
{
    ca_clear(local->value, local->decider->field);
}

#define MATH_LOCAL_CA(name, of)                                                                                        \
    _cleanup_(field_local_clear) struct field_local name = {.decider = (of)};                                          \
    ca_init(name.value, name.decider->field)

enum math_outcome math_field_value(struct math_decider *decider, const struct math_node *node, ca_t ret_value);

enum math_outcome math_field_function(struct math_decider *decider, const struct math_node *node, ca_t ret_value);

/* MATH_NO_VALUE: surely 0; MATH_VALUE: surely not. */
enum math_outcome math_field_is_not_zero(struct math_decider *decider, const ca_t value);

/* Takes what an operation on this value may cost. */
bool math_field_spend(struct math_decider *decider, const ca_t value, int64_t factor);

#endif
