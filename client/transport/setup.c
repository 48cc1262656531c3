/* From a request to a curl handle: every option that a request to an engine needs, and why. */
#include "client/transport/transport_private.h"
#include "server/base/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define HEADER_BYTES_MAX (256 * 1024)
#define RECEIVE_BYTES (32 * 1024L) /* one for each transfer; glibc tidies the whole heap when 64 KiB are freed */
#define CONNECTION_AGE_S 3L        /* uvicorn and llama.cpp close after 5 s; a request must not meet the closing */
#define CONNECT_TIMEOUT_DEFAULT_US (3 * US_PER_S)

/* --- the reply ---------------------------------------------------------------------------------- */

/* Just before curl sends the request, also when it sends it again by itself. */
static int count_send(void *arg, char *remote_address, char *local_address, int remote_port, int local_port)
{
    struct transfer *transfer = arg;
    (void)remote_address;
    (void)local_address;
    (void)remote_port;
    (void)local_port;
    transfer->reply.sends++;
    return CURL_PREREQFUNC_OK;
}

static size_t take_header(char *bytes, size_t size, size_t count, void *arg)
{
    struct transfer *transfer = arg;
    size_t length_bytes = size * count;

    if (length_bytes >= 5 && memcmp(bytes, "HTTP/", 5) == 0)
        transfer->header_ended = false;
    else if (length_bytes <= 2 && (bytes[0] == '\r' || bytes[0] == '\n'))
        transfer->header_ended = true;
    transfer->header_bytes += length_bytes;
    transfer->too_large = transfer->too_large || transfer->header_bytes > HEADER_BYTES_MAX;
    return transfer->too_large ? 0 : length_bytes;
}

static size_t take_body(char *bytes, size_t size, size_t count, void *arg)
{
    struct transfer *transfer = arg;

    buffer_append(&transfer->reply.body, bytes, size * count);
    transfer->too_large = transfer->reply.body.failed;
    return transfer->too_large ? 0 : size * count;
}

/* As curl does it, but we know why it could not. */
static curl_socket_t open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct transfer *transfer = arg;
    int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    (void)purpose;
    if (fd < 0)
        transfer->own_error = errno;
    return fd < 0 ? CURL_SOCKET_BAD : fd;
}

/* --- where it goes ------------------------------------------------------------------------------- */

static bool is_address(const char *host)
{
    unsigned char bytes[16];
    char inner[64];
    size_t length_bytes = strlen(host);

    if (inet_pton(AF_INET, host, bytes) == 1)
        return true;
    if (length_bytes < 3 || length_bytes >= sizeof(inner) || host[0] != '[')
        return false;
    snprintf(inner, sizeof(inner), "%.*s", (int)length_bytes - 2, host + 1);
    inner[strcspn(inner, "%")] = '\0';
    return inet_pton(AF_INET6, inner, bytes) == 1;
}

/* The parsed URL of an engine, kept: there are few, and each is used thousands of times. */
static struct known_url *find_url(struct transport *transport, const char *base_url)
{
    struct known_url *known = transport->urls;
    while (known && strcmp(known->base_url, base_url) != 0)
        known = known->next;
    return known;
}

static struct known_url *learn_url(struct transport *transport, const char *base_url)
{
    struct known_url *known = xcalloc(1, sizeof(*known));
    CURLU *url = curl_url();

    known->base_url = xstrdup(base_url);
    known->usable = url && !curl_url_set(url, CURLUPART_URL, base_url, 0) &&
                    !curl_url_get(url, CURLUPART_HOST, &known->host, 0) &&
                    !curl_url_get(url, CURLUPART_PORT, &known->port, CURLU_DEFAULT_PORT);
    known->is_address = known->usable && is_address(known->host);
    curl_url_cleanup(url);
    known->next = transport->urls;
    transport->urls = known;
    return known;
}

void transport_forget_urls(struct transport *transport)
{
    for (struct known_url *known = transport->urls, *next; known; known = next) {
        next = known->next;
        curl_free(known->host);
        curl_free(known->port);
        free(known->base_url);
        free(known);
    }
    transport->urls = NULL;
}

static bool find_name(struct transfer *transfer, const char *base_url)
{
    struct transport *transport = transfer->transport;
    const struct known_url *known = find_url(transport, base_url);

    if (!known)
        known = learn_url(transport, base_url);
    if (known->usable && !known->is_address)
        transfer->name = resolver_want(transport->resolver, known->host, known->port);
    return known->usable;
}

/* --- headers ------------------------------------------------------------------------------------- */

static bool header_is_clean(const char *value)
{
    for (; value && *value; value++)
        if ((unsigned char)*value < ' ' || *value == 0x7F)
            return false;
    return true;
}

