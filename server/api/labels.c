/* POST /v1/labels, GET /v1/calibration. */
#include "server/api/routes.h"
#include "server/api/server.h"
#include "server/api/store_wait.h"
#include "server/base/json_write.h"
#include "server/http/http.h"
#include "server/input/input.h"
#include "server/reports/calibration.h"
#include "server/spec/batch.h"

enum { LABELS_MAX = 10000, VERIFIER_BYTES_MAX = 64, BY_BYTES_MAX = 128 };

/* From the worker part to the loop part, and then the store's until it is on record. */
struct labelling {
    struct store_wait wait;  /* first */
    struct json_input input; /* the texts live there */
    bool read;
    struct store_label *labels;
};

static void labelling_destroy(void *parsed)
{
    struct labelling *labelling = parsed;
    if (labelling->read)
        json_input_finish(&labelling->input);
    free(labelling->labels);
    free(labelling);
}

/* --- written -------------------------------------------------------------------------------------------------- */

static const struct field body_table[] = {{"labels", FIELD_ARRAY, FIELD_REQUIRED, 0, 0, 0, NULL}};

#define AT(field) offsetof(struct store_label, field)
static const struct field label_table[] = {
    {"rollout", FIELD_TEXT, FIELD_REQUIRED, AT(rollout), 0, ID_BYTES, NULL},
    {"verifier", FIELD_TEXT, FIELD_REQUIRED, AT(verifier), 0, VERIFIER_BYTES_MAX, NULL},
    {"truth", FIELD_BOOL, FIELD_REQUIRED, AT(truth), 0, 0, NULL},
    {"by", FIELD_TEXT, FIELD_REQUIRED, AT(by), 0, BY_BYTES_MAX, NULL},
};
#undef AT

static int refuse_empty(struct call *call, const char *path, const char *name)
{
    char where[PATH_BYTES];
    path_join(where, path, name);
    return call_refuse(call, ERR_INVALID_FIELD, where, "an empty text names nobody");
}

static int read_label(struct json_input *input, const json_t *value, size_t index, struct store_label *label)
{
    char path[PATH_BYTES];
    path_index(path, "", "labels", index);
    if (json_read_object(input, value, path, label_table, ARRAY_LENGTH(label_table), label) < 0)
        return -1;
    if (!label->verifier.length_bytes)
        return refuse_empty(input->call, path, "verifier");
    return label->by.length_bytes ? 0 : refuse_empty(input->call, path, "by");
}

static int read_labels(struct call *call, struct labelling *labelling)
{
    json_t *values = NULL;
    size_t i;
    const json_t *value;
    if (json_read_object(&labelling->input, labelling->input.root, "", body_table, ARRAY_LENGTH(body_table), &values) <
        0)
        return -1;
    if (json_array_size(values) < 1 || json_array_size(values) > LABELS_MAX)
        return call_refuse(call, ERR_INVALID_FIELD, "labels", "expected 1 to %d labels", LABELS_MAX);
    labelling->labels = xcalloc(json_array_size(values), sizeof(*labelling->labels));
    json_array_foreach (values, i, value) {
        if (read_label(&labelling->input, value, i, &labelling->labels[i]) < 0)
            return -1;
    }
    labelling->wait.op.put_labels =
        (struct store_put_labels){.labels = labelling->labels, .count = json_array_size(values)};
    return 0;
}

void parse_labels(struct call *call)
{
    struct labelling *labelling = xcalloc(1, sizeof(*labelling));
    call->parsed = labelling;
    call->parsed_destroy = labelling_destroy;
    labelling->read = json_input_init(&labelling->input, call, NULL) == 0;
    if (labelling->read)
        read_labels(call, labelling);
}

static void answer(struct request *request, size_t stored)
{
    struct call *call = request_call(request);
    struct json_write json;
    json_write_init(&json, &call->reply.body);
    json_object_begin(&json);
    json_put_int(&json, "stored", (int64_t)stored);
    json_object_end(&json);
    call_answer_json(call, 200);
    request_answer(request);
}

static void labels_put(struct store_op *op)
{
    struct labelling *labelling = op->context;
    struct request *request = labelling->wait.request;
    char path[PATH_BYTES];
    if (request && op->status == STORE_OK)
        answer(request, op->put_labels.count);
    else if (request && op->status == STORE_NOT_FOUND) {
        path_index(path, "", "labels", op->put_labels.unknown);
        char where[PATH_BYTES];
        path_join(where, path, "rollout");
        request_refuse(request, ERR_NOT_FOUND, where, "no rollout on record has this id; no label was stored");
    } else
        store_wait_refuse(&labelling->wait, "");
    labelling_destroy(labelling);
}

/* The operation outlives the request if the client hangs up, so the call gives it away. */
void put_labels(void *owner, struct request *request)
{
    struct server *server = owner;
    struct labelling *labelling = TAKE_PTR(request_call(request)->parsed);
    labelling->wait.op.kind = STORE_PUT_LABELS;
    labelling->wait.op.done = labels_put;
    if (!store_wait_submit(&labelling->wait, server->store, request))
        labelling_destroy(labelling);
}

/* --- compared with verdicts ----------------------------------------------------------------------------------- */

static int read_revisions(struct call *call, struct calibration_query *query)
{
    int64_t revision = -1;
    if (call_query_int(call, "revision", 0, INT64_MAX, &revision) < 0 ||
        call_query_int(call, "revision_min", 0, INT64_MAX, &query->revision_min) < 0 ||
        call_query_int(call, "revision_max", 0, INT64_MAX, &query->revision_max) < 0)
        return -1;
    if (revision < 0)
        return 0;
    if (query->revision_min >= 0 || query->revision_max >= 0)
        return call_refuse(call, ERR_INVALID_FIELD, "revision",
                           "give either revision, or revision_min and revision_max");
    query->revision_min = query->revision_max = revision;
    return 0;
}

static int read_query(struct call *call, struct calibration_query *query)
{
    query->run = call_query(call, "run");
    query->verifier = call_query(call, "verifier");
    if (!query->run.length_bytes)
        return call_refuse(call, ERR_MISSING_FIELD, "run", "labels are compared within a run");
    if (!query->verifier.length_bytes)
        return call_refuse(call, ERR_MISSING_FIELD, "verifier",
                           "expected the id of the verifier that the labels are about");
    if (run_name_check(call, query->run) < 0 || call_query_word(call, "by", calibration_key_names, &query->by) < 0 ||
        call_query_word(call, "purpose", store_purpose_names, &query->purpose) < 0 ||
        call_query_int(call, "incarnation", 0, INT64_MAX, &query->incarnation) < 0)
        return -1;
    return read_revisions(call, query);
}

void get_calibration(struct call *call)
{
    static const char *const known[] = {"run",      "verifier",     "by",           "purpose", "incarnation",
                                        "revision", "revision_min", "revision_max", NULL};
    struct calibration_query query = {
        .by = CALIBRATION_WHOLE, .purpose = STORE_TRAIN, .incarnation = -1, .revision_min = -1, .revision_max = -1};
    if (call_check_query(call, known) == 0 && read_query(call, &query) == 0)
        calibration_answer(call, &query);
}
