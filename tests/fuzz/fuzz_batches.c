/* Bodies of POST /v1/batches and POST /v1/score through the handlers' worker parts: each body is read as both. */
#include "server/api/batches.h"
#include "server/api/routes.h"
#include "server/settings/settings.h"
#include "server/spec/batch.h"
#include "tests/fuzz/fuzz.h"

static void check_group(const struct group_spec *group, enum batch_origin origin)
{
    int prompts = (group->prompt.data != NULL) + (group->messages.data != NULL) + (group->prompt_ids != NULL);

    FUZZ_CHECK(origin == BATCH_SAMPLED ? prompts == 1 : prompts <= 1);
    FUZZ_CHECK(group->n > 0 && group->sampling.max_tokens > 0);
}

/* The reader again, for what only the spec shows. */
static void read_spec(const uint8_t *data, size_t size_bytes, struct batch_spec *(*read)(struct call *call))
{
    struct call call;

    fuzz_call_init(&call, data, size_bytes);
    struct batch_spec *spec = read(&call);
    FUZZ_CHECK(!spec == (call.reply.status >= 400));
    if (spec) {
        FUZZ_CHECK(spec->group_count > 0 && spec->rollout_count >= spec->group_count);
        FUZZ_CHECK(spec->rollout_count <= (size_t)call.settings->max_rollouts_per_batch);
        FUZZ_CHECK(batch_spec_bytes(spec) >= spec->body_bytes);
        FUZZ_CHECK(!memchr(data, '\0', size_bytes));
        for (size_t i = 0; i < spec->group_count; i++)
            check_group(&spec->groups[i], spec->origin);
    }
    batch_spec_destroy(spec);
    call_finish(&call);
}

static void handle(const uint8_t *data, size_t size_bytes, void (*handler)(struct call *call))
{
    struct call call;

    fuzz_call_init(&call, data, size_bytes);
    call.accept_ndjson = size_bytes % 2;
    handler(&call);
    FUZZ_CHECK(call.parsed || call.reply.status >= 400);
    fuzz_check_reply(&call);
    call_finish(&call);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
    handle(data, size_bytes, parse_batch);
    handle(data, size_bytes, parse_score);
    read_spec(data, size_bytes, batch_spec_read);
    read_spec(data, size_bytes, score_spec_read);
    return 0;
}
