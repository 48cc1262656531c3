/* Shared by POST /v1/verify and the probes of POST /v1/audits: one request between its worker part and its loop part. */
#ifndef SERVER_API_VERIFY_PRIVATE_H
#define SERVER_API_VERIFY_PRIVATE_H

#include "server/api/verify.h"
#include "server/verify/spec.h"

#define FRAME_SLACK_BYTES                                                                                              \
    65536 /* a buffer refuses what is beyond its maximum; the frame's own limit is checked exactly */

struct verify_request;

struct verify_item {
    struct verify_job job;
    struct verify_request *request;
    struct text id;             /* TEXT_NONE: none was given */
    struct verifier_list *list; /* NULL: its own could not be read */
    struct buffer frame;
    bool failed; /* before any worker saw it */
    struct verdict_record failure;
    struct buffer unread_verdicts;
    bool running;
};

struct verify_request {
    struct job render; /* first */
    struct verify_context *context;
    struct request *client;
    struct call *call;            /* the client's */
    struct verifier_list *shared; /* NULL: every item has its own */
    enum reward_missing missing;
    size_t count;
    struct verify_item *items;
    size_t next;      /* the first that was not started */
    size_t running;   /* in the pool */
    int64_t calls_us; /* what the calls of its verifiers add to its time; 0: they make none */
    bool rendering;
    void (*write)(const struct verify_request *request, struct call *call); /* the reply */
    void *about;                                                            /* what else it needs; NULL: nothing */
    void (*about_destroy)(void *about);
    size_t about_bytes;
    struct loop_timer deadline;
    struct loop_timer again; /* a queue was full */
};

/* Its memory until it is answered, verdicts included. */
size_t verify_bytes(const struct verify_request *request);
/* An item's own verifiers: what is wrong with them is its own failure, never the request's. */
void verify_item_read_list(const struct json_input *input, const json_t *value, const char *path,
                           struct verify_item *item);
/* Its frame, or its failure. Its list must be there. The subject's reference_json is that of `reference`. */
void verify_item_build(struct verify_item *item, const struct verify_subject *subject, const json_t *reference);
/* Its outcome. verdict_set_finish() is needed. */
void verify_item_verdicts(const struct verify_item *item, struct verdict_set *ret_set);
void verify_item_fail(struct verify_item *item, const char *code, const char *message, bool retryable);
void verify_render(const struct verify_request *request, struct call *call);
/* When they are rendered: on a worker, because a large request has a hundred thousand pieces. */
void verify_request_drop_items(struct verify_request *request);
void verify_request_destroy(void *parsed);

#endif
