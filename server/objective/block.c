/* The arrays of a request into a block, and those of a block into the reply. */
#include "server/objective/terms_private.h"

#include <string.h>

/* The top bit is set if one of them is not finite. */
OBJECTIVE_CLONES
static uint64_t look_at(size_t n, const double *values)
{
    uint64_t far = 0;

    for (size_t k = 0; k < n; k++)
        far |= objective_is_far(values[k], INFINITY);
    return far;
}

OBJECTIVE_CLONES
static uint64_t copy_run(size_t n, const double *restrict from, double *restrict ret_to)
{
    uint64_t far = 0;

    for (size_t k = 0; k < n; k++) {
        ret_to[k] = from[k];
        far |= objective_is_far(from[k], INFINITY);
    }
    return far;
}

OBJECTIVE_CLONES
static uint64_t widen_run(size_t n, const float *restrict from, double *restrict ret_to)
{
    uint64_t far = 0;

    for (size_t k = 0; k < n; k++) {
        double value = (double)from[k];
        ret_to[k] = value;
        far |= objective_is_far(value, INFINITY);
    }
    return far;
}

bool block_read(const struct objective_block *block, struct objective_values values, double *place)
{
    size_t n = block->count;
    size_t first = block->token[0];

    if (block->is_run && values.f64)
        return !(copy_run(n, &values.f64[first], place) >> 63);
    if (block->is_run)
        return !(widen_run(n, &values.f32[first], place) >> 63);
    for (size_t k = 0; values.f64 && k < n; k++)
        place[k] = values.f64[block->token[k]];
    for (size_t k = 0; !values.f64 && k < n; k++)
        place[k] = (double)values.f32[block->token[k]];
    return !(look_at(n, place) >> 63);
}

/* + 0.0 turns a negative zero into zero. */
OBJECTIVE_CLONES
static void put_run(size_t n, double sign, const double *restrict values, double *restrict ret_output)
{
    for (size_t k = 0; k < n; k++)
        ret_output[k] = sign * values[k] + 0.0;
}

void block_put(const struct objective_block *block, double sign, const double *values, double *output)
{
    if (output && block->is_run)
        put_run(block->count, sign, values, &output[block->token[0]]);
    for (size_t k = 0; output && !block->is_run && k < block->count; k++)
        output[block->token[k]] = sign * values[k] + 0.0;
}

void block_put_sides(const struct objective_block *block, int8_t *output)
{
    for (size_t k = 0; output && k < block->count; k++)
        output[token_at(block, k)] = (int8_t)block->clipped[k];
}

void block_put_bytes(const struct objective_block *block, const void *values, void *output)
{
    const uint8_t *from = values;
    uint8_t *to = output;

    if (output && block->is_run)
        memcpy(to + block->token[0], from, block->count);
    for (size_t k = 0; output && !block->is_run && k < block->count; k++)
        to[block->token[k]] = from[k];
}

void clear_outputs(struct objective_sequence *sequence)
{
    bool all_written = sequence->trainable_tokens == sequence->tokens && !sequence->counted_only;
    double *const numbers[] = {sequence->surrogates, sequence->contributions, sequence->dloss_dlogp,
                               sequence->ratios,     sequence->weights,       sequence->importance};

    sequence->loss = 0;
    if (sequence->kl && sequence->tokens)
        memset(sequence->kl, 0, sequence->tokens * sizeof(double));
    if (all_written)
        return;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (numbers[i])
            memset(numbers[i], 0, sequence->tokens * sizeof(double));
    if (sequence->clipped)
        memset(sequence->clipped, 0, sequence->tokens);
    if (sequence->selected)
        memset(sequence->selected, 0, sequence->tokens);
}
