/* Checks of a request's arrays before it is evaluated. */
#include "server/base/logprob.h"
#include "server/objective_call/objective_call.h"
#include "server/objective_call/tensors.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

#define ARRAY_OF(name, most)                                                                                           \
    {                                                                                                                  \
#name, offsetof(struct objective_sequence, name), most                                                         \
    }
static const struct input_array {
    const char *name;
    size_t offset; /* of its values in struct objective_sequence */
    double most;
} arrays[] = {
    ARRAY_OF(logprobs, LOGPROB_MAX),         ARRAY_OF(old_logprobs, LOGPROB_MAX),
    ARRAY_OF(ref_logprobs, LOGPROB_MAX),     ARRAY_OF(rollout_logprobs, LOGPROB_MAX),
    ARRAY_OF(teacher_logprobs, LOGPROB_MAX), ARRAY_OF(entropy, DBL_MAX),
    ARRAY_OF(sum_pi_squared, DBL_MAX),       ARRAY_OF(token_rewards, DBL_MAX),
};

static struct objective_values values_of(const struct objective_sequence *sequence, const struct input_array *array)
{
    return *(const struct objective_values *)((const char *)sequence + array->offset);
}

static int refuse(struct objective_call *objective, size_t index, const struct input_array *array, size_t token)
{
    struct objective_values values = values_of(&objective->sequences[index], array);
    double value = values.f64 ? values.f64[token] : (double)values.f32[token];
    char message[192];
    char place[64] = "";
    size_t element;

    if (!isfinite(value))
        return objective_refuse(objective, ERR_NON_FINITE, index, array->name, token,
                                "a trainable token needs a finite number");
    if (objective_tensors_place(objective, index, array->name, token, &element))
        snprintf(place, sizeof place, "element %zu of the tensor %s: ", element, array->name);
    snprintf(message, sizeof message,
             "%s%.9g is above 0, so it is no logarithm of a probability: are these logits, or is the sign missing?",
             place, value);
    return objective_refuse(objective, ERR_INVALID_FIELD, index, array->name, token, message);
}

/* Nothing of such a sequence is read. */
static bool trains_nothing(const struct objective_call *objective, const struct objective_sequence *sequence)
{
    return !sequence->rewarded || sequence->untrainable ||
           (objective->knobs.mask.truncated && sequence->finish_reason == OBJECTIVE_FINISH_LENGTH);
}

/* The record's own log-probabilities were looked at when they came, and what was filled in stands elsewhere too. */
static bool is_given(const struct objective_call *objective, size_t index, const struct input_array *array)
{
    if (array->offset == offsetof(struct objective_sequence, old_logprobs))
        return objective->items[index].has_old_logprobs;
    return !objective->stored || array->offset != offsetof(struct objective_sequence, rollout_logprobs);
}

int objective_check_inputs(void *context, size_t index)
{
    struct objective_call *objective = context;
    const struct objective_sequence *sequence = &objective->sequences[index];

    if (trains_nothing(objective, sequence))
        return 0;
    for (size_t k = 0; k < ARRAY_LENGTH(arrays); k++) {
        if (!is_given(objective, index, &arrays[k]))
            continue;
        size_t token = objective_find_outside(sequence, values_of(sequence, &arrays[k]), arrays[k].most);
        if (token < sequence->tokens)
            return refuse(objective, index, &arrays[k], token);
    }
    return 0;
}
