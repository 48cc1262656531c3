#include "server/http/refusals_private.h"

#include "server/base/cleanup.h"
#include "server/base/clock.h"

#include <stdio.h>
#include <string.h>

static void copy_text(struct text from, size_t bytes, char *to)
{
    size_t length = from.length_bytes < bytes ? from.length_bytes : bytes - 1;
    if (length < from.length_bytes)
        while (length && ((unsigned char)from.data[length] & 0xC0) == 0x80) /* between characters */
            length--;
    memcpy(to, from.data ? from.data : "", length);
    to[length] = '\0';
}

void refusals_add(struct refusals *refusals, const struct http_log_line *line)
{
    if (!refusals->kept)
        refusals->kept = xcalloc(REFUSALS_KEPT, sizeof(*refusals->kept));
    struct refusal *refusal = &refusals->kept[refusals->total++ % REFUSALS_KEPT];
    refusal->at_us = clock_utc_us();
    refusal->status = line->status;
    refusal->code = line->code;
    copy_text(text_of(line->request_id), sizeof(refusal->request_id), refusal->request_id);
    copy_text(text_of(line->method), sizeof(refusal->method), refusal->method);
    copy_text(line->path, sizeof(refusal->path), refusal->path);
    copy_text(line->field ? text_of(line->field) : TEXT_NONE, sizeof(refusal->field), refusal->field);
    copy_text(line->message ? text_of(line->message) : TEXT_NONE, sizeof(refusal->message), refusal->message);
}

static void write_refusal(struct json_write *json, const struct refusal *refusal)
{
    json_object_begin(json);
    json_put_time(json, "at", refusal->at_us);
    json_put_string(json, "request_id", refusal->request_id);
    json_put_string(json, "method", refusal->method[0] ? refusal->method : NULL);
    json_put_string(json, "path", refusal->path[0] ? refusal->path : NULL);
    json_put_int(json, "status", refusal->status);
    json_put_string(json, "code", refusal->code);
    json_put_string(json, "field", refusal->field[0] ? refusal->field : NULL);
    json_put_string(json, "message", refusal->message);
    json_object_end(json);
}

void refusals_write(const struct refusals *refusals, struct text request_id, int64_t limit, struct json_write *json)
{
    size_t kept = refusals->total < REFUSALS_KEPT ? refusals->total : REFUSALS_KEPT;
    int64_t written = 0;
    json_key(json, "items");
    json_array_begin(json);
    for (size_t i = 1; i <= kept && written < limit; i++) {
        const struct refusal *refusal = &refusals->kept[(refusals->total - i) % REFUSALS_KEPT];
        if (request_id.data && !text_equals(request_id, refusal->request_id))
            continue;
        write_refusal(json, refusal);
        written++;
    }
    json_array_end(json);
    json_put_int(json, "kept", (int64_t)kept);
    json_put_int(json, "total", (int64_t)refusals->total);
}

void refusals_finish(struct refusals *refusals)
{
    free(refusals->kept);
    *refusals = (struct refusals){0};
}
