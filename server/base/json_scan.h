/* json_scan: a pull reader over JSON text, for what is large or hot: engine replies and arrays of numbers.
 *
 * It allocates nothing (strings go to the caller's buffer), reads each byte once, and stops at the first error, which
 * is sticky: after it every call returns false, so a reader asks json_scan_ok() once at the end. Depth is limited
 * to 64. Numbers are correctly rounded (base/number.h); one beyond the range of double is an error. Unlike RFC 8259 it
 * reads NaN and infinities wherever a number may stand (some engines write them), so that a reply is judged by the
 * fields it is read for. Only json_scan_raw(), whose text may be handed on as JSON, refuses them, and broken UTF-8 and
 * lone surrogates too.
 *
 *   struct json_scan scan;
 *   json_scan_init(&scan, body);
 *   for (json_scan_object(&scan); json_scan_member(&scan, &key);) {
 *       if (text_equals(key, "choices")) read_choices(&scan);
 *       else json_scan_skip(&scan);
 *   }
 *   if (!json_scan_end(&scan)) ...
 */
#ifndef BASE_JSON_SCAN_H
#define BASE_JSON_SCAN_H

#include "server/base/buffer.h"
#include "server/base/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum json_kind {
    JSON_KIND_NONE,
    JSON_KIND_OBJECT,
    JSON_KIND_ARRAY,
    JSON_KIND_STRING,
    JSON_KIND_NUMBER,
    JSON_KIND_BOOL,
    JSON_KIND_NULL
};

struct json_scan {
    const char *start;
    const char *at;
    const char *end;
    const char *error; /* NULL, or what is wrong; `at` stays there */
    uint64_t replaced; /* how many lone surrogates or broken bytes became U+FFFD in strings */
    uint8_t depth;
    bool first[64]; /* per depth: no element read yet */
    bool object[64];
};

void json_scan_init(struct json_scan *scan, struct text text);

enum json_kind json_scan_peek(
    struct json_scan *scan); /* of the next value; NONE at an error or the end (also sees NaN/Infinity as NUMBER) */

bool json_scan_object(struct json_scan *scan); /* enters; false (an error) if the next value is no object */
/* The next member's key, raw between its quotes (keys with escapes are never equal to a plain name, which is fine for
 * engine replies), or false at the closing brace, which it consumes. */
bool json_scan_member(struct json_scan *scan, struct text *ret_key);

bool json_scan_array(struct json_scan *scan);   /* enters */
bool json_scan_element(struct json_scan *scan); /* true: a value follows; false: the closing bracket was consumed */

/* One value each. A wrong kind is an error. */
bool json_scan_string(struct json_scan *scan,
                      struct buffer *out); /* appends; escapes undone, broken UTF-8 and lone surrogates mended */
bool json_scan_number(struct json_scan *scan,
                      double *ret_value); /* NaN and infinities of Python, JavaScript, Go and C as such */
bool json_scan_integer(struct json_scan *scan,
                       int64_t *ret_value); /* exact 64 bits; "1.0" and out of range are errors */
bool json_scan_bool(struct json_scan *scan, bool *ret_value);
bool json_scan_null(
    struct json_scan *scan); /* true and consumed only if the value is null; false without an error otherwise */
bool json_scan_skip(struct json_scan *scan);       /* any value, checked */
struct text json_scan_raw(struct json_scan *scan); /* skips any value and returns its text; TEXT_NONE on an error */

/* Whole arrays. Grows nothing: writes at most `limit` values, more is an error. null becomes NAN (in u32 it is an
 * error). A number beyond float becomes an infinity. Returns the count, or -1. */
ssize_t json_scan_floats(struct json_scan *scan, float *values, size_t limit);
ssize_t json_scan_u32(struct json_scan *scan, uint32_t *values, size_t limit);

bool json_scan_ok(const struct json_scan *scan);
bool json_scan_end(struct json_scan *scan); /* ok, and nothing but white space is left */

/* 1-based position of an offset, for messages. */
void json_position(struct text text, size_t offset_bytes, size_t *ret_line, size_t *ret_column);

/* --- lifting ------------------------------------------------------------------------------------
 * Takes the known arrays of numbers out of a request's text before jansson sees it. Each array of numbers (and nulls)
 * of at least 32 bytes of text that is the value of one of `keys` is parsed into doubles; who reads on finds in its
 * place the JSON string "@<nonce>:<index>". The nonce is drawn per process, so a client cannot write such a string.
 * Shorter arrays and arrays with other things in them (integers beyond 2^53 included) are left for jansson. Text that
 * is not JSON is left as it is from there on: jansson then names the place. */
struct lifted_array {
    double *values; /* NAN where the text had null */
    size_t count;
    bool has_null;
    bool all_integer; /* every value but nulls was written without fraction and exponent */
    size_t begin;     /* offsets of its text, brackets included */
    size_t end;
};

struct lifted {
    struct lifted_array *arrays; /* in the order of the text */
    size_t count;
    struct lifted_chunk *chunks; /* where the values are */
};

/* keys: NULL-terminated. The text is only read, and not needed for the values any more. */
void json_lift_numbers(struct text text, const char *const *keys, struct lifted *ret_lifted);
void lifted_finish(struct lifted *lifted);

/* The text with the strings instead of the arrays, piece by piece. */
enum { LIFTED_MARK_BYTES = 64 };
struct lifted_reader {
    struct text text;
    const struct lifted *lifted;
    size_t at;    /* in the text */
    size_t index; /* of the next array */
    char mark[LIFTED_MARK_BYTES];
    size_t mark_bytes; /* 0: none is being read */
    size_t mark_at;
};
void lifted_reader_init(struct lifted_reader *reader, struct text text, const struct lifted *lifted);
size_t lifted_read(void *buffer, size_t buffer_bytes, void *reader); /* a json_load_callback_t */
/* The first NUL of the text, or NULL; there is none in the arrays. */
const char *lifted_find_nul(const struct lifted *lifted, struct text text);
/* The same strings in place, padded with blanks (line feeds stay where they are), so that a reader that fails names the
 * line and column of the text as it came. An array that line feeds leave no room for stays. */
void lifted_overwrite(const struct lifted *lifted, char *text);
/* The array a string stands for, or NULL if it is an ordinary string. */
const struct lifted_array *lifted_find(const struct lifted *lifted, struct text string);

#endif
