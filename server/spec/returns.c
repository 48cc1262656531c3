#include "server/spec/returns.h"

#include "server/base/nearest.h"

#include <stdio.h>

const char *const returns_names[RETURNS_COUNT] = {
    [RETURNS_PROMPT_IDS] = "prompt_ids", [RETURNS_COMPLETION_IDS] = "completion_ids",
    [RETURNS_LOGPROBS] = "logprobs",     [RETURNS_COMPLETION_MASK] = "completion_mask",
    [RETURNS_SURROGATES] = "surrogates", [RETURNS_CONTRIBUTIONS] = "contributions",
};

/* RETURNS_COUNT: no array has this name. */
static size_t find(const json_t *name)
{
    size_t which = 0;
    if (!json_is_string(name))
        return RETURNS_COUNT;
    struct text text = {json_string_value(name), json_string_length(name)};
    while (which < RETURNS_COUNT && !text_equals(text, returns_names[which]))
        which++;
    return which;
}

/* *ret_bad: the first entry that names no array, SIZE_MAX: none. */
static unsigned read_names(const json_t *list, size_t *ret_bad)
{
    unsigned arrays = 0;
    size_t index;
    json_t *name;
    *ret_bad = SIZE_MAX;
    json_array_foreach (list, index, name) {
        size_t which = find(name);
        if (which == RETURNS_COUNT) {
            *ret_bad = index;
            return RETURNS_ALL;
        }
        arrays |= 1U << which;
    }
    return arrays;
}

int returns_read(struct call *call, const json_t *list, unsigned *ret_arrays)
{
    char path[32];
    size_t bad;
    *ret_arrays = RETURNS_ALL;
    if (!list)
        return 0;
    *ret_arrays = read_names(list, &bad);
    if (bad == SIZE_MAX)
        return 0;
    const char *name = json_string_value(json_array_get(list, bad));
    char advice[ADVICE_BYTES];
    names_advise(text_of(name ? name : ""), returns_names, sizeof(returns_names[0]), RETURNS_COUNT, advice);
    snprintf(path, sizeof(path), "return[%zu]", bad);
    return call_refuse(call, ERR_INVALID_FIELD, path, "a batch's reply has no such array; %s", advice);
}

unsigned returns_stored(struct text list)
{
    if (!list.data)
        return RETURNS_ALL;
    size_t bad;
    json_t *names = json_loadb(list.data, list.length_bytes, 0, NULL);
    unsigned arrays = names ? read_names(names, &bad) : RETURNS_ALL;
    json_decref(names);
    return arrays;
}
