/* reply: the contents of a reply, before they are believed. Shared by the adapters and the probe, private to the room.
 *
 * An adapter fills a draft from the reply's bytes; draft_check() holds it against every invariant and makes a sample of
 * it, or a typed failure. Nothing is repaired, with one exception: a log-probability in (0, 1e-6] is rounding and
 * becomes 0. */
#ifndef CLIENT_ADAPTERS_REPLY_H
#define CLIENT_ADAPTERS_REPLY_H

#include "client/adapters/adapter.h"
#include "client/adapters/get.h"
#include "server/base/json_scan.h"
#include "server/base/json_write.h"

#define ID_UNNAMED UINT32_MAX

struct id_list {
    uint32_t *values;
    size_t count;
    size_t capacity;
    bool present; /* an empty list was there, too */
};

/* An error object in whatever dress: {"error":{…}}, {"error":"…"}, flat with "object":"error", {"detail":…}. */
struct engine_error {
    bool present;
    struct buffer message, type, code;
    int64_t code_number; /* 0: none */
};

/* {"version":"step-1","start":0,"end":36}: as the engine says it. */
struct version_span {
    int64_t start, end; /* -1: not said */
    size_t name_at;     /* in the draft's revisions */
    size_t name_bytes;
};

/* The counts that engines write, in whatever place. */
enum draft_count { COUNT_COMPLETION, COUNT_PROMPT, COUNT_TOTAL, COUNT_CACHED, COUNT_REASONING, COUNT_COUNT };
extern const char *const draft_count_names[]; /* as most of them spell it */

/* The entries beside one log-probability. */
struct draft_entry {
    double logprob;
    bool has_logprob;
    uint32_t id; /* ID_UNNAMED */
    bool has_bytes;
};

struct reply_draft {
    struct buffer text;
    bool has_text;
    bool text_follows; /* in another reply */
    bool has_aside;    /* reasoning or tool calls beside the text */
    struct id_list ids;
    struct id_list beside; /* the id that stands beside each log-probability; ID_UNNAMED where none does */
    struct id_list prompt_ids;
    struct buffer bytes; /* of all tokens, where each entry has its own and they are wanted */
    struct id_list ends; /* in `bytes`, behind each entry */
    bool lacks_bytes;    /* an entry has none */
    float *logprobs;     /* NAN where the reply has null */
    size_t logprob_count;
    size_t logprob_capacity;
    bool has_logprobs;
    struct buffer finish; /* the engine's own word */
    bool has_finish;
    bool stopped_by_string;
    bool nan_replaced;       /* the engine says that it met a NaN and put an id in its place */
    struct buffer revision;  /* of the end, if the engine says one */
    struct buffer revisions; /* the spans' names, one after the other */
    struct version_span *spans;
    size_t span_count;
    size_t span_capacity;
    size_t choice_count;
    bool choice_is_another;      /* it says that it is another one's than the first: of a request that is not ours */
    int64_t counts[COUNT_COUNT]; /* by the engine, or -1 */
    int64_t prompt_tokens_read;  /* by the engine: tokens that it read of the prompt, or -1 */
    int64_t seed_used;           /* or -1 */
    struct engine_error error;
    char problem[128]; /* why it cannot be believed as a whole; "": no reason */

    /* of the object that is being read */
    struct buffer token;
    struct draft_entry entry;
    struct version_span span;

    /* set by the adapter */
    bool seed_honoured;
    bool wants_bytes;

    uint64_t replaced;
    bool out_of_memory;
};

void draft_init(struct reply_draft *draft, struct text body);
void draft_finish(struct reply_draft *draft);

/* --- objects (reply_members.c) ------------------------------------------------------------------------ */

/* A member that is read; at most 64 in an object. */
struct draft_member {
    const char *name;
    void (*read)(struct reply_draft *draft, struct json_scan *scan); /* consumes one value */
};
/* Reads the members that are named, skips the others. A name that is read and stands twice, with whatever escapes, is
 * the draft's problem: another reader would believe the other one. */
void draft_read_members(struct reply_draft *draft, struct json_scan *scan, const struct draft_member *members,
                        size_t count);
/* The same, where anything else than an object says nothing. */
void draft_read_members_if_any(struct reply_draft *draft, struct json_scan *scan, const struct draft_member *members,
                               size_t count);
