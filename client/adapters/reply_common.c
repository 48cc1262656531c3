/* Reading the parts that several engines write the same way. */
#include "client/adapters/reply.h"

#include <math.h>
#include <string.h>

void draft_init(struct reply_draft *draft, struct text body)
{
    size_t most_bytes = 3 * body.length_bytes + 64; /* every broken byte becomes the three of U+FFFD */

    *draft = (struct reply_draft){.counts = {-1, -1, -1, -1, -1}, .prompt_tokens_read = -1, .seed_used = -1};
    buffer_init(&draft->text, most_bytes);
    buffer_init(&draft->finish, most_bytes);
    buffer_init(&draft->revision, most_bytes);
    buffer_init(&draft->revisions, most_bytes);
    buffer_init(&draft->token, most_bytes);
    buffer_init(&draft->bytes, most_bytes);
}

void draft_finish(struct reply_draft *draft)
{
    buffer_finish(&draft->text);
    buffer_finish(&draft->finish);
    buffer_finish(&draft->revision);
    buffer_finish(&draft->revisions);
    buffer_finish(&draft->token);
    buffer_finish(&draft->bytes);
    free(draft->ends.values);
    free(draft->spans);
    engine_error_finish(&draft->error);
    free(draft->ids.values);
    free(draft->beside.values);
    free(draft->prompt_ids.values);
    free(draft->logprobs);
}

bool scan_string_or_null(struct json_scan *scan, struct buffer *out)
{
    return !json_scan_null(scan) && json_scan_string(scan, out);
}

void draft_read_text(struct reply_draft *draft, struct json_scan *scan)
{
    uint64_t before = scan->replaced;

    draft->has_text = scan_string_or_null(scan, &draft->text);
    draft->replaced += scan->replaced - before;
}

int64_t scan_integer_or(struct json_scan *scan, int64_t otherwise)
{
    struct text raw = json_scan_raw(scan);
    struct json_scan inner;
    int64_t value;

    if (!raw.data)
        return otherwise;
    json_scan_init(&inner, raw);
    return json_scan_peek(&inner) == JSON_KIND_NUMBER && json_scan_integer(&inner, &value) ? value : otherwise;
}

/* How many elements the array of numbers that follows has at most. */
static size_t count_elements(const struct json_scan *scan)
{
    size_t count = 1;

    for (const char *at = scan->at; at < scan->end && *at != ']'; at++)
        count += *at == ',';
    return count;
}

/* Room for `wanted` in all, at least twice as many as before. */
static bool grow(void *pointer_to_values, size_t wanted, size_t *capacity, size_t size_bytes)
{
    size_t doubled = *capacity < 32 ? 64 : 2 * *capacity;
    void *values;

    if (wanted <= *capacity)
        return true;
    if (wanted < doubled)
        wanted = doubled;
    values = realloc(*(void **)pointer_to_values, wanted * size_bytes);
    if (!values)
        return false;
    *(void **)pointer_to_values = values;
    *capacity = wanted;
    return true;
}

void draft_append_ids(struct reply_draft *draft, struct id_list *list, struct json_scan *scan)
{
    size_t limit;
    ssize_t count;

    if (json_scan_null(scan))
        return;
    limit = count_elements(scan);
    if (!grow(&list->values, list->count + limit, &list->capacity, sizeof(*list->values))) {
        draft->out_of_memory = true;
        json_scan_skip(scan);
        return;
    }
    count = json_scan_u32(scan, list->values + list->count, limit);
    list->present = count >= 0;
    list->count += count > 0 ? (size_t)count : 0;
}

static bool same_ids(const struct id_list *left, const struct id_list *right)
{
    if (left->count != right->count)
        return false;
    for (size_t i = 0; i < left->count; i++)
        if (left->values[i] != right->values[i])
            return false;
    return true;
}

/* Two lists of the same, by two names or in two places, must be one list. */
static void read_ids(struct reply_draft *draft, struct id_list *list, struct json_scan *scan, const char *what)
{
    struct id_list before = *list;

    if (json_scan_null(scan))
        return;
    *list = (struct id_list){.present = false};
    draft_append_ids(draft, list, scan);
    if (before.present && list->present && !same_ids(&before, list))
        draft_problem(draft, "the reply has two lists of %s, and they differ", what);
    free(before.values);
}

