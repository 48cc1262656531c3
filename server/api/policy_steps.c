/* Weight updates in steps: begin stops the dispatch of a run, commit or cancel resumes it. */
#include "server/api/policy.h"

#include "server/api/routes.h"
#include "server/api/store_wait.h"
#include "server/base/clock.h"
#include "server/base/json_write.h"
#include "server/batches/live.h"
#include "server/batches/weight_update.h"
#include "server/delivery/delivery.h"
#include "server/input/input.h"
#include "server/render/render.h"
#include "server/settings/settings.h"
#include "server/spec/batch.h"

struct step_fields {
    int64_t revision;
    int64_t rewind_to_step;
    int64_t deadline_us;
    int mode;
};

#define STEP(field) offsetof(struct step_fields, field)
#define DEADLINE_MAX_US (INT64_C(86400) * US_PER_S)

static const struct field begin_table[] = {
    {"revision", FIELD_INT, FIELD_REQUIRED, STEP(revision), 0, 9223372036854775807.0, NULL},
    {"rewind_to_step", FIELD_INT, 0, STEP(rewind_to_step), 0, 9223372036854775807.0, NULL},
    {"mode", FIELD_CHOICE, 0, STEP(mode), 0, 0, store_update_mode_names},
    {"deadline", FIELD_DURATION, 0, STEP(deadline_us), 0, 0, NULL},
};

static const struct field end_table[] = {
    {"revision", FIELD_INT, 0, STEP(revision), 0, 9223372036854775807.0, NULL},
};

static void parse(struct call *call, const struct field *table, size_t count)
{
    struct json_input input;
    struct step_fields *fields = xcalloc(1, sizeof(*fields));
    *fields = (struct step_fields){.revision = -1,
                                   .rewind_to_step = -1,
                                   .mode = call->settings->policy_mode,
                                   .deadline_us = call->settings->policy_deadline_us};
    call->parsed = fields;
    call->parsed_destroy = free;
    run_name_check(call, call->args[0]);
    if (call->reply.status || (call->body_bytes == 0 && table == end_table) || json_input_init(&input, call, NULL) < 0)
        return;
    json_read_object(&input, input.root, "", table, count, fields);
    if (call->reply.status == 0 && (fields->deadline_us < US_PER_MS || fields->deadline_us > DEADLINE_MAX_US))
        call_refuse(call, ERR_INVALID_FIELD, "deadline", "a duration from 1ms to 24h");
    json_input_finish(&input);
}

void parse_policy_begin(struct call *call)
{
    parse(call, begin_table, ARRAY_LENGTH(begin_table));
}

void parse_policy_end(struct call *call)
{
    parse(call, end_table, ARRAY_LENGTH(end_table));
}

/* --- a step on its way to the record --------------------------------------------------------------------------- */

struct step {
    struct store_wait wait;    /* first */
    struct begin_waiter begin; /* of a begin that is on record */
    struct server *server;
    char *run;
    char *key;
};

static void step_destroy(struct step *step)
{
    free(step->run);
    free(step->key);
    free(step);
}

static void policy_stepped(struct store_op *op);

static void submit(struct server *server, struct request *request, enum store_update_step which)
{
    static const enum store_route routes_of[] = {[STORE_STEP_BEGIN] = STORE_ROUTE_BEGIN,
                                                 [STORE_STEP_COMMIT] = STORE_ROUTE_COMMIT,
                                                 [STORE_STEP_CANCEL] = STORE_ROUTE_CANCEL};
    struct call *call = request_call(request);
    const struct step_fields *fields = call->parsed;
    struct step *step = xcalloc(1, sizeof(*step));
    int64_t now_us = clock_utc_us();
    step->server = server;
    step->run = xstrndup(call->args[0].data, call->args[0].length_bytes);
    struct store_op *op = &step->wait.op;
    *op = (struct store_op){.kind = STORE_UPDATE_POLICY, .done = policy_stepped};
    op->update_policy = (struct store_update_policy){
        .step = which,
        .run = {step->run, call->args[0].length_bytes},
        .update = {.revision = fields->revision,
                   .rewind_to_step = fields->rewind_to_step,
                   .mode = (enum store_update_mode)fields->mode,
                   .begun_at_us = now_us,
                   .deadline_us = now_us + fields->deadline_us},
    };
    policy_take_key(call, routes_of[which], &step->key, &op->update_policy.key);
    if (!store_wait_submit(&step->wait, server->store, request))
        step_destroy(step);
}

bool policy_refuse_early(const struct server *server, struct request *request)
{
    if (!server->batches->resumed)
        request_refuse(request, ERR_DRAINING, NULL, "the service is still starting");
    return !server->batches->resumed;
}

void begin_policy(void *owner, struct request *request)
{
    struct server *server = owner;
    if (policy_refuse_early(server, request))
        return;
    if (updates_are_full(server->batches) && !update_find(server->batches, request_call(request)->args[0])) {
        request_refuse(request, ERR_QUEUE_FULL, NULL, "%d weight updates are open", UPDATES_MAX);
        return;
    }
    submit(server, request, STORE_STEP_BEGIN);
}

