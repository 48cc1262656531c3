/* cursor: the place where a list continues, bound to its filters by a digest. Private to the room. */
#ifndef SERVER_STORE_SQLITE_CURSOR_H
#define SERVER_STORE_SQLITE_CURSOR_H

#include "server/base/buffer.h"
#include "server/base/text.h"

#include <stdbool.h>
#include <stdint.h>

struct list_key {
    uint8_t digest[8];
};
#define CURSOR_BYTES 64

void cursor_write(const struct list_key *key, int64_t seq, char ret_cursor[CURSOR_BYTES]);
bool cursor_read(const struct list_key *key, struct text cursor, int64_t *ret_seq);

/* A list in the order of a value, then of seq. */
struct list_place {
    double value; /* NAN: behind all that have one */
    int64_t seq;
};
void cursor_write_place(const struct list_key *key, const struct list_place *place, char ret_cursor[CURSOR_BYTES]);
bool cursor_read_place(const struct list_key *key, struct text cursor, struct list_place *ret_place);

/* A key is the digest of a list's filters, written one behind the other. */
void key_init(struct buffer *key, const char *list);
void key_text(struct buffer *key, struct text text);
void key_numbers(struct buffer *key, const int64_t *numbers, size_t count);
struct list_key key_finish(const struct buffer *key);

#endif
