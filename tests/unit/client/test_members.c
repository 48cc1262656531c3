/* F24: a name stands once in an object that is read, a count is a whole number from 0 to what was asked for. Every kind
 * of engine, every object of its replies, every member of each: the replies here hold nothing but what is read, and the
 * test doubles whatever it finds in them. */
#include "support.h"

#include "server/base/json_scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPLIES_MAX 3

struct dialogue {
    const char *name;
    const char *kind;
    enum { OF_IDS, OF_TEXT, OF_CHAT } prompt;
    const char *replies[REPLIES_MAX]; /* of an exchange that gives a sample; NULL ends them */
};

#define USAGE                                                                                                          \
    "\"usage\":{\"completion_tokens\":2,\"prompt_tokens\":4,\"total_tokens\":6,\"prompt_tokens_details\":"             \
    "{\"cached_tokens\":1},\"completion_tokens_details\":{\"reasoning_tokens\":0}},"                                   \
    "\"metadata\":{\"weight_version\":\"7\"}"
#define TOKENIZED "{\"tokens\":[1,411,907,23],\"count\":4}"

static const struct dialogue dialogues[] = {
    {"vllm of ids",
     "vllm",
     OF_IDS,
     {"{\"choices\":[{\"index\":0,\"text\":\"x\",\"token_ids\":[7,2],\"prompt_token_ids\":[1,411,907,23],"
      "\"finish_reason\":\"stop\",\"stop_reason\":null,\"logprobs\":{\"token_logprobs\":[-1,-2],"
      "\"tokens\":[\"token_id:7\",\"token_id:2\"]}}]," USAGE "}"}},
    {"vllm of a chat",
     "vllm",
     OF_CHAT,
     {TOKENIZED, "{\"choices\":[{\"index\":0,\"text\":\"x\",\"token_ids\":[7,2],\"finish_reason\":\"length\","
                 "\"logprobs\":{\"token_logprobs\":[-1,-2]}}]," USAGE "}"}},
    {"vllm_generate",
     "vllm_generate",
     OF_TEXT,
     {TOKENIZED,
      "{\"choices\":[{\"index\":0,\"token_ids\":[7,2],\"finish_reason\":\"stop\",\"weight_versions\":[{\"version\":"
      "\"a\",\"start\":0,\"end\":1},{\"version\":\"b\",\"start\":1,\"end\":2}],\"logprobs\":{\"content\":"
      "[{\"token_id\":7,\"logprob\":-1},{\"token_id\":2,\"logprob\":-2}]}}]," USAGE "}",
      "{\"prompt\":\"x\"}"}},
    {"sglang",
     "sglang",
     OF_IDS,
     {"{\"text\":\"x\",\"output_ids\":[7,2],\"prompt_token_ids\":[1,411,907,23],\"meta_info\":{\"finish_reason\":"
      "{\"type\":\"stop\",\"matched\":2},\"weight_version\":\"7\",\"output_token_logprobs\":[[-1,7,null],[-2,2,null]],"
      "\"completion_tokens\":2,\"prompt_tokens\":4,\"cached_tokens\":1}}"}},
    {"sglang of a chat",
     "sglang",
     OF_CHAT,
     {"{\"choices\":[{\"index\":0,\"message\":{\"content\":\"x\",\"reasoning_content\":null,\"tool_calls\":[]},"
      "\"response_token_ids\":[7,2],\"matched_stop\":2,\"finish_reason\":\"stop\",\"logprobs\":{\"content\":"
      "[{\"token\":\"a\",\"logprob\":-1},{\"token\":\"b\",\"logprob\":-2}]}}]," USAGE "}"}},
    {"llamacpp, whole",
     "llamacpp",
     OF_IDS,
     {"{\"index\":0,\"content\":\"x\",\"tokens\":[7,2],\"stop_type\":\"eos\",\"tokens_predicted\":2,"
      "\"tokens_evaluated\":4,\"tokens_cached\":6,\"generation_settings\":{\"seed\":1},"
      "\"completion_probabilities\":[{\"id\":7,\"logprob\":-1},{\"id\":2,\"prob\":0.5}]}"}},
    {"llamacpp of a chat, as a stream",
     "llamacpp",
     OF_CHAT,
     {"{\"prompt\":\"<user>\"}", TOKENIZED,
      "data: {\"index\":0,\"content\":\"x\",\"tokens\":[7],\"tokens_predicted\":1,\"tokens_evaluated\":4,"
      "\"completion_probabilities\":[{\"id\":7,\"logprob\":-1}]}\n\n"
      "data: {\"index\":0,\"content\":\"\",\"tokens\":[2],\"tokens_predicted\":2,\"tokens_evaluated\":4,"
      "\"completion_probabilities\":[{\"id\":2,\"logprob\":-2}]}\n\n"
      "data: {\"index\":0,\"content\":\"\",\"tokens\":[],\"stop_type\":\"eos\",\"tokens_predicted\":2,"
      "\"tokens_evaluated\":4,\"tokens_cached\":6,\"generation_settings/seed\":1}\n\n"}},
    {"openai_compat",
     "openai_compat",
     OF_TEXT,
     {"{\"choices\":[{\"index\":0,\"text\":\"x\",\"finish_reason\":\"stop\",\"logprobs\":null}]," USAGE "}"}},
    {"openai_compat of a chat",
     "openai_compat",
     OF_CHAT,
     {"{\"choices\":[{\"index\":0,\"message\":{\"content\":\"x\",\"reasoning\":\"\",\"reasoning_content\":\"\","
      "\"tool_calls\":null},\"finish_reason\":\"stop\",\"logprobs\":{\"content\":[{\"id\":7,\"token\":\"a\","
      "\"logprob\":-1},{\"id\":2,\"token\":\"b\",\"logprob\":-2}]}}]," USAGE "}"}},
};

