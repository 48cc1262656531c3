#include "server/http/chunks_private.h"

#include "server/base/cleanup.h"
#include "server/http/head_private.h"

enum { SIZE_DIGITS_MAX = 15, LINES_BYTES_MAX = 8192 };

/* Of an extension is only asked that it stays within its line; of a trailer that it is a header line. */
enum state {
    SIZE_FIRST,
    SIZE,
    EXTENSION,
    SIZE_LF,
    DATA,
    DATA_CR,
    DATA_LF,
    TRAILER_FIRST,
    TRAILER_NAME,
    TRAILER_VALUE,
    TRAILER_LF,
    END_LF,
    STATES,
    END = STATES,
    BAD,
};

static int hex_value(char byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    char small = (char)(byte | 0x20);
    return small >= 'a' && small <= 'f' ? small - 'a' + 10 : -1;
}

static enum state read_size(struct chunks *chunks, char byte)
{
    int value = hex_value(byte);
    if (value >= 0 && chunks->digits < SIZE_DIGITS_MAX) {
        chunks->digits++;
        chunks->data_bytes = chunks->data_bytes << 4 | (unsigned)value;
        return SIZE;
    }
    if (!chunks->digits)
        return BAD;
    return byte == ';' ? EXTENSION : byte == '\r' ? SIZE_LF : BAD;
}

static enum state read_line(struct chunks *chunks, char byte, enum state same, enum state end)
{
    if (byte == '\r')
        return end;
    return ++chunks->line_bytes <= LINES_BYTES_MAX && head_is_value_byte(byte) ? same : BAD;
}

static enum state read_extension(struct chunks *chunks, char byte)
{
    return read_line(chunks, byte, EXTENSION, SIZE_LF);
}

static enum state read_size_lf(struct chunks *chunks, char byte)
{
    chunks->digits = 0;
    return byte != '\n' ? BAD : chunks->data_bytes ? DATA : TRAILER_FIRST;
}

static enum state read_data_cr(struct chunks *chunks, char byte)
{
    (void)chunks;
    return byte == '\r' ? DATA_LF : BAD;
}

static enum state read_data_lf(struct chunks *chunks, char byte)
{
    (void)chunks;
    return byte == '\n' ? SIZE_FIRST : BAD;
}

static enum state read_trailer_name(struct chunks *chunks, char byte)
{
    if (byte == ':')
        return TRAILER_VALUE;
    return ++chunks->line_bytes <= LINES_BYTES_MAX && head_is_token_byte(byte) ? TRAILER_NAME : BAD;
}

static enum state read_trailer_first(struct chunks *chunks, char byte)
{
    return byte == '\r' ? END_LF : byte == ':' ? BAD : read_trailer_name(chunks, byte);
}

static enum state read_trailer_value(struct chunks *chunks, char byte)
{
    return read_line(chunks, byte, TRAILER_VALUE, TRAILER_LF);
}

static enum state read_trailer_lf(struct chunks *chunks, char byte)
{
    (void)chunks;
    return byte == '\n' ? TRAILER_FIRST : BAD;
}

static enum state read_end_lf(struct chunks *chunks, char byte)
{
    (void)chunks;
    return byte == '\n' ? END : BAD;
}

static enum state (*const read_byte[STATES])(struct chunks *chunks, char byte) = {
    [SIZE_FIRST] = read_size,
    [SIZE] = read_size,
    [EXTENSION] = read_extension,
    [SIZE_LF] = read_size_lf,
    [DATA_CR] = read_data_cr,
    [DATA_LF] = read_data_lf,
    [TRAILER_FIRST] = read_trailer_first,
    [TRAILER_NAME] = read_trailer_name,
    [TRAILER_VALUE] = read_trailer_value,
    [TRAILER_LF] = read_trailer_lf,
    [END_LF] = read_end_lf,
};

static size_t skip_data(struct chunks *chunks, size_t length_bytes)
{
    size_t bytes = chunks->data_bytes < length_bytes ? (size_t)chunks->data_bytes : length_bytes;
    chunks->data_bytes -= bytes;
    return bytes;
}

enum chunks_verdict chunks_read(struct chunks *chunks, const char *bytes, size_t length_bytes, size_t *ret_taken_bytes)
{
    size_t at = 0;
    while (at < length_bytes) {
        if (chunks->state == DATA && chunks->data_bytes) {
            at += skip_data(chunks, length_bytes - at);
            continue;
        }
        enum state now = chunks->state == DATA ? DATA_CR : (enum state)chunks->state;
        enum state next = read_byte[now](chunks, bytes[at]);
        if (next == BAD)
            break;
        chunks->state = (unsigned char)next;
        at++;
        if (next == END) {
            *ret_taken_bytes = at;
            return CHUNKS_END;
        }
    }
    *ret_taken_bytes = at;
    return at == length_bytes ? CHUNKS_MORE : CHUNKS_BAD;
}

uint64_t chunks_skip(struct chunks *chunks)
{
    uint64_t bytes = chunks->state == DATA ? chunks->data_bytes : 0;
    chunks->data_bytes -= bytes;
    return bytes;
}
