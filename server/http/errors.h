/* errors: THE table of error codes on the wire, with their HTTP status. */
#ifndef SERVER_HTTP_ERRORS_H
#define SERVER_HTTP_ERRORS_H

#define ERROR_TABLE(ROW)                                                                                               \
    ROW(INVALID_JSON, 400, "invalid_json")                                                                             \
    ROW(UNKNOWN_FIELD, 400, "unknown_field")                                                                           \
    ROW(INVALID_FIELD, 400, "invalid_field")                                                                           \
    ROW(MISSING_FIELD, 400, "missing_field")                                                                           \
    ROW(BAD_REQUEST, 400, "bad_request")                                                                               \
    ROW(UNAUTHORIZED, 401, "unauthorized")                                                                             \
    ROW(FORBIDDEN, 403, "forbidden")                                                                                   \
    ROW(NOT_FOUND, 404, "not_found")                                                                                   \
    ROW(METHOD_NOT_ALLOWED, 405, "method_not_allowed")                                                                 \
    ROW(NOT_ACCEPTABLE, 406, "not_acceptable")                                                                         \
    ROW(BODY_TIMEOUT, 408, "body_timeout")                                                                             \
    ROW(IDEMPOTENCY_CONFLICT, 409, "idempotency_conflict")                                                             \
    ROW(REVISION_CONFLICT, 409, "revision_conflict")                                                                   \
    ROW(STATE_CONFLICT, 409, "state_conflict")                                                                         \
    ROW(NOT_COMPARABLE, 409, "not_comparable")                                                                         \
    ROW(EVAL_GROUP, 409, "eval_group")                                                                                 \
    ROW(HELDOUT_TASK, 409, "heldout_task")                                                                             \
    ROW(BODY_TOO_LARGE, 413, "body_too_large")                                                                         \
    ROW(UNSUPPORTED_MEDIA_TYPE, 415, "unsupported_media_type")                                                         \
    ROW(EXPECTATION_FAILED, 417, "expectation_failed")                                                                 \
    ROW(VERIFIER_OPTIONS, 422, "verifier_options")                                                                     \
    ROW(OBJECTIVE_OPTIONS, 422, "objective_options")                                                                   \
    ROW(EMPTY_COMPLETION, 422, "empty_completion")                                                                     \
    ROW(LENGTH_MISMATCH, 422, "length_mismatch")                                                                       \
    ROW(NON_FINITE, 422, "non_finite")                                                                                 \
    ROW(INCOMPLETE_GROUP, 422, "incomplete_group")                                                                     \
    ROW(DUPLICATE_TASK, 422, "duplicate_task")                                                                         \
    ROW(REFERENCE_UNREADABLE, 422, "reference_unreadable")                                                             \
    ROW(NOT_JUDGED, 422, "not_judged")                                                                                 \
    ROW(TOO_MANY_ROLLOUTS, 422, "too_many_rollouts")                                                                   \
    ROW(QUEUE_FULL, 429, "queue_full")                                                                                 \
    ROW(HEAD_TOO_LARGE, 431, "head_too_large")                                                                         \
    ROW(INTERNAL, 500, "internal_error")                                                                               \
    ROW(NO_ENGINE, 503, "no_engine")                                                                                   \
    ROW(DRAINING, 503, "draining")                                                                                     \
    ROW(MIGRATING, 503, "migrating")                                                                                   \
    ROW(STORE_UNAVAILABLE, 503, "store_unavailable")                                                                   \
    ROW(SANDBOX_UNAVAILABLE, 504, "sandbox_unavailable")                                                               \
    ROW(HTTP_VERSION, 505, "http_version")                                                                             \
    ROW(DISK_FULL, 507, "disk_full")

enum error_code {
#define ERROR_ENUM(name, status, code) ERR_##name,
    ERROR_TABLE(ERROR_ENUM)
#undef ERROR_ENUM
        ERR_COUNT
};

struct error_row {
    int status;
    const char *code;
};

extern const struct error_row error_rows[ERR_COUNT];

#endif
