/* /v1/engines. A change is on record before it is made and answered. */
#include "server/api/routes.h"

#include "server/api/server.h"
#include "server/api/store_wait.h"
#include "server/base/utf8.h"
#include "server/batches/live.h"
#include "server/engines/engines.h"
#include "server/http/http.h"
#include "server/input/input.h"
#include "server/settings/table.h"

#include <stdio.h>

/* --- reading ------------------------------------------------------------------------------------------------ */

static void put_settings(struct json_write *json, const struct engines *engines)
{
    json_key(json, "settings");
    json_object_begin(json);
    json_put_time(json, "read_at", engines->settings_read_at_us);
    json_put_time(json, "tried_at", engines->settings_tried_at_us);
    json_put_string(json, "error", engines->settings_error[0] ? engines->settings_error : NULL);
    json_object_end(json);
}

/* Removed, but still with something in flight: shown until that has ended. Before the others, so that who reads the
 * list by name finds the engine that took the place. */
static void write_leaving(struct json_write *json, struct server *server)
{
    for (size_t i = 0; i < pool_removed_count(server->pool); i++)
        if (pool_removed_at(server->pool, i)->in_flight > 0)
            engine_write(json, server->engines, pool_removed_at(server->pool, i));
}

static const struct engine *find_leaving(struct pool *pool, struct text name)
{
    for (size_t i = pool_removed_count(pool); i-- > 0;) {
        const struct engine *engine = pool_removed_at(pool, i);
        if (engine->in_flight > 0 && text_equals(name, engine->name))
            return engine;
    }
    return NULL;
}

void list_engines(void *owner, struct request *request)
{
    struct server *server = owner;
    struct call *call = request_call(request);
    struct json_write json;
    json_write_init(&json, &call->reply.body);
    json_object_begin(&json);
    json_key(&json, "items");
    json_array_begin(&json);
    write_leaving(&json, server);
    for (size_t i = 0; i < pool_count(server->pool); i++)
        engine_write(&json, server->engines, pool_at(server->pool, i));
    json_array_end(&json);
    put_settings(&json, server->engines);
    json_object_end(&json);
    call_answer_json(call, 200);
    request_answer(request);
}

static void answer_engine(struct server *server, struct request *request, const struct engine *engine, int status)
{
    struct call *call = request_call(request);
    struct json_write json;
    json_write_init(&json, &call->reply.body);
    engine_write(&json, server->engines, engine);
    call_answer_json(call, status);
    request_answer(request);
}

static void refuse_unknown(struct request *request)
{
    request_refuse(request, ERR_NOT_FOUND, "name", "there is no engine of this name");
}

void get_engine(void *owner, struct request *request)
{
    struct server *server = owner;
    struct text name = request_call(request)->args[0];
    const struct engine *engine = pool_find(server->pool, name);
    if (!engine)
        engine = find_leaving(server->pool, name);
    if (!engine)
        refuse_unknown(request);
    else
        answer_engine(server, request, engine, 200);
}

/* --- what a PUT says ------------------------------------------------------------------------------------------ */

struct engine_fields {
    struct json_input input; /* the texts live there */
    struct text url;
    int kind; /* index in engine_kinds; -1: not said */
    struct text model;
    struct text pool;
    json_t *in_flight;
    int64_t in_flight_value; /* -1: not said; 0: auto */
    bool shared;
    bool drain;
    bool has_shared;
    bool has_drain;
    struct text token;
    char *token_name;
    char *token_value;
};

#define AT(field) offsetof(struct engine_fields, field)
static const struct field put_table[] = {
    {"url", FIELD_TEXT, 0, AT(url), 0, 2048, NULL},
    {"kind", FIELD_CHOICE, 0, AT(kind), 0, 0, engine_kinds},
    {"model", FIELD_TEXT, 0, AT(model), 0, PROBE_NAME_BYTES - 1, NULL},
    {"pool", FIELD_TEXT, 0, AT(pool), 0, POOL_NAME_BYTES - 1, NULL},
    {"in_flight", FIELD_ANY, 0, AT(in_flight), 0, 0, NULL},
    {"shared", FIELD_BOOL, 0, AT(shared), 0, 0, NULL},
    {"drain", FIELD_BOOL, 0, AT(drain), 0, 0, NULL},
    {"token", FIELD_TEXT, 0, AT(token), 0, 0, NULL},
};
#undef AT

