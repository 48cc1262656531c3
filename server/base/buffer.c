#include "server/base/buffer.h"

#include "server/base/blocks.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

enum { FIRST_CAPACITY_BYTES = 256 };

void buffer_init(struct buffer *buffer, size_t maximum_bytes)
{
    *buffer = (struct buffer){.maximum_bytes = maximum_bytes};
}

void buffer_finish(struct buffer *buffer)
{
    block_give(buffer->data);
    buffer_init(buffer, buffer->maximum_bytes);
}

/* Into a kept block, if there is one that is large enough. */
static bool move_to_block(struct buffer *buffer, size_t wanted_bytes)
{
    size_t capacity_bytes;
    char *block = block_find(wanted_bytes, &capacity_bytes);
    if (!block)
        return false;
    if (buffer->length_bytes)
        memcpy(block, buffer->data, buffer->length_bytes);
    block_give(buffer->data);
    buffer->data = block;
    buffer->capacity_bytes = capacity_bytes;
    return true;
}

void buffer_reserve_kept(struct buffer *buffer, size_t length_bytes)
{
    if (length_bytes <= buffer->maximum_bytes && length_bytes >= buffer->capacity_bytes)
        (void)move_to_block(buffer, length_bytes + 1);
}

/* One byte more than asked, for the NUL. */
static bool grow(struct buffer *buffer, size_t length_bytes)
{
    size_t wanted = buffer->capacity_bytes ? buffer->capacity_bytes : FIRST_CAPACITY_BYTES / 2;
    wanted = wanted > SIZE_MAX / 2 ? SIZE_MAX : wanted * 2;
    if (length_bytes == SIZE_MAX)
        return false;
    if (wanted <= length_bytes)
        wanted = length_bytes + 1;
    if (buffer->maximum_bytes < SIZE_MAX && wanted > buffer->maximum_bytes + 1)
        wanted = buffer->maximum_bytes + 1;
    if (wanted >= BLOCK_BYTES && move_to_block(buffer, length_bytes + 1))
        return true;
    char *data = realloc(buffer->data, wanted);
    if (!data)
        return false;
    buffer->data = data;
    buffer->capacity_bytes = wanted;
    return true;
}

char *buffer_reserve(struct buffer *buffer, size_t more_bytes)
{
    if (buffer->failed)
        return NULL;
    if (more_bytes > buffer->maximum_bytes - buffer->length_bytes) {
        buffer->failed = true;
        return NULL;
    }
    size_t length_bytes = buffer->length_bytes + more_bytes;
    if (length_bytes >= buffer->capacity_bytes && !grow(buffer, length_bytes)) {
        buffer->failed = true;
        return NULL;
    }
    return buffer->data + buffer->length_bytes;
}

void buffer_append(struct buffer *buffer, const void *bytes, size_t length_bytes)
{
    char *place = buffer_reserve(buffer, length_bytes);
    if (!place)
        return;
    if (length_bytes)
        memcpy(place, bytes, length_bytes);
    place[length_bytes] = '\0';
    buffer->length_bytes += length_bytes;
}

void buffer_append_string(struct buffer *buffer, const char *string)
{
    buffer_append(buffer, string, strlen(string));
}

void buffer_append_byte(struct buffer *buffer, char byte)
{
    buffer_append(buffer, &byte, 1);
}

void buffer_append_format(struct buffer *buffer, const char *format, ...)
{
    va_list arguments;
    va_list again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    char *place = length < 0 ? NULL : buffer_reserve(buffer, (size_t)length);
    if (place) {
        vsnprintf(place, (size_t)length + 1, format, again);
        buffer->length_bytes += (size_t)length;
    } else {
        buffer->failed = true;
    }
    va_end(again);
}

void buffer_clear(struct buffer *buffer)
{
    buffer->length_bytes = 0;
    buffer->failed = false;
    if (buffer->data)
        buffer->data[0] = '\0';
}

void buffer_drop_front(struct buffer *buffer, size_t length_bytes)
{
    if (length_bytes == 0)
        return;
    buffer->length_bytes -= length_bytes;
    memmove(buffer->data, buffer->data + length_bytes, buffer->length_bytes);
}

void buffer_trim(struct buffer *buffer)
{
    char *data = buffer->data ? realloc(buffer->data, buffer->length_bytes + 1) : NULL;
    if (!data)
        return;
    buffer->data = data;
    buffer->capacity_bytes = buffer->length_bytes + 1;
}

char *buffer_steal(struct buffer *buffer, size_t *ret_length_bytes)
{
    char *data = NULL;
    *ret_length_bytes = 0;
    if (!buffer->failed && buffer->data) {
        data = TAKE_PTR(buffer->data);
        data[buffer->length_bytes] = '\0'; /* a caller of buffer_reserve may have left none */
        *ret_length_bytes = buffer->length_bytes;
    }
    buffer_finish(buffer);
    return data;
}
