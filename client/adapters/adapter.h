/* adapter: the requests of one kind of inference engine, and the reading of its replies. Bytes in, structs out.
 *
 * Pure: no I/O, no clock. Any thread; one exchange belongs to one thread at a time. The replies are hostile input.
 *
 * A sample is one request of n = 1 (engines that make several derive child seeds). Where the engine cannot tell the
 * prompt's token ids with the sample, an exchange has steps before it (render the chat, tokenize); where it cannot tell
 * the text, one after it. The caller goes round:
 *
 *     exchange_init(&exchange, adapter, &request);
 *     do {
 *         exchange_build(&exchange, &call, &error);      send it, wait for the reply
 *         outcome = exchange_parse(&exchange, &reply, &sample, &error);
 *     } while (outcome == EXCHANGE_NEXT);
 *     exchange_finish(&exchange);
 *
 * A call that is repeated after a failure is simply built again: the exchange stays at the step that failed. A new seed
 * needs a new exchange. Text that contradicts itself is refused, never repaired; nothing here turns a failure into a
 * number. */
#ifndef CLIENT_ADAPTERS_ADAPTER_H
#define CLIENT_ADAPTERS_ADAPTER_H

#include "server/base/buffer.h"
#include "server/base/text.h"
#include "server/base/words.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- failures ------------------------------------------------------------------------------------ */

#define SAMPLE_FAILURE(name, word) SAMPLE_##name,
enum sample_failure { SAMPLE_FAILURE_WORDS(SAMPLE_FAILURE) SAMPLE_FAILURE_COUNT };
extern const char *const sample_failure_names[]; /* as on the wire: "engine_timeout" … */

#define SAMPLE_MESSAGE_BYTES 256

struct sample_error {
    enum sample_failure code;
    bool retryable;
    bool resample; /* a retry draws a new seed: a complete answer was refused. False: ask for the same tokens again */
    int64_t retry_after_us;             /* asked for by the engine, at most an hour; 0: not asked for */
    int status;                         /* HTTP; 0 if there was no reply */
    bool not_connected;                 /* the connection was not accepted: the engine is down, not only in trouble */
    char message[SAMPLE_MESSAGE_BYTES]; /* valid UTF-8, printable, quotes the engine */
};

/* --- a request ----------------------------------------------------------------------------------- */

struct sampling {
    int64_t max_tokens;
    double temperature;
    double top_p;  /* 1: off */
    int64_t top_k; /* 0 or negative: off */
    double min_p;  /* 0: off */
    const struct text *stop;
    size_t stop_count;
    const uint32_t *stop_token_ids;
    size_t stop_token_id_count;
    struct text chat_template_kwargs; /* a JSON object, or TEXT_NONE */
    /* A JSON object that passed engine_options_check(), or TEXT_NONE. Its members go beside the sampling parameters and
     * win over the defaults that an adapter sends for parameters beyond this struct (penalties, …). */
    struct text engine_options;
};

/* Names of log-probability modes: "raw" (of the model), "processed" (of the sampling policy), "unknown". */
#define LOGPROBS_MODE(name, word) LOGPROBS_##name,
enum logprobs_mode { LOGPROBS_MODE_WORDS(LOGPROBS_MODE) };
extern const char *const logprobs_mode_names[];

/* All memory is the caller's and stays until exchange_finish(). */
struct sample_request {
    /* The prompt: ids if they are known (a sibling's sample told them), otherwise one of the two others. */
    const uint32_t *prompt_ids;
    size_t prompt_id_count;
    struct text prompt;   /* or TEXT_NONE */
    struct text messages; /* a JSON array of chat messages, or TEXT_NONE */
    struct text tools;    /* beside messages: a JSON array for the chat template, or TEXT_NONE */
    struct sampling sampling;
    struct text model; /* TEXT_NONE: not sent */
    uint64_t seed;     /* 63 bits; mapped to the engine's range */
    struct text
        cache_salt; /* names the weights, so that no engine reuses what old weights computed; TEXT_NONE: not sent */
    struct text request_id;           /* unique per attempt, printable ASCII; TEXT_NONE: not sent */
    enum logprobs_mode logprobs_mode; /* of the engine, from its settings or a probe */
    bool wants_token_ends;            /* of the sample, if the reply has the bytes of each token */
};