void draft_read_ids(struct reply_draft *draft, struct json_scan *scan)
{
    read_ids(draft, &draft->ids, scan, "token ids");
}

void draft_read_prompt_ids(struct reply_draft *draft, struct json_scan *scan)
{
    read_ids(draft, &draft->prompt_ids, scan, "the prompt's ids");
}

void draft_read_finish(struct reply_draft *draft, struct json_scan *scan)
{
    draft->has_finish = scan_string_or_null(scan, &draft->finish);
}

void draft_read_revision(struct reply_draft *draft, struct json_scan *scan)
{
    scan_string_or_null(scan, &draft->revision);
}

void draft_read_logprobs(struct reply_draft *draft, struct json_scan *scan)
{
    size_t limit;
    ssize_t count;

    if (json_scan_null(scan))
        return;
    limit = count_elements(scan);
    draft->logprob_count = 0;
    if (!grow(&draft->logprobs, limit, &draft->logprob_capacity, sizeof(*draft->logprobs))) {
        draft->out_of_memory = true;
        json_scan_skip(scan);
        return;
    }
    count = json_scan_floats(scan, draft->logprobs, limit);
    draft->has_logprobs = count >= 0;
    draft->logprob_count = count > 0 ? (size_t)count : 0;
}

void draft_add_id(struct reply_draft *draft, struct id_list *list, uint32_t id)
{
    if (!grow(&list->values, list->count + 1, &list->capacity, sizeof(*list->values))) {
        draft->out_of_memory = true;
        return;
    }
    list->values[list->count++] = id;
    list->present = true;
}

static void draft_add_logprob(struct reply_draft *draft, double logprob, uint32_t beside)
{
    if (!grow(&draft->logprobs, draft->logprob_count + 1, &draft->logprob_capacity, sizeof(*draft->logprobs))) {
        draft->out_of_memory = true;
        return;
    }
    draft->logprobs[draft->logprob_count++] = (float)logprob;
    draft->has_logprobs = true;
    draft_add_id(draft, &draft->beside, beside);
}

void draft_add_entry(struct reply_draft *draft)
{
    draft_add_logprob(draft, draft->entry.has_logprob ? draft->entry.logprob : NAN, draft->entry.id);
    draft->lacks_bytes |= !draft->entry.has_bytes || draft->bytes.failed || draft->bytes.length_bytes > UINT32_MAX;
    if (draft->wants_bytes)
        draft_add_id(draft, &draft->ends, (uint32_t)draft->bytes.length_bytes);
}

void draft_read_entry_bytes(struct reply_draft *draft, struct json_scan *scan)
{
    int64_t byte;

    if (!draft->wants_bytes || json_scan_peek(scan) != JSON_KIND_ARRAY) {
        json_scan_skip(scan);
        return;
    }
    draft->entry.has_bytes = true;
    for (json_scan_array(scan); json_scan_element(scan);) {
        byte = scan_integer_or(scan, -1);
        draft->entry.has_bytes = draft->entry.has_bytes && byte >= 0 && byte <= UINT8_MAX;
        buffer_append_byte(&draft->bytes, (char)byte);
    }
}

void draft_read_entries(struct reply_draft *draft, struct json_scan *scan, const struct draft_member *members,
                        size_t count)
{
    if (json_scan_null(scan))
        return;
    draft->has_logprobs = true;
    for (json_scan_array(scan); json_scan_element(scan);) {
        draft->entry = (struct draft_entry){.id = ID_UNNAMED};
        draft_read_members(draft, scan, members, count);
        if (json_scan_ok(scan))
            draft_add_entry(draft);
    }
}

void draft_read_entry_logprob(struct reply_draft *draft, struct json_scan *scan)
{
    draft->entry.has_logprob = !json_scan_null(scan) && json_scan_number(scan, &draft->entry.logprob);
}

void draft_read_entry_id(struct reply_draft *draft, struct json_scan *scan)
{
    int64_t id = draft_read_whole(draft, scan, "id");

    if (id >= 0)
        draft->entry.id = (uint32_t)id;
}

