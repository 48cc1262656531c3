/* buffer: growable bytes with a maximum, born with it.
 *
 * Appending beyond the maximum (or beyond memory) appends nothing and marks the buffer as failed; it stays so, and
 * every later append is refused. So a caller appends freely and asks once at the end. No locking: one thread at a time.
 */
#ifndef BASE_BUFFER_H
#define BASE_BUFFER_H

#include "server/base/cleanup.h"
#include "server/base/text.h"

#include <stdbool.h>
#include <stddef.h>

struct buffer {
    char *data; /* always followed by a NUL that length_bytes does not count, once anything was appended */
    size_t length_bytes;
    size_t capacity_bytes;
    size_t maximum_bytes;
    bool failed;
};

void buffer_init(struct buffer *buffer, size_t maximum_bytes);
void buffer_finish(struct buffer *buffer); /* also the cleanup function; leaves it empty and usable */

void buffer_append(struct buffer *buffer, const void *bytes, size_t length_bytes);
void buffer_append_string(struct buffer *buffer, const char *string);
void buffer_append_byte(struct buffer *buffer, char byte);
void buffer_append_format(struct buffer *buffer, const char *format, ...) _printf_(2, 3);

/* Room for more bytes, to be filled by the caller, who then adds to length_bytes. NULL if it does not fit. */
char *buffer_reserve(struct buffer *buffer, size_t more_bytes);

/* Room for so many bytes in a block that is kept (blocks.h), if there is one; else nothing. For an empty buffer. */
void buffer_reserve_kept(struct buffer *buffer, size_t length_bytes);

void buffer_clear(struct buffer *buffer);                           /* keeps the memory, forgets content and failure */
void buffer_drop_front(struct buffer *buffer, size_t length_bytes); /* at most what is there */
void buffer_trim(struct buffer *buffer);                            /* gives back the memory beyond its content */

/* The bytes, now the caller's to free (or to block_give()); the buffer is empty again. NULL if it had failed or holds
 * nothing. */
char *buffer_steal(struct buffer *buffer, size_t *ret_length_bytes);

static inline struct text buffer_text(const struct buffer *buffer)
{
    return (struct text){buffer->data ? buffer->data : "", buffer->length_bytes};
}

#define _cleanup_buffer_ _cleanup_(buffer_finish)

#endif
