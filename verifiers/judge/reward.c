#include "verifiers/judge/reward.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

struct reward_payload {
    const char *endpoint;
    const char *path;  /* JSON pointer; "": the whole body */
    const char *other; /* where it may stand instead; NULL: nowhere */
    bool says_model;
    bool takes_label;
    bool wants_steps;
    void (*put)(struct buffer *out, const struct reward_sample *sample);
};

/* --- there --- */

static void put_text(struct buffer *out, const char *before, struct text text)
{
    buffer_append_string(out, before);
    judge_put_json_text(out, text, false);
}

/* One text of the two. */
static void put_both(struct buffer *out, const char *before, const struct reward_sample *sample)
{
    _cleanup_buffer_ struct buffer both;

    buffer_init(&both, out->maximum_bytes);
    buffer_append(&both, sample->prompt.data, sample->prompt.length_bytes);
    buffer_append(&both, sample->completion.data, sample->completion.length_bytes);
    put_text(out, before, buffer_text(&both));
    out->failed |= both.failed;
}

static void put_score(struct buffer *out, const struct reward_sample *sample)
{
    put_text(out, "{\"text_1\":", sample->prompt);
    put_text(out, ",\"text_2\":", sample->completion);
    buffer_append_byte(out, '}');
}

static void put_pooling(struct buffer *out, const struct reward_sample *sample)
{
    put_text(out, "{\"messages\":[{\"role\":\"user\",\"content\":", sample->prompt);
    put_text(out, "},{\"role\":\"assistant\",\"content\":", sample->completion);
    buffer_append_string(out, "}]}");
}

static void put_classify(struct buffer *out, const struct reward_sample *sample)
{
    put_both(out, "{\"text\":", sample);
    buffer_append_byte(out, '}');
}

static void put_vllm_classify(struct buffer *out, const struct reward_sample *sample)
{
    put_both(out, "{\"input\":", sample);
    buffer_append_byte(out, '}');
}

static void put_tei(struct buffer *out, const struct reward_sample *sample)
{
    put_both(out, "{\"inputs\":", sample);
    buffer_append_string(out, ",\"raw_scores\":true}");
}

static void put_openrlhf(struct buffer *out, const struct reward_sample *sample)
{
    put_both(out, "{\"query\":[", sample);
    put_text(out, "],\"prompts\":[", sample->prompt);
    buffer_append_string(out, "],\"labels\":[");
    judge_put_json(out, sample->reference, false);
    buffer_append_string(out, "]}");
}

static void put_slime(struct buffer *out, const struct reward_sample *sample)
{
    put_text(out, "{\"prompt\":", sample->prompt);
    put_text(out, ",\"response\":", sample->completion);
    buffer_append_string(out, ",\"label\":");
    judge_put_json(out, sample->reference, false);
    buffer_append_byte(out, '}');
}

static void put_steps(struct buffer *out, const struct reward_sample *sample)
{
    put_text(out, "{\"prompt\":", sample->prompt);
    buffer_append_string(out, ",\"steps\":[");
    for (size_t i = 0; i < sample->step_count; i++)
        put_text(out, i ? "," : "", sample->steps[i]);
    buffer_append_string(out, "]}");
}

/* --- the table --- */

const char *const reward_payload_names[] = {"score", "pooling", "classify", "vllm_classify", "tei", "openrlhf",
                                            "slime", "steps",   NULL};

static const struct reward_payload payloads[] = {
    {"/score", "/data/0/score", NULL, true, false, false, put_score},
    {"/pooling", "/data/0/data", NULL, true, false, false, put_pooling},
    {"/classify", "/0/embedding", "/embedding", true, false, false, put_classify},
    {"/classify", "/data/0/probs", NULL, true, false, false, put_vllm_classify},
    {"/predict", "", NULL, false, true, false, put_tei},
    {"/get_reward", "/rewards/0", NULL, false, false, false, put_openrlhf},
    {"/rm", "", NULL, false, false, false, put_slime},
    {"/steps", "/scores", NULL, true, false, true, put_steps},
};
static_assert(ARRAY_LENGTH(payloads) + 1 == ARRAY_LENGTH(reward_payload_names), "a row for each name");

const struct reward_payload *reward_payload_at(size_t place)
{
    return &payloads[place];
}

const char *reward_endpoint(const struct reward_payload *payload)
{
    return payload->endpoint;
}

bool reward_takes_label(const struct reward_payload *payload)
{
    return payload->takes_label;
}

bool reward_says_model(const struct reward_payload *payload)
{
    return payload->says_model;
}

bool reward_wants_steps(const struct reward_payload *payload)
{
    return payload->wants_steps;
}

void reward_put_body(const struct reward_payload *payload, const struct reward_sample *sample, struct buffer *out)
{
    payload->put(out, sample);
}

/* --- back --- */

