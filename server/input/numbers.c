/* Arrays of numbers in a request: lifted, small, packed; and putting lifted ones back where they are no numbers to us.
 */
#include "server/base/hash.h"
#include "server/input/input_private.h"

#include <endian.h>
#include <math.h>
#include <stdio.h>

#define EXACT_INTEGER (INT64_C(1) << 53)

/* Objects made while reading: arrays of numbers, or restored JSON. */
struct number_pool {
    struct number_pool *next;
    json_t *restored;
    double values[];
};

static struct number_pool *pool_add(struct json_input *input, size_t count)
{
    struct number_pool *entry = NULL;
    size_t size_bytes;
    if (!__builtin_mul_overflow(count, sizeof(double), &size_bytes) &&
        !__builtin_add_overflow(size_bytes, sizeof(*entry), &size_bytes))
        entry = malloc(size_bytes);
    if (!entry)
        return NULL;
    entry->next = input->pool;
    entry->restored = NULL;
    input->pool = entry;
    return entry;
}

void json_input_finish(struct json_input *input)
{
    for (struct number_pool *entry = TAKE_PTR(input->pool); entry;) {
        struct number_pool *next = entry->next;
        json_decref(entry->restored);
        free(entry);
        entry = next;
    }
    json_decref(TAKE_PTR(input->root));
    json_input_release(input);
    lifted_finish(&input->lifted);
}

const struct lifted_array *json_input_lifted(const struct json_input *input, const json_t *value)
{
    if (!json_is_string(value))
        return NULL;
    return lifted_find(&input->lifted, (struct text){json_string_value(value), json_string_length(value)});
}

/* --- arrays --- */

static int refuse_element(struct json_input *input, const char *path, size_t index)
{
    char full[PATH_BYTES];
    path_index(full, path, "", index);
    return call_refuse(input->call, ERR_INVALID_FIELD, full, "expected a number or null");
}

static int refuse_memory(struct json_input *input, const char *path)
{
    return call_refuse(input->call, ERR_QUEUE_FULL, path, "there is no memory for this array now");
}

static bool is_exact_whole(double value)
{
    return trunc(value) == value && fabs(value) <= EXACT_INTEGER;
}

/* 5.0 is an integer, too. */
static bool are_whole(const struct lifted_array *lifted)
{
    size_t i = 0;
    if (lifted->all_integer)
        return true;
    while (i < lifted->count && (isnan(lifted->values[i]) || is_exact_whole(lifted->values[i])))
        i++;
    return i == lifted->count;
}

static int read_small(struct json_input *input, const json_t *array, const char *path, struct numbers *ret_numbers)
{
    size_t count = json_array_size(array);
    struct number_pool *entry = pool_add(input, count);
    if (!entry)
        return refuse_memory(input, path);
    struct numbers numbers = {.values = entry->values, .count = count, .all_integer = true};
    for (size_t i = 0; i < count; i++) {
        const json_t *element = json_array_get(array, i);
        bool null = json_is_null(element);
        if (!null && !json_is_number(element))
            return refuse_element(input, path, i);
        entry->values[i] = null ? NAN : json_number_value(element);
        numbers.has_null |= null;
        numbers.all_integer &= null || is_exact_whole(entry->values[i]);
    }
    *ret_numbers = numbers;
    return 0;
}

int json_read_numbers(struct json_input *input, const json_t *value, const char *path, struct numbers *ret_numbers)
{
    const struct lifted_array *lifted = json_input_lifted(input, value);
    if (lifted) {
        *ret_numbers = (struct numbers){lifted->values, lifted->count, lifted->has_null, are_whole(lifted)};
        return 0;
    }
    if (!json_is_array(value))
        return call_refuse(input->call, ERR_INVALID_FIELD, path, "expected an array of numbers");
    return read_small(input, value, path, ret_numbers);
}

/* --- packed --- */

static double read_f32(const void *bytes)
{
    uint32_t bits;
    float value;
    memcpy(&bits, bytes, sizeof(bits));
    bits = le32toh(bits);
    memcpy(&value, &bits, sizeof(value));
    return (double)value;
}

