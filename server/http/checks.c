/* First-call checks: everything that is decided before the first byte of a body. head_private.h has already
 * refused ambiguous heads. */
#include "server/base/hash.h"
#include "server/http/accept_private.h"
#include "server/http/find_private.h"
#include "server/http/origin_private.h"
#include "server/http/server_private.h"
#include "server/settings/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#define BASIC_BYTES 8192 /* of a name and a token */

struct headers {
    const char *content_length;
    const char *transfer_encoding;
    const char *content_type;
    const char *content_encoding;
    const char *expect;
    const char *authorization;
    const char *idempotency_key;
    const char *request_id;
    const char *prefer;
    const char *accept;
    struct origin_signs signs;
    unsigned idempotency_keys;
    unsigned origins;
    unsigned sites;
};

/* Header name, where its value goes, and a counter for those that must not come twice. */
struct header_row {
    const char *name;
    size_t value_offset;
    size_t count_offset; /* SIZE_MAX: not counted */
};

#define HEADER(name, field)                                                                                            \
    {                                                                                                                  \
        name, offsetof(struct headers, field), SIZE_MAX                                                                \
    }
#define COUNTED(name, field, count)                                                                                    \
    {                                                                                                                  \
        name, offsetof(struct headers, field), offsetof(struct headers, count)                                         \
    }
static const struct header_row header_rows[] = {
    HEADER("Content-Length", content_length),
    HEADER("Transfer-Encoding", transfer_encoding),
    HEADER("Host", signs.host),
    COUNTED("Origin", signs.origin, origins),
    COUNTED("Sec-Fetch-Site", signs.sec_fetch_site, sites),
    HEADER("Referer", signs.referer),
    COUNTED("Idempotency-Key", idempotency_key, idempotency_keys),
    HEADER("Content-Type", content_type),
    HEADER("Content-Encoding", content_encoding),
    HEADER("Expect", expect),
    HEADER("Authorization", authorization),
    HEADER("X-Request-Id", request_id),
    HEADER("Prefer", prefer),
    HEADER("Accept", accept),
};

static enum MHD_Result collect_header(void *arg, enum MHD_ValueKind kind, const char *name, const char *value)
{
    (void)kind;
    struct headers *headers = arg;
    for (size_t i = 0; i < ARRAY_LENGTH(header_rows); i++) {
        const struct header_row *row = &header_rows[i];
        if (strcasecmp(row->name, name) != 0)
            continue;
        *(const char **)((char *)headers + row->value_offset) = value ? value : "";
        if (row->count_offset != SIZE_MAX)
            (*(unsigned *)((char *)headers + row->count_offset))++;
    }
    return MHD_YES;
}

static bool comes_from_elsewhere(const struct request *request, const char *method, const struct headers *headers)
{
    const char *listen_host = request->http->options.settings->listen_host;
    int port = http_port(request->http);
    const struct origin_signs *signs = &headers->signs;
    if (headers->origins > 1 || headers->sites > 1 || !origin_is_ours(signs, listen_host, port))
        return true;
    bool as_a_form = strcmp(method, "POST") == 0 && !request->call.content_type[0];
    return as_a_form && !origin_referer_is_ours(signs, listen_host, port);
}

/* Host only where no token is needed: a client with the token may use any name. */
static int check_origin(struct request *request, const char *method, const struct headers *headers)
{
    struct call *call = &request->call;
    struct text host = text_of(headers->signs.host);
    while (host.length_bytes && strchr(" \t", host.data[host.length_bytes - 1]))
        host.length_bytes--; /* the library leaves them */
    if (host.data && !*request->http->options.token &&
        !origin_host_is_ours(host, request->http->options.settings->listen_host))
        return call_refuse(call, ERR_FORBIDDEN, "Host",
                           "Host is neither localhost nor a loopback address (without a token, other names are not "
                           "served: a web page may have pointed one here)");
    if (strcmp(method, "GET") != 0 && comes_from_elsewhere(request, method, headers))
        return call_refuse(call, ERR_FORBIDDEN, "Origin",
                           "the request comes from a web page of another origin (Origin, Sec-Fetch-Site or Referer)");
    return 0;
}

/* "Basic " and base64 of a name, which does not count, a colon and the token. */
static bool is_password(const char *given, const char *token)
{
    _cleanup_buffer_ struct buffer pair;

    buffer_init(&pair, BASIC_BYTES);
    if (strncasecmp(given, "Basic ", 6) != 0 || !base64_decode(text_of(given + 6), &pair))
        return false;
    const char *colon = pair.data ? memchr(pair.data, ':', pair.length_bytes) : NULL;
    if (!colon)
        return false;
    struct text password = {colon + 1, pair.length_bytes - (size_t)(colon + 1 - pair.data)};
    return equal_in_constant_time(password, text_of(token));
}

