/* The sums that are kept of objective calls: put on record for POST /v1/objective, listed by
 * GET /v1/runs/{run}/objective. */
#include "server/api/objective.h"

#include "server/api/manifest.h"
#include "server/api/page.h"
#include "server/api/routes.h"
#include "server/api/server.h"
#include "server/base/json_write.h"
#include "server/http/http.h"
#include "server/objective_call/tensors.h"

/* --- put on record --- */

static void recorded(struct store_op *op)
{
    struct objective_kept *kept = op->context;
    struct request *request = kept->wait.request;

    if (request && (op->status == STORE_OK || op->status == STORE_EXISTS)) {
        objective_answer(request_call(request));
        request_answer(request);
    } else if (request && op->status == STORE_MANIFEST_CONFLICT) {
        manifest_refuse(request, op, &kept->hold);
    } else {
        store_wait_refuse(&kept->wait, "");
    }
    objective_kept_destroy(kept);
}

/* The operation outlives the request if the client hangs up, so the call gives it away. */
void record_objective(void *owner, struct request *request)
{
    struct server *server = owner;
    struct objective_kept *kept = TAKE_PTR(request_call(request)->parsed);

    kept->wait.op.done = recorded;
    if (!store_wait_submit(&kept->wait, server->store, request))
        objective_kept_destroy(kept);
}

/* --- listed --- */

static void put_slice(struct json_write *json, const struct store_objective_slice *slice)
{
    json_put_int_or_null(json, "sample_incarnation", slice->incarnation);
    json_put_int_or_null(json, "revision", slice->revision);
    json_put_text(json, "engine", slice->engine);
    json_put_int(json, "sequences", slice->sequences);
    json_put_int(json, "trainable_tokens", slice->tokens);
    json_put_int(json, "clip_low", slice->clip_low);
    json_put_int(json, "clip_high", slice->clip_high);
    json_put_double(json, "loss", slice->loss);
    json_key(json, "sums");
    json_object_begin(json);
    for (size_t k = 0; k < STORE_OBJECTIVE_MEANS; k++) {
        json_key(json, store_objective_mean_names[k]);
        json_object_begin(json);
        json_put_double(json, "sum", slice->means[k].sum);
        json_put_int(json, "tokens", slice->means[k].tokens);
        json_object_end(json);
    }
    json_object_end(json);
}

static void put_sum(struct json_write *json, const struct store_objective_sum *sum)
{
    json_object_begin(json);
    json_put_int(json, "incarnation", sum->incarnation);
    json_put_int(json, "optimizer_step", sum->optimizer_step);
    json_put_int(json, "ppo_epoch", sum->ppo_epoch);
    json_put_int(json, "part", sum->part);
    json_put_time(json, "recorded_at", sum->recorded_at_us);
    json_put_text(json, "kl_estimator", sum->kl_estimator);
    put_slice(json, &sum->slice);
    json_object_end(json);
}

static void answer(struct call *call, const struct store_objective_sums *page)
{
    struct json_write json;

    json_write_init(&json, &call->reply.body);
    json_object_begin(&json);
    json_key(&json, "items");
    json_array_begin(&json);
    for (size_t i = 0; i < page->count; i++)
        put_sum(&json, &page->sums[i]);
    json_array_end(&json);
    json_put_string(&json, "next", *page->next ? page->next : NULL);
    json_object_end(&json);
    call_answer_json(call, 200);
}

/* No record_list: whether there is such a run is known only from the read of its first rows, which are small, so that a
 * page is read and rendered whole. */
void list_objective_sums(struct call *call)
{
    static const char *const known[] = {"optimizer_step", "ppo_epoch", "limit", "cursor", NULL};
    _cleanup_(store_objective_sums_finish) struct store_objective_sums sums = {0};
    struct page page;
    int64_t step = -1;
    int64_t epoch = -1;

    if (call_check_query(call, known) < 0 || query_page(call, &page) < 0 ||
        call_query_int(call, "optimizer_step", 0, INT64_MAX, &step) < 0 ||
        call_query_int(call, "ppo_epoch", 0, INT64_MAX, &epoch) < 0)
        return;
    enum store_status status = STORE_UNAVAILABLE;
    if (call->reader)
        status =
            store_list_objective_sums(call->reader, call->args[0], step, epoch, page.cursor, (size_t)page.limit, &sums);
    if (status == STORE_OK)
        answer(call, &sums);
    else
        page_refuse_run(call, status);
}
