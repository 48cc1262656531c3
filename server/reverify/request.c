/* The body of POST /v1/reverify, as it comes and as it was put on record, and its rollouts. */
#include "server/reverify/reverify.h"

#include "server/base/json_big.h"
#include "server/settings/settings.h"
#include "server/spec/rollout_query.h"
#include "server/store/store.h"
#include "server/verify/judges.h"

#include <stdio.h>

#define TEXT_MAX_BYTES ((size_t)1 << 20)
#define PAGE_ROWS 1000
#define PAGE_SCANNED 4096
#define PAGE_BYTES ((size_t)4 << 20)

void reverify_request_destroy(struct reverify_request *request)
{
    if (!request)
        return;
    verifier_list_unref(request->verifiers);
    json_input_finish(&request->input);
    free(request->text);
    free(request);
}

/* --- reading --- */

static int check_filter(struct call *call, json_t *root, struct store_rollout_filter *filter)
{
    if (!json_object_get(root, "run") || filter->run.length_bytes == 0)
        return call_refuse(call, ERR_MISSING_FIELD, "run", "a reverification is of the rollouts of one run");
    if (filter->state >= 0 && filter->state != STORE_ROLLOUT_SCORED)
        return call_refuse(call, ERR_INVALID_FIELD, "state", "only scored rollouts are judged again");
    filter->state = STORE_ROLLOUT_SCORED;
    if (filter->purpose < 0)
        filter->purpose = STORE_TRAIN;
    return 0;
}

static int read_verifiers(struct reverify_request *request)
{
    struct call *call = request->input.call;
    const json_t *verifiers = json_object_get(request->input.root, "verifiers");

    if (!verifiers)
        return call_refuse(call, ERR_MISSING_FIELD, "verifiers", "name the verifiers that judge again");
    if (!json_is_array(verifiers) || json_array_size(verifiers) == 0)
        return call_refuse(call, ERR_INVALID_FIELD, "verifiers", "expected a list of one verifier at least");
    request->verifiers = verifier_list_read(&request->input, verifiers, "verifiers");
    return request->verifiers ? 0 : -1;
}

static int dump(struct reverify_request *request)
{
    request->text = json_big_dump(request->input.root, JSON_COMPACT);
    if (request->text && strlen(request->text) <= TEXT_MAX_BYTES)
        return 0;
    return call_refuse(request->input.call, ERR_BODY_TOO_LARGE, NULL, "the request is larger than %zu bytes",
                       TEXT_MAX_BYTES);
}

static int read_members(struct reverify_request *request)
{
    static const char *const own[] = {"verifiers", NULL};
    struct call *call = request->input.call;
    json_t *root = request->input.root;

    if (rollout_query_read_members(call, root, own, &request->filter) < 0 ||
        check_filter(call, root, &request->filter) < 0)
        return -1;
    return read_verifiers(request) < 0 ? -1 : dump(request);
}

struct reverify_request *reverify_request_read(struct call *call)
{
    struct reverify_request *request = xcalloc(1, sizeof *request);

    if (json_input_init(&request->input, call, NULL) < 0) {
        free(request);
        return NULL;
    }
    if (read_members(request) == 0)
        return request;
    reverify_request_destroy(request);
    return NULL;
}

/* --- judges --- */

int reverify_check_judges(struct pool *engines, struct call *call, const struct reverify_request *request)
{
    struct verifier_problem problem;
    char path[PATH_BYTES];
    size_t index;

    if (judges_check_item(engines, request->verifiers, &index, &problem) == 0)
        return 0;
    path_index(path, "", "verifiers", index);
    path_join(path, path, "options");
    path_join(path, path, problem.name);
    return call_refuse(call, ERR_VERIFIER_OPTIONS, path, "%s", problem.message);
}

/* --- counting --- */

static int refuse_unread(struct call *call, enum store_status status)
{
    return status == STORE_NOT_FOUND ? call_refuse(call, ERR_NOT_FOUND, "run", "there is no run of this name")
                                     : call_refuse_unreadable(call);
}

static int check_run(struct call *call, struct text name)
{
    _cleanup_(store_run_detail_finish) struct store_run_detail run = {0};
    enum store_status status = call->reader ? store_read_run(call->reader, name, &run) : STORE_UNAVAILABLE;

    return status == STORE_OK ? 0 : refuse_unread(call, status);
}

static int count_page(struct call *call, struct reverify_request *request, char cursor[64])
{
    static const struct store_page_limits limits = {.rows = PAGE_ROWS, .scanned = PAGE_SCANNED, .bytes = PAGE_BYTES};
    _cleanup_(store_rollouts_finish) struct store_rollouts page = {0};
    enum store_status status =
        store_list_rollouts(call->reader, &request->filter, cursor[0] ? text_of(cursor) : TEXT_NONE, &limits, 0, &page);

    if (status != STORE_OK)
        return call_refuse_unreadable(call);
    request->rollouts += (int64_t)page.count;
    if (page.count > 0)
        request->last_rollout = page.rollouts[page.count - 1].seq;
    memcpy(cursor, page.next, sizeof page.next);
    return 0;
}

int reverify_request_count(struct call *call, struct reverify_request *request)
{
    int64_t limit = call->settings->reverify_limit;
    char cursor[64] = "";

    if (check_run(call, request->filter.run) < 0)
        return -1;
    do {
        if (call->abandoned || count_page(call, request, cursor) < 0)
            return -1;
        if (request->rollouts > limit)
            return call_refuse(
                call, ERR_TOO_MANY_ROLLOUTS, "run",
                "at most %lld rollouts are judged again by one request (reverify_limit); name a revision, a "
                "task or a batch",
                (long long)limit);
    } while (cursor[0]);
    return 0;
}
