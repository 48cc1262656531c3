/* request: the bodies of requests as they were posted, as the record has them. */
#ifndef STORE_REQUEST_H
#define STORE_REQUEST_H

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

/* The same in pieces. */
struct store_request_place {
    int64_t batch_seq;
    size_t body_bytes;
    char content_type[64];
};
enum store_status store_find_request(struct store_reader *reader, struct text batch_id,
                                     struct store_request_place *ret_place);
/* Walks over what is before the piece: few large pieces are cheaper than many small ones. */
enum store_status store_read_request_piece(struct store_reader *reader, const struct store_request_place *place,
                                           size_t from_byte, size_t piece_bytes, char *ret_bytes);

#endif
