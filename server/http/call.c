#include "server/http/call.h"

#include "server/base/blocks.h"
#include "server/base/clock.h"
#include "server/base/json_write.h"
#include "server/base/nearest.h"
#include "server/base/number.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

/* Longer replies are streamed from the record. */
#define REPLY_MAXIMUM_BYTES (UINT64_C(1) << 30)

enum { MESSAGE_BYTES = 1024 };

void call_init(struct call *call)
{
    *call = (struct call){.content_type = "", .request_id = ""};
    buffer_init(&call->reply.body, REPLY_MAXIMUM_BYTES);
}

void call_drop_stream(struct call *call)
{
    if (call->reply.stream)
        call->reply.stream->destroy(call->reply.stream);
    call->reply.stream = NULL;
}

void call_finish(struct call *call)
{
    buffer_finish(&call->reply.body);
    block_give(TAKE_PTR(call->reply.tail));
    free(TAKE_PTR(call->reply.path));
    free(TAKE_PTR(call->reply.message));
    call_drop_stream(call);
    call_drop_input(call);
}

void call_drop_input(struct call *call)
{
    block_give(TAKE_PTR(call->body));
    call->body_bytes = 0;
    void *parsed = TAKE_PTR(call->parsed);
    if (parsed && call->parsed_destroy)
        call->parsed_destroy(parsed);
    void *about = TAKE_PTR(call->about);
    if (about && call->about_destroy)
        call->about_destroy(about);
}

static void write_error(struct buffer *out, const char *code, const char *message, const char *path,
                        const char *request_id)
{
    struct json_write json;
    buffer_clear(out);
    json_write_init(&json, out);
    json_object_begin(&json);
    json_key(&json, "error");
    json_object_begin(&json);
    json_put_string(&json, "code", code);
    json_put_string(&json, "message", message);
    json_put_string(&json, "path", path);
    json_put_string(&json, "request_id", request_id);
    json_object_end(&json);
    json_object_end(&json);
    buffer_append_byte(out, '\n');
}

static void keep_for_log(struct reply *reply, enum error_code code, const char *path, const char *message)
{
    reply->code = error_rows[code].code;
    free(reply->path);
    free(reply->message);
    reply->path = path ? xstrdup(path) : NULL;
    reply->message = xstrdup(message);
}

static void finish_reply(struct reply *reply, int status)
{
    reply->status = status;
    reply->content_type = "application/json";
}

static int refuse(struct call *call, enum error_code code, const char *shown_code, const char *path,
                  const char *message)
{
    block_give(TAKE_PTR(call->reply.tail));
    call->reply.tail_bytes = 0; /* or the refusal would hold them of the budget */
    keep_for_log(&call->reply, code, path, message);
    call_drop_stream(call);
    write_error(&call->reply.body, shown_code, message, path, call->request_id);
    finish_reply(&call->reply, error_rows[code].status);
    if (call->reply.status == 429 && call->reply.retry_after_s == 0)
        call->reply.retry_after_s = 1;
    return -1;
}

