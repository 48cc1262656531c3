/* The engines of a report, each with its model, version and tokenizer. */
#include "server/reports/report_private.h"

#include "server/base/cleanup.h"

static void append(struct buffer *key, struct text text)
{
    buffer_append_format(key, "%d:%zu:", text.data != NULL, text.length_bytes);
    buffer_append(key, text.data ? text.data : "", text.length_bytes);
}

static char *copy_of(struct text text)
{
    return text.data ? xstrndup(text.data, text.length_bytes) : NULL;
}

static uint32_t number_of(struct names *names, const struct text *texts, size_t count)
{
    _cleanup_buffer_ struct buffer key = {0};

    buffer_init(&key, SIZE_MAX);
    for (size_t i = 0; i < count; i++)
        append(&key, texts[i]);
    return key.failed ? NAMES_NONE : names_number(names, buffer_text(&key));
}

int report_engines_add(struct report_engines *engines, const struct text *texts, int64_t rollouts)
{
    enum { TEXTS = 4 };
    size_t known = engines->keys.count;

    if (!texts[0].data) /* it failed before there was one, or the completion was given */
        return 0;
    uint32_t number = number_of(&engines->keys, texts, TEXTS);
    if (number == NAMES_NONE || number_of(&engines->makes, texts + 1, TEXTS - 1) == NAMES_NONE ||
        !report_make_room(&engines->rows, number, &engines->room, sizeof *engines->rows))
        return -1;
    struct report_engine *row = &engines->rows[number];
    if (number == known)
        *row = (struct report_engine){copy_of(texts[0]), copy_of(texts[1]), copy_of(texts[2]), copy_of(texts[3]), 0};
    row->rollouts += rollouts;
    return 0;
}

void report_engines_finish(struct report_engines *engines)
{
    for (size_t i = 0; i < engines->keys.count && i < engines->room; i++) {
        free(engines->rows[i].engine);
        free(engines->rows[i].model);
        free(engines->rows[i].version);
        free(engines->rows[i].tokenizer);
    }
    free(engines->rows);
    names_finish(&engines->keys);
    names_finish(&engines->makes);
}
