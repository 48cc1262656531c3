#include "server/base/json_big.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

#include "server/base/hash.h"
#include "server/base/number.h"

#define GROWTH 3      /* the shortest number that is marked has 19 digits, and gets 20 bytes more */
#define MARK_BYTES 18 /* "@", 16 digits, "+" */

static char mark[MARK_BYTES + 1];

static void draw_mark(void)
{
    uint64_t random;

    random_bytes(&random, sizeof(random));
    snprintf(mark, sizeof(mark), "@%016" PRIx64 "+", random);
}

void json_big_prepare(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, draw_mark);
}

/* Behind the string that begins at `at`. */
static size_t skip_string(struct text json, size_t at)
{
    for (at++; at < json.length_bytes && json.data[at] != '"'; at++)
        at += json.data[at] == '\\';
    return at < json.length_bytes ? at + 1 : json.length_bytes;
}

static bool is_big(const struct number *number)
{
    return !number->has_fraction && !number->is_integer;
}

void json_big_append(struct buffer *out, struct text digits)
{
    json_big_prepare();
    buffer_append_byte(out, '"');
    buffer_append_string(out, mark);
    buffer_append(out, digits.data, digits.length_bytes);
    buffer_append_byte(out, '"');
}

bool json_big_mark(struct text json, struct buffer *out)
{
    const char *end = json.data + json.length_bytes;
    size_t copied = 0;
    bool found = false;

    json_big_prepare();
    for (size_t at = 0; at < json.length_bytes;) {
        struct number number;
        char byte = json.data[at];
        if (byte == '"') {
            at = skip_string(json, at);
            continue;
        }
        const char *behind =
            byte == '-' || (byte >= '0' && byte <= '9') ? number_parse(json.data + at, end, &number) : NULL;
        if (behind && is_big(&number)) {
            buffer_append(out, json.data + copied, at - copied);
            copied = (size_t)(behind - json.data);
            json_big_append(out, (struct text){json.data + at, copied - at});
            found = true;
        }
        at = behind ? (size_t)(behind - json.data) : at + 1;
    }
    buffer_append(out, json.data + copied, json.length_bytes - copied);
    return found && !out->failed;
}

struct text json_big_digits(struct text string)
{
    json_big_prepare();
    if (string.length_bytes <= MARK_BYTES || memcmp(string.data, mark, MARK_BYTES) != 0)
        return TEXT_NONE;
    return (struct text){string.data + MARK_BYTES, string.length_bytes - MARK_BYTES};
}

size_t json_big_restore(char *json, size_t length_bytes)
{
    char *from = json;
    char *to = json;
    char *end = json + length_bytes;

    json_big_prepare();
    for (char *found; (found = memmem(from, (size_t)(end - from), mark, MARK_BYTES));) {
        char *close = memchr(found, '"', (size_t)(end - found));
        size_t before_bytes = (size_t)(found - 1 - from);
        memmove(to, from, before_bytes);
        to += before_bytes;
        size_t digits_bytes = (size_t)(close - found) - MARK_BYTES;
        memmove(to, found + MARK_BYTES, digits_bytes);
        to += digits_bytes;
        from = close + 1;
    }
    memmove(to, from, (size_t)(end - from));
    to += end - from;
    *to = '\0';
    return (size_t)(to - json);
}

json_t *json_big_load(struct text json, size_t flags, json_error_t *ret_error)
{
    _cleanup_buffer_ struct buffer marked = {.data = NULL};
    json_error_t error;
    json_t *root = json_loadb(json.data, json.length_bytes, flags, &error);

    if (ret_error)
        *ret_error = error;
    if (root || json_error_code(&error) != json_error_numeric_overflow)
        return root;
    buffer_init(&marked, GROWTH * json.length_bytes);
    return json_big_mark(json, &marked) ? json_loadb(marked.data, marked.length_bytes, flags, ret_error) : NULL;
}

char *json_big_dump(const json_t *value, size_t flags)
{
    char *text = json_dumps(value, flags);

    if (text)
        json_big_restore(text, strlen(text));
    return text;
}

bool json_big_is_in(const json_t *value)
{
    const char *name;
    json_t *child;
    size_t i;

    if (json_is_string(value))
        return json_big_digits((struct text){json_string_value(value), json_string_length(value)}).data != NULL;
    json_array_foreach (value, i, child)
        if (json_big_is_in(child))
            return true;
    json_object_foreach ((json_t *)(uintptr_t)value, name, child)
        if (json_big_is_in(child))
            return true;
    return false;
}