int call_refuse(struct call *call, enum error_code code, const char *path, const char *format, ...)
{
    char message[MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    return refuse(call, code, error_rows[code].code, path, message);
}

int call_refuse_as(struct call *call, enum error_code code, const char *own_code, const char *format, ...)
{
    char message[MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    return refuse(call, code, own_code, NULL, message);
}

int call_add_to_refusal(struct call *call, const char *name, struct text json)
{
    struct buffer *body = &call->reply.body;
    static const char end[] = "}}\n";
    if (body->failed || body->length_bytes < sizeof(end))
        return -1;
    body->length_bytes -= sizeof(end) - 1;
    buffer_append_format(body, ",\"%s\":", name);
    buffer_append(body, json.data, json.length_bytes);
    buffer_append_string(body, end);
    return -1;
}

int call_answer_bytes(struct call *call, int status, const char *content_type)
{
    if (call->reply.body.failed)
        return call_refuse(call, ERR_INTERNAL, NULL, "the reply does not fit into memory");
    finish_reply(&call->reply, status);
    call->reply.content_type = content_type;
    return 0;
}

int call_refuse_unreadable(struct call *call)
{
    return call_refuse(call, ERR_STORE_UNAVAILABLE, NULL, "the database cannot be read");
}

int call_answer_json(struct call *call, int status)
{
    buffer_append_byte(&call->reply.body, '\n');
    return call_answer_bytes(call, status, "application/json");
}

/* --- the query --- */

struct text call_query(const struct call *call, const char *name)
{
    for (size_t i = 0; i < call->query_count; i++)
        if (text_equals(call->query[i].name, name))
            return call->query[i].value.data ? call->query[i].value : TEXT_LITERAL("");
    return TEXT_NONE;
}

/* "tag.NAME" stands for every name that begins with "tag.". */
static bool is_of_family(struct text name, const char *known)
{
    const char *dot = strchr(known, '.');
    size_t prefix_bytes = dot ? (size_t)(dot - known) + 1 : 0;
    return dot && name.length_bytes > prefix_bytes && memcmp(name.data, known, prefix_bytes) == 0;
}

static bool is_known(struct text name, const char *const *known)
{
    for (; *known; known++)
        if (text_equals(name, *known) || is_of_family(name, *known))
            return true;
    return false;
}

static int refuse_parameter(struct call *call, struct text name, const char *path, const char *const *known)
{
    char advice[ADVICE_BYTES];
    if (!known[0])
        return call_refuse(call, ERR_UNKNOWN_FIELD, path, "this path has no parameters");
    names_advise_list(name, known, advice);
    return call_refuse(call, ERR_UNKNOWN_FIELD, path, "this path has no parameter of this name; %s", advice);
}

int call_check_query(struct call *call, const char *const *known)
{
    for (size_t i = 0; i < call->query_count; i++) {
        struct text name = call->query[i].name;
        _cleanup_free_ char *path = xstrndup(name.data, name.length_bytes);
        if (!is_known(name, known))
            return refuse_parameter(call, name, path, known);
        for (size_t before = 0; before < i; before++)
            if (text_same(name, call->query[before].name))
                return call_refuse(call, ERR_INVALID_FIELD, path, "this parameter is given twice");
    }
    return 0;
}

static bool read_number(struct text text, struct number *ret_number)
{
    const char *end = text.data + text.length_bytes;
    return number_parse(text.data, end, ret_number) == end && isfinite(ret_number->value);
}

int call_query_int(struct call *call, const char *name, int64_t minimum, int64_t maximum, int64_t *value)
{
    struct text text = call_query(call, name);
    struct number number;
    if (!text.data)
        return 0;
    if (!read_number(text, &number) || !number.is_integer || number.integer < minimum || number.integer > maximum)
        return call_refuse(call, ERR_INVALID_FIELD, name, "expected an integer from %" PRId64 " to %" PRId64, minimum,
                           maximum);
    *value = number.integer;
    return 0;
}

int call_query_double(struct call *call, const char *name, double *value)
{
    struct text text = call_query(call, name);
    struct number number;
    if (!text.data)
        return 0;
    if (!read_number(text, &number))
        return call_refuse(call, ERR_INVALID_FIELD, name, "expected a number");
    *value = number.value;
    return 0;
}

int call_query_duration(struct call *call, const char *name, int64_t *value_us)
{
    struct text text = call_query(call, name);
    if (!text.data || duration_parse(text, value_us))
        return 0;
    return call_refuse(call, ERR_INVALID_FIELD, name, "expected a duration like 250ms, 30s or 5m");
}

/* The index of the text in a NULL-terminated list, or -1. */
static int find_choice(struct text text, const char *const *choices)
{
    for (int i = 0; choices[i]; i++)
        if (text_equals(text, choices[i]))
            return i;
    return -1;
}

int call_query_bool(struct call *call, const char *name, bool *value)
{
    static const char *const choices[] = {"false", "true", "0", "1", NULL};
    struct text text = call_query(call, name);
    if (!text.data)
        return 0;
    int choice = find_choice(text, choices);
    if (choice < 0)
        return call_refuse(call, ERR_INVALID_FIELD, name, "expected true or false");
    *value = choice & 1;
    return 0;
}

int call_query_time(struct call *call, const char *name, int64_t *value_us)
{
    struct text text = call_query(call, name);
    if (!text.data || clock_parse_rfc3339(text, value_us))
        return 0;
    return call_refuse(call, ERR_INVALID_FIELD, name, "expected a time like 2026-01-31T12:00:00Z");
}

int call_query_word(struct call *call, const char *name, const char *const *words, int *value)
{
    struct text text = call_query(call, name);
    if (!text.data)
        return 0;
    int choice = find_choice(text, words);
    if (choice < 0) {
        char advice[ADVICE_BYTES];
        names_advise_list(text, words, advice);
        return call_refuse(call, ERR_INVALID_FIELD, name, "there is no such value; %s", advice);
    }
    *value = choice;
    return 0;
}

int call_query_arrays(struct call *call, int *value)
{
    static const char *const choices[] = {
        [JSON_ARRAYS_PLAIN] = "json", [JSON_ARRAYS_BASE64] = "base64", [JSON_ARRAYS_NONE] = "none", NULL};
    return call_query_word(call, "arrays", choices, value);
}
