/* Where the arrays of a reply are: one block for all, laid out as the data of a safetensors file. */
#include "server/base/blocks.h"
#include "server/objective_call/objective_call.h"

#include <math.h>
#include <string.h>

#define OUTPUT(which, name, type, member)                                                                              \
    {                                                                                                                  \
        which, name, type, offsetof(struct objective_sequence, member)                                                 \
    }
/* The widest first, so that all are aligned. */
const struct objective_output objective_outputs[OBJECTIVE_OUTPUTS] = {
    OUTPUT(ARRAY_COUNT, "advantage", TENSOR_F64, advantages),
    OUTPUT(ARRAY_SURROGATES, "surrogates", TENSOR_F64, surrogates),
    OUTPUT(ARRAY_CONTRIBUTIONS, "contributions", TENSOR_F64, contributions),
    OUTPUT(ARRAY_DLOSS_DLOGP, "dloss_dlogp", TENSOR_F64, dloss_dlogp),
    OUTPUT(ARRAY_RATIOS, "ratios", TENSOR_F64, ratios),
    OUTPUT(ARRAY_WEIGHTS, "weights", TENSOR_F64, weights),
    OUTPUT(ARRAY_KL, "kl", TENSOR_F64, kl),
    OUTPUT(ARRAY_CLIPPED, "clipped", TENSOR_I8, clipped),
    OUTPUT(ARRAY_SELECTED, "selected", TENSOR_U8, selected),
};

/* An advantage for each token is part of the reply as a number is; the others are picked by `return` and `arrays`. */
bool objective_output_is_wanted(const struct objective_call *objective, size_t output)
{
    enum objective_array which = objective_outputs[output].which;
    if (objective->arrays == JSON_ARRAYS_NONE)
        return false;
    return which == ARRAY_COUNT ? objective->by_token : (objective->returns & 1U << which) != 0;
}

/* The advantage is an array where a rule works on tokens, and where one was given. */
static bool has_token_advantages(const struct objective_call *objective)
{
    bool by_token = objective->advantages_given ? objective->knobs.advantage.teacher_coef != 0
                                                : objective_is_per_token(&objective->knobs);
    for (size_t i = 0; i < objective->count; i++)
        by_token = by_token || objective->sequences[i].token_advantages;
    return by_token;
}

enum safetensors_type objective_output_type(const struct objective_call *objective, size_t output)
{
    enum safetensors_type type = objective_outputs[output].type;
    return objective->narrow && type == TENSOR_F64 ? TENSOR_F32 : type;
}

static void **pointer_of(struct objective_sequence *sequence, size_t output)
{
    return (void **)((char *)sequence + objective_outputs[output].offset);
}

static void point(struct objective_call *objective, size_t output, char *at)
{
    size_t width = safetensors_type_bytes[objective_outputs[output].type];
    for (size_t i = 0; i < objective->count; i++) {
        *pointer_of(&objective->sequences[i], output) = at;
        at += objective->sequences[i].tokens * width;
    }
}

/* One behind the other; without a block only counts. Nothing else is filled by the evaluation. */
static size_t lay_out(struct objective_call *objective, size_t tokens)
{
    size_t end_bytes = (objective->count + 1) * sizeof(int64_t); /* offsets */
    for (size_t k = 0; k < OBJECTIVE_OUTPUTS; k++) {
        enum safetensors_type type = objective_output_type(objective, k);
        if (!objective_output_is_wanted(objective, k))
            continue;
        if (objective->outputs && type == objective_outputs[k].type)
            point(objective, k, objective->outputs + end_bytes);
        end_bytes += tokens * safetensors_type_bytes[type];
    }
    return end_bytes;
}

/* --- doubles that become floats --- */

static bool is_narrowed(const struct objective_call *objective, size_t output)
{
    return objective_output_is_wanted(objective, output) &&
           objective_output_type(objective, output) != objective_outputs[output].type;
}