/* False if the options hold a name that this service sends itself (prompt, n, seed, logprobs, …), or are no JSON
 * object; ret_name is the offending name (inside `options`), or TEXT_NONE. Any engine kind. */
bool engine_options_check(struct text options, struct text *ret_name);

/* --- a sample ------------------------------------------------------------------------------------ */

enum finish_reason { FINISH_STOP, FINISH_LENGTH, FINISH_TOOL_CALLS };
extern const char *const finish_reason_names[]; /* "stop" "length" "tool_calls"; an abort is an error, not a sample */

/* A stretch of the ids that one version of the weights made; `end` is the first id that is not of it. */
struct sample_segment {
    size_t start;
    size_t end;
    struct text revision; /* the engine's word for that version */
};

struct sample {
    struct text text;       /* valid UTF-8; may be cut at a stop string, ids are not */
    uint64_t text_replaced; /* how many broken parts became U+FFFD */
    const uint32_t *ids;    /* exactly the sampled ids; NULL: the engine gives none */
    const float *logprobs;  /* one per id, finite, at most 0; NULL without ids */
    size_t id_count;
    /* The byte behind each id, by the bytes that the engine gives for it: the text is the first of all these bytes. NULL: not
     * wanted, not given, or the text has others. */
    const uint32_t *token_ends;
    const uint32_t *prompt_ids; /* NULL: unknown */
    size_t prompt_id_count;
    enum finish_reason finish;
    bool eos_in_ids; /* the last id is the end-of-sequence (or stop) id */
    bool trainable;  /* has ids and log-probabilities */
    enum logprobs_mode logprobs_mode;
    struct text engine_revision; /* of the last id; TEXT_NONE: the engine does not say */
    /* The versions of the weights that made the ids: without gaps from 0 to id_count, neighbours differ. Two or more if
     * the weights changed on the way, otherwise NULL and 0. */
    const struct sample_segment *segments;
    size_t segment_count;
    uint64_t seed_sent;
    bool seed_honoured; /* the engine is known to honour it */

    void *memory; /* everything above lives here */
};

void sample_finish(struct sample *sample);

/* --- an exchange --------------------------------------------------------------------------------- */

struct engine_call {
    const char *method; /* "GET" "POST" */
    const char *path;   /* static */
    struct buffer body; /* empty for GET */
};
void engine_call_finish(struct engine_call *call);

struct engine_reply {
    int status;
    struct text content_type; /* or TEXT_NONE */
    struct text retry_after;  /* or TEXT_NONE; seconds or a date */
    struct text body;         /* whole */
    int64_t now_utc_us;       /* for a Retry-After that is a date */
};

struct exchange {
    const struct engine_adapter *adapter;
    const struct sample_request *request;
    int step;             /* the adapter's own; 0 at first */
    uint32_t *prompt_ids; /* learnt by tokenizing; may be copied for the siblings once it is not NULL */
    size_t prompt_id_count;
    struct buffer rendered; /* a chat as text */
    struct sample pending;  /* waits for its text */
};

/* The distribution of an engine's log-probabilities, where settings and requests leave it open. */
enum logprobs_source {
    LOGPROBS_OF_SETTING,         /* a start option of the engine decides, no reply tells */
    LOGPROBS_OF_MODEL,           /* the model's own, with every sampler */
    LOGPROBS_BEHIND_TEMPERATURE, /* and before every filter */
};

enum exchange_outcome { EXCHANGE_NEXT, EXCHANGE_SAMPLE, EXCHANGE_ERROR };

/* How a probe asks for the tokens of a text: POST /tokenize {"model":…, text_key: text, special_key: false}. */
struct tokenize_words {
    const char *text_key; /* NULL: this kind is not asked */
    const char *special_key;
};

/* How it is asked for the text of ids: POST /detokenize {"model":…, "tokens": [ids]} → {text_key: text}. */
struct detokenize_words {
    const char *text_key; /* NULL: this kind is not asked */
    bool names_model;
};