/* --- an exchange --------------------------------------------------------------------------------- */

static struct sample_request request_of(const struct dialogue *dialogue)
{
    struct sample_request request = plain_request();

    if (dialogue->prompt == OF_IDS)
        return request;
    request.prompt_ids = NULL;
    request.prompt_id_count = 0;
    if (dialogue->prompt == OF_TEXT)
        request.prompt = (struct text)TEXT_LITERAL("2+2=");
    else
        request.messages = (struct text)TEXT_LITERAL("[{\"role\":\"user\",\"content\":\"2+2=\"}]");
    return request;
}

/* The dialogue with another text in the place of one reply. */
static enum exchange_outcome talk(const struct dialogue *dialogue, size_t place, const char *other,
                                  struct sample_error *ret_error)
{
    struct sample_request request = request_of(dialogue);
    enum exchange_outcome outcome = EXCHANGE_NEXT;
    struct exchange exchange;
    struct sample sample = {.memory = NULL};

    exchange_init(&exchange, engine_adapter_find(text_of(dialogue->kind)), &request);
    for (size_t i = 0; i < REPLIES_MAX && dialogue->replies[i] && outcome == EXCHANGE_NEXT; i++) {
        const char *reply = i == place ? other : dialogue->replies[i];
        outcome = parse_bytes(&exchange, 200, reply, strlen(reply), &sample, ret_error);
    }
    exchange_finish(&exchange);
    sample_finish(&sample);
    return outcome;
}

static void assert_refused(const struct dialogue *dialogue, size_t place, const char *other, const char *names)
{
    struct sample_error error = {.message = ""};

    if (talk(dialogue, place, other, &error) != EXCHANGE_ERROR)
        fail_msg("%s is believed: %s", dialogue->name, other);
    if (error.code != SAMPLE_INVALID_REPLY || !error.retryable || !error.resample || !strstr(error.message, names))
        fail_msg("%s: %s: %s (%s)", dialogue->name, sample_failure_names[error.code], error.message, other);
}

static void test_the_replies_are_sound_as_they_are(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(dialogues); i++) {
        struct sample_error error = {.message = ""};

        if (talk(&dialogues[i], 0, dialogues[i].replies[0], &error) != EXCHANGE_SAMPLE)
            fail_msg("%s: %s", dialogues[i].name, error.message);
    }
}

/* --- doubled names ------------------------------------------------------------------------------- */

static void each_member(const char *whole, struct text part,
                        void (*use)(const char *whole, struct text key, struct text member, void *context),
                        void *context);

static void each_value(const char *whole, struct json_scan *scan,
                       void (*use)(const char *whole, struct text key, struct text member, void *context),
                       void *context)
{
    enum json_kind kind = json_scan_peek(scan);

    if (kind == JSON_KIND_ARRAY)
        for (json_scan_array(scan); json_scan_element(scan);)
            each_value(whole, scan, use, context);
    else if (kind == JSON_KIND_OBJECT)
        each_member(whole, json_scan_raw(scan), use, context);
    else
        json_scan_skip(scan);
}

static void each_member(const char *whole, struct text part,
                        void (*use)(const char *whole, struct text key, struct text member, void *context),
                        void *context)
{
    struct json_scan scan;
    struct text key;

    json_scan_init(&scan, part);
    for (json_scan_object(&scan); json_scan_member(&scan, &key);) {
        struct text value = json_scan_raw(&scan);
        struct json_scan inner;

        assert_non_null(value.data);
        use(whole, key, (struct text){key.data - 1, (size_t)(value.data + value.length_bytes - key.data) + 1}, context);
        json_scan_init(&inner, value);
        each_value(whole, &inner, use, context);
    }
    assert_true(json_scan_end(&scan));
}