static void fields_destroy(void *parsed)
{
    struct engine_fields *fields = parsed;
    json_input_finish(&fields->input);
    free(fields->token_name);
    free(fields->token_value);
    free(fields);
}

static bool is_one_line(struct text text)
{
    for (size_t i = 0; i < text.length_bytes; i++)
        if ((unsigned char)text.data[i] < ' ' || text.data[i] == 0x7f)
            return false;
    return true;
}

static bool is_sane_name(struct text name)
{
    _cleanup_free_ char *copy = xstrndup(name.data, name.length_bytes);
    return strlen(copy) == name.length_bytes && engine_name_is_sane(copy);
}

/* The message never repeats the URL: it may hold what should not be in a reply or a log. */
static int check_url(struct call *call, struct text url)
{
    _cleanup_free_ char *copy = xstrndup(url.data, url.length_bytes);
    if (strlen(copy) == url.length_bytes && engine_url_is_sane(copy))
        return 0;
    return call_refuse(
        call, ERR_INVALID_FIELD, "url",
        "expected http://HOST:PORT or https://HOST:PORT with a port from 1 to 65535, without user, query and "
        "fragment");
}

static int read_in_flight(struct call *call, struct engine_fields *fields)
{
    const json_t *value = fields->in_flight;
    fields->in_flight_value = -1;
    if (!value)
        return 0;
    fields->in_flight_value = 0;
    if (json_is_string(value) && strcmp(json_string_value(value), "auto") == 0)
        return 0;
    if (json_whole(value, &fields->in_flight_value) && fields->in_flight_value >= 1 &&
        fields->in_flight_value <= IN_FLIGHT_MAX)
        return 0;
    return call_refuse(call, ERR_INVALID_FIELD, "in_flight", "expected \"auto\" or an integer from 1 to %d",
                       IN_FLIGHT_MAX);
}

static int read_token(struct call *call, struct engine_fields *fields)
{
    char message[256];
    if (!fields->token.data)
        return 0;
    if (!engine_token_name_is_sane(fields->token))
        return call_refuse(call, ERR_INVALID_FIELD, "token",
                           "expected the name of a file in engine.token_dir, or NAME of a variable "
                           "ROLLOUTD_TOKEN_NAME: 1 to %d of A-Z a-z 0-9 . _ -, no key and no path",
                           ENGINE_TOKEN_NAME_MAX);
    fields->token_name = xstrndup(fields->token.data, fields->token.length_bytes);
    if (engine_token_read(call->settings, fields->token_name, &fields->token_value, message) < 0)
        return call_refuse(call, ERR_INVALID_FIELD, "token", "%s", message);
    return 0;
}

static int check_fields(struct call *call, struct engine_fields *fields)
{
    static const char name_form[] = "expected " ENGINE_NAME_FORM;
    if (!is_sane_name(call->args[0]))
        return call_refuse(call, ERR_INVALID_FIELD, "name", name_form);
    if (fields->url.data && check_url(call, fields->url) < 0)
        return -1;
    if (fields->pool.data && !is_sane_name(fields->pool))
        return call_refuse(call, ERR_INVALID_FIELD, "pool", name_form);
    if (fields->model.data && (!fields->model.length_bytes || !is_one_line(fields->model)))
        return call_refuse(call, ERR_INVALID_FIELD, "model", "expected the name of a model, in one line");
    if (read_in_flight(call, fields) < 0)
        return -1;
    return read_token(call, fields);
}

void parse_engine(struct call *call)
{
    struct engine_fields *fields = xcalloc(1, sizeof(*fields));
    fields->kind = -1;
    if (json_input_init(&fields->input, call, NULL) < 0) {
        free(fields);
        return;
    }
    call->parsed = fields;
    call->parsed_destroy = fields_destroy;
    if (json_read_object(&fields->input, fields->input.root, "", put_table, ARRAY_LENGTH(put_table), fields) < 0)
        return;
    fields->has_shared = json_object_get(fields->input.root, "shared");
    fields->has_drain = json_object_get(fields->input.root, "drain");
    check_fields(call, fields);
}