void commit_policy(void *owner, struct request *request)
{
    struct server *server = owner;
    size_t in_flight;
    if (policy_refuse_early(server, request))
        return;
    if (update_may_be_committed(server->batches, request_call(request)->args[0], &in_flight)) {
        submit(server, request, STORE_STEP_COMMIT);
        return;
    }
    request_refuse(request, ERR_STATE_CONFLICT, "run", "begin has not been answered yet: %zu samples are still to end",
                   in_flight);
}

void cancel_policy(void *owner, struct request *request)
{
    struct server *server = owner;
    if (!policy_refuse_early(server, request))
        submit(server, request, STORE_STEP_CANCEL);
}

/* --- replies ---------------------------------------------------------------------------------------------------- */

void policy_write_update(struct json_write *json, struct text run, const struct store_policy_update *update)
{
    json_put_text(json, "run", run);
    update_write_record(json, update);
    json_put_int(json, "incarnation", update->incarnation);
    json_put_int_or_null(json, "previous_revision", update->previous_revision);
}

static void answer(struct request *request, struct text run, const struct store_policy_update *update)
{
    struct call *call = request_call(request);
    struct json_write json;
    json_write_init(&json, &call->reply.body);
    json_object_begin(&json);
    policy_write_update(&json, run, update);
    json_object_end(&json);
    call_answer_json(call, 200);
    request_answer(request);
}

static void refuse_state(struct request *request, const struct store_op *op)
{
    const struct store_policy_update *newest = &op->update_policy.update;
    if (newest->revision < 0)
        request_refuse(request, ERR_STATE_CONFLICT, "run", "%s", op->message);
    else
        request_refuse(request, ERR_STATE_CONFLICT, "run", "%s; the newest one, to revision %lld in mode %s, is %s",
                       op->message, (long long)newest->revision, store_update_mode_names[newest->mode],
                       store_update_state_names[newest->state]);
}

static void refuse(const struct store_wait *wait)
{
    const struct store_op *op = &wait->op;
    if (op->status == STORE_STATE_CONFLICT)
        refuse_state(wait->request, op);
    else if (op->status == STORE_REVISION_CONFLICT)
        request_refuse(wait->request, ERR_REVISION_CONFLICT, "revision",
                       "revision %lld is below the run's %lld: a smaller one needs rewind_to_step",
                       (long long)op->update_policy.update.revision, (long long)op->update_policy.current_revision);
    else
        store_wait_refuse(wait, "");
}

/* --- a begin that waits until its mode's promise is true ------------------------------------------------------- */

static bool begin_hung_up(struct request *request, void *arg)
{
    struct step *step = arg;
    (void)request;
    update_leave(&step->begin);
    step_destroy(step);
    return true;
}

static void refuse_ended(struct request *request, enum begin_end end, const struct store_policy_update *record)
{
    static const char *const cut_short[] = {[STORE_UPDATE_COMMITTED] = "was committed before it was begun",
                                            [STORE_UPDATE_CANCELLED] = "was cancelled before it was begun",
                                            [STORE_UPDATE_EXPIRED] = "was ended by its deadline before it was begun"};
    static const char *const over[] = {
        [STORE_UPDATE_CANCELLED] = "was cancelled", [STORE_UPDATE_EXPIRED] = "has ended by its deadline"};
    request_refuse(request, ERR_STATE_CONFLICT, "revision", "the update to revision %lld %s",
                   (long long)record->revision, (end == BEGIN_CUT_SHORT ? cut_short : over)[record->state]);
}

static void begun(void *arg, enum begin_end end, const struct store_policy_update *record)
{
    struct step *step = arg;
    struct request *request = step->wait.request;
    request_on_hangup(request, NULL, NULL);
    if (end == BEGIN_HOLDS)
        answer(request, text_of(step->run), record);
    else
        refuse_ended(request, end, record);
    step_destroy(step);
}

/* --- what came of it ------------------------------------------------------------------------------------------- */

static void policy_begun(struct step *step)
{
    struct batches *batches = step->server->batches;
    struct request *request = step->wait.request;
    if (!request) {
        update_begun(batches, &step->wait.op, NULL);
        step_destroy(step);
        return;
    }
    step->begin = (struct begin_waiter){.done = begun, .arg = step};
    request_on_hangup(request, begin_hung_up, step);
    update_begun(batches, &step->wait.op, &step->begin);
}

static void policy_stepped(struct store_op *op)
{
    struct step *step = op->context;
    struct request *request = step->wait.request;
    bool taken = op->status == STORE_OK || op->status == STORE_EXISTS;
    if (taken && op->update_policy.step == STORE_STEP_BEGIN) {
        policy_begun(step);
        return;
    }
    if (request)
        request_on_hangup(request, NULL, NULL);
    update_ended(step->server->batches, op);
    if (op->status == STORE_OK)
        delivery_given_back(step->server->delivery, text_of(step->run), (size_t)op->update_policy.returned);
    if (request && taken)
        answer(request, op->update_policy.run, &op->update_policy.update);
    else if (request)
        refuse(&step->wait);
    step_destroy(step);
}
