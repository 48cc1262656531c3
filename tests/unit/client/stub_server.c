#include "stub_server.h"

#include "server/base/cleanup.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define REQUEST_BYTES 65536
#define OK_BODY "{\"ok\":true}"

struct connection {
    struct stub_server *server;
    int fd;
    bool dies_next; /* at the next request, without a byte */
};

static bool put(int fd, const char *bytes, size_t length)
{
    while (length) {
        ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL);

        if (sent <= 0)
            return false;
        bytes += sent;
        length -= (size_t)sent;
    }
    return true;
}

static bool put_text(int fd, const char *text)
{
    return put(fd, text, strlen(text));
}

static bool put_body(int fd, const char *status, const char *headers, const char *body)
{
    char *reply = xasprintf("HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n%s\r\n%s", status,
                            strlen(body), headers, body);
    bool sent = put_text(fd, reply);

    free(reply);
    return sent;
}

/* --- its behaviours: each returns whether the connection stays open --------------------------------------- */

static bool do_ok(struct connection *connection, const char *request)
{
    (void)request;
    return put_body(connection->fd, "200 OK", "", OK_BODY);
}

static bool do_echo(struct connection *connection, const char *request)
{
    return put_body(connection->fd, "200 OK", "", request);
}

static bool do_half(struct connection *connection, const char *request)
{
    (void)request;
    put_text(connection->fd, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"half\":");
    return false;
}

static bool do_chunk_cut(struct connection *connection, const char *request)
{
    (void)request;
    put_text(connection->fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"a\":\r\n");
    return false;
}

static bool do_one_byte(struct connection *connection, const char *request)
{
    (void)request;
    put_text(connection->fd, "H");
    return false;
}

static bool do_nothing(struct connection *connection, const char *request)
{
    (void)connection;
    (void)request;
    return false;
}

static bool do_header_cut(struct connection *connection, const char *request)
{
    (void)request;
    put_text(connection->fd, "HTTP/1.1 200 OK\r\nContent-Le");
    return false;
}

static bool do_no_http(struct connection *connection, const char *request)
{
    (void)request;
    put_text(connection->fd, "hello, this is not HTTP\r\n\r\nat all");
    return false;
}

static bool do_hang(struct connection *connection, const char *request)
{
    char byte;

    (void)request;
    if (recv(connection->fd, &byte, 1, 0) <= 0)
        connection->server->hung_up++;
    return false;
}

static bool do_big(struct connection *connection, const char *request)
{
    const size_t size = 10 * 1024 * 1024;
    char *body = xcalloc(1, size + 1);
    bool sent;

    (void)request;
    memset(body, 'x', size);
    sent = put_body(connection->fd, "200 OK", "", body);
    free(body);
    return sent;
}

