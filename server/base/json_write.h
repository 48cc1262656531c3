/* json_write: JSON text straight into a buffer, commas and nesting kept by the writer.
 *
 * A double that is not finite is written as null. Doubles are written as the shortest of %.15g, %.16g, %.17g that reads
 * back the same; floats with 6 to 9 digits likewise; both always with a point or an exponent ("1.0"), so that a reader
 * sees the type. Strings must be UTF-8 (checked on arrival); what is broken is mended, never copied. Errors live in the
 * buffer. Depth at most 32. */
#ifndef BASE_JSON_WRITE_H
#define BASE_JSON_WRITE_H

#include "server/base/buffer.h"
#include "server/base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_write {
    struct buffer *out;
    uint8_t depth;
    bool comma[33];
    bool after_key;
};

void json_write_init(struct json_write *json, struct buffer *out);

void json_object_begin(struct json_write *json);
void json_object_end(struct json_write *json);
void json_array_begin(struct json_write *json);
void json_array_end(struct json_write *json);
void json_key(struct json_write *json, const char *key);
void json_key_text(struct json_write *json, struct text key);

void json_write_null(struct json_write *json);
void json_bool(struct json_write *json, bool value);
void json_int(struct json_write *json, int64_t value);
void json_double(struct json_write *json, double value);
void json_text(struct json_write *json, struct text value);         /* TEXT_NONE writes null */
void json_write_string(struct json_write *json, const char *value); /* NULL writes null */
void json_raw(struct json_write *json, struct text value); /* one whole JSON value, as it is; TEXT_NONE writes null */
void json_time(struct json_write *json, int64_t utc_us);   /* RFC 3339; negative writes null */

/* "key": value in one line each */
void json_put_null(struct json_write *json, const char *key);
void json_put_bool(struct json_write *json, const char *key, bool value);
void json_put_int(struct json_write *json, const char *key, int64_t value);
void json_put_int_or_null(struct json_write *json, const char *key, int64_t value); /* negative writes null */
void json_put_double(struct json_write *json, const char *key, double value);
void json_put_text(struct json_write *json, const char *key, struct text value);
void json_put_string(struct json_write *json, const char *key, const char *value);
void json_put_raw(struct json_write *json, const char *key, struct text value);
void json_put_time(struct json_write *json, const char *key, int64_t utc_us);

/* Arrays of numbers under a key: as JSON, or packed as base64 under the key with its suffix (_u32, _f32, _f64, _u8,
 * _i8). */
enum json_arrays { JSON_ARRAYS_PLAIN, JSON_ARRAYS_BASE64, JSON_ARRAYS_NONE };
void json_put_u32s(struct json_write *json, const char *key, const uint32_t *values, size_t count,
                   enum json_arrays how);
void json_put_f32s(struct json_write *json, const char *key, const float *values, size_t count, enum json_arrays how);
void json_put_f64s(struct json_write *json, const char *key, const double *values, size_t count, enum json_arrays how);
void json_put_u8s(struct json_write *json, const char *key, const uint8_t *values, size_t count, enum json_arrays how);
void json_put_i8s(struct json_write *json, const char *key, const int8_t *values, size_t count, enum json_arrays how);

#endif
