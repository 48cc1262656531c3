/* Storing of a call: its sums. */
#include "server/api/objective.h"
#include "server/objective_call/objective_call.h"
#include "server/spec/objective.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void objective_kept_destroy(void *pointer)
{
    struct objective_kept *kept = pointer;

    if (!kept)
        return;
    buffer_finish(&kept->objective_json);
    buffer_finish(&kept->sums_json);
    for (size_t s = 0; s < kept->slice_count; s++)
        free(kept->engines[s]);
    free(kept->engines);
    free(kept->slices);
    free(kept->run);
    free(kept);
}

static void write_sums(struct json_write *json, const struct objective_result *result)
{
    const struct objective_sums *sums = &result->sums;

    json_object_begin(json);
    json_put_double(json, "loss", result->loss);
    json_put_double(json, "policy_loss", result->policy_loss);
    json_put_double(json, "kl_loss", result->kl_loss);
    json_put_int(json, "tokens", (int64_t)sums->tokens);
    json_put_int(json, "sequences", (int64_t)sums->sequences);
    json_put_int(json, "clip_low", (int64_t)sums->clip_low);
    json_put_int(json, "clip_high", (int64_t)sums->clip_high);
    json_put_int(json, "outside_band", (int64_t)sums->outside_band);
    json_put_int(json, "ratio_overflows", (int64_t)sums->ratio_overflows);
    json_put_double(json, "ratio_sum", sums->ratio_sum);
    json_put_double(json, "ratio_max", sums->ratio_max);
    json_put_double(json, "approx_kl_k1_sum", sums->k1_sum);
    json_put_double(json, "approx_kl_k3_sum", sums->k3_sum);
    json_put_int(json, "kl_tokens", (int64_t)sums->kl_tokens);
    json_put_double(json, "kl_sum", sums->kl_sum);
    json_put_int(json, "logprob_gap_tokens", (int64_t)sums->gap_tokens);
    json_put_double(json, "logprob_gap_sum", sums->gap_sum);
    json_object_end(json);
}

/* The name of the estimator, which its sums are of. */
static struct text kl_estimator(const struct objective_knobs *knobs)
{
    for (size_t i = 0; i < objective_knobs_count; i++) {
        const struct objective_knob *knob = &objective_knobs_table[i];
        if (strcmp(knob->section, "kl") == 0 && strcmp(knob->name, "estimator") == 0)
            return text_of(knob->choices[*(const int *)((const char *)knobs + knob->offset)]);
    }
    return TEXT_NONE;
}

/* --- slices: one for each revision of the samples and each engine --- */

static int compare_samples(const struct store_rollout *left, const struct store_rollout *right)
{
    size_t left_bytes = left->engine.length_bytes;
    size_t right_bytes = right->engine.length_bytes;

    if (left->incarnation != right->incarnation)
        return left->incarnation < right->incarnation ? -1 : 1;
    if (left->policy_revision != right->policy_revision)
        return left->policy_revision < right->policy_revision ? -1 : 1;
    if (!left->engine.data || !right->engine.data)
        return (left->engine.data != NULL) - (right->engine.data != NULL);
    int order = memcmp(left->engine.data, right->engine.data, left_bytes < right_bytes ? left_bytes : right_bytes);
    return order ? order : (left_bytes > right_bytes) - (left_bytes < right_bytes);
}

static int compare_places(const void *left, const void *right, void *objective)
{
    return compare_samples(objective_rollout(objective, *(const size_t *)left),
                           objective_rollout(objective, *(const size_t *)right));
}

int objective_number_slices(struct objective_call *objective)
{
    size_t count = objective->count;

    if (!objective->keep || objective->explain)
        return 0;
    objective->slices = objective_allocate(objective, count, sizeof *objective->slices);
    objective->samples = objective_allocate(objective, count, sizeof *objective->samples);
    size_t *order = objective_allocate(objective, count, sizeof *order);
    if (!objective->slices || !objective->samples || !order)
        return -1;
    for (size_t i = 0; i < count; i++)
        order[i] = i;
    qsort_r(order, count, sizeof *order, compare_places, objective);
    for (size_t k = 0; k < count; k++) {
        if (k == 0 || compare_places(&order[k - 1], &order[k], objective) != 0)
            objective->samples[objective->slice_count++] = order[k];
        objective->sequences[order[k]].slice = objective->slice_count - 1;
    }
    return 0;
}

_Static_assert((int)STORE_OBJECTIVE_MEANS == (int)OBJECTIVE_SLICE_MEANS, "the means are the same, in the same order");

static void copy_sums(const struct objective_slice *from, struct store_objective_slice *to)
{
    to->sequences = (int64_t)from->sequences;
    to->tokens = (int64_t)from->tokens;
    to->clip_low = (int64_t)from->clip_low;
    to->clip_high = (int64_t)from->clip_high;
    to->loss = from->loss;
    for (size_t k = 0; k < OBJECTIVE_SLICE_MEANS; k++) {
        to->means[k].sum = from->means[k].sum;
        to->means[k].tokens = (int64_t)from->means[k].tokens;
    }
}

static void keep_slices(const struct objective_call *objective, struct objective_kept *kept)
{
    kept->slice_count = objective->slice_count;
    kept->slices = xcalloc(kept->slice_count, sizeof *kept->slices);
    kept->engines = xcalloc(kept->slice_count, sizeof *kept->engines);
    for (size_t s = 0; s < kept->slice_count; s++) {
        const struct store_rollout *sample = objective_rollout(objective, objective->samples[s]);
        struct store_objective_slice *slice = &kept->slices[s];
        copy_sums(&objective->slices[s], slice);
        slice->incarnation = sample->incarnation;
        slice->revision = sample->policy_revision;
        if (!sample->engine.data)
            continue;
        kept->engines[s] = xstrndup(sample->engine.data, sample->engine.length_bytes);
        slice->engine = (struct text){kept->engines[s], sample->engine.length_bytes};
    }
}

/* --- the whole --- */

struct objective_kept *objective_keep(const struct objective_call *objective, const struct objective_result *result)
{
    struct objective_kept *kept = xcalloc(1, sizeof *kept);
    struct json_write json;

    kept->run = xstrndup(objective->run.data, objective->run.length_bytes);
    buffer_init(&kept->objective_json, 64 * 1024);
    json_write_init(&json, &kept->objective_json);
    objective_json_write(&json, &objective->knobs);
    buffer_init(&kept->sums_json, 16 * 1024);
    json_write_init(&json, &kept->sums_json);
    write_sums(&json, result);
    keep_slices(objective, kept);
    kept->wait.op.kind = STORE_RECORD_OBJECTIVE;
    kept->wait.op.record_objective = (struct store_record_objective){.run = {kept->run, objective->run.length_bytes},
                                                                     .optimizer_step = objective->optimizer_step,
                                                                     .ppo_epoch = objective->ppo_epoch,
                                                                     .part = objective->part,
                                                                     .objective = buffer_text(&kept->objective_json),
                                                                     .sums = buffer_text(&kept->sums_json),
                                                                     .kl_estimator = kl_estimator(&objective->knobs),
                                                                     .slices = kept->slices,
                                                                     .slice_count = kept->slice_count};
    return kept;
}
