/* request: the bodies of requests as they were posted, as the record has them. */
#ifndef STORE_REQUEST_H
#define STORE_REQUEST_H

#include "server/store/packed.h"
#include "server/store/store.h"

struct store_request {
    struct text body;
    struct text content_type;
    uint8_t sha256[SHA256_BYTES];
    struct store_memory *memory;
};
enum store_status store_read_request(struct store_reader *reader, struct text batch_id,
                                     struct store_request *ret_request);
void store_request_finish(struct store_request *request);

/* The same in pieces, from the first to the last. */
struct store_request_pieces {
    int64_t batch_seq;
    uint8_t sha256[SHA256_BYTES]; /* of the body */
    char content_type[64];
    size_t body_bytes; /* as posted */
    size_t told_bytes; /* of them, so far */

    /* private */
    enum store_codec codec;
    size_t stored_bytes;
    size_t read_bytes;                 /* of those stored */
    struct buffer stored;              /* read, and not used up */
    struct text left;                  /* in `stored` */
    struct store_unpacking *unpacking; /* NULL: they are plain */
    struct buffer part;                /* of a lean form, unpacked */
    struct buffer values;              /* that it has no bytes of */
    struct buffer written;             /* what it stands for */
    struct text written_left;          /* in `written`, not told */
};
enum store_status store_find_request(struct store_reader *reader, struct text batch_id,
                                     struct store_request_pieces *ret_pieces);
/* The next piece_bytes, of those that are left. Walks over the bytes before them: few large pieces are cheaper than
 * many small ones. */
enum store_status store_read_request_piece(struct store_reader *reader, struct store_request_pieces *pieces,
                                           size_t piece_bytes, char *ret_bytes);
void store_request_pieces_finish(struct store_request_pieces *pieces);

#endif