/* --- changes ---------------------------------------------------------------------------------------------------- */

struct engine_change {
    struct store_wait wait; /* first */
    struct server *server;
    struct known_engine *known; /* as it will be; NULL: it is deleted */
    char *name;
    bool creates;
};

static void change_destroy(struct engine_change *change)
{
    known_engine_destroy(change->known);
    free(change->name);
    free(change);
}

static void engine_changed(struct store_op *op);

static void submit(struct engine_change *change, struct request *request)
{
    struct known_engine *before = engines_known(change->server->engines, text_of(change->name));
    if (!store_wait_submit(&change->wait, change->server->store, request)) {
        change_destroy(change);
        return;
    }
    if (before)
        before->changing = true;
    change->server->engines->creating += change->creates;
}

static void replace(char **text, struct text value)
{
    if (!value.data)
        return;
    free(*text);
    *text = xstrndup(value.data, value.length_bytes);
}

/* Omitted members keep their values. */
static void merge(struct known_engine *known, struct engine_fields *fields)
{
    size_t url_bytes = fields->url.length_bytes;
    while (url_bytes && fields->url.data[url_bytes - 1] == '/')
        url_bytes--;
    replace(&known->url, fields->url.data ? (struct text){fields->url.data, url_bytes} : TEXT_NONE);
    replace(&known->kind, fields->kind >= 0 ? text_of(engine_kinds[fields->kind]) : TEXT_NONE);
    replace(&known->model, fields->model);
    replace(&known->pool, fields->pool);
    if (fields->in_flight)
        known->in_flight = fields->in_flight_value;
    if (fields->has_shared)
        known->shared = fields->shared;
    if (fields->has_drain)
        known->draining = fields->drain;
    if (!fields->token_name)
        return;
    free(known->token_name);
    free(known->token);
    known->token_name = TAKE_PTR(fields->token_name);
    known->token = TAKE_PTR(fields->token_value);
}

static bool says_more_than_drain(const struct engine_fields *fields)
{
    return fields->url.data || fields->kind >= 0 || fields->model.data || fields->pool.data || fields->in_flight ||
           fields->has_shared || fields->token.data || !fields->has_drain;
}

static struct store_engine row_of(const struct known_engine *known)
{
    return (struct store_engine){.name = text_of(known->name),
                                 .url = text_of(known->url),
                                 .kind = text_of(known->kind),
                                 .model = text_of(known->model),
                                 .pool = text_of(known->pool),
                                 .in_flight = known->in_flight,
                                 .shared = known->shared,
                                 .draining = known->draining,
                                 .token_name = text_of(known->token_name)};
}

/* 0, or -1 with the call refused. */
static int check_change(struct server *server, struct call *call, const struct engine *engine,
                        const struct known_engine *known)
{
    const struct engine_fields *fields = call->parsed;
    if (known && known->changing)
        return call_refuse(call, ERR_STATE_CONFLICT, NULL, "another change of this engine is being written; try again");
    if (engine && engine->source == ENGINE_OF_SETTINGS && says_more_than_drain(fields))
        return call_refuse(call, ERR_STATE_CONFLICT, NULL,
                           "the settings file names this engine: change it there and send SIGHUP; here only \"drain\" "
                           "can be said");
    if (!engine && !fields->url.data && !(known && known->url))
        return call_refuse(call, ERR_MISSING_FIELD, "url", "an engine that is not known yet needs a url");
    if (!engine && pool_count(server->pool) + server->engines->creating >= POOL_ENGINES_MAX)
        return call_refuse(call, ERR_STATE_CONFLICT, NULL, "there are %d engines already", POOL_ENGINES_MAX);
    return 0;
}

/* 0, or -1 with the call refused. */
static int check_pool(struct server *server, struct call *call, const struct known_engine *known)
{
    const char *pool = known->pool ? known->pool : POOL_DEFAULT;
    bool samples = engine_kind_samples(known->kind);

    for (size_t i = 0; i < pool_count(server->pool); i++) {
        const struct engine *other = pool_at(server->pool, i);
        if (!known->url || strcmp(named_pool_name(other->pool), pool) != 0 || strcmp(other->name, known->name) == 0 ||
            other->unasked == !samples)
            continue;
        return call_refuse(call, ERR_INVALID_FIELD, "pool",
                           "the engine \"%s\" of the pool \"%s\" %s: a pool has scorers alone, or none; name another",
                           other->name, pool, other->unasked ? "is a scorer" : "samples");
    }
    return 0;
}

