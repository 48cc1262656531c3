/* words: THE lists of words that several rooms share: on record, on the wire, in settings and in metrics.
 *
 * A row is WORD(name, "word"). Each room makes an enum with a prefix of its own, and its array of words, of the same
 * list. */
#ifndef BASE_WORDS_H
#define BASE_WORDS_H

#define PURPOSE_WORDS(WORD)                                                                                            \
    WORD(TRAIN, "train")                                                                                               \
    WORD(EVAL, "eval")

#define BATCH_END_WORDS(WORD)                                                                                          \
    WORD(COMPLETE, "complete")                                                                                         \
    WORD(CANCELLED, "cancelled")                                                                                       \
    WORD(EXPIRED, "expired")
#define BATCH_STATE_WORDS(WORD)                                                                                        \
    WORD(RUNNING, "running")                                                                                           \
    BATCH_END_WORDS(WORD)

#define REVERIFY_STATE_WORDS(WORD)                                                                                     \
    WORD(RUNNING, "running")                                                                                           \
    WORD(COMPLETE, "complete")                                                                                         \
    WORD(CANCELLED, "cancelled")                                                                                       \
    WORD(FAILED, "failed")

#define ROLLOUT_STATE_WORDS(WORD)                                                                                      \
    WORD(SCORED, "scored")                                                                                             \
    WORD(FAILED, "failed")                                                                                             \
    WORD(CANCELLED, "cancelled")

/* Modes of a weight update for samples in flight. */
#define UPDATE_MODE_WORDS(WORD)                                                                                        \
    WORD(WAIT, "wait")                                                                                                 \
    WORD(ABORT, "abort")                                                                                               \
    WORD(STRADDLE, "straddle")

/* Where a group of a batch with "deliver": "lease" is on its way to the trainer. */
#define DELIVERY_STATE_WORDS(WORD)                                                                                     \
    WORD(WAITING, "waiting")                                                                                           \
    WORD(READY, "ready")                                                                                               \
    WORD(LEASED, "leased")                                                                                             \
    WORD(ACKED, "acked")                                                                                               \
    WORD(STALE, "stale")                                                                                               \
    WORD(FAILED, "failed")                                                                                             \
    WORD(DROPPED, "dropped")

/* The next step for the task of a group that was too old at its delivery. */
#define ON_STALE_WORDS(WORD)                                                                                           \
    WORD(RESAMPLE, "resample")                                                                                         \
    WORD(DROP, "drop")

/* Why a lease has ended. */
#define LEASE_END_WORDS(WORD)                                                                                          \
    WORD(ACKED, "acked")                                                                                               \
    WORD(RELEASED, "released")                                                                                         \
    WORD(EXPIRED, "expired")                                                                                           \
    WORD(REWOUND, "rewound")                                                                                           \
    WORD(ATTACHED, "attached")
#define LEASE_STATE_WORDS(WORD)                                                                                        \
    WORD(OPEN, "open")                                                                                                 \
    LEASE_END_WORDS(WORD)

/* Log-probabilities of the model, or of the sampling policy. */
#define LOGPROBS_MODE_WORDS(WORD)                                                                                      \
    WORD(UNKNOWN, "unknown")                                                                                           \
    WORD(RAW, "raw")                                                                                                   \
    WORD(PROCESSED, "processed")

/* Why a completion that is given to the service ended. An engine's abort is a failure instead. */
#define FINISH_REASON_WORDS(WORD)                                                                                      \
    WORD(STOP, "stop")                                                                                                 \
    WORD(LENGTH, "length")                                                                                             \
    WORD(ABORT, "abort")                                                                                               \
    WORD(TOOL_CALLS, "tool_calls")

#define ENGINE_STATE_WORDS(WORD)                                                                                       \
    WORD(UNKNOWN, "unknown")                                                                                           \
    WORD(UP, "up")                                                                                                     \
    WORD(COOLING, "cooling")                                                                                           \
    WORD(HALF_OPEN, "half_open")                                                                                       \
    WORD(DOWN, "down")                                                                                                 \
    WORD(DRAINING, "draining")                                                                                         \
    WORD(REFUSED, "refused")                                                                                           \
    WORD(PROBING, "probing")

/* Failures of a rollout: first those of a sample. */
#define SAMPLE_FAILURE_WORDS(WORD)                                                                                     \
    WORD(ENGINE_TIMEOUT, "engine_timeout")                                                                             \
    WORD(ENGINE_UNREACHABLE, "engine_unreachable")                                                                     \
    /* refused or broken by the engine's own fault: auth, quota, unknown model, abort, 5xx */                          \
    WORD(ENGINE_ERROR, "engine_error")                                                                                 \
    /* 429, 502, 503: it, or a proxy before it, wants us to come back later */                                         \
    WORD(ENGINE_OVERLOADED, "engine_overloaded")                                                                       \
    /* cannot be believed */                                                                                           \
    WORD(INVALID_REPLY, "invalid_reply")                                                                               \
    WORD(NON_FINITE_LOGPROB, "non_finite_logprob")                                                                     \
    WORD(CONTEXT_OVERFLOW, "context_overflow")                                                                         \
    WORD(EMPTY_COMPLETION, "empty_completion")

/* A verifier's worker was lost with the completion. */
#define INCIDENT_WORDS(WORD)                                                                                           \
    WORD(VERIFIER_CRASHED, "verifier_crashed")                                                                         \
    WORD(VERIFIER_TIMEOUT, "verifier_timeout")

#define FAILURE_WORDS(WORD)                                                                                            \
    SAMPLE_FAILURE_WORDS(WORD)                                                                                         \
    INCIDENT_WORDS(WORD)                                                                                               \
    WORD(VERIFIER_UNAVAILABLE, "verifier_unavailable")                                                                 \
    WORD(VERIFIER_INPUT_TOO_LARGE, "verifier_input_too_large")                                                         \
    WORD(REFERENCE_UNREADABLE, "reference_unreadable")                                                                 \
    WORD(MISSING_FIELD, "missing_field")                                                                               \
    WORD(OF_UNSCORED, "of_unscored")                                                                                   \
    WORD(SANDBOX_UNAVAILABLE, "sandbox_unavailable")                                                                   \
    WORD(DEADLINE, "deadline")                                                                                         \
    WORD(CANCELLED, "cancelled")

/* The alarms of a run: reward and truth part, groups teach nothing, completions are cut off or fail, an engine has
 * other weights, labels contradict a verifier. */
#define ALARM_WORDS(WORD)                                                                                              \
    WORD(DIVERGENCE, "divergence")                                                                                     \
    WORD(ZERO_VARIANCE, "zero_variance")                                                                               \
    WORD(TRUNCATED, "truncated")                                                                                       \
    WORD(FAILED, "failed")                                                                                             \
    WORD(LOGPROB_GAP, "logprob_gap")                                                                                   \
    WORD(PRECISION, "precision")                                                                                       \
    WORD(RECALL, "recall")

/* The words of a list, each with a comma behind it. */
#define WORD_TEXT(name, word) word,

#endif
