/* json_input: a request's JSON, read by tables.
 *
 * Parsing lifts the known number arrays out first (base/json_scan.h), then jansson reads the rest with
 * JSON_REJECT_DUPLICATES and JSON_ALLOW_NUL; errors become 400 invalid_json with line and column. An object is then
 * read by a table of fields: a name that is not in the table is 400 unknown_field, a wrong type or range 400
 * invalid_field, an absent required one 400 missing_field, each with its path (`groups[3].sampling.n`) and a message
 * that says what was expected. Absent optional fields leave their target as it is, so defaults are what the target held
 * before. `null` is the same as absent only for fields with FIELD_NULLABLE. One thread at a time. Texts and json_t
 * pointers in targets live as long as the input. */
#ifndef SERVER_INPUT_INPUT_H
#define SERVER_INPUT_INPUT_H

#include "server/base/json_scan.h"
#include "server/base/text.h"
#include "server/http/call.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_input {
    struct call *call; /* where refusals go */
    json_t *root;
    struct lifted lifted;
    size_t memory_bytes;      /* what the tree holds of input/memory.h's limit */
    struct number_pool *pool; /* arrays converted on the way; freed by finish */
};

/* lift: NULL-terminated names, may be NULL. 0, or -1 with the call refused. */
int json_input_init(struct json_input *input, struct call *call, const char *const *lift);
void json_input_finish(struct json_input *input);

/* An array of numbers, however it was written. values[i] is NAN where the JSON had null. At most one of the three is
 * set; the last two only where a request is no JSON (objective_call/tensors.h). */
struct numbers {
    const double *values; /* all NULL: absent */
    size_t count;
    bool has_null;
    bool all_integer;
    const float *f32;
    const uint8_t *u8;
};

static inline bool numbers_are_given(const struct numbers *numbers)
{
    return numbers->values || numbers->f32 || numbers->u8;
}

enum field_kind {
    FIELD_BOOL, /* bool */
    FIELD_INT,  /* int64_t within minimum..maximum (0,0: any; the bounds are int64-safe up to 2^63-1: use INT64_MAX) */
    FIELD_DOUBLE,   /* double, any JSON number, within minimum..maximum unless both are 0 */
    FIELD_TEXT,     /* struct text; `maximum` (if > 0) limits its bytes */
    FIELD_DURATION, /* int64_t microseconds from a string like "30s" */
    FIELD_CHOICE,   /* int: index in `choices`, a NULL-terminated list */
    FIELD_OBJECT,   /* json_t * (borrowed); lifted arrays anywhere inside are put back */
    FIELD_ARRAY,    /* json_t * (borrowed); lifted arrays inside are put back, unless FIELD_LIFTED */
    FIELD_ANY,      /* json_t * (borrowed), any value, null included; lifted arrays are put back */
    FIELD_NUMBERS,  /* struct numbers; also read from name_f32 / name_f64 / name_u32 / name_u8 as base64. Both at once:
                       invalid_field */
};

enum {
    FIELD_REQUIRED = 1,
    FIELD_NULLABLE = 2,
    FIELD_LIFTED = 4, /* an array of objects that are read by tables: lifted arrays in it stay lifted, which is fast */
};

struct field {
    const char *name;
    enum field_kind kind;
    unsigned flags;
    size_t offset; /* of the target in the struct that is filled */
    double minimum;
    double maximum;
    const char *const *choices;
};

/* Two requests that share most of their fields have one list: BOTH(row) SAMPLED(row) GIVEN(row), where a row is what
 * stands between the braces of a struct field. A table takes the rows of a kind with FIELD_ROW, or leaves them out. */
#define FIELD_ROW(...) {__VA_ARGS__},
#define FIELD_NO_ROW(...)

/* path: "" for the root, else e.g. "groups[3]". 0, or -1 with the call refused. `object` may be any value: no object is
 * refused. */
int json_read_object(struct json_input *input, const json_t *object, const char *path, const struct field *fields,
                     size_t field_count, void *target);

/* One value as an array of numbers (small jansson array or lifted one); for places outside tables. */
int json_read_numbers(struct json_input *input, const json_t *value, const char *path, struct numbers *ret_numbers);

/* The value with every lifted array in it as jansson's array again: for JSON that is kept or handed on as it came. The
 * same object, changed inside, or a new one that the input owns. */
json_t *json_input_restore(struct json_input *input, json_t *value);

/* A whole number is an integer however it is written: 8, 8.0, 8e0. Beyond 2^53 only digits say which one is meant. */
bool json_whole(const json_t *value, int64_t *ret_integer);

/* Joins "groups[3]" and "task" into the buffer of the caller: "groups[3].task"; long paths are cut. */
#define PATH_BYTES 160
void path_join(char ret_path[PATH_BYTES], const char *path, const char *name);
void path_index(char ret_path[PATH_BYTES], const char *path, const char *name,
                size_t index); /* "groups" 3 -> "groups[3]" */

#endif