static int check_token(struct request *request, const struct headers *headers)
{
    const char *token = *request->http->options.token;
    const char *given = headers->authorization;

    request->call.authorized = !token;
    if (token && given && strncasecmp(given, "Bearer ", 7) == 0)
        request->call.authorized = equal_in_constant_time(text_of(given + 7), text_of(token));
    else if (token && given && request->route && request->route->flags & ROUTE_FOREIGN)
        request->call.authorized = is_password(given, token);
    if (request->call.authorized || (request->route && request->route->flags & ROUTE_OPEN))
        return 0;
    return call_refuse(&request->call, ERR_UNAUTHORIZED, NULL, "%s",
                       !given ? "this service wants the header Authorization: Bearer <token>"
                       : strncasecmp(given, "Bearer ", 7) != 0
                           ? "the header Authorization has another form than Bearer <token>"
                           : "the token in the header Authorization is not this service's");
}

/* Without the token, a client must not learn which paths exist. */
static int check_route(struct request *request, const char *method, const struct headers *headers)
{
    struct call *call = &request->call;
    struct text raw = buffer_text(&request->raw_uri);
    const char *mark = memchr(raw.data, '?', raw.length_bytes);
    struct text path = {raw.data, mark ? (size_t)(mark - raw.data) : raw.length_bytes};
    struct text decoded;
    enum error_code error;

    request->route = route_find(&request->http->options.routes, strcmp(method, "HEAD") == 0 ? "GET" : method, path,
                                call, &request->decoded, &error);
    if (check_token(request, headers) < 0)
        return -1;
    if (request->route)
        return 0;
    if (error == ERR_BAD_REQUEST || !percent_decode(path, false, &request->decoded, &decoded))
        return call_refuse(call, ERR_BAD_REQUEST, NULL, "the path has a broken escape, a NUL or broken UTF-8");
    if (error == ERR_METHOD_NOT_ALLOWED) {
        route_allowed(&request->http->options.routes, path, request->allow);
        return call_refuse(call, error, NULL, "this path takes %s", request->allow);
    }
    return call_refuse(call, error, NULL, "there is no such path; GET /openapi.yaml lists them all");
}

static int check_query(struct request *request)
{
    static const char *const none[] = {NULL};
    struct text raw = buffer_text(&request->raw_uri);
    const char *mark = memchr(raw.data, '?', raw.length_bytes);
    size_t path_bytes = mark ? (size_t)(mark + 1 - raw.data) : raw.length_bytes;

    if (query_parse((struct text){raw.data + path_bytes, raw.length_bytes - path_bytes}, &request->call,
                    &request->decoded) < 0)
        return -1;
    return request->route->flags & ROUTE_BARE ? call_check_query(&request->call, none) : 0;
}

/* "application/json; charset=utf-8" -> "application/json" among the known ones, or "". */
static const char *plain_type(const char *value)
{
    static const char *const known[] = {"application/json", "application/x-ndjson", "application/x-safetensors"};
    size_t length_bytes = value ? strcspn(value, "; \t") : 0;
    for (size_t i = 0; i < ARRAY_LENGTH(known); i++)
        if (strlen(known[i]) == length_bytes && strncasecmp(value, known[i], length_bytes) == 0)
            return known[i];
    return "";
}

/* Nothing at all is no body; one that says its type is taken at its word, as a form's empty one does. */
static int check_type(struct call *call, unsigned flags, bool may_be_nothing)
{
    bool pieces = flags & ROUTE_PIECES;
    bool json = !pieces && strcmp(call->content_type, "application/json") == 0;
    bool tensors = strcmp(call->content_type, "application/x-safetensors") == 0;
    if (!(flags & ROUTE_BODY) || (flags & ROUTE_NO_BODY && may_be_nothing) || json ||
        (tensors && flags & ROUTE_SAFETENSORS) || (pieces && strcmp(call->content_type, "application/x-ndjson") == 0))
        return 0;
    if (pieces)
        return call_refuse(call, ERR_UNSUPPORTED_MEDIA_TYPE, NULL,
                           "this route takes Content-Type: application/x-ndjson, a JSON object a line");
    return call_refuse(call, ERR_UNSUPPORTED_MEDIA_TYPE, NULL,
                       "this route takes Content-Type: application/json%s (curl: use --json)",
                       flags & ROUTE_SAFETENSORS ? " or application/x-safetensors" : "");
}

