/* From a draft to a sample: every invariant of a believable answer, in one place. */
#include "client/adapters/logprobs.h"
#include "client/adapters/reply.h"
#include "server/base/logprob.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define LOGPROB_FLOOR (-9999.0f) /* what engines write for minus infinity (others write less) */
#define LOGPROB_ROUNDING ((float)LOGPROB_MAX)

/* --- the end ------------------------------------------------------------------------------------- */

static const struct {
    const char *word;
    enum finish_reason finish;
} known_finishes[] = {
    {"stop", FINISH_STOP},
    {"eos", FINISH_STOP},
    {"word", FINISH_STOP},
    {"stop_sequence", FINISH_STOP},
    {"eos_token", FINISH_STOP},
    {"length", FINISH_LENGTH},
    {"limit", FINISH_LENGTH},
    {"tool_calls", FINISH_TOOL_CALLS},
    {"function_call", FINISH_TOOL_CALLS},
};

static const struct {
    const char *word;
    bool retryable;
} failed_finishes[] = {
    {"abort", true}, {"aborted", true}, {"cancelled", true}, {"error", true}, {"content_filter", false},
};

static bool find_finish(const struct reply_draft *draft, enum finish_reason *ret_finish)
{
    for (size_t i = 0; draft->has_finish && i < ARRAY_LENGTH(known_finishes); i++) {
        if (text_equals(buffer_text(&draft->finish), known_finishes[i].word)) {
            *ret_finish = known_finishes[i].finish;
            return true;
        }
    }
    return false;
}

static bool is_failed_finish(const struct reply_draft *draft, struct sample_error *ret_error)
{
    for (size_t i = 0; draft->has_finish && i < ARRAY_LENGTH(failed_finishes); i++) {
        if (!text_equals(buffer_text(&draft->finish), failed_finishes[i].word))
            continue;
        refuse_reply(ret_error, SAMPLE_ENGINE_ERROR, "the engine ended the sample with finish reason %s",
                     failed_finishes[i].word);
        ret_error->retryable = failed_finishes[i].retryable;
        return true;
    }
    return false;
}

static enum exchange_outcome refuse_finish(const struct reply_draft *draft, struct sample_error *ret_error)
{
    struct text word = buffer_text(&draft->finish);

    if (!draft->has_finish)
        return refuse_reply(ret_error, SAMPLE_INVALID_REPLY, "the finish reason is missing or null");
    return refuse_reply(ret_error, SAMPLE_INVALID_REPLY, "the finish reason \"%.*s\" is not a known one",
                        word.length_bytes < 64 ? (int)word.length_bytes : 64, word.data);
}

/* --- ids and log-probabilities ------------------------------------------------------------------- */

/* Without a list of ids, those beside the log-probabilities will do, if every one is there. */
static void adopt_ids_beside(struct reply_draft *draft)
{
    struct id_list taken = draft->beside;

    if (draft->ids.present || !draft->beside.present || !draft->beside.count)
        return;
    for (size_t i = 0; i < taken.count; i++)
        if (taken.values[i] == ID_UNNAMED)
            return;
    draft->beside = (struct id_list){.present = false};
    draft->ids = taken;
}

static bool ids_agree(const struct reply_draft *draft, struct sample_error *ret_error)
{
    for (size_t i = 0; i < draft->ids.count; i++) {
        if (draft->ids.values[i] > INT32_MAX) {
            refuse_reply(ret_error, SAMPLE_INVALID_REPLY, "token id %" PRIu32 " at %zu is none", draft->ids.values[i],
                         i);
            return false;
        }
    }
    if (draft->beside.present && draft->beside.count != draft->logprob_count) {
        refuse_reply(ret_error, SAMPLE_INVALID_REPLY, "%zu log-probabilities stand beside %zu tokens",
                     draft->logprob_count, draft->beside.count);
        return false;
    }
    for (size_t i = 0; draft->beside.present && i < draft->ids.count; i++) {
        if (draft->beside.values[i] != ID_UNNAMED && draft->beside.values[i] != draft->ids.values[i]) {
            refuse_reply(ret_error, SAMPLE_INVALID_REPLY,
                         "token %zu has the id %" PRIu32 ", its log-probability that of id %" PRIu32, i,
                         draft->ids.values[i], draft->beside.values[i]);
            return false;
        }
    }
    return true;
}

