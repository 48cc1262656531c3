#include "server/store/packed.h"

#include "server/base/cleanup.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

/* Each reader of a request in pieces holds more than one window. */
enum { LEVEL = 3, WINDOW_LOG = 17, LEAST_BYTES = 256 };

const char *const store_codec_names[] = {"plain", "zstd", NULL};

static void free_compressor(ZSTD_CCtx *const *compressor)
{
    ZSTD_freeCCtx(*compressor);
}

/* Grows with the output, so that it never takes as much as the worst case. False: it does not get smaller. */
static bool compress(ZSTD_CCtx *compressor, struct text plain, struct buffer *packed)
{
    size_t begin_bytes = packed->length_bytes;
    ZSTD_inBuffer in = {.src = plain.data, .size = plain.length_bytes};
    size_t left = 1;
    while (left) {
        char *room = buffer_reserve(packed, ZSTD_CStreamOutSize());
        if (!room)
            return false;
        ZSTD_outBuffer out = {.dst = room, .size = ZSTD_CStreamOutSize()};
        left = ZSTD_compressStream2(compressor, &out, &in, ZSTD_e_end);
        packed->length_bytes += out.pos;
        if (ZSTD_isError(left) || packed->length_bytes - begin_bytes >= plain.length_bytes)
            return false;
    }
    return true;
}

enum store_codec store_pack(struct text plain, struct buffer *packed)
{
    size_t begin_bytes = packed->length_bytes;
    if (plain.length_bytes < LEAST_BYTES)
        return STORE_CODEC_PLAIN;
    _cleanup_(free_compressor) ZSTD_CCtx *compressor = ZSTD_createCCtx();
    if (compressor && !ZSTD_isError(ZSTD_CCtx_setParameter(compressor, ZSTD_c_compressionLevel, LEVEL)) &&
        !ZSTD_isError(ZSTD_CCtx_setParameter(compressor, ZSTD_c_windowLog, WINDOW_LOG)) &&
        !ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(compressor, plain.length_bytes)) &&
        compress(compressor, plain, packed))
        return STORE_CODEC_ZSTD;
    packed->length_bytes = begin_bytes;
    return STORE_CODEC_PLAIN;
}

/* A wrong length on record must never become the size of a buffer. The largest two lengths stand for none. */
static bool says_length(struct text packed, size_t plain_bytes)
{
    return plain_bytes < ZSTD_CONTENTSIZE_ERROR &&
           ZSTD_getFrameContentSize(packed.data, packed.length_bytes) == plain_bytes;
}

bool store_unpack(enum store_codec codec, struct text packed, char *ret_plain, size_t plain_bytes)
{
    if (codec == STORE_CODEC_ZSTD)
        return says_length(packed, plain_bytes) &&
               ZSTD_decompress(ret_plain, plain_bytes, packed.data, packed.length_bytes) == plain_bytes;
    if (packed.length_bytes != plain_bytes)
        return false;
    memcpy(ret_plain, packed.data, plain_bytes);
    return true;
}

struct store_unpacking {
    ZSTD_DStream *stream;
};

struct store_unpacking *store_unpacking_create(void)
{
    struct store_unpacking *unpacking = calloc(1, sizeof(*unpacking));
    if (unpacking && !(unpacking->stream = ZSTD_createDStream()))
        free(TAKE_PTR(unpacking));
    return unpacking;
}

void store_unpacking_destroy(struct store_unpacking *unpacking)
{
    if (!unpacking)
        return;
    ZSTD_freeDStream(unpacking->stream);
    free(unpacking);
}

ssize_t store_unpack_some(struct store_unpacking *unpacking, struct text *packed, char *ret_plain, size_t plain_bytes)
{
    ZSTD_inBuffer in = {.src = packed->data, .size = packed->length_bytes};
    ZSTD_outBuffer out = {.dst = ret_plain, .size = plain_bytes};
    size_t left = 1;
    while (left && out.pos < out.size) {
        size_t in_before = in.pos;
        size_t out_before = out.pos;
        left = ZSTD_decompressStream(unpacking->stream, &out, &in);
        if (ZSTD_isError(left))
            return -1;
        if (in.pos == in_before && out.pos == out_before)
            break;
    }
    packed->data += in.pos;
    packed->length_bytes -= in.pos;
    return (ssize_t)out.pos;
}
