/* From a failed transfer to a sample's error. */
#include "client/adapters/reply.h"
#include "client/transport/transport.h"

const char *const transfer_result_names[] = {
    [TRANSFER_DONE] = "done", [TRANSFER_UNREACHABLE] = "unreachable", [TRANSFER_TIMEOUT] = "timeout",
    [TRANSFER_CUT] = "cut",   [TRANSFER_TOO_LARGE] = "too_large",     [TRANSFER_BAD_REQUEST] = "bad_request",
};

/* None of them is a complete answer, so none draws a new seed. */
static const struct {
    enum sample_failure code;
    bool retryable;
    const char *words;
} meanings[] = {
    [TRANSFER_DONE] = {SAMPLE_INVALID_REPLY, false, "nothing is wrong"},
    [TRANSFER_UNREACHABLE] = {SAMPLE_ENGINE_UNREACHABLE, true, "the engine cannot be reached"},
    [TRANSFER_TIMEOUT] = {SAMPLE_ENGINE_TIMEOUT, true, "the engine did not answer in time"},
    [TRANSFER_CUT] = {SAMPLE_INVALID_REPLY, true, "the reply was cut off"},
    [TRANSFER_TOO_LARGE] = {SAMPLE_INVALID_REPLY, false, "the reply is larger than any honest one"},
    [TRANSFER_BAD_REQUEST] = {SAMPLE_ENGINE_ERROR, false, "the request cannot be sent"},
};

void sample_error_of_transfer(const struct transfer_reply *reply, struct sample_error *ret_error)
{
    *ret_error = (struct sample_error){
        .code = meanings[reply->result].code,
        .retryable = meanings[reply->result].retryable,
        .status = reply->status,
        .not_connected = reply->result == TRANSFER_UNREACHABLE && !reply->connected,
    };
    error_message(ret_error, "%s: %s", meanings[reply->result].words, reply->problem);
}
