/* Leases: POST /v1/runs/{run}/leases takes one, and waits for groups; GET lists the open ones, and shows one. */
#include "server/api/leases.h"

#include "server/api/batches.h"
#include "server/api/page.h"
#include "server/api/policy.h"
#include "server/api/routes.h"
#include "server/api/store_wait.h"
#include "server/base/clock.h"
#include "server/base/json_write.h"
#include "server/delivery/delivery.h"
#include "server/input/input.h"
#include "server/render/lease.h"
#include "server/settings/settings.h"
#include "server/spec/batch.h"

#include <stdio.h>

#define LEASES_SHOWN_MAX 1000 /* of the list */

/* --- POST: reading ---------------------------------------------------------------------------------------- */

struct lease_fields {
    int64_t groups;
    int64_t max_staleness;
    int64_t lease_us;
    int64_t wait_us;
    bool exact;
};

#define LEASE(field) offsetof(struct lease_fields, field)

static const struct field lease_table[] = {
    {"groups", FIELD_INT, 0, LEASE(groups), 1, STORE_LEASE_GROUPS_MAX, NULL},
    {"max_staleness", FIELD_INT, FIELD_NULLABLE, LEASE(max_staleness), 0, 9223372036854775807.0, NULL},
    {"lease", FIELD_DURATION, 0, LEASE(lease_us), 0, 0, NULL},
    {"wait", FIELD_DURATION, 0, LEASE(wait_us), 0, 0, NULL},
    {"exact", FIELD_BOOL, 0, LEASE(exact), 0, 0, NULL},
};

int lease_check_duration(struct call *call, int64_t lease_us)
{
    if (lease_us >= US_PER_MS && lease_us <= LEASE_MAX_US)
        return 0;
    return call_refuse(call, ERR_INVALID_FIELD, "lease", "a lease is held for 1ms to 720h");
}

static int read_lease(struct call *call, struct lease_fields *fields)
{
    struct json_input input;
    if (call->body_bytes == 0)
        return 0;
    if (json_input_init(&input, call, NULL) < 0)
        return -1;
    int result =
        json_read_object(&input, input.root, "", lease_table, sizeof(lease_table) / sizeof(*lease_table), fields);
    if (result == 0)
        result = lease_check_duration(call, fields->lease_us);
    if (result == 0 && fields->wait_us > LEASE_WAIT_MAX_US)
        result = call_refuse(call, ERR_INVALID_FIELD, "wait", "a request waits for at most 24h");
    json_input_finish(&input);
    return result;
}

void parse_lease(struct call *call)
{
    static const char *const known[] = {"arrays", NULL};
    struct lease_fields *fields = xcalloc(1, sizeof(*fields));
    int arrays;
    *fields = (struct lease_fields){.groups = 1,
                                    .max_staleness = -1,
                                    .lease_us = call->settings->lease_duration_us,
                                    .wait_us = call->settings->lease_wait_us};
    call->parsed = fields;
    call->parsed_destroy = free;
    if (call_check_query(call, known) < 0 || call_query_arrays(call, &arrays) < 0 ||
        run_name_check(call, call->args[0]) < 0)
        return;
    read_lease(call, fields);
}

/* --- POST: taking ------------------------------------------------------------------------------------------ */

struct taking {
    struct lease_request lease; /* first */
    struct server *server;
    struct request *request; /* NULL: the client hung up */
    char *run;
    char *key;
};

static void taking_destroy(struct taking *taking)
{
    free(taking->run);
    free(taking->key);
    free(taking);
}

/* Worker. call->subject names the lease; empty: nothing was ready. */
static void answer_lease(struct call *call)
{
    struct text lease_id = call->subject[0] ? text_of(call->subject) : TEXT_NONE;
    if (call->accept_safetensors)
        lease_tensors_answer(call, call->args[0], lease_id, NULL);
    else
        render_answer_lease(call, call->args[0], lease_id, NULL);
}

/* Nobody was told of it, and nobody can ask for it again. */
static void give_back(const struct taking *taking)
{
    const struct store_take_lease *take = &taking->lease.op.take_lease;
    if (taking->lease.op.status == STORE_OK && take->taken && !taking->key)
        delivery_release(taking->server->delivery, text_of(taking->run), take->id);
}

