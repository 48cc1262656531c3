#include "server/input/input.h"

#include "server/base/clock.h"
#include "server/base/nearest.h"
#include "server/input/input_private.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* --- paths --- */

/* Every sequence of a request asks for its path, so this is no snprintf(). */
void path_join(char ret_path[PATH_BYTES], const char *path, const char *name)
{
    char joined[PATH_BYTES]; /* path may be ret_path */
    const char *dot = *path && *name && *name != '.' && *name != '[' ? "." : "";
    const char *const parts[] = {path, dot, name};
    size_t length_bytes = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(parts); i++) {
        size_t room_bytes = sizeof(joined) - 1 - length_bytes;
        size_t part_bytes = strnlen(parts[i], room_bytes + 1);
        memcpy(joined + length_bytes, parts[i], part_bytes < room_bytes ? part_bytes : room_bytes);
        length_bytes += part_bytes < room_bytes ? part_bytes : room_bytes;
        if (part_bytes > room_bytes)
            memcpy(joined + sizeof(joined) - 4, "...", 3);
    }
    joined[length_bytes] = '\0';
    memcpy(ret_path, joined, length_bytes + 1);
}

void path_index(char ret_path[PATH_BYTES], const char *path, const char *name, size_t index)
{
    char joined[PATH_BYTES];
    char suffix[24];
    path_join(joined, path, name);
    snprintf(suffix, sizeof(suffix), "[%zu]", index);
    size_t length = strlen(joined);
    if (length + strlen(suffix) < PATH_BYTES)
        memcpy(joined + length, suffix, strlen(suffix) + 1);
    memcpy(ret_path, joined, sizeof(joined));
}

/* --- refusals --- */

static const char *name_of_kind(const struct json_input *input, const json_t *value)
{
    static const char *const names[] = {
        [JSON_OBJECT] = "an object",   [JSON_ARRAY] = "an array", [JSON_STRING] = "a string",
        [JSON_INTEGER] = "an integer", [JSON_REAL] = "a number",  [JSON_TRUE] = "true",
        [JSON_FALSE] = "false",        [JSON_NULL] = "null"};
    return json_input_lifted(input, value) ? "an array" : names[json_typeof(value)];
}

/* A field on its way from the request into its target. */
struct reading {
    struct json_input *input;
    const struct field *field;
    json_t *value;
    const char *path; /* of the object */
    void *target;
};

static int refuse_value(const struct reading *reading, const char *expected)
{
    char path[PATH_BYTES];
    path_join(path, reading->path, reading->field->name);
    return call_refuse(reading->input->call, ERR_INVALID_FIELD, path, "expected %s, got %s", expected,
                       name_of_kind(reading->input, reading->value));
}

static int refuse_range(const struct reading *reading, const char *expected)
{
    char path[PATH_BYTES];
    path_join(path, reading->path, reading->field->name);
    return call_refuse(reading->input->call, ERR_INVALID_FIELD, path, "expected %s", expected);
}

/* --- one reader per kind --- */

static int read_bool(const struct reading *reading)
{
    if (!json_is_boolean(reading->value))
        return refuse_value(reading, "true or false");
    *(bool *)reading->target = json_is_true(reading->value);
    return 0;
}

/* 2^63-1 is no double: as a bound it arrives as 2^63. */
static int64_t bound_of(double bound)
{
    return bound >= 0x1p63 ? INT64_MAX : bound <= -0x1p63 ? INT64_MIN : (int64_t)bound;
}

static bool has_bounds(const struct field *field)
{
    return field->minimum != 0 || field->maximum != 0;
}

bool json_whole(const json_t *value, int64_t *ret_integer)
{
    double number = json_number_value(value);
    *ret_integer = json_is_integer(value) ? json_integer_value(value) : 0;
    if (json_is_integer(value))
        return true;
    if (!json_is_real(value) || trunc(number) != number || fabs(number) >= 0x1p53)
        return false;
    *ret_integer = (int64_t)number;
    return true;
}