void draft_problem(struct reply_draft *draft, const char *format, ...) _printf_(2, 3);
/* A whole number from 0, or null: -1. Anything else is the draft's problem, and -1. */
int64_t draft_read_whole(struct reply_draft *draft, struct json_scan *scan, const char *name);
void draft_read_completion_tokens(struct reply_draft *draft, struct json_scan *scan);
void draft_read_prompt_tokens(struct reply_draft *draft, struct json_scan *scan);
void draft_read_cached_tokens(struct reply_draft *draft, struct json_scan *scan);
void draft_read_usage(struct reply_draft *draft, struct json_scan *scan);
/* False (ret_error filled): a count is above the request's. */
bool draft_counts_agree(const struct reply_draft *draft, int64_t max_tokens, struct sample_error *ret_error);

/* Members of the top level that any engine may write. */
#define DRAFT_COMMON_MEMBERS                                                                                           \
    {"error", draft_read_error}, {"usage", draft_read_usage}, {"metadata", draft_read_metadata},                       \
    {                                                                                                                  \
        "prompt_token_ids", draft_read_prompt_ids                                                                      \
    }

/* --- reading: each consumes one value; wrong kinds are errors of the scan ---------------------------- */

void draft_read_text(struct reply_draft *draft, struct json_scan *scan);       /* or null */
bool scan_string_or_null(struct json_scan *scan, struct buffer *out);          /* false: null */
int64_t scan_integer_or(struct json_scan *scan, int64_t otherwise);            /* null or not an integer: otherwise */
void draft_read_ids(struct reply_draft *draft, struct json_scan *scan);        /* or null; of the sample */
void draft_read_prompt_ids(struct reply_draft *draft, struct json_scan *scan); /* or null */
void draft_read_finish(struct reply_draft *draft, struct json_scan *scan);     /* or null */
void draft_read_revision(struct reply_draft *draft, struct json_scan *scan);   /* or null */
/* Appends to the list. */
void draft_append_ids(struct reply_draft *draft, struct id_list *list, struct json_scan *scan);
void draft_read_logprobs(struct reply_draft *draft, struct json_scan *scan); /* or null */
void draft_add_entry(struct reply_draft *draft);                             /* the one that was read last */
/* An array of entries, each an object of these members, or null. */
void draft_read_entries(struct reply_draft *draft, struct json_scan *scan, const struct draft_member *members,
                        size_t count);
void draft_read_entry_logprob(struct reply_draft *draft, struct json_scan *scan);
void draft_read_entry_id(struct reply_draft *draft, struct json_scan *scan);
void draft_read_entry_bytes(struct reply_draft *draft, struct json_scan *scan); /* [32,52], or null */
void draft_add_id(struct reply_draft *draft, struct id_list *list, uint32_t id);
void draft_add_span(struct reply_draft *draft, const struct version_span *span);
uint32_t id_of_token_string(struct text token);                             /* of "token_id:17", else ID_UNNAMED */
void scan_error_object(struct json_scan *scan, struct engine_error *error); /* the value of "error": object or string */
void draft_read_error(struct reply_draft *draft, struct json_scan *scan);
void draft_read_metadata(struct reply_draft *draft, struct json_scan *scan); /* {"weight_version":"step-42"} */
/* {"content":[…]} or {"token_logprobs":[…],"tokens":[…]} or null. */
void draft_read_openai_logprobs(struct reply_draft *draft, struct json_scan *scan);
void draft_read_index(struct reply_draft *draft, struct json_scan *scan); /* of one choice there is only the first */
/* An object, or an array of them where several samples were asked for: the first, and how many there are. */
void draft_read_first(struct reply_draft *draft, struct json_scan *scan,
                      void (*read)(struct reply_draft *draft, struct json_scan *scan));
/* A whole body of OpenAI's form: /v1/completions, /v1/chat/completions, and vLLM's /inference/v1/generate. */
void draft_read_openai(struct reply_draft *draft, struct json_scan *scan);

/* --- checks ----------------------------------------------------------------------------------------- */

enum exchange_outcome draft_check(const struct exchange *exchange, struct reply_draft *draft,
                                  const struct json_scan *scan, const struct engine_reply *reply,
                                  struct sample *ret_sample, struct sample_error *ret_error);

/* A body that is one JSON text, from its bytes to a sample. `seed_honoured`: the kind of engine honours every seed. */
struct draft_facts {
    void (*read)(struct reply_draft *draft, struct json_scan *scan);
    bool seed_honoured;
    bool text_follows;
};
enum exchange_outcome draft_take(const struct exchange *exchange, const struct draft_facts *facts,
                                 const struct engine_reply *reply, struct sample *ret_sample,
                                 struct sample_error *ret_error);