void put_engine(void *owner, struct request *request)
{
    struct server *server = owner;
    struct call *call = request_call(request);
    const struct engine *engine = pool_find(server->pool, call->args[0]);
    struct known_engine *before = engines_known(server->engines, call->args[0]);
    if (check_change(server, call, engine, before) < 0) {
        request_answer(request);
        return;
    }
    struct engine_change *change = xcalloc(1, sizeof(*change));
    change->server = server;
    change->name = xstrndup(call->args[0].data, call->args[0].length_bytes);
    change->known = before ? known_engine_copy(before) : known_engine_create(call->args[0]);
    change->creates = !engine;
    merge(change->known, call->parsed);
    if (check_pool(server, call, change->known) < 0) {
        change_destroy(change);
        request_answer(request);
        return;
    }
    change->wait.op.kind = STORE_PUT_ENGINE;
    change->wait.op.done = engine_changed;
    change->wait.op.put_engine = row_of(change->known);
    submit(change, request);
}

void delete_engine(void *owner, struct request *request)
{
    struct server *server = owner;
    struct call *call = request_call(request);
    const struct engine *engine = pool_find(server->pool, call->args[0]);
    const struct known_engine *known = engines_known(server->engines, call->args[0]);
    if (!engine && !known) {
        refuse_unknown(request);
        return;
    }
    if (engine && engine->source == ENGINE_OF_SETTINGS) {
        request_refuse(request, ERR_STATE_CONFLICT, NULL,
                       "the settings file names this engine: remove it there and send SIGHUP; here it can be drained "
                       "with PUT {\"drain\": true}");
        return;
    }
    if (known && known->changing) {
        request_refuse(request, ERR_STATE_CONFLICT, NULL, "another change of this engine is being written; try again");
        return;
    }
    struct engine_change *change = xcalloc(1, sizeof(*change));
    change->server = server;
    change->name = xstrndup(call->args[0].data, call->args[0].length_bytes);
    change->wait.op.kind = STORE_DELETE_ENGINE;
    change->wait.op.done = engine_changed;
    change->wait.op.delete_engine = text_of(change->name);
    submit(change, request);
}

/* --- on record ---------------------------------------------------------------------------------------------------- */

static void answer_deleted(struct request *request, const char *name, size_t in_flight)
{
    struct call *call = request_call(request);
    struct json_write json;
    json_write_init(&json, &call->reply.body);
    json_object_begin(&json);
    json_put_string(&json, "name", name);
    json_put_bool(&json, "removed", true);
    json_put_int(&json, "in_flight", (int64_t)in_flight);
    json_object_end(&json);
    call_answer_json(call, 200);
    request_answer(request);
}

static void make_change(struct engine_change *change)
{
    struct server *server = change->server;
    struct request *request = change->wait.request;
    struct engine *engine = pool_find(server->pool, text_of(change->name));
    size_t in_flight = engine ? engine->in_flight : 0;

    if (change->known) {
        engines_put(server->engines, TAKE_PTR(change->known));
        engine = pool_find(server->pool, text_of(change->name));
        if (request && engine)
            answer_engine(server, request, engine, change->creates ? 201 : 200);
        else if (request)
            request_refuse(request, ERR_STATE_CONFLICT, NULL, "there are %d engines already", POOL_ENGINES_MAX);
        return;
    }
    engines_forget(server->engines, text_of(change->name));
    if (request)
        answer_deleted(request, change->name, in_flight);
}

static void engine_changed(struct store_op *op)
{
    struct engine_change *change = op->context;
    struct known_engine *before = engines_known(change->server->engines, text_of(change->name));
    if (before)
        before->changing = false;
    change->server->engines->creating -= change->creates;
    if (op->status == STORE_OK)
        make_change(change);
    else
        store_wait_refuse(&change->wait, "");
    change_destroy(change);
}