static int read_int(const struct reading *reading)
{
    const struct field *field = reading->field;
    char expected[96] = "an integer";
    int64_t minimum = has_bounds(field) ? bound_of(field->minimum) : INT64_MIN;
    int64_t maximum = has_bounds(field) ? bound_of(field->maximum) : INT64_MAX;
    if (has_bounds(field))
        snprintf(expected, sizeof(expected), "an integer from %" PRId64 " to %" PRId64, minimum, maximum);
    int64_t integer;
    if (!json_whole(reading->value, &integer))
        return refuse_value(reading, expected);
    if (integer < minimum || integer > maximum)
        return refuse_range(reading, expected);
    *(int64_t *)reading->target = integer;
    return 0;
}

static int read_double(const struct reading *reading)
{
    const struct field *field = reading->field;
    char expected[96] = "a number";
    if (has_bounds(field))
        snprintf(expected, sizeof(expected), "a number from %g to %g", field->minimum, field->maximum);
    if (!json_is_number(reading->value))
        return refuse_value(reading, expected);
    double number = json_number_value(reading->value);
    if (has_bounds(field) && !(number >= field->minimum && number <= field->maximum))
        return refuse_range(reading, expected);
    *(double *)reading->target = number;
    return 0;
}

static int read_text(const struct reading *reading)
{
    if (!json_is_string(reading->value) || json_input_lifted(reading->input, reading->value))
        return refuse_value(reading, "a string");
    struct text text = {json_string_value(reading->value), json_string_length(reading->value)};
    if (reading->field->maximum > 0 && (double)text.length_bytes > reading->field->maximum) {
        char expected[64];
        snprintf(expected, sizeof(expected), "at most %.0f bytes", reading->field->maximum);
        return refuse_range(reading, expected);
    }
    *(struct text *)reading->target = text;
    return 0;
}

static int read_duration(const struct reading *reading)
{
    static const char expected[] = "a duration like \"250ms\", \"30s\" or \"5m\"";
    if (!json_is_string(reading->value))
        return refuse_value(reading, expected);
    struct text text = {json_string_value(reading->value), json_string_length(reading->value)};
    return duration_parse(text, reading->target) ? 0 : refuse_range(reading, expected);
}

static int read_choice(const struct reading *reading)
{
    const char *const *choices = reading->field->choices;
    struct text text = TEXT_NONE;
    char path[PATH_BYTES];
    char advice[ADVICE_BYTES];
    if (json_is_string(reading->value))
        text = (struct text){json_string_value(reading->value), json_string_length(reading->value)};
    for (int i = 0; choices[i]; i++)
        if (text_equals(text, choices[i])) {
            *(int *)reading->target = i;
            return 0;
        }
    names_advise_list(text, choices, advice);
    path_join(path, reading->path, reading->field->name);
    if (!text.data)
        return call_refuse(reading->input->call, ERR_INVALID_FIELD, path, "expected a text, got %s; %s",
                           name_of_kind(reading->input, reading->value), advice);
    return call_refuse(reading->input->call, ERR_INVALID_FIELD, path, "there is no such value; %s", advice);
}

static int read_object_value(const struct reading *reading)
{
    if (!json_is_object(reading->value))
        return refuse_value(reading, "an object");
    *(json_t **)reading->target = json_input_restore(reading->input, reading->value);
    return 0;
}

static int read_array_value(const struct reading *reading)
{
    bool lifted = json_input_lifted(reading->input, reading->value) != NULL;
    bool keep = !lifted && (reading->field->flags & FIELD_LIFTED);
    if (!lifted && !json_is_array(reading->value))
        return refuse_value(reading, "an array");
    *(json_t **)reading->target = keep ? reading->value : json_input_restore(reading->input, reading->value);
    return 0;
}

static int read_any(const struct reading *reading)
{
    *(json_t **)reading->target = json_input_restore(reading->input, reading->value);
    return 0;
}

static int read_numbers(const struct reading *reading)
{
    char path[PATH_BYTES];
    path_join(path, reading->path, reading->field->name);
    return json_read_numbers(reading->input, reading->value, path, reading->target);
}