static bool lengths_agree(const struct reply_draft *draft, int64_t max_tokens, struct sample_error *ret_error)
{
    if (draft->ids.count > (uint64_t)max_tokens) {
        refuse_reply(ret_error, SAMPLE_INVALID_REPLY, "%zu token ids, asked for were at most %" PRId64,
                     draft->ids.count, max_tokens);
        return false;
    }
    if (!draft->has_logprobs) {
        refuse_reply(ret_error, SAMPLE_INVALID_REPLY, "%zu token ids came without log-probabilities", draft->ids.count);
        return false;
    }
    if (draft->logprob_count != draft->ids.count) {
        refuse_reply(ret_error, SAMPLE_INVALID_REPLY, "%zu token ids but %zu log-probabilities", draft->ids.count,
                     draft->logprob_count);
        return false;
    }
    if (draft->counts[COUNT_COMPLETION] >= 0 && (uint64_t)draft->counts[COUNT_COMPLETION] != draft->ids.count) {
        refuse_reply(ret_error, SAMPLE_INVALID_REPLY,
                     "%zu token ids, but the engine counts %" PRId64 " completion tokens", draft->ids.count,
                     draft->counts[COUNT_COMPLETION]);
        return false;
    }
    return true;
}

static bool logprobs_are_numbers(struct reply_draft *draft, struct sample_error *ret_error)
{
    for (size_t i = 0; i < draft->logprob_count; i++) {
        float logprob = draft->logprobs[i];

        if (!isfinite(logprob) || logprob <= LOGPROB_FLOOR) {
            refuse_reply(ret_error, SAMPLE_NON_FINITE_LOGPROB, "log-probability %zu is %s", i,
                         isnan(logprob) ? "null or NaN"
                         : logprob > 0  ? "infinite"
                                        : "minus infinity or the floor that stands for it");
            return false;
        }
        if (logprob > LOGPROB_ROUNDING) {
            refuse_reply(ret_error, SAMPLE_INVALID_REPLY, "log-probability %zu is %g: above 0 it is something else", i,
                         (double)logprob);
            return false;
        }
        draft->logprobs[i] = logprob > 0 ? 0 : logprob;
    }
    return true;
}

/* Speculative decoding of some engines writes 0 for every token. One token may be certain; so may all under top_k 1 or
 * greedy. */
static bool all_logprobs_are_zero(const struct sampling *sampling, const struct reply_draft *draft)
{
    if (draft->logprob_count < 2 || sampling->temperature <= 0 || sampling->top_k == 1)
        return false;
    for (size_t i = 0; i < draft->logprob_count; i++)
        if (draft->logprobs[i] != 0)
            return false;
    return true;
}

/* --- the prompt ---------------------------------------------------------------------------------- */

static struct id_list sent_ids(const struct exchange *exchange)
{
    if (exchange->request->prompt_ids)
        return (struct id_list){.values = (uint32_t *)(uintptr_t)exchange->request->prompt_ids,
                                .count = exchange->request->prompt_id_count,
                                .present = true};
    return (struct id_list){
        .values = exchange->prompt_ids, .count = exchange->prompt_id_count, .present = exchange->prompt_ids};
}

static bool prompt_agrees(const struct exchange *exchange, const struct reply_draft *draft,
                          struct sample_error *ret_error)
{
    struct id_list sent = sent_ids(exchange);

    if (!sent.present)
        return true;
    if (draft->prompt_tokens_read >= 0 && (uint64_t)draft->prompt_tokens_read < sent.count) {
        refuse_reply(ret_error, SAMPLE_CONTEXT_OVERFLOW, "the engine read %" PRId64 " of the prompt's %zu tokens",
                     draft->prompt_tokens_read, sent.count);
        return false;
    }
    if (draft->prompt_ids.present &&
        (draft->prompt_ids.count != sent.count ||
         memcmp(draft->prompt_ids.values, sent.values, sent.count * sizeof(*sent.values)) != 0)) {
        refuse_reply(ret_error, SAMPLE_INVALID_REPLY,
                     "the engine answered another prompt: %zu ids were sent, %zu came back", sent.count,
                     draft->prompt_ids.count);
        return false;
    }
    return true;
}

/* --- the sample ---------------------------------------------------------------------------------- */

static const void *place(char **at, const void *bytes, size_t length_bytes)
{
    void *start = *at;

    if (!bytes)
        return NULL;
    if (length_bytes)
        memcpy(start, bytes, length_bytes);
    *at += length_bytes;
    return start;
}

static struct text place_text(char **at, struct text text)
{
    if (!text.data)
        return TEXT_NONE;
    text.data = place(at, text.data, text.length_bytes);
    *(*at)++ = '\0';
    return text;
}