/* Every object of a reply, that of each event if it is a stream. */
static void each_member_of_reply(const char *whole,
                                 void (*use)(const char *whole, struct text key, struct text member, void *context),
                                 void *context)
{
    const char *at = strchr(whole, '{');

    for (const char *end; at; at = end ? strchr(end, '{') : NULL) {
        end = strstr(at, "\n\n");
        each_member(whole, (struct text){at, end ? (size_t)(end - at) : strlen(at)}, use, context);
    }
}

struct doubling {
    const struct dialogue *dialogue;
    size_t place;
    size_t count;
};

static void double_it(const char *whole, struct text key, struct text member, void *context)
{
    struct doubling *doubling = context;
    int before = (int)(member.data - whole);
    char *plain = xasprintf("%.*s%.*s,%s", before, whole, (int)member.length_bytes, member.data, member.data);
    char *escaped = xasprintf("%.*s\"\\u%04x%.*s,%s", before, whole, (unsigned)key.data[0],
                              (int)member.length_bytes - 2, member.data + 2, member.data);
    char *name = xasprintf("\"%.*s\" stands twice", (int)key.length_bytes, key.data);

    assert_refused(doubling->dialogue, doubling->place, plain, name);
    assert_refused(doubling->dialogue, doubling->place, escaped, name);
    doubling->count++;
    free(plain);
    free(escaped);
    free(name);
}

static void test_a_name_that_is_read_and_stands_twice_makes_the_reply_invalid(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(dialogues); i++)
        for (size_t place = 0; place < REPLIES_MAX && dialogues[i].replies[place]; place++) {
            struct doubling doubling = {.dialogue = &dialogues[i], .place = place};

            each_member_of_reply(dialogues[i].replies[place], double_it, &doubling);
            assert_true(doubling.count > 0);
        }
}

static void test_a_name_that_nobody_reads_may_stand_twice(void **state)
{
    struct sample_error error;

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(dialogues); i++) {
        const char *reply = strchr(dialogues[i].replies[0], '{');
        char *other = xasprintf("{\"id\":\"a\",\"id \":\"b\",\"zzz\":1,\"zzz\":2,%s", reply + 1);

        assert_int_not_equal(talk(&dialogues[i], 0, other, &error), EXCHANGE_ERROR);
        free(other);
    }
}

static void test_two_lists_of_ids_must_be_one(void **state)
{
    static const struct dialogue *const vllm = &dialogues[0];
    const char *at = strstr(vllm->replies[0], "\"token_ids\"");
    char *same = xasprintf("%.*s\"response_token_ids\":[7,2],%s", (int)(at - vllm->replies[0]), vllm->replies[0], at);
    char *other = xasprintf("%.*s\"response_token_ids\":[7,3],%s", (int)(at - vllm->replies[0]), vllm->replies[0], at);
    struct sample_error error;

    (void)state;
    assert_int_equal(talk(vllm, 0, same, &error), EXCHANGE_SAMPLE);
    assert_refused(vllm, 0, other, "two lists");
    free(same);
    free(other);
}

/* --- counts -------------------------------------------------------------------------------------- */

static const char *const counts[] = {
    "completion_tokens",
    "prompt_tokens",
    "total_tokens",
    "cached_tokens",
    "reasoning_tokens",
    "count",
    "tokens_predicted",
    "tokens_evaluated",
    "tokens_cached",
    "start",
    "end",
};

static bool is_count(struct text key)
{
    for (size_t i = 0; i < ARRAY_LENGTH(counts); i++)
        if (text_equals(key, counts[i]))
            return true;
    return false;
}

static char *with_value(const char *whole, struct text key, struct text member, const char *value)
{
    return xasprintf("%.*s\"%.*s\":%s%s", (int)(member.data - whole), whole, (int)key.length_bytes, key.data, value,
                     member.data + member.length_bytes);
}

static void spoil_it(const char *whole, struct text key, struct text member, void *context)
{
    static const char *const values[] = {"-5", "-1",  "1.5",   "\"2\"", "true",      "false",      "[]",  "[2]",
                                         "{}", "NaN", "1e300", "-1e0",  "2.0000001", "9999999999", "\"\""};
    struct doubling *doubling = context;

    if (!is_count(key))
        return;
    for (size_t i = 0; i < ARRAY_LENGTH(values); i++) {
        char *other = with_value(whole, key, member, values[i]);

        assert_refused(doubling->dialogue, doubling->place, other, "");
        free(other);
    }
    doubling->count++;
}