static int (*const readers[])(const struct reading *reading) = {
    [FIELD_BOOL] = read_bool,           [FIELD_INT] = read_int,           [FIELD_DOUBLE] = read_double,
    [FIELD_TEXT] = read_text,           [FIELD_DURATION] = read_duration, [FIELD_CHOICE] = read_choice,
    [FIELD_OBJECT] = read_object_value, [FIELD_ARRAY] = read_array_value, [FIELD_ANY] = read_any,
    [FIELD_NUMBERS] = read_numbers,
};

/* --- names --- */

/* Whether a member's name belongs to the field: its own, or one of packed numbers. */
static bool is_name_of(const struct field *field, const char *name)
{
    if (name[0] != field->name[0])
        return false;
    size_t length = strlen(field->name);
    if (strncmp(name, field->name, length) != 0)
        return false;
    return name[length] == '\0' || (field->kind == FIELD_NUMBERS && packed_format_of(name + length));
}

static const struct field *find_field(const struct field *fields, size_t field_count, const char *name)
{
    for (size_t i = 0; i < field_count; i++)
        if (is_name_of(&fields[i], name))
            return &fields[i];
    return NULL;
}

static int refuse_unknown(struct json_input *input, const char *path, const char *name, const struct field *fields,
                          size_t field_count)
{
    char full[PATH_BYTES];
    char advice[ADVICE_BYTES];
    path_join(full, path, name);
    names_advise(text_of(name), fields, sizeof(*fields), field_count, advice);
    return call_refuse(input->call, ERR_UNKNOWN_FIELD, full, "there is no field of this name; %s", advice);
}

/* --- objects --- */

#define FIELD_BIT(index) (UINT64_C(1) << (index) % 64) /* beyond 64 fields two share one, which costs a look-up */

/* ret_given: the bits of the fields that the object has a member for. */
static int check_names(struct json_input *input, json_t *object, const char *path, const struct field *fields,
                       size_t field_count, uint64_t *ret_given)
{
    const char *name;
    json_t *value;
    *ret_given = 0;
    json_object_foreach (object, name, value) {
        const struct field *field = find_field(fields, field_count, name);
        if (!field)
            return refuse_unknown(input, path, name, fields, field_count);
        *ret_given |= FIELD_BIT(field - fields);
    }
    return 0;
}

static int read_field(const struct reading *reading, const json_t *object)
{
    const struct field *field = reading->field;
    bool packed = false;
    if (field->kind == FIELD_NUMBERS &&
        json_read_packed(reading->input, object, field->name, reading->path, reading->target, &packed) < 0)
        return -1;
    if (packed)
        return 0;
    bool absent = !reading->value || (json_is_null(reading->value) && (field->flags & FIELD_NULLABLE));
    if (!absent)
        return readers[field->kind](reading);
    if (!(field->flags & FIELD_REQUIRED))
        return 0;
    char path[PATH_BYTES];
    path_join(path, reading->path, field->name);
    return call_refuse(reading->input->call, ERR_MISSING_FIELD, path, "this field is required");
}

int json_read_object(struct json_input *input, const json_t *object, const char *path, const struct field *fields,
                     size_t field_count, void *target)
{
    uint64_t given;
    if (!json_is_object(object))
        return call_refuse(input->call, ERR_INVALID_FIELD, *path ? path : NULL, "expected an object, got %s",
                           object ? name_of_kind(input, object) : "nothing");
    if (check_names(input, (json_t *)(uintptr_t)object, path, fields, field_count, &given) < 0)
        return -1;
    for (size_t i = 0; i < field_count; i++) {
        if (!(given & FIELD_BIT(i)) && !(fields[i].flags & FIELD_REQUIRED))
            continue;
        struct reading reading = {input, &fields[i], json_object_get(object, fields[i].name), path,
                                  (char *)target + fields[i].offset};
        if (read_field(&reading, object) < 0)
            return -1;
    }
    return 0;
}
