/* block: the program in a completion. Pure, linear in the text.
 *
 * Blocks are fenced as in Markdown: a line of three or more backticks or tildes with an optional word for the language,
 * and a line of at least as many of the same alone. A fence inside a block is text. The last block that is tagged with the
 * language runs; where no block is, the last one without a tag. A last block that is never closed is a program that was
 * cut off: then there is none. Reasoning, up to the last </think>, is not looked at; one that is never closed leaves no
 * program, and the end of the turn ends the text. The inside of a block is none of these. */
#ifndef VERIFIERS_CODE_BLOCK_H
#define VERIFIERS_CODE_BLOCK_H

#include "server/base/buffer.h"
#include "server/base/text.h"
#include "verifiers/sandbox/sandbox.h"

#include <stdbool.h>

/* ret_span: the lines between the fences, as they stand in the completion. Its code is appended to `code`: without the
 * indentation of a fence in a list, and without carriage returns at the ends of lines. False: there is no program, or it
 * is blank. */
bool code_block_find(struct text completion, enum sandbox_language language, struct text *ret_span,
                     struct buffer *code);

/* A word for a language, as it stands behind a fence: "python3", "C++". */
bool code_block_language(struct text word, enum sandbox_language *ret_language);

#endif