static size_t revisions_bytes(const struct sample *parts)
{
    size_t bytes = parts->engine_revision.length_bytes + 1;

    for (size_t i = 0; i < parts->segment_count; i++)
        bytes += parts->segments[i].revision.length_bytes + 1;
    return bytes;
}

/* The segments come first in the allocation, because they are aligned to eight. */
static const struct sample_segment *place_segments(char **at, const struct sample *parts)
{
    return parts->segment_count ? place(at, parts->segments, parts->segment_count * sizeof(*parts->segments)) : NULL;
}

bool sample_pack(const struct sample *parts, struct sample *ret_sample)
{
    size_t ids_bytes = parts->id_count * sizeof(uint32_t);
    size_t prompt_bytes = parts->prompt_id_count * sizeof(uint32_t);
    size_t segments_bytes = parts->segment_count * sizeof(*parts->segments);
    char *at =
        malloc(segments_bytes + 3 * ids_bytes + prompt_bytes + parts->text.length_bytes + 1 + revisions_bytes(parts));
    struct sample_segment *segments;

    *ret_sample = *parts;
    ret_sample->memory = at;
    if (!at) {
        *ret_sample = (struct sample){.memory = NULL};
        return false;
    }
    segments = (struct sample_segment *)(uintptr_t)place_segments(&at, parts);
    ret_sample->segments = segments;
    ret_sample->ids = place(&at, parts->ids, ids_bytes);
    ret_sample->logprobs = place(&at, parts->logprobs, ids_bytes);
    ret_sample->token_ends = place(&at, parts->token_ends, ids_bytes);
    ret_sample->prompt_ids = place(&at, parts->prompt_ids, prompt_bytes);
    ret_sample->text = place_text(&at, parts->text);
    ret_sample->engine_revision = place_text(&at, parts->engine_revision);
    for (size_t i = 0; i < parts->segment_count; i++)
        segments[i].revision = place_text(&at, parts->segments[i].revision);
    return true;
}

/* A text is cut at a stop string, and a character that is not whole is missing at its end: but what is there must be what the
 * tokens spell. */
static const uint32_t *token_ends(const struct reply_draft *draft)
{
    struct text text = buffer_text(&draft->text);
    struct text spelled = buffer_text(&draft->bytes);
    bool known = draft->wants_bytes && !draft->lacks_bytes && draft->ids.count && draft->ends.count == draft->ids.count;

    if (!known || spelled.length_bytes < text.length_bytes || memcmp(spelled.data, text.data, text.length_bytes) != 0)
        return NULL;
    return draft->ends.values;
}

static bool make_sample(const struct exchange *exchange, const struct reply_draft *draft, enum finish_reason finish,
                        struct sample *ret_sample)
{
    struct id_list prompt = draft->prompt_ids.present ? draft->prompt_ids : sent_ids(exchange);
    bool has_ids = draft->ids.present;
    size_t segment_count;
    _cleanup_free_ struct sample_segment *segments = draft_segments(draft, &segment_count);
    struct sample parts = {
        .text = buffer_text(&draft->text),
        .text_replaced = draft->replaced,
        .ids = has_ids ? draft->ids.values : NULL,
        .logprobs = has_ids ? draft->logprobs : NULL,
        .id_count = has_ids ? draft->ids.count : 0,
        .token_ends = has_ids ? token_ends(draft) : NULL,
        .prompt_ids = prompt.present ? prompt.values : NULL,
        .prompt_id_count = prompt.present ? prompt.count : 0,
        .finish = finish,
        .eos_in_ids = has_ids && finish == FINISH_STOP && !draft->stopped_by_string,
        .trainable = has_ids,
        .logprobs_mode = has_ids ? exchange_logprobs_mode(exchange) : LOGPROBS_UNKNOWN,
        .engine_revision = draft->revision.length_bytes ? buffer_text(&draft->revision)
                           : segment_count              ? segments[segment_count - 1].revision
                                                        : TEXT_NONE,
        .segments = segment_count > 1 ? segments : NULL,
        .segment_count = segment_count > 1 ? segment_count : 0,
        .seed_sent = exchange->adapter->seed_sent(exchange->request->seed),
        .seed_honoured = draft->seed_honoured,
    };

    return sample_pack(&parts, ret_sample);
}

/* --- the whole ----------------------------------------------------------------------------------- */

