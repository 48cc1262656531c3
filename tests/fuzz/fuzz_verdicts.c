/* Replies of a text worker, read by the service. The same bytes are also read by a worker as the content of a frame. */
#include "server/base/json_write.h"
#include "server/verify/pool.h"
#include "server/verify/spec.h"
#include "tests/fuzz/fuzz.h"
#include "verifiers/worker/worker.h"

#include <math.h>

static struct verifier_list *make_list(void)
{
    static const char body[] =
        "[{\"name\":\"math\",\"weight\":1.5},{\"name\":\"format\",\"options\":{\"template\":\"think_answer\"}},"
        "{\"name\":\"cosine_length\",\"options\":{\"of\":\"math\",\"max_length\":8,\"max_correct\":1e9,\"min_wrong\":-"
        "1e9}},"
        "{\"name\":\"repetition\",\"options\":{\"of\":\"cosine_length\",\"ngram\":1,\"max_penalty\":-1}},"
        "{\"name\":\"exact\",\"id\":\"held\",\"heldout\":true},"
        "{\"name\":\"exact\",\"id\":\"lines\",\"steps\":\"per_line\",\"weight\":0.5}]";
    json_t *value = json_loads(body, 0, NULL);
    struct call call;
    struct json_input input;

    call_init(&call);
    input = (struct json_input){.call = &call};
    struct verifier_list *list = verifier_list_read(&input, value, "verifiers");
    fuzz_check_reply(&call);
    FUZZ_CHECK(list);
    call_finish(&call);
    json_decref(value);
    return list;
}

static void check_written(const struct verifier_list *list, const struct verdict_set *set)
{
    _cleanup_buffer_ struct buffer out;
    struct json_write json;

    buffer_init(&out, 16 << 20);
    json_write_init(&json, &out);
    json_array_begin(&json);
    verdict_set_write(&json, list, set);
    rewards_write(&json, list, set);
    heldout_write(&json, list, set);
    json_array_end(&json);
    json_t *root = json_loadb(out.data, out.length_bytes, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);
    FUZZ_CHECK(json_array_size(root) == 3 && json_array_size(json_array_get(root, 0)) == list->count);
    json_decref(root);
}

static void check_set(const struct verifier_list *list, const struct verdict_set *set)
{
    bool all_scored = true;

    FUZZ_CHECK(set->count == list->count);
    for (size_t i = 0; i < set->count; i++) {
        const struct verdict_record *record = &set->verdicts[i];
        bool unscored = record->kind == VERDICT_UNSCORED;
        FUZZ_CHECK(unscored ? isnan(record->score) && record->failure_code[0] : isfinite(record->score) != 0);
        FUZZ_CHECK(unscored || !record->failure_code[0]);
        FUZZ_CHECK(unscored ? !record->steps : !record->steps == !list->specs[i].steps);
        for (size_t s = 1; s < record->step_count; s++)
            FUZZ_CHECK(record->steps[s].byte_end > record->steps[s - 1].byte_end);
        all_scored &= !unscored || list->specs[i].heldout;
    }
    struct reward reward = reward_combine(list, set, REWARD_MISSING_NULL);
    FUZZ_CHECK(isnan(reward.value) == !all_scored || reward.failure);
    FUZZ_CHECK(!isinf(reward.value));
    check_written(list, set);
}

static void check_worker(struct text request)
{
    _cleanup_buffer_ struct buffer out;

    buffer_init(&out, 4 << 20);
    if (worker_answer(request, 0, &(struct worker_means){.slot_fd = -1}, 0, &out) < 0)
        return;
    json_t *root = json_loadb(out.data, out.length_bytes, JSON_ALLOW_NUL, NULL);
    FUZZ_CHECK(json_is_array(json_object_get(root, "verdicts")) && out.length_bytes <= WORKER_REPLY_LIMIT_BYTES);
    json_decref(root);
}

static void read_reply(const struct verifier_list *list, struct text reply, struct verdict_set *ret_set)
{
    struct verify_job job = {.frame = NULL};

    verify_job_ask(&job, list, 1);
    job.parts[WORKER_TEXT].reply = (char *)(uintptr_t)reply.data;
    job.parts[WORKER_TEXT].reply_bytes = reply.length_bytes;
    verdict_set_read(&job, ret_set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
    static struct verifier_list *list;
    struct text reply = {data ? (const char *)data : "", size_bytes};
    struct verdict_set set;

    if (!list)
        list = make_list();
    read_reply(list, reply, &set);
    check_set(list, &set);
    verdict_set_finish(&set);
    check_worker(reply);
    return 0;
}