static void test_a_count_that_is_no_whole_number_makes_the_reply_invalid(void **state)
{
    size_t count = 0;

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(dialogues); i++)
        for (size_t place = 0; place < REPLIES_MAX && dialogues[i].replies[place]; place++) {
            struct doubling doubling = {.dialogue = &dialogues[i], .place = place};

            each_member_of_reply(dialogues[i].replies[place], spoil_it, &doubling);
            count += doubling.count;
        }
    assert_true(count > 30);
}

/* 2.0 and 2e0 are 2, whoever wrote them; null says nothing. */
static void spell_it(const char *whole, struct text key, struct text member, void *context)
{
    struct doubling *doubling = context;
    struct sample_error error = {.message = ""};
    int digit = member.data[member.length_bytes - 1];
    char *spellings[] = {xasprintf("%c.0", digit), xasprintf("%ce0", digit), xasprintf("%c.000e+0", digit),
                         xasprintf("%s", "null")};

    for (size_t i = 0; i < ARRAY_LENGTH(spellings); i++) {
        char *other = with_value(whole, key, member, spellings[i]);
        bool is_place = text_equals(key, "start") || text_equals(key, "end"); /* these are needed */

        if (is_count(key) && !(is_place && i == 3) &&
            talk(doubling->dialogue, doubling->place, other, &error) == EXCHANGE_ERROR)
            fail_msg("%s: %s (%s)", doubling->dialogue->name, error.message, other);
        free(other);
        free(spellings[i]);
    }
}

static void test_a_count_is_read_by_its_value(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(dialogues); i++)
        for (size_t place = 0; place < REPLIES_MAX && dialogues[i].replies[place]; place++)
            each_member_of_reply(dialogues[i].replies[place], spell_it,
                                 &(struct doubling){.dialogue = &dialogues[i], .place = place});
}

static void ask_too_much(const char *whole, struct text key, struct text member, void *context)
{
    static const struct {
        const char *name, *value;
    } beyond[] = {
        {"completion_tokens", "17"}, {"tokens_predicted", "17"}, {"reasoning_tokens", "17"}, {"cached_tokens", "5"}};
    struct doubling *doubling = context;

    for (size_t i = 0; i < ARRAY_LENGTH(beyond); i++) {
        if (!text_equals(key, beyond[i].name))
            continue;
        char *other = with_value(whole, key, member, beyond[i].value);
        assert_refused(doubling->dialogue, doubling->place, other, "");
        free(other);
    }
}

/* Also where there are no ids to count. */
static void test_a_count_beyond_what_was_asked_for_makes_the_reply_invalid(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(dialogues); i++)
        for (size_t place = 0; place < REPLIES_MAX && dialogues[i].replies[place]; place++) {
            if (strstr(dialogues[i].replies[place], "data: ")) /* the last of its counts is the one that counts */
                continue;
            each_member_of_reply(dialogues[i].replies[place], ask_too_much,
                                 &(struct doubling){.dialogue = &dialogues[i], .place = place});
        }
}

static void test_an_id_beside_a_log_probability_that_is_no_id_makes_the_reply_invalid(void **state)
{
    static const struct {
        size_t dialogue;
        size_t place;
        const char *before, *after;
    } broken[] = {
        {2, 1, "\"token_id\":7", "\"token_id\":-7"},
        {3, 0, "[-1,7,null]", "[-1,\"7\",null]"},
        {5, 0, "\"id\":7", "\"id\":7.5"},
        {8, 0, "\"id\":7", "\"id\":4294967296"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LENGTH(broken); i++) {
        const struct dialogue *dialogue = &dialogues[broken[i].dialogue];
        const char *whole = dialogue->replies[broken[i].place];
        const char *at = strstr(whole, broken[i].before);
        char *other = xasprintf("%.*s%s%s", (int)(at - whole), whole, broken[i].after, at + strlen(broken[i].before));

        assert_refused(dialogue, broken[i].place, other, "\"id\"");
        free(other);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_replies_are_sound_as_they_are),
        cmocka_unit_test(test_a_name_that_is_read_and_stands_twice_makes_the_reply_invalid),
        cmocka_unit_test(test_a_name_that_nobody_reads_may_stand_twice),
        cmocka_unit_test(test_two_lists_of_ids_must_be_one),
        cmocka_unit_test(test_a_count_that_is_no_whole_number_makes_the_reply_invalid),
        cmocka_unit_test(test_a_count_is_read_by_its_value),
        cmocka_unit_test(test_a_count_beyond_what_was_asked_for_makes_the_reply_invalid),
        cmocka_unit_test(test_an_id_beside_a_log_probability_that_is_no_id_makes_the_reply_invalid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