/* How a probe asks for two samples at once. */
struct two_samples_words {
    const char *path; /* NULL: this kind is not asked */
    const char *prompt_key;
    const char *max_tokens_key;
    const char *sampling_key; /* of the object with the sampling parameters; NULL: they stand beside the prompt */
};

struct engine_get; /* client/adapters/get.h */

struct engine_adapter {
    const char *kind; /* as in the settings */

    /* for probes */
    const struct engine_get *gets; /* ended by one without path; the first shows that an engine is of this kind */
    bool only_by_settings;         /* no GET shows this kind: the settings must name it */
    struct tokenize_words tokenize;
    struct two_samples_words two_samples;

    /* for samples */
    struct detokenize_words detokenize; /* where the reply has no bytes of tokens */
    enum logprobs_source logprobs;
    size_t token_bytes; /* of a reply, at most, for each token asked for; 0: 512 */
    /* The field of `sampling` that is set and that it cannot be asked for, or NULL; may be NULL. */
    const char *(*lacks)(const struct sampling *sampling);
    const char *lacks_why;                             /* the message: "cannot stop …" */
    bool (*prepares)(const struct exchange *exchange); /* the current step samples nothing; NULL: each samples */
    /* NULL, with all that follows: this kind samples nothing. Verifiers alone ask it, and it is not probed. */
    void (*build)(const struct exchange *exchange, struct engine_call *ret_call);
    enum exchange_outcome (*parse)(struct exchange *exchange, const struct engine_reply *reply,
                                   struct sample *ret_sample, struct sample_error *ret_error);
    /* The call that stops what request_id began; NULL: closing the connection does. */
    void (*abort)(struct text request_id, struct engine_call *ret_call);
    uint64_t (*seed_sent)(uint64_t seed); /* into the engine's range */
    bool repeats_seed;                    /* its replies say which seed was used */
};

/* Both are made of kinds.def, in its order, and ended by NULL. */
extern const struct engine_adapter *const engine_adapters[];
extern const char *const engine_kinds[];                            /* their names */
const struct engine_adapter *engine_adapter_find(struct text kind); /* NULL: no such kind */
/* False: it samples nothing. NULL, a kind that is not known yet: true, because a probe finds only kinds that sample. */
bool engine_kind_samples(const char *kind);
/* The field of `sampling` that this kind of engine cannot be asked for; NULL: everything can be sent. */
const char *engine_adapter_lacks(const struct engine_adapter *adapter, const struct sampling *sampling);

void exchange_init(struct exchange *exchange, const struct engine_adapter *adapter,
                   const struct sample_request *request);
void exchange_finish(struct exchange *exchange);

/* The current step's call. False (ret_error filled, nothing to finish) if this kind of engine cannot serve the request,
 * or if the body would exceed ENGINE_CALL_BODY_BYTES or memory. */
#define ENGINE_CALL_BODY_BYTES (256 * 1024 * 1024)
bool exchange_build(const struct exchange *exchange, struct engine_call *ret_call, struct sample_error *ret_error);

/* The call that, beside closing the connection, gives up an exchange while the engine works on it. False: none (nothing
 * to finish). Its reply is ignored. */
bool exchange_build_abort(const struct exchange *exchange, struct engine_call *ret_call);

/* SAMPLE: ret_sample is filled and the caller's to finish. ERROR: ret_error is filled. NEXT: build again. */
enum exchange_outcome exchange_parse(struct exchange *exchange, const struct engine_reply *reply,
                                     struct sample *ret_sample, struct sample_error *ret_error);

/* True unless the reply is a success (2xx); then ret_error says what the refusal means. For a request that no adapter
 * built: the caller examines the body of a 2xx reply. */
bool engine_reply_refuses(const struct engine_reply *reply, struct sample_error *ret_error);

/* The largest reply: the most that an honest engine writes per token, and a margin. */
size_t exchange_reply_limit_bytes(const struct exchange *exchange);

/* True while the current step only prepares the prompt (short, no sampling). */
bool exchange_is_preparing(const struct exchange *exchange);

#endif
