/* Prompts, references and completions of a batch, as the record keeps them. */
#include "server/spec/batch.h"

#include "server/base/json_write.h"

enum { ESCAPED_BYTES = 6 };

/* owner: the buffer that `plain` is in, taken where it is needed; NULL: the text is the specification's. */
static void make(struct batch_spec *spec, struct text plain, struct buffer *owner, struct store_content *ret_content)
{
    _cleanup_buffer_ struct buffer packed = {0};
    buffer_init(&packed, plain.length_bytes + STORE_PACK_ROOM_BYTES);
    store_content_make(plain, &packed, ret_content);
    if (ret_content->codec != STORE_CODEC_PLAIN)
        ret_content->stored = batch_spec_own_buffer(spec, &packed);
    else if (owner)
        ret_content->stored = batch_spec_own_buffer(spec, owner);
}

static void make_prompt(struct batch_spec *spec, struct group_spec *group)
{
    _cleanup_buffer_ struct buffer quoted = {0};
    struct json_write json;
    if (group->messages.data) {
        make(spec, group->messages, NULL, &group->prompt_content);
        return;
    }
    buffer_init(&quoted, ESCAPED_BYTES * group->prompt.length_bytes + ESCAPED_BYTES);
    json_write_init(&json, &quoted);
    json_text(&json, group->prompt);
    make(spec, buffer_text(&quoted), &quoted, &group->prompt_content);
}

static void pack_completion(struct batch_spec *spec, struct completion_spec *completion)
{
    _cleanup_buffer_ struct buffer packed = {0};
    buffer_init(&packed, completion->text.length_bytes + STORE_PACK_ROOM_BYTES);
    if (!store_pack_text(completion->text, &packed).data)
        return;
    buffer_trim(&packed);
    completion->packed_text = batch_spec_own_buffer(spec, &packed);
}

void batch_spec_make_contents(struct batch_spec *spec)
{
    for (size_t g = 0; g < spec->group_count; g++) {
        struct group_spec *group = &spec->groups[g];
        make_prompt(spec, group);
        make(spec, group->reference_json.data ? group->reference_json : TEXT_LITERAL("null"), NULL,
             &group->reference_content);
        for (size_t i = 0; i < group->completion_count; i++)
            pack_completion(spec, &group->completions[i]);
    }
}

void batch_spec_new_group(const struct group_spec *group, struct store_new_group *ret_group)
{
    *ret_group = (struct store_new_group){.task = group->task,
                                          .draw = group->draw,
                                          .first_sample_index = group->first_sample_index,
                                          .n = group->n,
                                          .sampling = group->sampling_json,
                                          .verifiers = group->verifiers_json,
                                          .metadata = group->metadata_json,
                                          .prompt = &group->prompt_content,
                                          .reference = &group->reference_content,
                                          .tags = group->tags_json,
                                          .set_task_seq = group->set_task_seq,
                                          .given = group->given,
                                          .given_count = group->given_count,
                                          .prompt_ids = group->prompt_ids,
                                          .prompt_id_count = group->prompt_id_count};
}
