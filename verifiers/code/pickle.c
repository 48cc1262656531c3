#include "verifiers/code/pickle_private.h"

#include <stdint.h>
#include <zlib.h>

#include "server/base/cleanup.h"
#include "server/base/hash.h"

#define PROTOCOL_MIN 2
#define PROTOCOL_MAX 5
#define CHUNK_BYTES ((size_t)256 << 10)

/* Opcodes that a pickle of one text may have: how many bytes of number follow, little endian, and whether that many bytes
 * of text do. */
static const struct opcode {
    unsigned char code;
    unsigned char number_bytes;
    enum { OPCODE_FRAME, OPCODE_TEXT, OPCODE_MEMO } kind;
} opcodes[] = {
    {0x95, 8, OPCODE_FRAME}, {0x8C, 1, OPCODE_TEXT}, {'X', 4, OPCODE_TEXT}, {0x8D, 8, OPCODE_TEXT},
    {0x94, 0, OPCODE_MEMO},  {'q', 1, OPCODE_MEMO},  {'r', 4, OPCODE_MEMO},
};

static const struct opcode *find_opcode(unsigned char code)
{
    for (size_t i = 0; i < ARRAY_LENGTH(opcodes); i++)
        if (opcodes[i].code == code)
            return &opcodes[i];
    return NULL;
}

static int take_number(struct text *rest, size_t bytes, uint64_t *ret_number)
{
    uint64_t number = 0;

    if (rest->length_bytes < bytes)
        return -1;
    for (size_t i = 0; i < bytes; i++)
        number |= (uint64_t)(unsigned char)rest->data[i] << (8 * i);
    *rest = (struct text){rest->data + bytes, rest->length_bytes - bytes};
    *ret_number = number;
    return 0;
}

static int take_opcode(struct text *rest, struct text *text)
{
    const struct opcode *opcode = find_opcode((unsigned char)rest->data[0]);
    uint64_t number;

    *rest = (struct text){rest->data + 1, rest->length_bytes - 1};
    if (!opcode || take_number(rest, opcode->number_bytes, &number) < 0)
        return -1;
    if (opcode->kind == OPCODE_FRAME)
        return text->data || number > rest->length_bytes ? -1 : 0;
    if (opcode->kind == OPCODE_MEMO)
        return text->data ? 0 : -1;
    if (text->data || number > rest->length_bytes)
        return -1;
    *text = (struct text){rest->data, (size_t)number};
    *rest = (struct text){rest->data + number, rest->length_bytes - (size_t)number};
    return 0;
}

int pickle_read(struct text pickle, struct text *ret_text)
{
    struct text rest = pickle;

    *ret_text = TEXT_NONE;
    if (rest.length_bytes < 2 || (unsigned char)rest.data[0] != 0x80 || rest.data[1] < PROTOCOL_MIN ||
        rest.data[1] > PROTOCOL_MAX)
        return -1;
    rest = (struct text){rest.data + 2, rest.length_bytes - 2};
    while (rest.length_bytes && rest.data[0] != '.')
        if (take_opcode(&rest, ret_text) < 0)
            return -1;
    return rest.length_bytes == 1 && ret_text->data ? 0 : -1;
}

static void end_stream(z_stream *stream)
{
    inflateEnd(stream);
}

/* One step of inflate(). */
static int inflate_some(z_stream *stream, struct buffer *out)
{
    char *room = buffer_reserve(out, CHUNK_BYTES);

    if (!room)
        return Z_MEM_ERROR;
    stream->next_out = (Bytef *)room;
    stream->avail_out = (uInt)CHUNK_BYTES;
    int result = inflate(stream, Z_NO_FLUSH);
    out->length_bytes += CHUNK_BYTES - stream->avail_out;
    return result;
}

static int unpack_zlib(struct text packed, struct buffer *out)
{
    _cleanup_(end_stream)
        z_stream stream = {.next_in = (Bytef *)(uintptr_t)packed.data, .avail_in = (uInt)packed.length_bytes};
    int result = packed.length_bytes < UINT32_MAX ? inflateInit(&stream) : Z_MEM_ERROR;

    while (result == Z_OK)
        result = inflate_some(&stream, out);
    return result == Z_STREAM_END && stream.avail_in == 0 ? 0 : -1;
}

int pickle_unpack(struct text packed, struct buffer *unpacked, struct text *ret_text, const char **ret_problem)
{
    _cleanup_buffer_ struct buffer bytes;

    buffer_init(&bytes, packed.length_bytes);
    buffer_init(unpacked, PICKLE_BYTES_MAX + CHUNK_BYTES);
    if (!base64_decode(packed, &bytes))
        *ret_problem = "is neither JSON nor base64";
    else if (unpack_zlib(buffer_text(&bytes), unpacked) < 0)
        *ret_problem = unpacked->length_bytes >= PICKLE_BYTES_MAX ? "unpacks to more than 64 MiB" : "is no zlib stream";
    else if (pickle_read(buffer_text(unpacked), ret_text) < 0)
        *ret_problem = "is no pickle of one text";
    else
        return 0;
    return -1;
}
