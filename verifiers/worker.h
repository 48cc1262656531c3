/* worker: a process that judges hostile text and can do nothing else.
 *
 * One socket, frames in, frames out; a frame is 4 bytes of length (little endian) and as many bytes of JSON.
 *
 *   request  {"completion": text, "prompt": text, "completion_tokens": n, "reference": any,
 *             "verifiers": [{"name": "math", "options": {…complete…}, "reference": any}, …]}
 *            prompt, completion_tokens and both references may be absent; a verifier's own reference wins.
 *   reply    {"verdicts": [{"score": 1.0|null, "verdict": "correct", "reason": "…", "detail": {…}|null,
 *                           "failure": null|{"code","message"}, "duration_us": 12}, …]}   in the order of the request
 *
 * What it cannot read ends the worker: the service charges that to the job. */
#ifndef VERIFIERS_WORKER_H
#define VERIFIERS_WORKER_H

#include "server/base/buffer.h"
#include "server/base/text.h"

#define WORKER_REPLY_LIMIT_BYTES (1u << 20)
#define FRAME_HEADER_BYTES 4

/* Pure: the reply to one request, appended to `out`. 0, or -1 if the request is not one. */
int worker_answer(struct text request, struct buffer *out);

/* Locks the process down and serves the socket until it ends. Only for a freshly forked process; never returns. */
void worker_main(int fd) __attribute__((noreturn));

/* The lock-down alone: no new privileges, limits, seccomp. 0, or -1 with errno. */
int worker_lock_down(void);

void frame_put_length(char ret_header[FRAME_HEADER_BYTES], size_t length_bytes);
size_t frame_get_length(const char header[FRAME_HEADER_BYTES]);

#endif
