/* The body of a score without the arrays of its completions, which the record has anyhow. */
#include "server/spec/batch.h"

static void fill_given(const struct group_spec *group, uint64_t group_index, struct lean_member *given,
                       size_t *ret_count)
{
    *ret_count = 0;
    for (size_t i = 0; i < group->completion_count; i++) {
        const struct completion_spec *completion = &group->completions[i];
        if (!completion->ids)
            continue;
        given[(*ret_count)++] = (struct lean_member){
            .group_index = group_index,
            .sample_index = (uint64_t)group->first_sample_index + i,
            .arrays =
                {[LEAN_IDS] = completion->ids, [LEAN_LOGPROBS] = completion->logprobs, [LEAN_MASK] = completion->mask},
            .count = completion->token_count};
    }
}

/* All of the body's, in its order; each group has its own of them. */
static struct lean_member *make_given(struct batch_spec *spec, size_t *ret_count)
{
    struct lean_member *given = batch_spec_own(spec, xcalloc(spec->rollout_count + 1, sizeof(*given)));
    *ret_count = 0;
    for (size_t g = 0; g < spec->group_count; g++) {
        struct group_spec *group = &spec->groups[g];
        group->given = given + *ret_count;
        fill_given(group, g, group->given, &group->given_count);
        *ret_count += group->given_count;
    }
    return given;
}

static bool find_values(void *arg, const struct lean_part *part, struct text *ret_values)
{
    const struct batch_spec *spec = arg;
    const struct group_spec *group = &spec->groups[part->group_index];
    const struct completion_spec *completion =
        &group->completions[part->sample_index - (uint64_t)group->first_sample_index];
    const void *const arrays[LEAN_ARRAYS] = {
        [LEAN_IDS] = completion->ids, [LEAN_LOGPROBS] = completion->logprobs, [LEAN_MASK] = completion->mask};
    size_t width_bytes = lean_width_bytes[part->array];
    ret_values->data = (const char *)arrays[part->array] + part->first * width_bytes;
    ret_values->length_bytes = part->count * width_bytes;
    return true;
}

/* A request that came out in another way would be lost. */
static bool comes_out(struct batch_spec *spec, struct text lean)
{
    _cleanup_buffer_ struct buffer body;
    buffer_init(&body, spec->body_bytes);
    return lean_unpack(lean, find_values, spec, &body) &&
           text_same(buffer_text(&body), (struct text){spec->body, spec->body_bytes});
}

bool batch_spec_pack_lean(struct batch_spec *spec)
{
    enum { HEADS_BYTES = 1 << 20 };
    size_t count;
    const struct lean_member *given = make_given(spec, &count);
    _cleanup_buffer_ struct buffer lean;
    buffer_init(&lean, 2 * spec->body_bytes + HEADS_BYTES);
    bool packed = count > 0 && lean_pack((struct text){spec->body, spec->body_bytes}, given, count, &lean) &&
                  comes_out(spec, buffer_text(&lean)) &&
                  store_pack(buffer_text(&lean), &spec->packed) == STORE_CODEC_ZSTD;
    for (size_t g = 0; g < spec->group_count && !packed; g++)
        spec->groups[g].given_count = 0;
    return packed;
}
