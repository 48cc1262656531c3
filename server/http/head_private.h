/* http_head: whether the head of a request can be read in one way only. Bytes in, verdict out: no socket, no memory.
 *
 * libmicrohttpd 0.9.75 takes bare line feeds, blanks before a colon, folded lines, two Hosts, NUL in a value and
 * lengths with blanks behind them, or answers such a thing in HTML. It gets only what passed here (gate_private.h). */
#ifndef SERVER_HTTP_HEAD_PRIVATE_H
#define SERVER_HTTP_HEAD_PRIVATE_H

#include "server/base/text.h"
#include "server/http/errors.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEAD_BYTES_MAX ((size_t)32 * 1024)
/* Header lines, parameters of the query and cookies together: the library keeps a record of each in the connection's
 * memory, and answers by itself when that is full. */
#define HEAD_FIELDS_MAX 256

enum head_verdict { HEAD_INCOMPLETE, HEAD_GOOD, HEAD_BAD };

struct head {
    size_t length_bytes; /* of a good one, with its empty line */
    uint64_t body_bytes; /* by Content-Length */
    bool chunked;
    bool last;            /* the client wants the connection closed behind it */
    struct text method;   /* these three as far as they were read; they point into the input */
    struct text target;   /* as it came, query included */
    struct text identity; /* the value of X-Request-Id */
    enum error_code code; /* of a bad one */
    const char *message;  /* static */
};

/* The head at the beginning of these bytes. A bad one may be known before it is complete. No empty line is taken in
 * front of it. */
enum head_verdict head_read(const char *bytes, size_t length_bytes, struct head *ret_head);

/* Whether a client's X-Request-Id may be used. */
bool head_identity_is_sane(struct text identity);

/* A byte of a token (RFC 9110 5.6.2): of methods and header names. */
bool head_is_token_byte(char byte);
/* A byte of a value: no control but the tabulator. */
bool head_is_value_byte(char byte);

#endif