static bool sampled_nothing(const struct reply_draft *draft)
{
    if (draft->ids.present)
        return !draft->ids.count;
    return !draft->text.length_bytes && !draft->logprob_count && !draft->has_aside;
}

/* Whether there is one ended, non-empty answer at all. */
static bool is_answer(struct reply_draft *draft, const struct json_scan *scan, const struct engine_reply *reply,
                      enum finish_reason *ret_finish, struct sample_error *ret_error)
{
    struct json_scan rest = *scan;

    if (!json_scan_end(&rest))
        refuse_bytes(ret_error, &rest, reply);
    else if (draft->out_of_memory || draft->text.failed || draft->finish.failed || draft->revision.failed ||
             draft->revisions.failed)
        refuse_reply(ret_error, SAMPLE_INVALID_REPLY, "the reply does not fit into memory");
    else if (draft->problem[0])
        refuse_reply(ret_error, SAMPLE_INVALID_REPLY, "%s", draft->problem);
    else if (draft->error.present)
        refuse_engine_error(ret_error, draft->error.code_number ? (int)draft->error.code_number : 500, &draft->error,
                            reply);
    else if (draft->choice_count != 1)
        refuse_reply(ret_error, SAMPLE_INVALID_REPLY, "the reply holds %zu samples, asked for was 1",
                     draft->choice_count);
    else if (draft->choice_is_another)
        refuse_reply(ret_error, SAMPLE_INVALID_REPLY, "the sample's index is not that of the one that was asked for");
    else if (is_failed_finish(draft, ret_error))
        return false;
    else if (!draft->has_finish && !draft->has_text && !draft->ids.present)
        refuse_reply(ret_error, SAMPLE_INVALID_REPLY, "the sample has neither text, nor ids, nor a finish reason");
    else if (sampled_nothing(draft))
        refuse_reply(ret_error, SAMPLE_EMPTY_COMPLETION, "the engine sampled nothing");
    else if (!find_finish(draft, ret_finish))
        refuse_finish(draft, ret_error);
    else if (!draft->has_text && !draft->text_follows)
        refuse_reply(ret_error, SAMPLE_INVALID_REPLY, "the reply has no text");
    else
        return true;
    return false;
}

enum exchange_outcome draft_check(const struct exchange *exchange, struct reply_draft *draft,
                                  const struct json_scan *scan, const struct engine_reply *reply,
                                  struct sample *ret_sample, struct sample_error *ret_error)
{
    enum finish_reason finish;

    if (!is_answer(draft, scan, reply, &finish, ret_error))
        return EXCHANGE_ERROR;
    if (draft->nan_replaced)
        return refuse_reply(ret_error, SAMPLE_NON_FINITE_LOGPROB,
                            "the engine met a NaN and put an end of sequence in its place");
    adopt_ids_beside(draft);
    if (!prompt_agrees(exchange, draft, ret_error) ||
        !draft_counts_agree(draft, exchange->request->sampling.max_tokens, ret_error))
        return EXCHANGE_ERROR;
    if (draft->ids.present && (!lengths_agree(draft, exchange->request->sampling.max_tokens, ret_error) ||
                               !ids_agree(draft, ret_error) || !draft_versions_agree(draft, ret_error)))
        return EXCHANGE_ERROR;
    if (!logprobs_are_numbers(draft, ret_error))
        return EXCHANGE_ERROR;
    if (draft->ids.present && all_logprobs_are_zero(&exchange->request->sampling, draft))
        return refuse_reply(ret_error, SAMPLE_INVALID_REPLY, "all %zu log-probabilities are 0", draft->logprob_count);
    if (!make_sample(exchange, draft, finish, ret_sample))
        return refuse_reply(ret_error, SAMPLE_INVALID_REPLY, "the sample does not fit into memory");
    return EXCHANGE_SAMPLE;
}

enum exchange_outcome draft_take(const struct exchange *exchange, const struct draft_facts *facts,
                                 const struct engine_reply *reply, struct sample *ret_sample,
                                 struct sample_error *ret_error)
{
    struct reply_draft draft;
    struct json_scan scan;
    enum exchange_outcome outcome;

    draft_init(&draft, reply->body);
    draft.wants_bytes = exchange->request->wants_token_ends && !facts->text_follows;
    json_scan_init(&scan, reply->body);
    facts->read(&draft, &scan);
    draft.seed_honoured = facts->seed_honoured;
    draft.text_follows = facts->text_follows;
    outcome = draft_check(exchange, &draft, &scan, reply, ret_sample, ret_error);
    draft_finish(&draft);
    return outcome;
}
