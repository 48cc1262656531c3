/* A head, and what is behind it as chunks, in two pieces. The first byte says where the cut is. */
#include "server/http/chunks_private.h"
#include "server/http/head_private.h"
#include "tests/fuzz/fuzz.h"

static void check_head(struct text text, const struct head *head, enum head_verdict verdict)
{
    if (verdict == HEAD_BAD)
        FUZZ_CHECK(head->message && error_rows[head->code].status >= 400);
    if (verdict != HEAD_GOOD)
        return;
    FUZZ_CHECK(head->length_bytes >= 4 && head->length_bytes <= text.length_bytes &&
               head->length_bytes <= HEAD_BYTES_MAX);
    FUZZ_CHECK(memcmp(text.data + head->length_bytes - 4, "\r\n\r\n", 4) == 0);
    FUZZ_CHECK(head->method.length_bytes && head->target.length_bytes && head->body_bytes <= INT64_MAX);
    FUZZ_CHECK(!head->chunked || !head->body_bytes);
    for (size_t i = 0; i < head->length_bytes; i++)
        FUZZ_CHECK(text.data[i] == '\r' ? text.data[i + 1] == '\n' : text.data[i] != '\n' || text.data[i - 1] == '\r');
}

/* A piece of a head never says what the whole would not. */
static enum head_verdict run_head(struct text text, size_t cut, struct head *ret_head)
{
    struct head part;
    enum head_verdict verdict = head_read(text.data, text.length_bytes, ret_head);
    enum head_verdict first = head_read(text.data, cut, &part);
    check_head(text, ret_head, verdict);
    FUZZ_CHECK(first == HEAD_INCOMPLETE || first == verdict);
    FUZZ_CHECK(first != HEAD_GOOD || part.length_bytes == ret_head->length_bytes);
    return verdict;
}

static void run_chunks(struct text text, size_t cut)
{
    struct chunks whole = {.state = 0}, parts = {.state = 0};
    size_t taken, first, second = 0;
    enum chunks_verdict verdict = chunks_read(&whole, text.data, text.length_bytes, &taken);
    enum chunks_verdict in_parts = chunks_read(&parts, text.data, cut, &first);
    if (in_parts == CHUNKS_MORE)
        in_parts = chunks_read(&parts, text.data + cut, text.length_bytes - cut, &second);
    FUZZ_CHECK(in_parts == verdict && first + second == taken && taken <= text.length_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
    struct text rest = {data ? (const char *)data : "", size_bytes};
    uint8_t where = fuzz_take_byte(&rest);
    _cleanup_free_ char *bytes = xstrndup(rest.data, rest.length_bytes);
    struct text text = {bytes, rest.length_bytes};
    struct head head;
    enum head_verdict verdict = run_head(text, text.length_bytes * where / 256, &head);
    if (verdict == HEAD_GOOD)
        text = (struct text){text.data + head.length_bytes, text.length_bytes - head.length_bytes};
    run_chunks(text, text.length_bytes * where / 256);
    return 0;
}
