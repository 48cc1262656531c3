/* pickle: the private tests of LiveCodeBench, which are base64 of zlib of a pickle of one text.
 *
 * Nothing in it is executed: it is read opcode by opcode, and anything but a protocol from 2 to 5, frames, one text, memo
 * writes and the end is refused. Its unpacked size is bounded before it is unpacked. Only for a locked-down process. */
#ifndef VERIFIERS_CODE_PICKLE_PRIVATE_H
#define VERIFIERS_CODE_PICKLE_PRIVATE_H

#include "server/base/buffer.h"
#include "server/base/text.h"

#define PICKLE_BYTES_MAX ((size_t)64 << 20)

/* The text of a pickle, which points into it. 0, or -1 if it is anything else. */
int pickle_read(struct text pickle, struct text *ret_text);

/* The same of base64 of zlib of it: into `unpacked`, which lives as long as the text. 0; or -1 with *ret_problem. */
int pickle_unpack(struct text packed, struct buffer *unpacked, struct text *ret_text, const char **ret_problem);

#endif