static bool do_endless(struct connection *connection, const char *request)
{
    (void)request;
    put_text(connection->fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    while (put_text(connection->fd, "10\r\n0123456789abcdef\r\n"))
        continue;
    return false;
}

static bool do_endless_headers(struct connection *connection, const char *request)
{
    (void)request;
    put_text(connection->fd, "HTTP/1.1 200 OK\r\n");
    while (put_text(connection->fd, "X-Filler: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\r\n"))
        continue;
    return false;
}

static bool do_long_header(struct connection *connection, const char *request)
{
    (void)request;
    put_text(connection->fd, "HTTP/1.1 200 OK\r\nX-Filler: ");
    for (int i = 0; i < 16 * 1024; i++) /* 256 KiB in one line */
        put_text(connection->fd, "0123456789abcdef");
    put_text(connection->fd, "\r\nContent-Length: 2\r\n\r\n{}");
    return false;
}

static bool do_redirect(struct connection *connection, const char *request)
{
    (void)request;
    return put_body(connection->fd, "302 Found", "Location: /ok\r\n", "{}");
}

static bool do_busy(struct connection *connection, const char *request)
{
    (void)request;
    return put_body(connection->fd, "429 Too Many Requests", "Retry-After: 7\r\n", "{}");
}

static bool do_continue(struct connection *connection, const char *request)
{
    (void)request;
    return put_text(connection->fd, "HTTP/1.1 100 Continue\r\n\r\n") && put_body(connection->fd, "200 OK", "", OK_BODY);
}

static bool do_stale(struct connection *connection, const char *request)
{
    (void)request;
    connection->dies_next = true;
    return put_body(connection->fd, "200 OK", "", OK_BODY);
}

static const struct {
    const char *path;
    bool (*act)(struct connection *connection, const char *request);
} acts[] = {
    {"/ok ", do_ok},
    {"/echo ", do_echo},
    {"/half ", do_half},
    {"/chunk-cut ", do_chunk_cut},
    {"/one-byte ", do_one_byte},
    {"/nothing ", do_nothing},
    {"/header-cut ", do_header_cut},
    {"/no-http ", do_no_http},
    {"/hang ", do_hang},
    {"/big ", do_big},
    {"/endless ", do_endless},
    {"/endless-headers ", do_endless_headers},
    {"/long-header ", do_long_header},
    {"/redirect ", do_redirect},
    {"/busy ", do_busy},
    {"/continue ", do_continue},
    {"/stale ", do_stale},
};

/* --- the server ---------------------------------------------------------------------------------- */

/* One request with its body, or false when the peer is gone. */
static bool read_request(int fd, char *request)
{
    size_t length = 0, wanted = 0;

    while (length < REQUEST_BYTES - 1) {
        ssize_t got = recv(fd, request + length, REQUEST_BYTES - 1 - length, 0);
        char *end;

        if (got <= 0)
            return false;
        length += (size_t)got;
        request[length] = '\0';
        end = strstr(request, "\r\n\r\n");
        if (end && !wanted) {
            char *header = strstr(request, "Content-Length: ");

            wanted = (size_t)(end + 4 - request) + (header ? strtoul(header + 16, NULL, 10) : 0);
        }
        if (wanted && length >= wanted)
            return true;
    }
    return false;
}

static bool serve_one(struct connection *connection, const char *request)
{
    const char *path = strchr(request, ' ');

    connection->server->requests++;
    if (connection->dies_next)
        return false;
    for (size_t i = 0; path && i < ARRAY_LENGTH(acts); i++)
        if (strncmp(path + 1, acts[i].path, strlen(acts[i].path)) == 0)
            return acts[i].act(connection, request);
    return put_body(connection->fd, "404 Not Found", "", "{}");
}

static void *connection_thread(void *arg)
{
    struct connection *connection = arg;
    char *request = xcalloc(1, REQUEST_BYTES);

    while (read_request(connection->fd, request) && serve_one(connection, request))
        continue;
    close(connection->fd);
    free(request);
    connection->server->open--;
    free(connection);
    return NULL;
}

static void *accept_thread(void *arg)
{
    struct stub_server *server = arg;
    int fd;

    while ((fd = accept(server->fd, NULL, NULL)) >= 0) {
        struct connection *connection = xcalloc(1, sizeof(*connection));
        pthread_t thread;

        *connection = (struct connection){.server = server, .fd = fd};
        server->connections++;
        server->open++;
        if (pthread_create(&thread, NULL, connection_thread, connection))
            abort();
        pthread_detach(thread);
    }
    return NULL;
}

void stub_server_start(struct stub_server *server)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);

    *server = (struct stub_server){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    if (bind(server->fd, (struct sockaddr *)&address, size) || listen(server->fd, 128) ||
        getsockname(server->fd, (struct sockaddr *)&address, &size))
        abort();
    server->port = ntohs(address.sin_port);
    snprintf(server->url, sizeof(server->url), "http://127.0.0.1:%d", server->port);
    if (pthread_create(&server->thread, NULL, accept_thread, server))
        abort();
}

void stub_server_stop(struct stub_server *server)
{
    shutdown(server->fd, SHUT_RDWR);
    pthread_join(server->thread, NULL);
    close(server->fd);
    for (int i = 0; i < 500 && server->open; i++) /* its client is gone, so all of them end */
        usleep(2000);
}
