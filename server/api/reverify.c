/* /v1/reverify: stored rollouts, judged once more. */
#include "server/reverify/reverify.h"

#include "server/api/page.h"
#include "server/api/routes.h"
#include "server/api/server.h"
#include "server/api/store_wait.h"
#include "server/base/cleanup.h"
#include "server/base/json_write.h"
#include "server/base/log.h"
#include "server/http/http.h"

#include <math.h>
#include <stdio.h>

enum { FLIPS_DEFAULT = 1000 };

/* ---- posted ------------------------------------------------------------------------------------------------------ */

/* From the loop part until the operation is on record. */
struct posting {
    struct store_wait wait; /* first */
    struct server *server;
    struct reverify_request *request;
    char *key; /* NULL: none */
};

static void posting_destroy(struct posting *posting)
{
    reverify_request_destroy(posting->request);
    free(posting->key);
    free(posting);
}

static void destroy_parsed(void *parsed)
{
    reverify_request_destroy(parsed);
}

/* Worker. */
void parse_reverify(struct call *call)
{
    struct reverify_request *request = reverify_request_read(call);

    if (!request)
        return;
    call->parsed = request;
    call->parsed_destroy = destroy_parsed;
    reverify_request_count(call, request);
}

static void answer_state(struct request *request, int status, const char *id, enum store_reverify_state state)
{
    struct call *call = request_call(request);
    struct json_write json;

    json_write_init(&json, &call->reply.body);
    json_object_begin(&json);
    json_put_string(&json, "id", id);
    json_put_string(&json, "state", store_reverify_state_names[state]);
    json_object_end(&json);
    call_answer_json(call, status);
    request_answer(request);
}

static void answer_posted(struct request *request, const struct store_create_reverification *made)
{
    struct call *call = request_call(request);

    snprintf(call->reply.location, sizeof call->reply.location, "/v1/reverify/%s", made->id);
    answer_state(request, 202, made->id, made->state);
}

static void posted(struct store_op *op)
{
    struct posting *posting = op->context;
    struct request *request = posting->wait.request;

    if (request)
        request_on_hangup(request, NULL, NULL);
    if (op->status == STORE_OK)
        reverify_begin(posting->server->reverify, op->create_reverification.id, TAKE_PTR(posting->request));
    if (request && (op->status == STORE_OK || op->status == STORE_EXISTS))
        answer_posted(request, &op->create_reverification);
    else if (request && op->status == STORE_NOT_FOUND)
        request_refuse(request, ERR_NOT_FOUND, "run", "there is no run of this name");
    else
        store_wait_refuse(&posting->wait, ": nothing is judged again");
    posting_destroy(posting);
}

static struct posting *posting_create(struct server *server, struct call *call)
{
    struct posting *posting = xcalloc(1, sizeof *posting);
    struct store_create_reverification *create = &posting->wait.op.create_reverification;

    posting->server = server;
    posting->request = TAKE_PTR(call->parsed);
    posting->request->input.call = NULL;
    posting->key = call->idempotency_key ? xstrdup(call->idempotency_key) : NULL;
    posting->wait.op.kind = STORE_CREATE_REVERIFICATION;
    posting->wait.op.done = posted;
    id_new_reverification(create->id);
    create->run = posting->request->filter.run;
    create->key = posting->key ? text_of(posting->key) : TEXT_NONE;
    memcpy(create->request_sha256, call->body_sha256, SHA256_BYTES);
    create->request = text_of(posting->request->text);
    create->rollouts = posting->request->rollouts;
    create->last_rollout = posting->request->last_rollout;
    return posting;
}

void create_reverify(void *owner, struct request *request)
{
    struct server *server = owner;
    struct call *call = request_call(request);
    struct posting *posting;

    if (reverify_check_judges(server->pool, call, call->parsed) < 0) {
        request_answer(request);
        return;
    }
    if (reverify_is_full(server->reverify)) {
        request_refuse(request, ERR_QUEUE_FULL, NULL,
                       "too many reverifications run or wait for their turn; try again when one has ended");
        return;
    }
    posting = posting_create(server, call);
    if (!store_wait_submit(&posting->wait, server->store, request))
        posting_destroy(posting);
}

/* ---- cancelled --------------------------------------------------------------------------------------------------- */

struct cancelling {
    struct store_wait wait; /* first */
    struct server *server;
};

static void cancelled(struct store_op *op)
{
    struct cancelling *cancelling = op->context;
    struct request *request = cancelling->wait.request;

    if (request)
        request_on_hangup(request, NULL, NULL);
    if (op->status == STORE_OK)
        reverify_stop(cancelling->server->reverify, op->end_reverification.id);
    if (request && (op->status == STORE_OK || op->status == STORE_EXISTS))
        answer_state(request, 200, op->end_reverification.id, op->end_reverification.state);
    else if (request && op->status == STORE_NOT_FOUND)
        request_refuse(request, ERR_NOT_FOUND, "id", "there is no reverification with this id");
    else
        store_wait_refuse(&cancelling->wait, ": it continues");
    free(cancelling);
}

