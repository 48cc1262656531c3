#include "verifiers/schema/document.h"

#include "server/base/cleanup.h"
#include "verifiers/schema/decimal.h"

#define UNORDERED_MAX 8 /* as many members an object has at most whose keys are not ordered */

uint32_t value_member(const struct document *document, uint32_t object, struct text key)
{
    const struct value *value = &document->values[object];
    uint32_t low = 0;
    uint32_t high = value->count;

    if (!value->is_ordered) {
        for (uint32_t at = object + 1; at < value->next; at = document->values[at + 1].next)
            if (text_same(value_text(document, at), key))
                return at + 1;
        return NO_VALUE;
    }
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        uint32_t at = document->order[value->place + middle];
        int order = text_order(key, value_text(document, at));
        if (order == 0)
            return at + 1;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NO_VALUE;
}

uint32_t value_element(const struct document *document, uint32_t array, uint64_t index)
{
    uint32_t at = array + 1;

    if (index >= document->values[array].count)
        return NO_VALUE;
    while (index-- > 0)
        at = document->values[at].next;
    return at;
}

/* --- order --- */

struct comparison {
    const struct document *left;
    const struct document *right;
    uint64_t *units;
    uint64_t units_max;
};

static int compare(const struct comparison *comparison, uint32_t left, uint32_t right);

static int compare_counts(uint32_t left, uint32_t right)
{
    return left == right ? 0 : left < right ? -1 : 1;
}

/* Digits alone, at most 18 of them: as their value. */
static bool small_number(struct text written, uint64_t *ret_value)
{
    *ret_value = 0;
    if (written.length_bytes > 18)
        return false;
    for (size_t i = 0; i < written.length_bytes; i++) {
        if (written.data[i] < '0' || written.data[i] > '9')
            return false;
        *ret_value = *ret_value * 10 + (uint64_t)(written.data[i] - '0');
    }
    return true;
}

static int compare_numbers(const struct comparison *comparison, uint32_t left, uint32_t right)
{
    struct text one = value_written(comparison->left, left);
    struct text other = value_written(comparison->right, right);
    struct decimal first;
    struct decimal second;
    uint64_t small[2];

    if (small_number(one, &small[0]) && small_number(other, &small[1]))
        return small[0] == small[1] ? 0 : small[0] < small[1] ? -1 : 1;
    decimal_read(one, &first);
    decimal_read(other, &second);
    *comparison->units += first.length_bytes / 4 + second.length_bytes / 4;
    return decimal_compare(&first, &second);
}

static int compare_strings(const struct comparison *comparison, uint32_t left, uint32_t right)
{
    struct text first = value_text(comparison->left, left);

    *comparison->units += first.length_bytes / 16;
    return text_order(first, value_text(comparison->right, right));
}

static int compare_arrays(const struct comparison *comparison, uint32_t left, uint32_t right)
{
    const struct value *first = value_at(comparison->left, left);
    int order = compare_counts(first->count, value_at(comparison->right, right)->count);
    uint32_t end = first->next;

    left++;
    right++;
    while (order == 0 && left < end) {
        order = compare(comparison, left, right);
        left = value_at(comparison->left, left)->next;
        right = value_at(comparison->right, right)->next;
    }
    return order;
}

/* The keys of an object by their order: its own, or `few`, filled here. */
static const uint32_t *ordered_keys(const struct document *document, uint32_t object, uint32_t few[UNORDERED_MAX])
{
    const struct value *value = value_at(document, object);
    uint32_t count = 0;

    if (value->is_ordered)
        return document->order + value->place;
    for (uint32_t key = object + 1; key < value->next; key = value_at(document, key + 1)->next) {
        uint32_t at = count++;
        for (; at > 0 && text_order(value_text(document, key), value_text(document, few[at - 1])) < 0; at--)
            few[at] = few[at - 1];
        few[at] = key;
    }
    return few;
}

static int compare_objects(const struct comparison *comparison, uint32_t left, uint32_t right)
{
    uint32_t few[2][UNORDERED_MAX] = {{0}};
    uint32_t count = value_at(comparison->left, left)->count;
    int order = compare_counts(count, value_at(comparison->right, right)->count);
    const uint32_t *first = ordered_keys(comparison->left, left, few[0]);
    const uint32_t *second = ordered_keys(comparison->right, right, few[1]);

    *comparison->units += count;
    for (uint32_t i = 0; order == 0 && i < count; i++)
        order = compare_strings(comparison, first[i], second[i]);
    for (uint32_t i = 0; order == 0 && i < count; i++)
        order = compare(comparison, first[i] + 1, second[i] + 1);
    return order;
}

static int compare(const struct comparison *comparison, uint32_t left, uint32_t right)
{
    static int (*const compare_kind[])(const struct comparison *comparison, uint32_t left, uint32_t right) = {
        [VALUE_NUMBER] = compare_numbers,
        [VALUE_STRING] = compare_strings,
        [VALUE_ARRAY] = compare_arrays,
        [VALUE_OBJECT] = compare_objects,
    };
    uint8_t kind = value_at(comparison->left, left)->kind;
    int order = compare_counts(kind, value_at(comparison->right, right)->kind);

    *comparison->units += 8;
    if (order || !compare_kind[kind] || *comparison->units > comparison->units_max)
        return order;
    return compare_kind[kind](comparison, left, right);
}

int value_compare(const struct document *left, uint32_t left_value, const struct document *right, uint32_t right_value,
                  uint64_t *units, uint64_t units_max)
{
    const struct comparison comparison = {left, right, units, units_max};
    return compare(&comparison, left_value, right_value);
}

/* --- paths --- */

static void append_token(struct text token, struct buffer *out)
{
    buffer_append_byte(out, '/');
    for (size_t i = 0; i < token.length_bytes; i++) {
        if (token.data[i] == '~')
            buffer_append_string(out, "~0");
        else if (token.data[i] == '/')
            buffer_append_string(out, "~1");
        else
            buffer_append_byte(out, token.data[i]);
    }
}

/* The element or the key that the value is, or is in; appends its token. */
static uint32_t step_towards(const struct document *document, uint32_t from, uint32_t value, struct buffer *out)
{
    bool is_object = value_at(document, from)->kind == VALUE_OBJECT;
    uint32_t at = from + 1;
    uint32_t index = 0;

    for (; value >= value_at(document, at + is_object)->next; index++)
        at = value_at(document, at + is_object)->next;
    if (is_object)
        append_token(value_text(document, at), out);
    else
        buffer_append_format(out, "/%u", index);
    return is_object && value != at ? at + 1 : at;
}

void value_path(const struct document *document, uint32_t value, size_t limit_bytes, struct buffer *out)
{
    uint32_t at = 0;

    while (at != value) {
        size_t had_bytes = out->length_bytes;
        at = step_towards(document, at, value, out);
        if (out->length_bytes <= limit_bytes && !out->failed)
            continue;
        out->length_bytes = had_bytes;
        buffer_append_string(out, "/…");
        return;
    }
}
