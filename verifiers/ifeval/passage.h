/* passage: the text that instructions are held against, in the shapes that they look at, each made once when first asked
 * for. Memory and time are linear in the text. One thread at a time. */
#ifndef VERIFIERS_IFEVAL_PASSAGE_H
#define VERIFIERS_IFEVAL_PASSAGE_H

#include "server/base/buffer.h"
#include "server/base/cleanup.h"
#include "server/base/text.h"

#include <stdbool.h>
#include <stddef.h>

struct spans {
    struct text *span; /* parts of the passage's text */
    size_t count;
    size_t capacity;
};

struct passage {
    struct text text;      /* valid UTF-8, of somebody else */
    bool has_word;         /* a letter or a digit of any script */
    const char *undecided; /* why the last instruction could not be decided; NULL: it was. Static text */
    /* made on demand */
    struct buffer lowered;
    bool is_lowered;
    struct spans sentences;
    bool is_split;
};

void passage_init(struct passage *passage, struct text text);
void passage_finish(struct passage *passage); /* also the cleanup function */

/* In small letters. */
struct text passage_lowered(struct passage *passage);
/* Not empty ones, without white space at their ends (sentences.c says where one ends). */
const struct spans *passage_sentences(struct passage *passage);

void spans_add(struct spans *spans, struct text span);
void spans_finish(struct spans *spans);
void split_sentences(struct text text, struct spans *spans);

#define _cleanup_passage_ _cleanup_(passage_finish)
#define _cleanup_spans_ _cleanup_(spans_finish)

#endif
