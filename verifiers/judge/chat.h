/* chat: the text that a judge wrote, from the body of its chat completion.
 *
 * Only `content` counts: neither reasoning beside it nor a reply that was cut off, filtered, refused or broken off is a
 * verdict. Pure; linear; any thread. */
#ifndef VERIFIERS_JUDGE_CHAT_H
#define VERIFIERS_JUDGE_CHAT_H

#include "server/base/buffer.h"
#include "server/base/text.h"

#include <jansson.h>

#define JUDGE_UNREADABLE_CODE "judge_unreadable"
#define JUDGE_TRUNCATED_CODE "judge_truncated"
#define JUDGE_INVALID_REPLY_CODE "invalid_reply"

struct judge_problem {
    const char *code; /* static text; NULL: there is none */
    char message[160];
};

/* body: of a reply with status 200; NULL: it was no JSON. ret_content: its text, also of a reply that is refused, if it
 * has one; it points into the body. ret_problem: why it is no verdict. */
void chat_read(const json_t *body, struct text *ret_content, struct judge_problem *ret_problem);

/* Appends the text without its <think> blocks, and without everything before a </think> whose beginning stood in the
 * prompt. A block that is not closed leaves nothing. */
void chat_put_final(struct text content, struct buffer *out);

#endif
