/* Sums by slices of the sequences: what is kept of a call. Plain sums of a block, then blocks in their order. */
#include "server/objective/terms_private.h"

static void add_mean(struct objective_slice *slice, enum objective_slice_mean which, double sum, size_t tokens)
{
    slice->means[which].sum += sum;
    slice->means[which].tokens += tokens;
}

static double sum_of(size_t n, const double *values)
{
    double sum = 0;

    for (size_t k = 0; k < n; k++)
        sum += values[k];
    return sum;
}

static double sum_of_sizes(size_t n, const double *values)
{
    double sum = 0;

    for (size_t k = 0; k < n; k++)
        sum += fabs(values[k]);
    return sum;
}

/* e^x - 1 - x over the block; x has room for whole lanes. */
static double k3_of(const struct objective_block *block, double *x)
{
    double powers[OBJECTIVE_BLOCK];
    struct lane_ratio_sums sums = {0};

    lane_powers(block->kernels, block->count, x, powers, &sums);
    return lane_sum_value(&sums.k3);
}

static void add_policy(const struct objective_block *block, const double *old, struct objective_slice *slice)
{
    double x[OBJECTIVE_BLOCK];

    block->kernels->subtract(block->count, block->logprob, old, x);
    add_mean(slice, OBJECTIVE_SLICE_KL_POLICY, k3_of(block, x), block->count);
}

static void add_rollout(struct objective_block *block, struct objective_slice *slice)
{
    add_mean(slice, OBJECTIVE_SLICE_LOGPROB_GAP, sum_of_sizes(block->count, block->rollout_x), block->count);
    add_mean(slice, OBJECTIVE_SLICE_ENTROPY, -sum_of(block->count, block->rollout), block->count);
    add_mean(slice, OBJECTIVE_SLICE_KL_ENGINE, k3_of(block, block->rollout_x), block->count);
}

/* The KL to a reference that is there is known also where it is in no loss. */
static bool read_kl(const struct objective_work *work, struct objective_values reference, struct objective_block *block)
{
    if (!is_present(reference) || !block_read(block, reference, block->reference))
        return false;
    block->kernels->subtract(block->count, block->logprob, block->reference, block->distance);
    objective_kl_block(work->knobs, block);
    return true;
}

void slice_block(const struct objective_work *work, size_t index, const struct slice_inputs *inputs,
                 struct objective_block *block)
{
    const struct objective_sequence *sequence = &work->request->sequences[index];
    struct objective_slice *slice = &work->request->slices[sequence->slice];

    for (size_t k = 0; k < block->count; k++) {
        slice->clip_low += block->clipped[k] == -1;
        slice->clip_high += block->clipped[k] == 1;
    }
    if (inputs->old)
        add_policy(block, inputs->old, slice);
    if (inputs->has_rollout)
        add_rollout(block, slice);
    if (inputs->has_kl || read_kl(work, sequence->ref_logprobs, block))
        add_mean(slice, OBJECTIVE_SLICE_KL, sum_of(block->count, block->kl), block->count);
}

/* A sum beyond double is not known. */
static void settle_means(struct objective_slice *slice)
{
    for (size_t k = 0; k < OBJECTIVE_SLICE_MEANS; k++)
        if (!isfinite(slice->means[k].sum))
            slice->means[k].tokens = 0;
    for (size_t k = 0; k < OBJECTIVE_SLICE_MEANS; k++)
        if (slice->means[k].tokens == 0)
            slice->means[k].sum = NAN;
}

void slices_finish(const struct objective_request *request)
{
    for (size_t i = 0; i < request->sequence_count; i++) {
        const struct objective_sequence *sequence = &request->sequences[i];
        struct objective_slice *slice = &request->slices[sequence->slice];
        slice->sequences += sequence->rewarded;
        slice->tokens += sequence->trainable_tokens;
        slice->loss += sequence->rewarded ? sequence->loss : 0;
    }
    for (size_t s = 0; s < request->slice_count; s++) {
        struct objective_slice *slice = &request->slices[s];
        settle_means(slice);
        if (slice->sequences == 0)
            slice->loss = NAN;
    }
}
