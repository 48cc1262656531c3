#include "server/store/content.h"

enum { PACK_FROM_BYTES = 1024 };

void store_content_make(struct text plain, struct buffer *packed, struct store_content *ret_content)
{
    *ret_content = (struct store_content){.stored = plain, .plain_bytes = plain.length_bytes};
    sha256_of(plain.data, plain.length_bytes, ret_content->sha256);
    if (plain.length_bytes < PACK_FROM_BYTES)
        return;
    ret_content->codec = store_pack(plain, packed);
    if (ret_content->codec != STORE_CODEC_PLAIN)
        ret_content->stored = buffer_text(packed);
}