/* reply_versions.c. False (ret_error filled): the spans are not those of the draft's ids, one after the other. */
bool draft_versions_agree(const struct reply_draft *draft, struct sample_error *ret_error);
/* Of spans that agree: neighbours of one version as one, empty ones left out. Free it; the names are the draft's. */
struct sample_segment *draft_segments(const struct reply_draft *draft, size_t *ret_count);

/* A copy of the parts in one allocation. False: no memory. */
bool sample_pack(const struct sample *parts, struct sample *ret_sample);

/* Fills the error and returns EXCHANGE_ERROR. Code decides whether a retry makes sense and draws a new seed. */
enum exchange_outcome refuse_reply(struct sample_error *ret_error, enum sample_failure code, const char *format, ...)
    _printf_(3, 4);
/* The bytes end too early or are not of the expected form: asked again with the same seed. */
enum exchange_outcome refuse_bytes(struct sample_error *ret_error, const struct json_scan *scan,
                                   const struct engine_reply *reply);
/* A status other than 2xx. */
enum exchange_outcome refuse_status(struct sample_error *ret_error, const struct engine_reply *reply);
enum exchange_outcome refuse_engine_error(struct sample_error *ret_error, int status, const struct engine_error *error,
                                          const struct engine_reply *reply);
void error_message(struct sample_error *error, const char *format, ...) _printf_(2, 3);
void engine_error_finish(struct engine_error *error);
bool status_is_success(int status);

/* A body that is one object of these members, into the draft: NEXT or ERROR. (An engine's error in it is the caller's.) */
enum exchange_outcome draft_read_body(struct reply_draft *draft, const struct engine_reply *reply,
                                      const struct draft_member *members, size_t count, struct sample_error *ret_error);
/* The ids of a /tokenize reply ({"tokens":[…]}) into the exchange: NEXT or ERROR. */
enum exchange_outcome exchange_take_prompt_ids(struct exchange *exchange, const struct engine_reply *reply,
                                               struct sample_error *ret_error);

/* --- requests ---------------------------------------------------------------------------------------- */

/* The prompt is given as messages alone. */
bool exchange_is_chat(const struct exchange *exchange);
/* The prompt's ids, from the request or learnt. */
bool exchange_has_ids(const struct exchange *exchange);
void put_prompt_ids(struct json_write *json, const char *key, const struct exchange *exchange);
/* A member that engine_options may override. */
void put_soft_double(struct json_write *json, const struct sampling *sampling, const char *key, double value);
void put_soft_bool(struct json_write *json, const struct sampling *sampling, const char *key, bool value);
void put_soft_int(struct json_write *json, const struct sampling *sampling, const char *key, int64_t value);
bool options_have(struct text options, const char *key);
void put_engine_options(struct json_write *json, const struct sampling *sampling); /* every member of the options */
/* A chat for the engine's own template: messages, tools, add_generation_prompt, chat_template_kwargs. */
void put_template(struct json_write *json, const struct sample_request *request);
/* Of engine_options those that the template reads, where a chat is rendered before it is sampled. */
void put_template_options(struct json_write *json, const struct sampling *sampling);
/* How a kind of engine spells what all of them know, and how it says "off". */
struct sampling_dialect {
    const char *max_tokens;
    const char *repetition; /* the penalty */
    int64_t top_k_off;
};
/* Every sampling parameter, so that no default of the engine's own applies: untruncated unless the request says more.
 */
void put_sampling(struct json_write *json, const struct sampling *sampling, const struct sampling_dialect *dialect);
/* The body of vLLM's /tokenize: the prompt's text, or a chat. */
void put_vllm_tokenize(struct json_write *json, const struct sample_request *request);
/* The body of /v1/completions or, for a chat, /v1/chat/completions, with nothing but what most servers know. */
void put_openai_request(struct json_write *json, const struct exchange *exchange);
void put_stops(struct json_write *json, const struct sampling *sampling,
               bool ids_too); /* "stop", "stop_token_ids", where set */
void put_optional_text(struct json_write *json, const char *key, struct text value); /* nothing for TEXT_NONE */

uint64_t seed_of_63_bits(uint64_t seed);
uint64_t seed_of_31_bits(uint64_t seed);

extern const struct sampling_dialect vllm_dialect;
extern const struct engine_get vllm_gets[];

#define ENGINE_KIND(name) extern const struct engine_adapter adapter_##name;
#include "client/adapters/kinds.def"
#undef ENGINE_KIND

#endif
