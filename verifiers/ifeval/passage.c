#include "verifiers/ifeval/passage.h"

#include "verifiers/text/characters.h"

/* A letter's small form has at most three bytes where the letter has two. */
static size_t lowered_maximum(struct text text)
{
    return 2 * text.length_bytes + 16;
}

static bool has_word(struct text text)
{
    while (text.length_bytes)
        if (character_classes(character_take(&text)) & (CHARACTER_LETTER | CHARACTER_NUMBER))
            return true;
    return false;
}

void passage_init(struct passage *passage, struct text text)
{
    *passage = (struct passage){.text = text, .has_word = has_word(text)};
    buffer_init(&passage->lowered, lowered_maximum(text));
}

void passage_finish(struct passage *passage)
{
    buffer_finish(&passage->lowered);
    spans_finish(&passage->sentences);
}

struct text passage_lowered(struct passage *passage)
{
    if (!passage->is_lowered)
        text_append_lower(&passage->lowered, passage->text);
    passage->is_lowered = true;
    return buffer_text(&passage->lowered);
}

const struct spans *passage_sentences(struct passage *passage)
{
    if (!passage->is_split)
        split_sentences(passage->text, &passage->sentences);
    passage->is_split = true;
    return &passage->sentences;
}

void spans_add(struct spans *spans, struct text span)
{
    if (spans->count == spans->capacity) {
        spans->capacity = spans->capacity ? 2 * spans->capacity : 16;
        spans->span = xrealloc(spans->span, spans->capacity * sizeof *spans->span);
    }
    spans->span[spans->count++] = span;
}

void spans_finish(struct spans *spans)
{
    free(spans->span);
    *spans = (struct spans){0};
}
