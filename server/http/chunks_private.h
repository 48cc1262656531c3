/* http_chunks: how far a body in chunks is well-formed. Bytes in, count out: no socket, no memory. */
#ifndef SERVER_HTTP_CHUNKS_PRIVATE_H
#define SERVER_HTTP_CHUNKS_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct chunks {
    unsigned char state;  /* zeroed: the beginning of a body */
    unsigned char digits; /* of the size that is read */
    uint64_t data_bytes;  /* of the current chunk that have not come yet */
    size_t line_bytes;    /* of extensions and trailers so far */
};

enum chunks_verdict {
    CHUNKS_MORE, /* all bytes are fine, the body continues */
    CHUNKS_END,  /* the body ends with *ret_taken_bytes */
    CHUNKS_BAD,  /* the byte behind *ret_taken_bytes is wrong */
};

enum chunks_verdict chunks_read(struct chunks *chunks, const char *bytes, size_t length_bytes, size_t *ret_taken_bytes);

/* The bytes of data that come next may be anything and need not be read: counts them as read. */
uint64_t chunks_skip(struct chunks *chunks);

#endif
