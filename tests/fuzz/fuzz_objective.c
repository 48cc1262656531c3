/* Bodies of POST /v1/objective through the handler, on an empty record. A body that begins with a brace is JSON, any
 * other one safetensors. */
#include "server/api/objective.h"
#include "server/api/routes.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
    struct call call;

    fuzz_call_init(&call, data, size_bytes);
    if (size_bytes == 0 || data[0] != '{')
        call.content_type = "application/x-safetensors";
    objective_handler(&call);
    FUZZ_CHECK(call.reply.status != 0 || call.parsed);
    fuzz_check_reply(&call);
    call_finish(&call);
    return 0;
}
