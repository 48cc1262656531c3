/* worker: a process that grades hostile text and can do nothing else. A code worker has the socket of a slot beside, to
 * have programs run there (sandbox/sandbox.h): references and expected values stay here.
 *
 * One socket, frames in, frames out. A reply is 4 bytes of length (little endian) and as many bytes of JSON; a request
 * has 8 more bytes between the two, a bit for each verifier that is left out: the service charges what a verifier did
 * to its worker to that verifier alone, and asks again without it.
 *
 *   request  {"completion": text, "prompt": text, "completion_tokens": n, "reference": any,
 *             "verifiers": [{"name": "math", "options": {…complete…}, "reference": any, "steps": "per_line"}, …]}
 *            prompt, completion_tokens, steps and both references may be absent; a verifier's own reference wins. Without a
 *            prompt, what a user said last in "messages" is one. Where one asks a reward function of the settings, it
 *            has that as "external", and the request may have "id", "task", "metadata" and "completion_ids".
 *   reply    {"verdicts": [{"score": 1.0|null, "verdict": "correct", "reason": "…", "detail": {…}|null,
 *                           "failure": null|{"code","message","retryable"}, "version": text, "duration_us": 12}, …]}
 *           in the order of the request; "version" only where one says its own; where it was asked for steps and has a
 *           score, "steps": [[end in bytes, score], …]; null for one that was left out, {"calls": [{"path", "body",
 *           "model"}, …]} for one that has to ask a server
 *           first (verifier.h). It is asked again with the same request and "replies": an array in the order of the
 *           verifiers, with an array in the place of each that asked
 *
 * The detail of a verifier that runs programs names the level at which they ran: "sandbox": "full".
 *
 * A frame that it cannot read ends the worker: the service charges that to the job. A slot that is gone or cannot run
 * programs ends it, too, behind the reply that says so (sandbox_unavailable). */
#ifndef VERIFIERS_WORKER_WORKER_H
#define VERIFIERS_WORKER_WORKER_H

#include "server/base/buffer.h"
#include "server/base/text.h"
#include "verifiers/registry.h"
#include "verifiers/sandbox/slot.h"

#include <stdbool.h>
#include <stdint.h>

#define SANDBOX_UNAVAILABLE "sandbox_unavailable" /* the failure of a verdict whose programs could not be run */

#define WORKER_REPLY_LIMIT_BYTES (10u << 20) /* bodies of calls, as JSON inside JSON, and verdicts */
/* Of the largest request that a text worker reads: with replies, which a character may make twice as long. */
#define WORKER_ANSWERS_FRAME_LIMIT_BYTES (VERIFIER_FRAME_LIMIT_BYTES + 2 * VERIFIER_REPLIES_BYTES)
#define WORKER_PROGRAM_REPLY_LIMIT_BYTES (64u << 20) /* of a code worker: outputs of a program may be in it */
#define FRAME_HEADER_BYTES 4
#define REQUEST_HEADER_BYTES (FRAME_HEADER_BYTES + 8)

/* A page that the worker writes and the service reads: what it is at, so that its end can be charged. The worker is not
 * trusted with more than that. */
struct worker_page {
    _Atomic uint64_t at; /* WORKER_READS, or the job (from 0) and the verifier (from 0) that is grading */
    _Atomic bool
        lost_slot; /* before a reply: the worker's slot runs no programs, and the worker ends behind the reply */
    _Atomic bool no_memory; /* before its end: what it was given, or has made of it, is more than it may have */
};
#define WORKER_READS UINT64_MAX
#define WORKER_AT(job, verifier) ((uint64_t)(job)*VERIFIER_LIST_LIMIT + (verifier))

extern const char *const sandbox_level_names[SANDBOX_LEVEL_FULL + 1]; /* "none", "reduced", "full" */

/* The descriptors and facts that a worker has beside the request. */
struct worker_means {
    const struct sandbox_settings *sandbox; /* of its slot; NULL: it has none */
    int slot_fd;                            /* -1: none */
    struct worker_page *page;               /* where it is written what it is at; NULL: nowhere */
};

/* The reply to one request, appended to `out`. left_out: a bit for each verifier; at: what WORKER_AT() says of the
 * first one. 0, or -1 if the request is not one. */
int worker_answer(struct text request, uint64_t left_out, const struct worker_means *means, uint64_t at,
                  struct buffer *out);

/* Locks the process down and serves the socket until it ends. Only for a freshly forked process; never returns. sandbox:
 * NULL: a text worker; else WORKER_SLOT_FD is the socket of a slot that was made with these settings. */
#define WORKER_SLOT_FD 4
void worker_main(int fd, const struct sandbox_settings *sandbox, struct worker_page *page) __attribute__((noreturn));

/* The lock-down alone: no new privileges, limits, seccomp. 0, or -1 with errno. */
int worker_lock_down(bool has_slot);

void frame_put_length(char ret_header[FRAME_HEADER_BYTES], size_t length_bytes);
size_t frame_get_length(const char header[FRAME_HEADER_BYTES]);
/* Of a whole request: which verifiers are left out. */
void request_put_left_out(char *frame, uint64_t left_out);
uint64_t request_get_left_out(const char header[REQUEST_HEADER_BYTES]);

#endif
