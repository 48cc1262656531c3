/* Nanoseconds for each token of reading a reply of 1,024 tokens with log-probabilities, by kind of engine, one thread.
 *
 *     adapters [repeats]
 *
 * From the reply's bytes to a sample that is the caller's; the best of the repeats. One line of JSON for each kind. */
#include "client/adapters/adapter.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TOKENS = 1024, IN_A_ROW = 20 };

static double logprob_of(size_t i)
{
    return -0.001 - (double)(i * 7919 % 9973) / 1000.0;
}

static unsigned id_of(size_t i)
{
    return (unsigned)(i * 104729 % 49152);
}

/* --- replies, as the engines write them -------------------------------------------------------------- */

typedef void item_fn(struct buffer *body, size_t i);

static void put_list(struct buffer *body, const char *before, item_fn *item, const char *after)
{
    buffer_append_string(body, before);
    for (size_t i = 0; i < TOKENS; i++) {
        if (i)
            buffer_append_byte(body, ',');
        item(body, i);
    }
    buffer_append_string(body, after);
}

static void put_word(struct buffer *body)
{
    for (size_t i = 0; i < TOKENS; i++)
        buffer_append_string(body, " word");
}

static void id_item(struct buffer *body, size_t i)
{
    buffer_append_format(body, "%u", id_of(i));
}

static void logprob_item(struct buffer *body, size_t i)
{
    buffer_append_format(body, "%.16g", logprob_of(i));
}

static void name_item(struct buffer *body, size_t i)
{
    buffer_append_format(body, "\"token_id:%u\"", id_of(i));
}

static void top_item(struct buffer *body, size_t i)
{
    buffer_append_format(body, "{\"token_id:%u\":%.16g}", id_of(i), logprob_of(i));
}

static void offset_item(struct buffer *body, size_t i)
{
    buffer_append_format(body, "%zu", 5 * i);
}

static void entry_item(struct buffer *body, size_t i)
{
    buffer_append_format(body,
                         "{\"token_id\":%u,\"logprob\":%.16g,\"rank\":1,\"top_logprobs\":[{\"token_id\":%u,"
                         "\"logprob\":%.16g,\"rank\":1}]}",
                         id_of(i), logprob_of(i), id_of(i), logprob_of(i));
}

static void tuple_item(struct buffer *body, size_t i)
{
    buffer_append_format(body, "[%.16g,%u,null]", logprob_of(i), id_of(i));
}

static void vllm_reply(struct buffer *body)
{
    buffer_append_string(body, "{\"id\":\"cmpl-1\",\"choices\":[{\"index\":0,\"text\":\"");
    put_word(body);
    put_list(body, "\",\"logprobs\":{\"text_offset\":[", offset_item, "]");
    put_list(body, ",\"token_logprobs\":[", logprob_item, "]");
    put_list(body, ",\"tokens\":[", name_item, "]");
    put_list(body, ",\"top_logprobs\":[", top_item, "]}");
    put_list(body, ",\"finish_reason\":\"length\",\"stop_reason\":null,\"token_ids\":[", id_item, "]}]}");
}

static void generate_reply(struct buffer *body)
{
    put_list(body, "{\"choices\":[{\"index\":0,\"finish_reason\":\"length\",\"token_ids\":[", id_item, "]");
    put_list(body, ",\"logprobs\":{\"content\":[", entry_item, "]}}]}");
}

static void sglang_reply(struct buffer *body)
{
    buffer_append_string(body, "{\"text\":\"");
    put_word(body);
    put_list(body, "\",\"output_ids\":[", id_item, "]");
    put_list(body, ",\"meta_info\":{\"finish_reason\":{\"type\":\"length\"},\"output_token_logprobs\":[", tuple_item,
             "],\"completion_tokens\":1024}}");
}

static void llamacpp_reply(struct buffer *body)
{
    for (size_t i = 0; i < TOKENS; i++)
        buffer_append_format(body,
                             "data: {\"index\":0,\"content\":\" word\",\"tokens\":[%u],\"stop\":false,\"id_slot\":-1,"
                             "\"tokens_predicted\":%zu,\"tokens_evaluated\":4,\"completion_probabilities\":[{\"id\":%u,"
                             "\"token\":\" word\",\"bytes\":[32,119,111,114,100],\"logprob\":%.16g,\"top_logprobs\":["
                             "{\"id\":%u,\"token\":\" word\",\"bytes\":[32,119,111,114,100],\"logprob\":%.16g}]}]}\n\n",
                             id_of(i), i + 1, id_of(i), logprob_of(i), id_of(i), logprob_of(i));
    buffer_append_string(body, "data: {\"content\":\"\",\"tokens\":[],\"stop\":true,\"stop_type\":\"limit\","
                               "\"tokens_predicted\":1024,\"tokens_evaluated\":4}\n\n");
}

static const struct {
    const char *kind;
    void (*write)(struct buffer *body);
} replies[] = {
    {"vllm", vllm_reply}, {"vllm_generate", generate_reply}, {"sglang", sglang_reply}, {"llamacpp", llamacpp_reply}};

/* --- measuring --------------------------------------------------------------------------------------- */

static double now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void read_once(const struct engine_adapter *adapter, const struct sample_request *request, struct text body)
{
    struct engine_reply reply = {.status = 200, .body = body};
    struct exchange exchange;
    struct sample sample;
    struct sample_error error;

    exchange_init(&exchange, adapter, request);
    if (exchange_parse(&exchange, &reply, &sample, &error) == EXCHANGE_ERROR) {
        fprintf(stderr, "%s: %s\n", adapter->kind, error.message);
        exit(1);
    }
    sample_finish(&sample);
    exchange_finish(&exchange);
}

int main(int argument_count, char **arguments)
{
    static const uint32_t prompt_ids[] = {1, 411, 907, 23};
    struct sample_request request = {.prompt_ids = prompt_ids,
                                     .prompt_id_count = 4,
                                     .sampling = {.max_tokens = TOKENS, .temperature = 1, .top_p = 1}};
    int repeats = argument_count > 1 ? atoi(arguments[1]) : 50;

    for (size_t i = 0; i < ARRAY_LENGTH(replies); i++) {
        const struct engine_adapter *adapter = engine_adapter_find(text_of(replies[i].kind));
        struct buffer body;
        double best_ns = 1e18;

        buffer_init(&body, (size_t)16 << 20);
        replies[i].write(&body);
        for (int repeat = 0; repeat < repeats; repeat++) {
            double began_ns = now_ns(), ns;

            for (int k = 0; k < IN_A_ROW; k++)
                read_once(adapter, &request, buffer_text(&body));
            ns = (now_ns() - began_ns) / IN_A_ROW / TOKENS;
            best_ns = ns < best_ns ? ns : best_ns;
        }
        printf("{\"kind\":\"%s\",\"tokens\":%d,\"bytes_per_token\":%.0f,\"ns_per_token\":%.1f}\n", adapter->kind,
               TOKENS, (double)body.length_bytes / TOKENS, best_ns);
        buffer_finish(&body);
    }
    return 0;
}