static void taken(struct lease_request *lease)
{
    struct taking *taking = (struct taking *)lease;
    const struct store_op *op = &lease->op;
    struct request *request = taking->request;
    if (!request) {
        give_back(taking);
    } else if (op->status == STORE_OK || op->status == STORE_EXISTS) {
        bool has_lease = op->status == STORE_EXISTS || op->take_lease.taken;
        struct call *call = request_call(request);
        snprintf(call->subject, ID_BYTES, "%s", has_lease ? op->take_lease.id : "");
        call->subject_at = "/v1/runs/{run}/leases/";
        request_continue_on_worker(request, answer_lease);
    } else {
        request_on_hangup(request, NULL, NULL);
        lease_refuse(request, op, "run");
    }
    taking_destroy(taking);
}

static bool hung_up(struct request *request, void *arg)
{
    struct taking *taking = arg;
    (void)request;
    taking->request = NULL;
    if (delivery_leave(&taking->lease))
        taking_destroy(taking);
    return true;
}

void take_lease(void *owner, struct request *request)
{
    struct server *server = owner;
    struct call *call = request_call(request);
    const struct lease_fields *fields = call->parsed;
    struct taking *taking = xcalloc(1, sizeof(*taking));
    struct store_take_lease *take = &taking->lease.op.take_lease;

    taking->server = server;
    taking->request = request;
    taking->run = xstrndup(call->args[0].data, call->args[0].length_bytes);
    *take = (struct store_take_lease){.run = text_of(taking->run),
                                      .wanted = fields->groups,
                                      .max_staleness = fields->max_staleness,
                                      .lease_us = fields->lease_us};
    id_new_lease(take->id);
    policy_take_key(call, STORE_ROUTE_LEASES, &taking->key, &take->key);
    taking->lease.until_us = loop_now_us(server->loop) + fields->wait_us;
    taking->lease.exact = fields->exact;
    taking->lease.done = taken;
    request_on_hangup(request, hung_up, taking);
    if (delivery_ask(server->delivery, &taking->lease))
        return;
    request_on_hangup(request, NULL, NULL);
    request_refuse(request, ERR_QUEUE_FULL, NULL, "the store's queue is full; try again");
    taking_destroy(taking);
}

/* --- GET ------------------------------------------------------------------------------------------------------- */

static void answer_list(struct call *call, const struct store_leases *leases)
{
    struct json_write json;
    json_write_init(&json, &call->reply.body);
    json_object_begin(&json);
    json_key(&json, "items");
    json_array_begin(&json);
    for (size_t i = 0; i < leases->count; i++)
        render_lease_line(&json, &leases->leases[i]);
    json_array_end(&json);
    json_put_null(&json, "next");
    json_object_end(&json);
    call_answer_json(call, 200);
}

void list_leases(struct call *call)
{
    _cleanup_(store_leases_finish) struct store_leases leases = {0};
    enum store_status status = STORE_UNAVAILABLE;
    if (call->reader)
        status = store_list_open_leases(call->reader, call->args[0], LEASES_SHOWN_MAX, &leases);
    if (status == STORE_OK)
        answer_list(call, &leases);
    else
        page_refuse_run(call, status);
}

/* ?rank=&ranks=&by=: none of them is the whole lease. */
static int read_share(struct call *call, struct lease_share *share)
{
    static const char *const words[] = {
        [SHARE_BY_GROUPS] = "groups", [SHARE_BY_ROLLOUTS] = "rollouts", [SHARE_BY_TOKENS] = "tokens", NULL};
    int by = SHARE_BY_GROUPS;
    *share = (struct lease_share){.rank = -1};
    if (call_query_int(call, "ranks", 1, SHARE_RANKS_MAX, &share->ranks) < 0 ||
        call_query_int(call, "rank", 0, SHARE_RANKS_MAX - 1, &share->rank) < 0 ||
        call_query_word(call, "by", words, &by) < 0)
        return -1;
    share->by = (enum share_by)by;
    if (!share->ranks && (share->rank >= 0 || call_query(call, "by").data))
        return call_refuse(call, ERR_MISSING_FIELD, "ranks", "a share is one of so many: say how many ranks there are");
    if (share->ranks && share->rank < 0)
        return call_refuse(call, ERR_MISSING_FIELD, "rank", "a share is of one rank, 0 to ranks - 1");
    if (share->ranks && share->rank >= share->ranks)
        return call_refuse(call, ERR_INVALID_FIELD, "rank", "ranks are counted from 0: the last one is %lld",
                           (long long)share->ranks - 1);
    return 0;
}

void get_lease(struct call *call)
{
    static const char *const known[] = {"arrays", "rank", "ranks", "by", NULL};
    struct lease_share share;
    if (call_check_query(call, known) < 0 || read_share(call, &share) < 0)
        return;
    if (call->accept_safetensors)
        lease_tensors_answer(call, call->args[0], call->args[1], &share);
    else
        render_answer_lease(call, call->args[0], call->args[1], &share);
}
