#include "server/store/packed.h"

#include "server/base/cleanup.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

/* Each reader of a request in pieces holds more than one window. */
enum { LEVEL = 3, WINDOW_LOG = 17, LEAST_BYTES = 256, LEAST_TEXT_BYTES = 512 };
/* A block of zstd takes 4 bytes or more and holds 128 KiB or less. */
enum { RATIO_MAX = ZSTD_BLOCKSIZE_MAX / 4 };

const char *const store_codec_names[] = {"plain", "zstd", "lean", NULL};

/* ---- contexts of zstd ----------------------------------------------------------------------------------------------- */

/* Each thread keeps its own until it ends: a new one costs more than a text of some kilobytes. */
static _Thread_local struct contexts {
    ZSTD_CCtx *compressor;
    ZSTD_DCtx *decompressor;
} contexts;

static pthread_once_t keyed = PTHREAD_ONCE_INIT;
static pthread_key_t key; /* for its destructor */

static void free_contexts(void *arg)
{
    struct contexts *own = arg;
    ZSTD_freeCCtx(TAKE_PTR(own->compressor));
    ZSTD_freeDCtx(TAKE_PTR(own->decompressor));
}

static void make_key(void)
{
    if (pthread_key_create(&key, free_contexts) != 0)
        abort();
}

static void keep_contexts(void)
{
    (void)pthread_once(&keyed, make_key);
    (void)pthread_setspecific(key, &contexts);
}

/* NULL: there is no memory. */
static ZSTD_CCtx *compressor_of_thread(void)
{
    if (!contexts.compressor) {
        contexts.compressor = ZSTD_createCCtx();
        keep_contexts();
    }
    return contexts.compressor;
}

static ZSTD_DCtx *decompressor_of_thread(void)
{
    if (!contexts.decompressor) {
        contexts.decompressor = ZSTD_createDCtx();
        keep_contexts();
    }
    return contexts.decompressor;
}

/* ---- whole texts ---------------------------------------------------------------------------------------------------- */

static bool begin(ZSTD_CCtx *compressor, size_t plain_bytes)
{
    return !ZSTD_isError(ZSTD_CCtx_reset(compressor, ZSTD_reset_session_and_parameters)) &&
           !ZSTD_isError(ZSTD_CCtx_setParameter(compressor, ZSTD_c_compressionLevel, LEVEL)) &&
           !ZSTD_isError(ZSTD_CCtx_setParameter(compressor, ZSTD_c_windowLog, WINDOW_LOG)) &&
           !ZSTD_isError(ZSTD_CCtx_setParameter(compressor, ZSTD_c_checksumFlag, 1)) &&
           !ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(compressor, plain_bytes));
}

/* Grows with the output, so that it never takes as much as the worst case. False: it does not get smaller. */
static bool compress(ZSTD_CCtx *compressor, struct text plain, struct buffer *packed)
{
    size_t begin_bytes = packed->length_bytes;
    ZSTD_inBuffer in = {.src = plain.data, .size = plain.length_bytes};
    size_t whole_bytes = ZSTD_compressBound(plain.length_bytes);
    size_t room_bytes = whole_bytes < ZSTD_CStreamOutSize() ? whole_bytes : ZSTD_CStreamOutSize();
    size_t left = 1;
    while (left) {
        char *room = buffer_reserve(packed, room_bytes);
        if (!room)
            return false;
        ZSTD_outBuffer out = {.dst = room, .size = room_bytes};
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
    ZSTD_CCtx *compressor = compressor_of_thread();
    if (compressor && begin(compressor, plain.length_bytes) && compress(compressor, plain, packed))
        return STORE_CODEC_ZSTD;
    packed->length_bytes = begin_bytes;
    return STORE_CODEC_PLAIN;
}

struct text store_pack_text(struct text plain, struct buffer *packed)
{
    size_t begin_bytes = packed->length_bytes;
    if (!plain.data || plain.length_bytes < LEAST_TEXT_BYTES || store_pack(plain, packed) == STORE_CODEC_PLAIN)
        return TEXT_NONE;
    return (struct text){packed->data + begin_bytes, packed->length_bytes - begin_bytes};
}

/* A wrong length on record must never become the size of a buffer. The largest two lengths stand for none. */
static bool says_length(struct text packed, size_t plain_bytes)
{
    return plain_bytes < ZSTD_CONTENTSIZE_ERROR &&
           ZSTD_getFrameContentSize(packed.data, packed.length_bytes) == plain_bytes;
}

bool store_unpack(enum store_codec codec, struct text packed, char *ret_plain, size_t plain_bytes)
{
    ZSTD_DCtx *decompressor = codec == STORE_CODEC_ZSTD ? decompressor_of_thread() : NULL;
    if (codec == STORE_CODEC_ZSTD)
        return decompressor && says_length(packed, plain_bytes) &&
               ZSTD_decompressDCtx(decompressor, ret_plain, plain_bytes, packed.data, packed.length_bytes) ==
                   plain_bytes;
    if (codec != STORE_CODEC_PLAIN || packed.length_bytes != plain_bytes)
        return false;
    memcpy(ret_plain, packed.data, plain_bytes);
    return true;
}

bool store_unpacked_bytes(struct text packed, size_t *ret_plain_bytes)
{
    unsigned long long plain_bytes = ZSTD_getFrameContentSize(packed.data, packed.length_bytes);
    if (plain_bytes >= ZSTD_CONTENTSIZE_ERROR || plain_bytes / RATIO_MAX > packed.length_bytes)
        return false;
    *ret_plain_bytes = (size_t)plain_bytes;
    return true;
}

/* ---- piece by piece ------------------------------------------------------------------------------------------------- */

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