/* Verdicts that are on record stay there. */
void cancel_reverify(void *owner, struct request *request)
{
    struct server *server = owner;
    struct text id = request_call(request)->args[0];
    struct cancelling *cancelling;

    if (id.length_bytes >= ID_BYTES) {
        request_refuse(request, ERR_NOT_FOUND, "id", "there is no reverification with this id");
        return;
    }
    cancelling = xcalloc(1, sizeof *cancelling);
    cancelling->server = server;
    cancelling->wait.op.kind = STORE_END_REVERIFICATION;
    cancelling->wait.op.done = cancelled;
    memcpy(cancelling->wait.op.end_reverification.id, id.data, id.length_bytes);
    cancelling->wait.op.end_reverification.state = STORE_REVERIFY_CANCELLED;
    if (!store_wait_submit(&cancelling->wait, server->store, request))
        free(cancelling);
}

/* ---- read -------------------------------------------------------------------------------------------------------- */

static void write_mean(struct json_write *json, const char *name, const struct precise_sum *sum, int64_t count)
{
    double mean = count > 0 ? precise_sum_mean(sum, (double)count) : NAN;

    json_key(json, name);
    json_object_begin(json);
    json_put_double(json, "mean", isfinite(mean) ? mean : NAN);
    json_object_end(json);
}

static void write_failure(struct json_write *json, const struct store_reverification *row)
{
    if (!row->failure_code.data) {
        json_put_null(json, "failure");
        return;
    }
    json_key(json, "failure");
    json_object_begin(json);
    json_put_text(json, "code", row->failure_code);
    json_put_text(json, "message", row->failure_message);
    json_object_end(json);
}

/* Members of an object that the caller has opened. */
static void write_members(struct json_write *json, const struct store_reverification *row)
{
    json_put_string(json, "id", row->id);
    json_put_text(json, "run", row->run);
    json_put_string(json, "state", store_reverify_state_names[row->state]);
    json_put_time(json, "created_at", row->created_at_us);
    if (row->ended_at_us < 0)
        json_put_null(json, "ended_at");
    else
        json_put_time(json, "ended_at", row->ended_at_us);
    json_put_raw(json, "request", row->request);
    json_put_int(json, "rollouts", row->rollouts);
    json_put_int(json, "judged", row->judged);
    json_put_int(json, "unscored", row->unscored);
    json_put_int(json, "flipped", row->flipped);
    json_key(json, "reward");
    json_object_begin(json);
    json_put_int(json, "n", row->rewarded);
    write_mean(json, "from", &row->reward_from, row->rewarded);
    write_mean(json, "to", &row->reward_to, row->rewarded);
    json_object_end(json);
    write_failure(json, row);
}

static void write_side(struct json_write *json, const char *name, struct text version, double score)
{
    json_key(json, name);
    json_object_begin(json);
    json_put_text(json, "version", version);
    json_put_double(json, "score", score);
    json_object_end(json);
}

static void write_flips(struct json_write *json, const struct store_reverifications *found)
{
    json_key(json, "flips");
    json_array_begin(json);
    for (size_t i = 0; i < found->flip_count; i++) {
        const struct store_flip *flip = &found->flips[i];
        json_object_begin(json);
        json_put_string(json, "rollout", flip->rollout_id);
        json_put_text(json, "verifier", flip->verifier);
        write_side(json, "from", flip->from_version, flip->from_score);
        write_side(json, "to", flip->to_version, flip->to_score);
        json_object_end(json);
    }
    json_array_end(json);
    json_put_string(json, "next", found->next[0] ? found->next : NULL);
}

void get_reverify(struct call *call)
{
    static const char *const known[] = {"limit", "cursor", NULL};
    _cleanup_(store_reverifications_finish) struct store_reverifications found = {0};
    enum store_status status = STORE_UNAVAILABLE;
    struct json_write json;
    struct page page;

    if (call_check_query(call, known) < 0 || query_page(call, &page) < 0)
        return;
    if (!call_query(call, "limit").data)
        page.limit = FLIPS_DEFAULT;
    if (call->reader)
        status = store_read_reverification(call->reader, call->args[0], page.cursor, (size_t)page.limit, &found);
    if (status == STORE_NOT_FOUND) {
        call_refuse(call, ERR_NOT_FOUND, "id", "there is no reverification with this id");
        return;
    }
    if (status != STORE_OK) {
        page_refuse_run(call, status);
        return;
    }
    json_write_init(&json, &call->reply.body);
    json_object_begin(&json);
    write_members(&json, &found.items[0]);
    write_flips(&json, &found);
    json_object_end(&json);
    call_answer_json(call, 200);
}

void list_reverify(struct call *call)
{
    static const char *const known[] = {"run", "limit", "cursor", NULL};
    _cleanup_(store_reverifications_finish) struct store_reverifications found = {0};
    enum store_status status = STORE_UNAVAILABLE;
    struct json_write json;
    struct page page;

    if (call_check_query(call, known) < 0 || query_page(call, &page) < 0)
        return;
    if (call->reader)
        status =
            store_list_reverifications(call->reader, call_query(call, "run"), page.cursor, (size_t)page.limit, &found);
    if (status != STORE_OK) {
        page_refuse_run(call, status);
        return;
    }
    json_write_init(&json, &call->reply.body);
    json_object_begin(&json);
    json_key(&json, "items");
    json_array_begin(&json);
    for (size_t i = 0; i < found.count; i++) {
        json_object_begin(&json);
        write_members(&json, &found.items[i]);
        json_object_end(&json);
    }
    json_array_end(&json);
    json_put_string(&json, "next", found.next[0] ? found.next : NULL);
    json_object_end(&json);
    call_answer_json(call, 200);
}