static void add_header(struct transfer *transfer, const char *name, const char *value)
{
    char line[4096];
    struct curl_slist *longer;

    snprintf(line, sizeof(line), "%s%s%s", name, *value ? " " : "", value);
    longer = curl_slist_append(transfer->headers, line);
    if (longer)
        transfer->headers = longer;
}

static bool add_headers(struct transfer *transfer, const struct transfer_request *request)
{
    if (!header_is_clean(request->bearer_token) || !header_is_clean(request->request_id) ||
        (request->bearer_token && strlen(request->bearer_token) > 4000) ||
        (request->request_id && strlen(request->request_id) > 256))
        return false;
    add_header(transfer, "Expect:", ""); /* otherwise curl waits a second before large bodies */
    add_header(transfer, "Accept:", "application/json");
    if (transfer->is_post)
        add_header(transfer, "Content-Type:", "application/json");
    if (request->bearer_token)
        add_header(transfer, "Authorization: Bearer", request->bearer_token);
    if (request->request_id)
        add_header(transfer, "X-Request-Id:", request->request_id);
    return true;
}

/* --- options ------------------------------------------------------------------------------------- */

static void set_options(struct transfer *transfer)
{
    CURL *easy = transfer->easy;

    curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer);
    curl_easy_setopt(easy, CURLOPT_URL, transfer->url);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1); /* what engines speak */
    curl_easy_setopt(easy, CURLOPT_HTTP09_ALLOWED, 0L);
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_PROXY, ""); /* http_proxy and ALL_PROXY are ignored */
    curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L); /* ending a transfer must not wait for a resolver */
    curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, CONNECTION_AGE_S);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, RECEIVE_BYTES);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, transfer->transport->user_agent);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer->headers);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->curl_problem);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, count_send);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)transfer->reply.body.maximum_bytes);
    if (transfer->is_post) {
        curl_easy_setopt(easy, CURLOPT_POST, 1L);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)transfer->body.length_bytes);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, transfer->body.data ? transfer->body.data : "");
    }
}

bool transfer_setup(struct transfer *transfer, const struct transfer_request *request)
{
    int64_t now_us = clock_monotonic_us();

    transfer->url = xasprintf("%s%s", request->base_url, request->path);
    transfer->body = request->body;
    transfer->is_post = strcmp(request->method, "POST") == 0;
    transfer->deadline_us = request->timeout_us < NEVER_US - now_us ? now_us + request->timeout_us : NEVER_US;
    transfer->connect_timeout_us =
        request->connect_timeout_us > 0 ? request->connect_timeout_us : CONNECT_TIMEOUT_DEFAULT_US;
    transfer->wait_until_us = now_us + transfer->connect_timeout_us;
    buffer_init(&transfer->reply.body, request->reply_limit_bytes);
    if (!add_headers(transfer, request)) {
        snprintf(transfer->reply.problem, sizeof(transfer->reply.problem),
                 "the token or the request id does not fit into a header");
        return false;
    }
    if (!find_name(transfer, request->base_url)) {
        snprintf(transfer->reply.problem, sizeof(transfer->reply.problem), "%.100s is no URL of an engine",
                 transfer->url);
        return false;
    }
    transfer->easy = curl_easy_init();
    if (!transfer->easy) {
        snprintf(transfer->reply.problem, sizeof(transfer->reply.problem), "no memory");
        return false;
    }
    set_options(transfer);
    return true;
}

static long whole_ms(int64_t us)
{
    int64_t ms = (us + US_PER_MS - 1) / US_PER_MS;

    return ms < 1 ? 1 : ms > INT32_MAX ? INT32_MAX : (long)ms;
}

void transfer_set_limits(struct transfer *transfer, int64_t now_us)
{
    int64_t left_us = transfer->deadline_us - now_us;

    curl_easy_setopt(transfer->easy, CURLOPT_TIMEOUT_MS, whole_ms(left_us));
    curl_easy_setopt(transfer->easy, CURLOPT_CONNECTTIMEOUT_MS,
                     whole_ms(transfer->connect_timeout_us < left_us ? transfer->connect_timeout_us : left_us));
}

bool transfer_set_addresses(struct transfer *transfer)
{
    char *entry;

    if (!transfer->name)
        return true;
    curl_slist_free_all(transfer->resolve);
    entry = xasprintf("%s:%s:%s", transfer->name->host, transfer->name->port, transfer->name->addresses);
    transfer->resolve = curl_slist_append(NULL, entry);
    free(entry);
    curl_easy_setopt(transfer->easy, CURLOPT_RESOLVE, transfer->resolve);
    return transfer->resolve;
}
