#include "server/render/steps_private.h"

#include <jansson.h>

#define TEXT_BYTES 256 /* of a step that are shown */

/* Where the steps of a verdict have come. */
struct span {
    json_int_t token; /* of the next step's first token */
    json_int_t byte;  /* of its first byte; -1: not known */
};

static struct text text_between(struct text whole, json_int_t start, json_int_t end)
{
    if (!whole.data || start < 0 || end < start || (size_t)end > whole.length_bytes)
        return TEXT_NONE;
    size_t length_bytes = (size_t)(end - start);
    return (struct text){whole.data + start, length_bytes < TEXT_BYTES ? length_bytes : TEXT_BYTES};
}

static void write_step(struct json_write *json, const struct store_rollout *rollout, const json_t *verdict,
                       const json_t *step, struct span *span)
{
    const json_t *byte_end = json_object_get(step, "byte_end");
    json_int_t end = json_integer_value(json_object_get(step, "end"));
    json_int_t byte = json_is_integer(byte_end) ? json_integer_value(byte_end) : -1;
    struct text text = text_between(rollout->text, span->byte, byte);
    const char *id = json_string_value(json_object_get(verdict, "id"));

    json_object_begin(json);
    json_put_string(json, "verifier", id);
    json_put_int(json, "start", span->token);
    json_put_int(json, "end", end);
    json_put_int_or_null(json, "byte_start", span->byte);
    json_put_int_or_null(json, "byte_end", byte);
    json_put_text(json, "text", text);
    json_put_double(json, "score", json_number_value(json_object_get(step, "score")));
    json_object_end(json);
    *span = (struct span){end, byte};
}

/* Most rollouts have none: their verdicts are not parsed. */
static bool may_have_steps(struct text verdicts)
{
    static const char name[] = "\"steps\"";
    return verdicts.data && memmem(verdicts.data, verdicts.length_bytes, name, sizeof(name) - 1);
}

void render_steps(struct json_write *json, const struct store_rollout *rollout)
{
    struct text verdicts = rollout->verdicts;
    json_auto_t *all =
        may_have_steps(verdicts) ? json_loadb(verdicts.data, verdicts.length_bytes, JSON_ALLOW_NUL, NULL) : NULL;
    const json_t *verdict;
    size_t v;

    json_array_begin(json);
    json_array_foreach (all, v, verdict) {
        struct span span = {0, 0};
        const json_t *step;
        size_t i;
        json_array_foreach (json_object_get(verdict, "steps"), i, step)
            write_step(json, rollout, verdict, step, &span);
    }
    json_array_end(json);
}
