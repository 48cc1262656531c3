#include "server/spec/completion_steps_private.h"

#include <math.h>

#define SCORE_MAX 1e100 /* as that of a reward */

/* --- where tokens end ------------------------------------------------------------------------------------ */

static int refuse_end(struct batch_spec *spec, const char *path, size_t index, const char *message)
{
    char where[PATH_BYTES];
    path_index(where, path, "token_ends", index);
    return call_refuse(spec->input.call, ERR_INVALID_FIELD, where, "%s", message);
}

static int refuse(struct batch_spec *spec, const char *path, const char *name, enum error_code code,
                  const char *message)
{
    char where[PATH_BYTES];
    path_join(where, path, name);
    return call_refuse(spec->input.call, code, where, "%s", message);
}

static int copy_ends(struct batch_spec *spec, const char *path, const struct numbers *numbers, size_t length_bytes,
                     uint32_t *ends)
{
    for (size_t i = 0; i < numbers->count; i++) {
        double end = numbers->values[i];
        if (!(end >= 0 && end <= (double)length_bytes && trunc(end) == end))
            return refuse_end(spec, path, i, "a token ends at a byte of the text: from 0 to its length in UTF-8");
        ends[i] = (uint32_t)end;
        if (i > 0 && ends[i] < ends[i - 1])
            return refuse_end(spec, path, i, "a token ends before the one in front of it");
    }
    if (ends[numbers->count - 1] != length_bytes)
        return refuse_end(spec, path, numbers->count - 1,
                          "the last token ends where the text ends (its length in UTF-8)");
    return 0;
}

int completion_read_token_ends(struct batch_spec *spec, const char *path, const struct numbers *numbers,
                               struct completion_spec *completion)
{
    char where[PATH_BYTES];

    if (!numbers->values)
        return 0;
    if (!completion->ids)
        return refuse(spec, path, "completion_ids", ERR_MISSING_FIELD, "the ids that token_ends belong to are missing");
    if (!completion->text.data || completion->text.length_bytes > UINT32_MAX)
        return refuse(spec, path, "text", ERR_MISSING_FIELD, "the text in which the tokens end is missing");
    if (numbers->count != completion->token_count) {
        path_join(where, path, "token_ends");
        return call_refuse(spec->input.call, ERR_LENGTH_MISMATCH, where, "%zu values for %zu completion_ids",
                           numbers->count, completion->token_count);
    }
    uint32_t *ends = calloc(numbers->count, sizeof *ends);
    if (!ends)
        return refuse(spec, path, "token_ends", ERR_QUEUE_FULL, "there is no memory for this completion now");
    completion->token_ends = batch_spec_own(spec, ends);
    return copy_ends(spec, path, numbers, completion->text.length_bytes, ends);
}

/* --- steps ------------------------------------------------------------------------------------------------ */

struct step_fields {
    int64_t end;      /* -1: not given */
    int64_t byte_end; /* -1: not given */
    double score;
};

static const struct field step_table[] = {
    {"end", FIELD_INT, 0, offsetof(struct step_fields, end), 1, UINT32_MAX, NULL},
    {"byte_end", FIELD_INT, 0, offsetof(struct step_fields, byte_end), 1, UINT32_MAX, NULL},
    {"score", FIELD_DOUBLE, FIELD_REQUIRED, offsetof(struct step_fields, score), -SCORE_MAX, SCORE_MAX, NULL},
};

/* Of a step that ends at a byte: the first token that reaches it. */
static uint32_t find_token(const struct completion_spec *completion, int64_t byte_end)
{
    size_t low = 0;
    size_t high = completion->token_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (completion->token_ends[middle] < byte_end)
            low = middle + 1;
        else
            high = middle;
    }
    return (uint32_t)low + 1;
}

static int check_end(struct batch_spec *spec, const char *path, const struct completion_spec *completion,
                     const struct step_fields *read)
{
    bool by_byte = read->byte_end >= 0;

    if (by_byte == (read->end >= 0))
        return refuse(spec, path, by_byte ? "byte_end" : "end", by_byte ? ERR_INVALID_FIELD : ERR_MISSING_FIELD,
                      "a step has one of end (an index of tokens) and byte_end (a byte of the text)");
    if (!by_byte && (!completion->ids || (uint64_t)read->end > completion->token_count))
        return refuse(spec, path, "end", ERR_INVALID_FIELD,
                      completion->ids ? "it is behind the last of the completion_ids" : "there are no completion_ids");
    if (by_byte && (!completion->text.data || (uint64_t)read->byte_end > completion->text.length_bytes))
        return refuse(spec, path, "byte_end", ERR_INVALID_FIELD,
                      "it is behind the end of the text (its length in UTF-8)");
    return 0;
}

/* Against the step before, where both ends are of one kind or can be made so. */
static bool falls(const struct verdict_step *before, const struct verdict_step *step)
{
    if (before->end && step->end)
        return step->end < before->end || (before->byte_end && step->byte_end && step->byte_end < before->byte_end);
    return before->byte_end && step->byte_end && step->byte_end < before->byte_end;
}

static int read_step(struct batch_spec *spec, const char *path, const json_t *value,
                     const struct completion_spec *completion, const struct verdict_step *before,
                     struct verdict_step *ret_step)
{
    struct step_fields read = {.end = -1, .byte_end = -1};

    if (json_read_object(&spec->input, value, path, step_table, ARRAY_LENGTH(step_table), &read) < 0 ||
        check_end(spec, path, completion, &read) < 0)
        return -1;
    *ret_step = (struct verdict_step){.end = read.end > 0 ? (uint32_t)read.end : 0,
                                      .byte_end = read.byte_end > 0 ? (uint32_t)read.byte_end : 0,
                                      .score = read.score};
    if (read.byte_end > 0 && completion->token_ends)
        ret_step->end = find_token(completion, read.byte_end);
    if (before && falls(before, ret_step))
        return refuse(spec, path, read.byte_end > 0 ? "byte_end" : "end", ERR_INVALID_FIELD,
                      "a step ends before the one in front of it");
    return 0;
}

int completion_read_steps(struct batch_spec *spec, const char *path, const json_t *value,
                          const struct completion_spec *completion, struct given_score *ret_score)
{
    size_t count = json_array_size(value);
    char where[PATH_BYTES];

    if (!value)
        return 0;
    if (count > PIECES_MAX) {
        path_join(where, path, "steps");
        return call_refuse(spec->input.call, ERR_INVALID_FIELD, where, "expected at most %d steps", PIECES_MAX);
    }
    if (isnan(ret_score->score))
        return refuse(spec, path, "steps", ERR_INVALID_FIELD, "a reward without a score has no steps");
    struct verdict_step *steps = calloc(count + 1, sizeof *steps);
    if (!steps)
        return refuse(spec, path, "steps", ERR_QUEUE_FULL, "there is no memory for these steps now");
    ret_score->steps = batch_spec_own(spec, steps);
    ret_score->step_count = count;
    for (size_t i = 0; i < count; i++) {
        path_index(where, path, "steps", i);
        if (read_step(spec, where, json_array_get(value, i), completion, i > 0 ? &steps[i - 1] : NULL, &steps[i]) < 0)
            return -1;
    }
    return 0;
}
