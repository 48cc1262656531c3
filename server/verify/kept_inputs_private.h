/* kept_inputs: a folder with the completions that crashed or hung a verifier, one file each, for the operator to replay
 * (`rolloutd verify --replay FILE`).
 *
 *   {"kept_at", "code", "run", "rollout", "verifiers": [{"name","version","options_sha256","options","reference"}],
 *    "reference", "prompt", "completion_tokens", "completion"}
 *
 * The folder is bounded in files and bytes: the oldest go. It is made when it is needed, readable for its owner alone,
 * and so are the files. A file appears whole or not at all. Any thread: writers take turns. */
#ifndef SERVER_VERIFY_KEPT_INPUTS_PRIVATE_H
#define SERVER_VERIFY_KEPT_INPUTS_PRIVATE_H

#include "server/base/text.h"
#include "server/verify/spec.h"

#include <stdint.h>

struct kept_inputs_limits {
    int64_t files;
    int64_t bytes;
};

struct kept_input {
    const char *name; /* of the file: sorts by age */
    int64_t at_utc_us;
    const char *code;
    const char *run; /* NULL: none; rollout likewise */
    const char *rollout;
    const struct verifier_list *list;
    int index;           /* of the verifier; -1: none was grading, all of them are named */
    struct text request; /* the frame's JSON */
};

/* 0, or -1 with errno (EFBIG: larger than the folder may be). */
int kept_inputs_add(const char *folder, const struct kept_inputs_limits *limits, const struct kept_input *input);

#endif