static double read_f64(const void *bytes)
{
    uint64_t bits;
    double value;
    memcpy(&bits, bytes, sizeof(bits));
    bits = le64toh(bits);
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static double read_u32(const void *bytes)
{
    uint32_t bits;
    memcpy(&bits, bytes, sizeof(bits));
    return le32toh(bits);
}

static double read_u8(const void *bytes)
{
    return *(const uint8_t *)bytes;
}

static const struct packed_format packed_formats[] = {
    {"_f32", 4, false, read_f32},
    {"_f64", 8, false, read_f64},
    {"_u32", 4, true, read_u32},
    {"_u8", 1, true, read_u8},
};

const struct packed_format *packed_format_of(const char *suffix)
{
    for (size_t i = 0; i < ARRAY_LENGTH(packed_formats); i++)
        if (strcmp(suffix, packed_formats[i].suffix) == 0)
            return &packed_formats[i];
    return NULL;
}

static int unpack(struct json_input *input, const struct packed_format *format, const json_t *value, const char *path,
                  struct numbers *ret_numbers)
{
    struct text text = {json_string_value(value), json_string_length(value)};
    _cleanup_buffer_ struct buffer bytes;
    buffer_init(&bytes, text.length_bytes);
    if (!json_is_string(value))
        return call_refuse(input->call, ERR_INVALID_FIELD, path, "expected a string of base64");
    if (!base64_decode(text, &bytes))
        return call_refuse(input->call, ERR_INVALID_FIELD, path,
                           "expected base64 in the standard alphabet with padding");
    if (bytes.length_bytes % format->width_bytes)
        return call_refuse(input->call, ERR_INVALID_FIELD, path, "%zu bytes are no whole number of values of %zu bytes",
                           bytes.length_bytes, format->width_bytes);
    size_t count = bytes.length_bytes / format->width_bytes;
    struct number_pool *entry = pool_add(input, count);
    if (!entry)
        return refuse_memory(input, path);
    *ret_numbers = (struct numbers){.values = entry->values, .count = count, .all_integer = format->integer};
    for (size_t i = 0; i < count; i++) {
        entry->values[i] = format->read(bytes.data + i * format->width_bytes);
        ret_numbers->has_null |= isnan(entry->values[i]);
    }
    return 0;
}

int json_read_packed(struct json_input *input, const json_t *object, const char *name, const char *path,
                     struct numbers *ret_numbers, bool *ret_packed)
{
    bool given = json_object_get(object, name) != NULL;
    size_t name_bytes = strlen(name);
    char suffixed[PATH_BYTES];
    char full[PATH_BYTES];
    *ret_packed = false;
    memcpy(suffixed, name, name_bytes + 1); /* tables hold short names */
    for (size_t i = 0; i < ARRAY_LENGTH(packed_formats); i++) {
        const struct packed_format *format = &packed_formats[i];
        memcpy(suffixed + name_bytes, format->suffix, strlen(format->suffix) + 1);
        const json_t *value = json_object_get(object, suffixed);
        if (!value)
            continue;
        path_join(full, path, suffixed);
        if (given)
            return call_refuse(input->call, ERR_INVALID_FIELD, full, "%s is given in two forms", name);
        if (unpack(input, format, value, full, ret_numbers) < 0)
            return -1;
        given = true;
        *ret_packed = true;
    }
    return 0;
}

/* --- restoring --- */

static json_t *array_of(const struct lifted_array *lifted)
{
    json_t *array = json_array();
    for (size_t i = 0; i < lifted->count; i++) {
        double value = lifted->values[i];
        if (isnan(value))
            json_array_append_new(array, json_null());
        else if (lifted->all_integer)
            json_array_append_new(array, json_integer((json_int_t)value));
        else
            json_array_append_new(array, json_real(value));
    }
    return array;
}

/* The depth is jansson's: at most 2,048. */
static void restore_inside(const struct json_input *input, json_t *value)
{
    const struct lifted_array *lifted;
    const char *name;
    json_t *child;
    void *next;
    size_t index;
    json_object_foreach_safe(value, next, name, child)
    {
        if ((lifted = json_input_lifted(input, child)))
            json_object_set_new(value, name, array_of(lifted));
        else
            restore_inside(input, child);
    }
    json_array_foreach (value, index, child) {
        if ((lifted = json_input_lifted(input, child)))
            json_array_set_new(value, index, array_of(lifted));
        else
            restore_inside(input, child);
    }
}

json_t *json_input_restore(struct json_input *input, json_t *value)
{
    const struct lifted_array *lifted = json_input_lifted(input, value);
    if (input->lifted.count == 0)
        return value;
    if (!lifted) {
        restore_inside(input, value);
        return value;
    }
    struct number_pool *entry = pool_add(input, 0);
    if (!entry)
        return value;
    return entry->restored = array_of(lifted);
}
