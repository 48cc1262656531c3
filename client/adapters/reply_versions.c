/* The versions of the weights that made the ids, where the engine names them (vLLM's weight_versions). */
#include "client/adapters/reply.h"

#include <inttypes.h>

static struct text name_of(const struct reply_draft *draft, const struct version_span *span)
{
    return (struct text){draft->revisions.data + span->name_at, span->name_bytes};
}

/* An engine that says nothing about places means all of them. */
static bool is_whole(const struct reply_draft *draft)
{
    return draft->span_count == 1 && draft->spans[0].start < 0 && draft->spans[0].end < 0;
}

bool draft_versions_agree(const struct reply_draft *draft, struct sample_error *ret_error)
{
    int64_t at = 0;

    if (!draft->span_count || is_whole(draft))
        return true;
    for (size_t i = 0; i < draft->span_count; i++) {
        const struct version_span *span = &draft->spans[i];

        if (span->start != at || span->end < at || !span->name_bytes) {
            refuse_reply(ret_error, SAMPLE_INVALID_REPLY,
                         "weight version %zu of the reply is for ids %" PRId64 " to %" PRId64
                         ", the one before ends at %" PRId64,
                         i, span->start, span->end, at);
            return false;
        }
        at = span->end;
    }
    if ((uint64_t)at == draft->ids.count)
        return true;
    refuse_reply(ret_error, SAMPLE_INVALID_REPLY, "the weight versions are of %" PRId64 " ids, the reply has %zu", at,
                 draft->ids.count);
    return false;
}

struct sample_segment *draft_segments(const struct reply_draft *draft, size_t *ret_count)
{
    struct sample_segment *segments = xcalloc(draft->span_count + 1, sizeof(*segments));
    size_t count = 0;

    for (size_t i = 0; draft->ids.present && i < draft->span_count; i++) {
        const struct version_span *span = &draft->spans[i];
        if (!span->name_bytes) /* it says nothing */
            continue;
        struct text name = name_of(draft, span);

        if (is_whole(draft))
            segments[count++] = (struct sample_segment){0, draft->ids.count, name};
        else if (count && text_same(segments[count - 1].revision, name))
            segments[count - 1].end = (size_t)span->end;
        else if (span->end > span->start)
            segments[count++] = (struct sample_segment){(size_t)span->start, (size_t)span->end, name};
    }
    *ret_count = count;
    return segments;
}