void draft_add_span(struct reply_draft *draft, const struct version_span *span)
{
    if (!grow(&draft->spans, draft->span_count + 1, &draft->span_capacity, sizeof(*draft->spans))) {
        draft->out_of_memory = true;
        return;
    }
    draft->spans[draft->span_count++] = *span;
}

uint32_t id_of_token_string(struct text token)
{
    static const char prefix[] = "token_id:";
    const size_t prefix_bytes = sizeof(prefix) - 1;
    uint64_t id = 0;

    if (token.length_bytes <= prefix_bytes || token.length_bytes > prefix_bytes + 10 ||
        memcmp(token.data, prefix, prefix_bytes) != 0)
        return ID_UNNAMED;
    for (size_t i = prefix_bytes; i < token.length_bytes; i++) {
        if (token.data[i] < '0' || token.data[i] > '9')
            return ID_UNNAMED;
        id = id * 10 + (uint64_t)(token.data[i] - '0');
    }
    return id < ID_UNNAMED ? (uint32_t)id : ID_UNNAMED;
}

void draft_read_error(struct reply_draft *draft, struct json_scan *scan)
{
    scan_error_object(scan, &draft->error);
}

void draft_read_metadata(struct reply_draft *draft, struct json_scan *scan)
{
    static const struct draft_member members[] = {{"weight_version", draft_read_revision}};

    draft_read_members_if_any(draft, scan, members, ARRAY_LENGTH(members));
}

void draft_read_index(struct reply_draft *draft, struct json_scan *scan)
{
    if (!json_scan_null(scan))
        draft->choice_is_another |= scan_integer_or(scan, -1) != 0;
}

void draft_read_first(struct reply_draft *draft, struct json_scan *scan,
                      void (*read)(struct reply_draft *draft, struct json_scan *scan))
{
    size_t count = 0;

    if (json_scan_peek(scan) != JSON_KIND_ARRAY) {
        read(draft, scan);
        return;
    }
    for (json_scan_array(scan); json_scan_element(scan); count++) {
        if (count == 0)
            read(draft, scan);
        else
            json_scan_skip(scan);
    }
    draft->choice_count = count;
}

static void read_token_count(struct reply_draft *draft, struct json_scan *scan)
{
    draft_read_whole(draft, scan, "count");
}

enum exchange_outcome draft_read_body(struct reply_draft *draft, const struct engine_reply *reply,
                                      const struct draft_member *members, size_t count, struct sample_error *ret_error)
{
    struct json_scan scan;

    json_scan_init(&scan, reply->body);
    draft_read_members(draft, &scan, members, count);
    if (!json_scan_end(&scan))
        return refuse_bytes(ret_error, &scan, reply);
    if (draft->problem[0])
        return refuse_reply(ret_error, SAMPLE_INVALID_REPLY, "%s", draft->problem);
    return EXCHANGE_NEXT;
}

enum exchange_outcome exchange_take_prompt_ids(struct exchange *exchange, const struct engine_reply *reply,
                                               struct sample_error *ret_error)
{
    static const struct draft_member members[] = {
        {"tokens", draft_read_ids}, {"count", read_token_count}, DRAFT_COMMON_MEMBERS};
    struct reply_draft draft;
    enum exchange_outcome outcome;

    draft_init(&draft, reply->body);
    outcome = draft_read_body(&draft, reply, members, ARRAY_LENGTH(members), ret_error);
    if (outcome == EXCHANGE_NEXT && draft.error.present)
        outcome = refuse_engine_error(ret_error, (int)draft.error.code_number, &draft.error, reply);
    else if (outcome == EXCHANGE_NEXT && !draft.ids.count)
        outcome = refuse_reply(ret_error, SAMPLE_INVALID_REPLY, "the engine made no token ids of the prompt");
    else if (outcome == EXCHANGE_NEXT) {
        exchange->prompt_ids = TAKE_PTR(draft.ids.values);
        exchange->prompt_id_count = draft.ids.count;
        exchange->step++;
    }
    draft_finish(&draft);
    return outcome;
}
