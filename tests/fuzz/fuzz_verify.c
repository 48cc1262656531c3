/* Bodies of POST /v1/verify through the handler's worker part, and back: the frames that it built are read by the
 * worker's reader of frames as far as JSON goes. */
#include "server/api/routes.h"
#include "server/api/verify.h"
#include "server/api/verify_private.h"
#include "tests/fuzz/fuzz.h"
#include "verifiers/worker/worker.h"

#include <ctype.h>
#include <jansson.h>

static void check_item(const struct verify_item *item)
{
    if (item->failed) {
        FUZZ_CHECK(item->failure.failure_code[0] && item->failure.failure_message[0]);
        return;
    }
    struct text frame = buffer_text(&item->frame);
    FUZZ_CHECK(item->list && frame.length_bytes > REQUEST_HEADER_BYTES);
    FUZZ_CHECK(frame_get_length(frame.data) == frame.length_bytes - REQUEST_HEADER_BYTES);
    json_t *root =
        json_loadb(frame.data + REQUEST_HEADER_BYTES, frame.length_bytes - REQUEST_HEADER_BYTES, JSON_ALLOW_NUL, NULL);
    FUZZ_CHECK(json_is_string(json_object_get(root, "completion")));
    FUZZ_CHECK(json_array_size(json_object_get(root, "verifiers")) == item->list->count);
    json_decref(root);
}

/* The mark of this process for whole numbers (base/json_big.c), which the fuzzer is told by its hook of memmem(): nobody
 * else can write it. */
static bool has_mark(const uint8_t *data, size_t size_bytes)
{
    for (size_t i = 0; i + 18 <= size_bytes; i++) {
        size_t digits = 0;
        while (data[i] == '@' && digits < 16 && isxdigit(data[i + 1 + digits]))
            digits++;
        if (digits == 16 && data[i + 17] == '+')
            return true;
    }
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
    struct call call;

    if (has_mark(data, size_bytes))
        return 0;
    fuzz_call_init(&call, data, size_bytes);
    verify_parse(&call);
    FUZZ_CHECK(call.reply.status != 0 || call.parsed);
    fuzz_check_reply(&call);
    if (call.reply.status == 0) {
        const struct verify_request *request = call.parsed;
        for (size_t i = 0; i < request->count; i++)
            check_item(&request->items[i]);
    }
    call_finish(&call);
    return 0;
}
