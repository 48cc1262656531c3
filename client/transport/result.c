/* From curl's many codes to the six results of a transfer. */
#include "client/transport/transport_private.h"

#include <stdio.h>
#include <string.h>

static const struct {
    CURLcode code;
    enum transfer_result result;
} known_codes[] = {
    {CURLE_OK, TRANSFER_DONE},
    {CURLE_COULDNT_RESOLVE_HOST, TRANSFER_UNREACHABLE},
    {CURLE_COULDNT_RESOLVE_PROXY, TRANSFER_UNREACHABLE},
    {CURLE_COULDNT_CONNECT, TRANSFER_UNREACHABLE},
    {CURLE_SSL_CONNECT_ERROR, TRANSFER_UNREACHABLE},
    {CURLE_PEER_FAILED_VERIFICATION, TRANSFER_UNREACHABLE},
    {CURLE_SSL_CACERT_BADFILE, TRANSFER_UNREACHABLE},
    {CURLE_GOT_NOTHING, TRANSFER_UNREACHABLE},
    {CURLE_OUT_OF_MEMORY, TRANSFER_UNREACHABLE},
    {CURLE_FILESIZE_EXCEEDED, TRANSFER_TOO_LARGE},
    {CURLE_URL_MALFORMAT, TRANSFER_BAD_REQUEST},
};

static enum transfer_result result_of(const struct transfer *transfer, CURLcode code)
{
    bool nothing_came = !transfer->header_bytes && !transfer->reply.body.length_bytes;

    /* curl has no other code for a header line that is longer than it takes (100 KiB) */
    if (transfer->too_large || (code == CURLE_OUT_OF_MEMORY && transfer->reply.connected))
        return TRANSFER_TOO_LARGE;
    if (code == CURLE_OPERATION_TIMEDOUT)
        return transfer->reply.connected ? TRANSFER_TIMEOUT : TRANSFER_UNREACHABLE;
    if (code == CURLE_OK && !transfer->header_ended)
        return TRANSFER_CUT;
    if ((code == CURLE_SEND_ERROR || code == CURLE_RECV_ERROR) && nothing_came)
        return TRANSFER_UNREACHABLE;
    for (size_t i = 0; i < sizeof(known_codes) / sizeof(known_codes[0]); i++)
        if (code == known_codes[i].code)
            return known_codes[i].result;
    return TRANSFER_CUT;
}

static void copy_header(struct transfer *transfer, const char *name, char *out, size_t size_bytes)
{
    struct curl_header *header;

    if (curl_easy_header(transfer->easy, name, 0, CURLH_HEADER, -1, &header) == CURLHE_OK)
        snprintf(out, size_bytes, "%s", header->value);
}

void transfer_conclude(struct transfer *transfer, CURLcode code)
{
    struct transfer_reply *reply = &transfer->reply;
    curl_off_t sent_at_us = 0;
    long status = 0;
    long connects = 0;

    curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(transfer->easy, CURLINFO_NUM_CONNECTS, &connects);
    curl_easy_getinfo(transfer->easy, CURLINFO_PRETRANSFER_TIME_T, &sent_at_us);
    reply->status = (int)status;
    reply->connected = sent_at_us > 0;
    reply->reused = reply->connected && connects == 0;
    reply->received_bytes = reply->body.length_bytes;
    copy_header(transfer, "Content-Type", reply->content_type, sizeof(reply->content_type));
    copy_header(transfer, "Retry-After", reply->retry_after, sizeof(reply->retry_after));
    reply->result = result_of(transfer, code);
    if (reply->result == TRANSFER_DONE)
        return;
    if (reply->result == TRANSFER_TOO_LARGE && !reply->body.failed && code != CURLE_FILESIZE_EXCEEDED)
        snprintf(reply->problem, sizeof(reply->problem), "its headers are too long");
    else if (transfer->too_large)
        snprintf(reply->problem, sizeof(reply->problem), "more than %zu bytes", reply->body.maximum_bytes);
    else
        snprintf(reply->problem, sizeof(reply->problem), "%.150s",
                 *transfer->curl_problem ? transfer->curl_problem
                 : code                  ? curl_easy_strerror(code)
                                         : "closed inside the header");
}