/* All sequences share the room of the longest, except the advantages, which are written first. */
static int prepare_scratch(struct objective_call *objective, size_t tokens)
{
    size_t longest = 0;
    for (size_t i = 0; i < objective->count; i++)
        longest = objective->sequences[i].tokens > longest ? objective->sequences[i].tokens : longest;
    size_t count = 0;
    for (size_t k = 0; k < OBJECTIVE_OUTPUTS; k++)
        if (is_narrowed(objective, k))
            count += objective_outputs[k].which == ARRAY_COUNT ? tokens : longest;
    if (!(objective->scratch = objective_allocate(objective, count + 1, sizeof(double))))
        return -1;
    double *at = objective->scratch;
    for (size_t k = 0; k < OBJECTIVE_OUTPUTS; k++) {
        if (!is_narrowed(objective, k))
            continue;
        for (size_t i = 0; objective_outputs[k].which != ARRAY_COUNT && i < objective->count; i++)
            *pointer_of(&objective->sequences[i], k) = at;
        if (objective_outputs[k].which == ARRAY_COUNT)
            point(objective, k, (char *)at);
        at += objective_outputs[k].which == ARRAY_COUNT ? tokens : longest;
    }
    return 0;
}

static void note_beyond(struct objective_call *objective, size_t index, size_t output, size_t token)
{
    if (objective_outputs[output].which == ARRAY_RATIOS) {
        objective_note(objective, "a ratio is beyond float, and infinite in the reply");
        return;
    }
    if (objective->beyond_float)
        return;
    objective->beyond_float = objective_outputs[output].name;
    objective->beyond_float_sequence = index;
    objective->beyond_float_token = token;
}

static void narrow(struct objective_call *objective, size_t index, size_t output, float *to)
{
    struct objective_sequence *sequence = &objective->sequences[index];
    const double *from = *pointer_of(sequence, output);
    bool all_fit = objective_narrow(sequence->tokens, from, to);
    for (size_t t = 0; !all_fit && t < sequence->tokens; t++)
        if (isinf(to[t]))
            note_beyond(objective, index, output, t);
}

void objective_outputs_narrow(void *context, size_t index)
{
    struct objective_call *objective = context;
    const int64_t *offsets = (const int64_t *)objective->outputs;
    size_t tokens = (size_t)offsets[objective->count];
    char *column = objective->outputs + (objective->count + 1) * sizeof(int64_t);
    for (size_t k = 0; k < OBJECTIVE_OUTPUTS; k++) {
        if (!objective_output_is_wanted(objective, k))
            continue;
        if (is_narrowed(objective, k))
            narrow(objective, index, k, (float *)column + offsets[index]);
        column += tokens * safetensors_type_bytes[objective_output_type(objective, k)];
    }
}

int objective_outputs_check(struct objective_call *objective)
{
    if (!objective->beyond_float)
        return 0;
    return objective_refuse(objective, ERR_NON_FINITE, objective->beyond_float_sequence, objective->beyond_float,
                            objective->beyond_float_token, "it is beyond float; ask for dtype f64");
}

/* --- all of them --- */

int objective_outputs_prepare(struct objective_call *objective)
{
    int64_t offset = 0;
    size_t tokens = 0;
    for (size_t i = 0; i < objective->count; i++)
        tokens += objective->sequences[i].tokens;
    objective->by_token = has_token_advantages(objective);
    objective->outputs = NULL;
    objective->outputs_bytes = lay_out(objective, tokens);
    objective->outputs = block_take(objective->outputs_bytes);
    if (!objective->outputs)
        return call_refuse(objective->call, ERR_QUEUE_FULL, NULL, "there is no memory for this request now");
    (void)lay_out(objective, tokens);
    for (size_t i = 0; i <= objective->count; i++) {
        memcpy(objective->outputs + i * sizeof offset, &offset, sizeof offset);
        offset += i < objective->count ? (int64_t)objective->sequences[i].tokens : 0;
    }
    return objective->narrow ? prepare_scratch(objective, tokens) : 0;
}
