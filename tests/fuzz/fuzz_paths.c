/* Method, path and query of a request, and the worker parts of the GET routes on an empty record.
 * Input: "GET /v1/rollouts?run=x". */
#include "server/api/routes.h"
#include "server/base/utf8.h"
#include "server/http/find_private.h"
#include "tests/fuzz/fuzz.h"

static void check_decoded(struct text text)
{
    FUZZ_CHECK(!text.data || (utf8_is_valid(text, NULL) && !memchr(text.data, '\0', text.length_bytes)));
}

static void produce_all(struct call *call)
{
    struct stream *stream = call->reply.stream;
    enum stream_state state = stream ? STREAM_MORE : STREAM_LAST;

    for (int part = 0; state == STREAM_MORE; part++) {
        _cleanup_buffer_ struct buffer out;
        buffer_init(&out, 1 << 20);
        FUZZ_CHECK(part < 1000);
        stream->room_bytes = 1 << 16;
        state = (enum stream_state)stream->produce(stream, call->reader, &out);
    }
}

static void run(struct call *call, const char *method, struct text path, struct text query, struct buffer *storage)
{
    enum error_code error;
    const struct route *route = route_find(&routes, method, path, call, storage, &error);
    char allow[64];

    route_allowed(&routes, path, allow);
    FUZZ_CHECK(strnlen(allow, sizeof(allow)) < sizeof(allow) && (!route || strstr(allow, route->method)));
    if (!route) {
        FUZZ_CHECK(error == ERR_NOT_FOUND || error == ERR_METHOD_NOT_ALLOWED || error == ERR_BAD_REQUEST);
        FUZZ_CHECK((error == ERR_NOT_FOUND) == !*allow);
    }
    for (size_t i = 0; route && i < call->arg_count; i++)
        check_decoded(call->args[i]);
    if (query_parse(query, call, storage) < 0 || !route)
        return;
    for (size_t i = 0; i < call->query_count; i++) {
        check_decoded(call->query[i].name);
        check_decoded(call->query[i].value);
    }
    if (route->on_worker && strcmp(route->method, "GET") == 0) {
        route->on_worker(call);
        produce_all(call);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
    _cleanup_buffer_ struct buffer storage;
    struct call call;
    struct text text = {data ? (const char *)data : "", size_bytes};
    const char *blank = memchr(text.data, ' ', text.length_bytes);

    buffer_init(&storage, 4 * size_bytes + 64);
    if (!blank)
        return 0;
    _cleanup_free_ char *method = xstrndup(text.data, (size_t)(blank - text.data));
    struct text path = {blank + 1, size_bytes - (size_t)(blank + 1 - text.data)};
    const char *mark = memchr(path.data, '?', path.length_bytes);
    struct text query = {mark ? mark + 1 : path.data + path.length_bytes, 0};
    query.length_bytes = (size_t)(path.data + path.length_bytes - query.data);
    path.length_bytes = mark ? (size_t)(mark - path.data) : path.length_bytes;

    buffer_reserve(&storage, 2 * size_bytes + 1);
    fuzz_call_init(&call, NULL, 0);
    run(&call, method, path, query, &storage);
    fuzz_check_reply(&call);
    call_finish(&call);
    return 0;
}