/* A key of a pointer without its escapes; false: it has a ~ of neither 0 nor 1. */
static bool read_key(struct text escaped, struct buffer *ret_key)
{
    for (size_t i = 0; i < escaped.length_bytes; i++) {
        char byte = escaped.data[i];
        if (byte == '~') {
            char next = ++i < escaped.length_bytes ? escaped.data[i] : 0;
            if (next != '0' && next != '1')
                return false;
            byte = next == '0' ? '~' : '/';
        }
        buffer_append_byte(ret_key, byte);
    }
    return true;
}

static const json_t *member_of(const json_t *object, struct text escaped)
{
    _cleanup_buffer_ struct buffer key;

    buffer_init(&key, escaped.length_bytes + 1);
    return read_key(escaped, &key) ? json_object_getn(object, buffer_text(&key).data, key.length_bytes) : NULL;
}

static const json_t *element_of(const json_t *array, struct text digits)
{
    size_t place = 0;

    if (digits.length_bytes == 0 || digits.length_bytes > 9 || (digits.data[0] == '0' && digits.length_bytes > 1))
        return NULL;
    for (size_t i = 0; i < digits.length_bytes; i++) {
        if (digits.data[i] < '0' || digits.data[i] > '9')
            return NULL;
        place = place * 10 + (size_t)(digits.data[i] - '0');
    }
    return json_array_get(array, place);
}

/* RFC 6901. alone: a list on the way must have one entry, that of the one sample. NULL: nothing stands there. */
static const json_t *point(const json_t *value, struct text path, bool alone)
{
    size_t at = 0;

    while (value && at < path.length_bytes) {
        size_t from = ++at;
        while (at < path.length_bytes && path.data[at] != '/')
            at++;
        struct text key = {path.data + from, at - from};
        if (alone && json_is_array(value) && json_array_size(value) != 1)
            return NULL;
        value = json_is_array(value) ? element_of(value, key) : member_of(value, key);
    }
    return value;
}

/* A number, or the only entry of a list; of several the one that the index names. */
static bool read_number(const struct judge_rule *rule, const json_t *value, double *ret_number)
{
    json_int_t count = json_is_array(value) ? (json_int_t)json_array_size(value) : 1;
    json_int_t place = rule->has_index && rule->index < 0 ? rule->index + count : rule->index;

    if (place < 0 || place >= count || (count != 1 && !rule->has_index))
        return false;
    if (json_is_array(value))
        value = json_array_get(value, (size_t)place);
    *ret_number = json_number_value(value);
    return json_is_number(value) && fabs(*ret_number) <= VERDICT_SCORE_MAX;
}

/* TEI: a list of {"score", "label"}, perhaps in the list of the one sample. */
static const json_t *find_labelled(const struct judge_rule *rule, const json_t *body)
{
    const json_t *found = NULL;
    const json_t *entry;
    size_t i;

    if (json_array_size(body) == 1 && json_is_array(json_array_get(body, 0)))
        body = json_array_get(body, 0);
    if (!rule->label.data)
        return json_array_size(body) == 1 ? json_object_get(json_array_get(body, 0), "score") : NULL;
    json_array_foreach (body, i, entry) {
        struct text label = json_text_of(json_object_get(entry, "label"));
        if (!label.data || !text_same(label, rule->label))
            continue;
        if (found)
            return NULL;
        found = json_object_get(entry, "score");
    }
    return found;
}

static const json_t *find_value(const struct judge_rule *rule, const json_t *body)
{
    const struct reward_payload *payload = rule->payload;
    const json_t *value;

    if (rule->path.data)
        return point(body, rule->path, false);
    if (payload->takes_label)
        return find_labelled(rule, body);
    value = point(body, text_of(payload->path), true);
    return !value && payload->other ? point(body, text_of(payload->other), true) : value;
}

static bool read_each(const struct judge_rule *rule, const json_t *list, size_t count, double *ret_numbers)
{
    size_t i;
    const json_t *value;

    if (!json_is_array(list) || json_array_size(list) != count)
        return false;
    json_array_foreach (list, i, value)
        if (!read_number(rule, value, &ret_numbers[i]))
            return false;
    return true;
}

static bool is_whole_body(const struct judge_rule *rule)
{
    return rule->path.data ? rule->path.length_bytes == 0 : !rule->payload->path[0] && !rule->payload->takes_label;
}

bool reward_read(const struct judge_rule *rule, const json_t *body, size_t count, double *ret_numbers,
                 char ret_problem[REWARD_PROBLEM_BYTES])
{
    const json_t *value = find_value(rule, body);
    const char *where = rule->path.data ? rule->path.data : rule->payload->path;

    if (rule->payload->wants_steps
            ? read_each(rule, value, count, ret_numbers)
            : !(is_whole_body(rule) && json_is_array(value)) && read_number(rule, value, ret_numbers))
        return true;
    if (rule->payload->wants_steps)
        snprintf(ret_problem, REWARD_PROBLEM_BYTES, "no list of %zu finite numbers stands at %.40s of the reply", count,
                 where);
    else
        snprintf(ret_problem, REWARD_PROBLEM_BYTES, "no finite number stands at %.40s of the reply",
                 *where ? where : "the top");
    return false;
}
