/* /v1/runs/{run}/notes: notes on a run. A note never changes; a correction is a new note. */
#include "server/api/page.h"
#include "server/api/routes.h"
#include "server/api/server.h"
#include "server/api/store_wait.h"
#include "server/base/json_write.h"
#include "server/http/http.h"
#include "server/input/input.h"
#include "server/reports/report.h"

enum { NOTE_BYTES_MAX = 65536 };

/* From the worker part to the loop part, and then the store's until it is on record. */
struct noting {
    struct store_wait wait;  /* first */
    struct json_input input; /* the texts live there */
    bool read;
    char *run;
};

static void noting_destroy(void *parsed)
{
    struct noting *noting = parsed;
    if (noting->read)
        json_input_finish(&noting->input);
    free(noting->run);
    free(noting);
}

/* --- written -------------------------------------------------------------------------------------------------- */

#define AT(field) offsetof(struct store_note, field)
static const struct field note_table[] = {
    {"prediction", FIELD_TEXT, 0, AT(prediction), 0, NOTE_BYTES_MAX, NULL},
    {"result", FIELD_TEXT, 0, AT(result), 0, NOTE_BYTES_MAX, NULL},
    {"explanation", FIELD_TEXT, 0, AT(explanation), 0, NOTE_BYTES_MAX, NULL},
    {"limitation", FIELD_TEXT, 0, AT(limitation), 0, NOTE_BYTES_MAX, NULL},
};
#undef AT

static int check_note(struct call *call, const struct store_note *note)
{
    for (size_t i = 0; i < ARRAY_LENGTH(note_table); i++) {
        const struct text *text = (const struct text *)((const char *)note + note_table[i].offset);
        if (text->data && text->length_bytes == 0)
            return call_refuse(call, ERR_INVALID_FIELD, note_table[i].name, "an empty text says nothing");
    }
    if (!note->prediction.data && !note->result.data && !note->explanation.data && !note->limitation.data)
        return call_refuse(call, ERR_MISSING_FIELD, "prediction",
                           "expected one at least of prediction, result, explanation and limitation");
    return 0;
}

void parse_note(struct call *call)
{
    struct noting *noting = xcalloc(1, sizeof(*noting));
    struct store_add_note *add = &noting->wait.op.add_note;
    noting->run = xstrndup(call->args[0].data, call->args[0].length_bytes);
    call->parsed = noting;
    call->parsed_destroy = noting_destroy;
    add->run = (struct text){noting->run, call->args[0].length_bytes};
    if (json_input_init(&noting->input, call, NULL) < 0)
        return;
    noting->read = true;
    if (json_read_object(&noting->input, noting->input.root, "", note_table, ARRAY_LENGTH(note_table), &add->note) == 0)
        check_note(call, &add->note);
}

static void note_added(struct store_op *op)
{
    struct noting *noting = op->context;
    struct request *request = noting->wait.request;
    if (request && (op->status == STORE_OK || op->status == STORE_EXISTS)) {
        struct call *call = request_call(request);
        struct json_write json;
        json_write_init(&json, &call->reply.body);
        report_write_note(&json, &op->add_note.note);
        call_answer_json(call, 200);
        request_answer(request);
    } else if (request && op->status == STORE_NOT_FOUND)
        request_refuse(request, ERR_NOT_FOUND, "run", "there is no run of this name");
    else
        store_wait_refuse(&noting->wait, "");
    noting_destroy(noting);
}

/* The operation outlives the request if the client hangs up, so the call gives it away. */
void add_note(void *owner, struct request *request)
{
    struct server *server = owner;
    struct noting *noting = TAKE_PTR(request_call(request)->parsed);
    noting->wait.op.kind = STORE_ADD_NOTE;
    noting->wait.op.done = note_added;
    if (!store_wait_submit(&noting->wait, server->store, request))
        noting_destroy(noting);
}

/* --- listed --------------------------------------------------------------------------------------------------- */

void list_notes(struct call *call)
{
    static const char *const known[] = {"limit", "cursor", NULL};
    _cleanup_(store_notes_finish) struct store_notes notes = {0};
    struct json_write json;
    struct page page;
    if (call_check_query(call, known) < 0 || query_page(call, &page) < 0)
        return;
    enum store_status status = STORE_UNAVAILABLE;
    if (call->reader)
        status = store_list_notes(call->reader, call->args[0], page.cursor, (size_t)page.limit, &notes);
    if (status != STORE_OK) {
        page_refuse_run(call, status);
        return;
    }
    json_write_init(&json, &call->reply.body);
    json_object_begin(&json);
    json_key(&json, "items");
    json_array_begin(&json);
    for (size_t i = 0; i < notes.count; i++)
        report_write_note(&json, &notes.notes[i]);
    json_array_end(&json);
    json_put_string(&json, "next", *notes.next ? notes.next : NULL);
    json_object_end(&json);
    call_answer_json(call, 200);
}
