#include "server/render/columns.h"

#include <math.h>

const size_t render_column_widths[RETURNS_COUNT] = {
    [RETURNS_PROMPT_IDS] = sizeof(uint32_t), [RETURNS_COMPLETION_IDS] = sizeof(uint32_t),
    [RETURNS_LOGPROBS] = sizeof(float),      [RETURNS_COMPLETION_MASK] = sizeof(uint8_t),
    [RETURNS_SURROGATES] = sizeof(double),   [RETURNS_CONTRIBUTIONS] = sizeof(double),
};

static bool has_room(struct render_columns *columns, struct buffer *column, size_t bytes)
{
    column->failed = column->failed || bytes > columns->maximum_bytes - columns->bytes;
    columns->bytes += column->failed ? 0 : bytes;
    return !column->failed;
}

static void add_offset(struct render_columns *columns, struct buffer *offsets, int64_t offset)
{
    if (has_room(columns, offsets, sizeof(offset)))
        buffer_append(offsets, &offset, sizeof(offset));
}

void render_columns_init(struct render_columns *columns, unsigned arrays, size_t maximum_bytes)
{
    *columns = (struct render_columns){.arrays = arrays, .maximum_bytes = maximum_bytes};
    buffer_init(&columns->cu_seqlens, maximum_bytes);
    buffer_init(&columns->cu_prompts, maximum_bytes);
    for (size_t i = 0; i < RETURNS_COUNT; i++)
        buffer_init(&columns->columns[i], maximum_bytes);
    add_offset(columns, &columns->cu_seqlens, 0);
    add_offset(columns, &columns->cu_prompts, 0);
}

void render_columns_finish(struct render_columns *columns)
{
    buffer_finish(&columns->cu_seqlens);
    buffer_finish(&columns->cu_prompts);
    for (size_t i = 0; i < RETURNS_COUNT; i++)
        buffer_finish(&columns->columns[i]);
}

bool render_columns_failed(const struct render_columns *columns)
{
    bool failed = columns->cu_seqlens.failed || columns->cu_prompts.failed;
    for (size_t i = 0; i < RETURNS_COUNT; i++)
        failed = failed || columns->columns[i].failed;
    return failed;
}

/* The same value for each token, with as few copies as it takes: what is there is copied behind itself. */
static void fill(struct buffer *column, const void *value, size_t width, size_t count)
{
    char *at = count ? buffer_reserve(column, count * width) : NULL;
    if (!at)
        return;
    memcpy(at, value, width);
    for (size_t done = 1; done < count; done *= 2)
        memcpy(at + done * width, at, (done < count - done ? done : count - done) * width);
    column->length_bytes += count * width;
}

/* values NULL: every token has `absent`, a value of the column's width. */
static void add(struct render_columns *columns, enum returns_array which, const void *values, const void *absent,
                size_t count)
{
    struct buffer *column = &columns->columns[which];
    if (!(columns->arrays & 1U << which) || !has_room(columns, column, count * render_column_widths[which]))
        return;
    if (values)
        buffer_append(column, values, count * render_column_widths[which]);
    else if (absent)
        fill(column, absent, render_column_widths[which], count);
}

void render_columns_add_rollout(struct render_columns *columns, const struct store_rollout *rollout,
                                const double *surrogates, const double *contributions)
{
    static const float no_logprob = NAN;
    static const double no_term = NAN;
    static const uint8_t counted = 1; /* on record a mask of ones is nothing at all */
    size_t count = rollout->completion_ids ? rollout->token_count : 0;

    add(columns, RETURNS_COMPLETION_IDS, rollout->completion_ids, NULL, rollout->completion_ids ? count : 0);
    add(columns, RETURNS_LOGPROBS, rollout->logprobs, &no_logprob, count);
    add(columns, RETURNS_COMPLETION_MASK, rollout->completion_mask, &counted, count);
    add(columns, RETURNS_SURROGATES, surrogates, &no_term, count);
    add(columns, RETURNS_CONTRIBUTIONS, contributions, &no_term, count);
    columns->tokens += (int64_t)count;
    add_offset(columns, &columns->cu_seqlens, columns->tokens);
}

void render_columns_add_group(struct render_columns *columns, const struct store_group *group)
{
    size_t count = group->prompt_ids ? group->prompt_id_count : 0;

    add(columns, RETURNS_PROMPT_IDS, group->prompt_ids, NULL, count);
    columns->prompt_tokens += (int64_t)count;
    add_offset(columns, &columns->cu_prompts, columns->prompt_tokens);
}
