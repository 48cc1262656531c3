/* engine_probe: the kind of an engine, its facts and its capabilities. Pure: path and body out, reply in; no
 * I/O, no clock. One probe belongs to one thread at a time; replies are hostile input.
 *
 * First a few GETs, cheapest evidence first: kind, model, context, slots, version, version of the weights. A server that
 * answers none of them as its kind does is no engine (probe_is_stranger()) and gets no other request. Then, if the rules say
 * so, the tokens of a fixed text, and a handful of requests of at most PROBE_TOKENS tokens whose answers are compared:
 * the same seed must give the same tokens and another seed others; the most likely token's log-probability at two
 * temperatures says of which distribution it is (reference: engines.md section 2). The rest stays unknown;
 * a failure among these requests ends them and is no failure of the probe.
 *
 *     probe_init(&probe, &rules);
 *     while (probe_build(&probe, &call)) {
 *         send it, wait for the reply; engine_call_finish(&call);
 *         if (!probe_take(&probe, &reply, transport_error))
 *             break;
 *     }
 *     probe_failed(&probe) or probe.facts;  probe_finish(&probe);
 */
#ifndef CLIENT_PROBE_DIALOGUE_H
#define CLIENT_PROBE_DIALOGUE_H

#include "client/adapters/adapter.h"

#define PROBE_TOKENS 4
#define PROBE_GET_TIMEOUT_US INT64_C(3000000)      /* for each */
#define PROBE_SAMPLES_TIMEOUT_US INT64_C(15000000) /* for all together: some engines take this long to warm up */
#define PROBE_REPLY_BYTES (1024 * 1024)
#define PROBE_NAME_BYTES 256
#define PROBE_MODELS_BYTES 2048

/* UNKNOWN: no answer showed it. */
enum capability { CAPABILITY_UNKNOWN, CAPABILITY_NO, CAPABILITY_YES };

/* Of which distribution the log-probabilities are. `logits` are none. */
enum logprobs_kind {
    LOGPROBS_KIND_UNKNOWN,
    LOGPROBS_KIND_RAW,
    LOGPROBS_KIND_TEMPERATURE,
    LOGPROBS_KIND_PROCESSED,
    LOGPROBS_KIND_LOGITS
};
extern const char *const logprobs_kind_names[]; /* "unknown" "raw" "after_temperature" "processed" "logits" */

struct engine_capabilities {
    enum capability ids;      /* gives the sampled ids */
    enum capability logprobs; /* and a log-probability for each */
    enum capability n;        /* gives two samples where two are asked for. (Never used for sampling.) */
    enum capability seeds;    /* honours them */
    enum logprobs_kind logprobs_kind;
    bool asked;     /* the questions were put, to the end */
    char note[160]; /* why one is unknown, or the evidence; "": none */
};

struct engine_facts {
    const struct engine_adapter *adapter; /* NULL: not found out */
    char model[PROBE_NAME_BYTES];         /* the one that it names; "": none */
    bool lists_models;
    char models[PROBE_MODELS_BYTES]; /* their names, each with a line feed behind it */
    bool models_whole;               /* there are no others */
    bool serves_wanted;              /* rules.model is among them (true if none is wanted, or none are listed) */
    bool wants_key;                  /* it answered 401 or 403 to a GET */
    char version[64];
    char weight_version[64];
    int64_t context_tokens;        /* 0: unknown */
    size_t slots;                  /* 0: unknown */
    char tokenizer_sha256[65];     /* over the ids of a fixed text, as decimals with commas between; "": unknown */
    char chat_template_sha256[65]; /* of its text; "": unknown */
    struct engine_capabilities capabilities;
};

/* Whether the engine lists a model of this name. */
bool engine_facts_list(const struct engine_facts *facts, struct text model);

struct probe_rules {
    const struct engine_adapter *adapter; /* NULL: find out */
    const char *url;                      /* for messages */
    struct text model;                    /* named by the settings, or TEXT_NONE; stays the caller's */
    bool has_key;                         /* the calls are sent with one */
    bool ask_tokens;                      /* the tokens of a fixed text */
    bool ask_samples;                     /* and the questions */
};

struct probe_answer { /* to one question */
    bool given;
    bool has_ids;
    uint32_t ids[PROBE_TOKENS];
    size_t count;
    char text[96];        /* its beginning, where there are no ids */
    double first_logprob; /* NAN: none */
    double sum_logprob;
};

#define PROBE_QUESTIONS 7

struct engine_get; /* client/adapters/get.h */

struct probe {
    struct probe_rules rules;
    struct engine_facts facts;
    bool recognised;                      /* it answered one of the GETs as its kind does */
    bool is_busy;                         /* 429 */
    unsigned denials;                     /* answers that an engine of its kind does not give */
    char heard[200];                      /* "404 for GET /version, …": the replies that are not of its kind */
    int64_t samples_until_us;             /* the caller's: when the questions must end; 0: not begun */
    struct sample_error error;            /* message "": none */
    const struct engine_get *get;         /* the one that is asked; NULL: none is left */
    const struct engine_adapter *suspect; /* the kind that `get` shows, while the kind is unknown */
    size_t suspects;                      /* kinds that were tried so */
    int step;                             /* of the questions */
    int phase;                            /* enum probe_phase */
    bool in_vain;                         /* it refused for now: ask another time */
    unsigned round;                       /* of the questions: once more with other seeds */
    struct probe_answer answers[PROBE_QUESTIONS];
    struct sample_request request;
    struct exchange exchange;
    bool exchange_open;
};

void probe_init(struct probe *probe, const struct probe_rules *rules);
void probe_finish(struct probe *probe);
/* The next call, to be finished by the caller. False: there is none. */
bool probe_build(struct probe *probe, struct engine_call *ret_call);
/* True while the call that was built last samples (PROBE_SAMPLES_TIMEOUT_US), false for the others. */
bool probe_is_sampling(const struct probe *probe);
/* reply NULL: none came, transport_error says why. True: there is another call. */
bool probe_take(struct probe *probe, const struct engine_reply *reply, const struct sample_error *transport_error);
/* Ends the questions; capabilities without an answer stay unknown. */
void probe_give_up_samples(struct probe *probe, const char *why);
/* NULL if it succeeded. */
const struct sample_error *probe_failed(const struct probe *probe);
/* The probe succeeded, but the server is no engine of the wanted kind; ret_why lists the GETs and the replies. */
bool probe_is_stranger(const struct probe *probe, char ret_why[SAMPLE_MESSAGE_BYTES]);

/* It answered one of the questions with a sample. */
bool probe_gave_samples(const struct probe *probe);
/* Reads the answers to the questions; for tests too. */
void probe_conclude(const struct probe_answer answers[PROBE_QUESTIONS], struct engine_capabilities *capabilities);

#endif