static int check_body(struct request *request, const struct headers *headers, size_t length_bytes)
{
    struct call *call = &request->call;
    const struct settings *settings = request->http->options.settings;
    bool tensors =
        request->route->flags & ROUTE_SAFETENSORS && strcmp(call->content_type, "application/x-safetensors") == 0;
    bool pieces = request->route->flags & ROUTE_PIECES;
    request->body_limit_bytes = (size_t)(tensors  ? settings->safetensors_limit_bytes
                                         : pieces ? settings->taskset_limit_bytes
                                                  : settings->body_limit_bytes);

    if (headers->expect && strcasecmp(headers->expect, "100-continue") != 0)
        return call_refuse(call, ERR_EXPECTATION_FAILED, NULL, "the only expectation understood is 100-continue");
    if (headers->content_encoding && headers->content_encoding[0])
        return call_refuse(call, ERR_UNSUPPORTED_MEDIA_TYPE, NULL, "send the body without Content-Encoding");
    if (length_bytes > request->body_limit_bytes)
        return call_refuse(call, ERR_BODY_TOO_LARGE, NULL, "the body has %zu bytes; %s is %zu", length_bytes,
                           tensors  ? "safetensors_limit"
                           : pieces ? "taskset_limit"
                                    : "body_limit",
                           request->body_limit_bytes);
    request->announced_bytes = pieces ? 0 : length_bytes;
    bool has_body = length_bytes > 0 || headers->transfer_encoding;
    bool says_type = headers->content_type && headers->content_type[0]; /* Go sends the name alone */
    if (check_type(call, request->route->flags, !has_body && !says_type) < 0)
        return -1;
    if (!(request->route->flags & ROUTE_BODY) && has_body && strcmp(request->route->method, "DELETE") != 0)
        return call_refuse(call, ERR_BAD_REQUEST, NULL, "this route takes no body");
    return 0;
}

static bool accepts(const struct headers *headers, const char *type)
{
    size_t place;

    return accept_quality(headers->accept, type, &place) > 0;
}

static int check_preferences(struct request *request, const struct headers *headers)
{
    struct call *call = &request->call;
    call->prefer_async = headers->prefer && strcasestr(headers->prefer, "respond-async");
    call->accept_safetensors = accepts(headers, "application/x-safetensors");
    call->accept_ndjson = accepts(headers, "application/x-ndjson");
    call->accept_csv = accepts(headers, "text/csv");
    call->accept_page = accept_page_of(headers->accept);
    if (!headers->idempotency_key)
        return 0;
    size_t length = strlen(headers->idempotency_key);
    if (headers->idempotency_keys > 1 || length == 0 || length > 255)
        return call_refuse(call, ERR_INVALID_FIELD, "Idempotency-Key", "one Idempotency-Key of 1 to 255 bytes");
    request->idempotency_key = xstrdup(headers->idempotency_key);
    call->idempotency_key = request->idempotency_key;
    return 0;
}

static int check_all(struct request *request, const char *method, const struct headers *headers, size_t length_bytes)
{
    struct call *call = &request->call;
    const struct http *http = request->http;
    if (check_origin(request, method, headers) < 0 || check_route(request, method, headers) < 0)
        return -1;
    if (check_query(request) < 0 || check_body(request, headers, length_bytes) < 0 ||
        check_preferences(request, headers) < 0)
        return -1;
    if (http->migrating && !(request->route->flags & ROUTE_ALWAYS))
        return call_refuse(call, ERR_MIGRATING, NULL, "the database is brought to a new schema; see /readyz");
    if (http->leaving || (http->draining && request->route->flags & ROUTE_CREATES))
        return call_refuse(call, ERR_DRAINING, NULL, "the service is shutting down and takes no new work");
    return 0;
}

int check_first_call(struct request *request, const char *method, const char *version)
{
    struct headers headers = {0};
    (void)version;

    MHD_get_connection_values(request->connection, MHD_HEADER_KIND, collect_header, &headers);
    size_t length_bytes = headers.content_length ? (size_t)strtoull(headers.content_length, NULL, 10) : 0;
    request->call.content_type = plain_type(headers.content_type);
    if (headers.request_id && head_identity_is_sane(text_of(headers.request_id)))
        snprintf(request->request_id, sizeof(request->request_id), "%s", headers.request_id);
    /* The decoded texts point into this buffer: it must not move while they are collected. */
    buffer_reserve(&request->decoded, 2 * request->raw_uri.length_bytes + 1);
    if (check_all(request, method, &headers, length_bytes) == 0)
        return 0;
    request->call.reply.close = length_bytes > 0 || headers.transfer_encoding || request->http->leaving;
    if (request->call.reply.status == 503)
        request->call.reply.retry_after_s = 5;
    return -1;
}
