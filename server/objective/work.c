/* One evaluation: its memory, its order of sequences, its ways to read an input. */
#include "server/objective/terms_private.h"

#include <stdlib.h>

int objective_fail(struct objective_error *ret_error, enum objective_error_code code, size_t sequence, size_t token,
                   const char *field, const char *message)
{
    *ret_error = (struct objective_error){
        .code = code, .sequence = sequence, .token = token, .field = field, .message = message};
    return -1;
}

void *work_allocate(struct objective_work *work, size_t count, size_t size_bytes)
{
    bool room = work->memory_count < sizeof work->memory / sizeof work->memory[0];
    void *memory = room ? calloc(count ? count : 1, size_bytes) : NULL;

    if (!memory) {
        objective_fail(work->error, OBJECTIVE_ERROR_MEMORY, SIZE_MAX, SIZE_MAX, NULL,
                       "there is no memory for this request");
        return NULL;
    }
    work->memory[work->memory_count++] = memory;
    return memory;
}

void work_finish(struct objective_work *work)
{
    for (size_t i = 0; i < work->memory_count; i++)
        free(work->memory[i]);
}

/* Counting sort: members of a group may stand anywhere, and keep the order of the request. */
static void sort_by_group(struct objective_work *work)
{
    const struct objective_request *request = work->request;

    for (size_t i = 0; i < request->sequence_count; i++)
        work->group_first[request->sequences[i].group + 1]++;
    for (size_t g = 0; g < request->group_count; g++)
        work->group_first[g + 1] += work->group_first[g];
    for (size_t i = request->sequence_count; i > 0; i--) {
        size_t group = request->sequences[i - 1].group;
        work->by_group[--work->group_first[group + 1]] = i - 1;
    }
    /* Now entry g + 1 is where group g begins. */
    for (size_t g = 0; g < request->group_count; g++)
        work->group_first[g] = work->group_first[g + 1];
    work->group_first[request->group_count] = request->sequence_count;
}

int work_init(struct objective_work *work, const struct objective_request *request, struct objective_error *error)
{
    *work = (struct objective_work){
        .request = request, .knobs = request->knobs, .kernels = objective_kernels(), .error = error};
    work->parts = work_allocate(work, request->sequence_count, sizeof *work->parts);
    work->by_group = work_allocate(work, request->sequence_count, sizeof *work->by_group);
    work->group_first = work_allocate(work, request->group_count + 2, sizeof *work->group_first);
    if (!work->parts || !work->by_group || !work->group_first)
        return -1;
    for (size_t i = 0; i < request->sequence_count; i++) {
        work->parts[i].first = work->tokens;
        work->tokens += request->sequences[i].tokens;
    }
    sort_by_group(work);
    return work_link_rollouts(work);
}

int work_need(struct objective_work *work, size_t index, struct objective_values values, const char *field,
              const char *why)
{
    if (is_present(values))
        return 0;
    return objective_fail(work->error, OBJECTIVE_ERROR_MISSING_INPUT, index, SIZE_MAX, field, why);
}

int work_read(struct objective_work *work, size_t index, size_t token, struct objective_values values,
              const char *field, double *ret_value)
{
    *ret_value = value_at(values, token);
    if (isfinite(*ret_value))
        return 0;
    return objective_fail(work->error, OBJECTIVE_ERROR_NON_FINITE, index, token, field,
                          "a trainable token needs a finite number");
}

struct objective_values old_values(const struct objective_sequence *sequence)
{
    return is_present(sequence->old_logprobs) ? sequence->old_logprobs : sequence->logprobs;
}

struct objective_values anchor_values(const struct objective_knobs *knobs, const struct objective_sequence *sequence)
{
    bool rollout = knobs->loss.anchor == OBJECTIVE_ANCHOR_ROLLOUT || objective_losses[knobs->loss.kind].reads_rollout;
    return rollout && is_present(sequence->rollout_logprobs) ? sequence->rollout_logprobs : old_values(sequence);
}

double work_advantage(const struct objective_work *work, size_t index, size_t token)
{
    return work->advantages ? work->advantages[work->parts[index].first + token]
                            : work->request->sequences[index].advantage;
}
