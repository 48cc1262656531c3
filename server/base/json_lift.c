#include "server/base/json_scan.h"

#include "server/base/hash.h"
#include "server/base/number.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>

enum { LEAST_TEXT_BYTES = 32, NONCE_BYTES = 17, MARK_BYTES = 64 };

#define EXACT_INTEGER (INT64_C(1) << 53)

static char nonce[NONCE_BYTES];

static void draw_nonce(void)
{
    uint64_t random;
    random_bytes(&random, sizeof(random));
    snprintf(nonce, sizeof(nonce), "%016" PRIx64, random);
}

static const char *nonce_of_process(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, draw_nonce);
    return nonce;
}

/* The place behind the ']' if nothing but numbers, nulls, commas and blanks comes before it; else NULL. One pass to
 * know how much memory to ask for. */
static const char *find_array_end(const char *at, const char *end, size_t *ret_count)
{
    static const bool allowed[256] = {
        ['0' ... '9'] = true, ['-'] = true, ['+'] = true, ['.'] = true, ['e'] = true,  ['E'] = true,  [','] = true,
        ['n'] = true,         ['u'] = true, ['l'] = true, [' '] = true, ['\t'] = true, ['\n'] = true, ['\r'] = true};
    size_t commas = 0;
    for (; at < end && allowed[(unsigned char)*at]; at++)
        commas += *at == ',';
    *ret_count = commas + 1;
    return at < end && *at == ']' ? at + 1 : NULL;
}

static const char *skip_blanks(const char *at)
{
    while (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r')
        at++;
    return at;
}

/* One number or null at `at`, with the blanks behind it. NULL for anything that a double does not hold exactly as it
 * was written by an integer, or not at all: jansson's then. */
static const char *read_value(const char *at, const char *end, struct lifted_array *array)
{
    struct number number;
    double *value = &array->values[array->count++];
    if (end - at > 4 && memcmp(at, "null", 4) == 0) {
        *value = NAN;
        array->has_null = true;
        return skip_blanks(at + 4);
    }
    at = number_parse(at, end, &number);
    if (!at || isinf(number.value))
        return NULL;
    if (!number.has_fraction &&
        (!number.is_integer || number.integer > EXACT_INTEGER || number.integer < -EXACT_INTEGER))
        return NULL;
    array->all_integer &= !number.has_fraction;
    *value = number.value;
    return skip_blanks(at);
}

/* From behind the '[' to `end`, behind the ']': there is nothing but what find_array_end() allows, so that the ']'
 * stops every loop. */
static bool read_values(const char *at, const char *end, struct lifted_array *array)
{
    array->all_integer = true;
    at = skip_blanks(at);
    if (*at == ']')
        return true;
    while ((at = read_value(at, end, array)) && *at == ',')
        at = skip_blanks(at + 1);
    return at && *at == ']';
}

/* Where a mark of mark_bytes can stand in the text so that as many line feeds as before precede the text's last line,
 * which keeps its length: behind the last line feed, or at the beginning with all the line feeds behind it. */
static bool overwrite(char *text, size_t length_bytes, const char *mark, size_t mark_bytes, size_t *ret_mark_at)
{
    const char *last_feed = memrchr(text, '\n', length_bytes);
    size_t before_bytes = last_feed ? (size_t)(last_feed + 1 - text) : 0;
    if (length_bytes - before_bytes >= mark_bytes) {
        for (size_t i = 0; i < before_bytes; i++)
            text[i] = text[i] == '\n' ? '\n' : ' ';
        memcpy(text + before_bytes, mark, mark_bytes);
        memset(text + before_bytes + mark_bytes, ' ', length_bytes - before_bytes - mark_bytes);
        *ret_mark_at = before_bytes;
        return true;
    }
    size_t feeds = 0;
    for (size_t i = 0; i < before_bytes; i++)
        feeds += text[i] == '\n';
    if (before_bytes < mark_bytes + feeds)
        return false;
    memset(text, ' ', length_bytes);
    memcpy(text, mark, mark_bytes);
    memset(text + before_bytes - feeds, '\n', feeds);
    *ret_mark_at = 0;
    return true;
}

/* Room for one more; doubles at powers of two. */
static bool grow_list(struct lifted *lifted)
{
    if (lifted->count & (lifted->count - 1))
        return true;
    size_t capacity = lifted->count ? 2 * lifted->count : 1;
    struct lifted_array *arrays = reallocarray(lifted->arrays, capacity, sizeof(*arrays));
    if (arrays)
        lifted->arrays = arrays;
    return arrays != NULL;
}

/* The scan stands at '['. True: the array was lifted and the scan is behind it. */
static bool lift_array(struct json_scan *scan, char *text, struct lifted *lifted)
{
    size_t limit;
    size_t offset = (size_t)(scan->at - scan->start);
    const char *end = find_array_end(scan->at + 1, scan->end, &limit);
    if (!end || end - scan->at < LEAST_TEXT_BYTES || !grow_list(lifted))
        return false;
    size_t length_bytes = (size_t)(end - scan->at);
    struct lifted_array array = {.values = reallocarray(NULL, limit, sizeof(double))};
    char mark[MARK_BYTES];
    size_t mark_at = 0;
    int mark_bytes = snprintf(mark, sizeof(mark), "\"@%s:%zu\"", nonce_of_process(), lifted->count);
    if (!array.values || !read_values(scan->at + 1, end, &array) ||
        !overwrite(text + offset, length_bytes, mark, (size_t)mark_bytes, &mark_at)) {
        free(array.values);
        return false;
    }
    array.before = (struct json_blank){offset, offset + mark_at};
    array.behind = (struct json_blank){offset + mark_at + (size_t)mark_bytes, offset + length_bytes};
    lifted->arrays[lifted->count++] = array;
    scan->at = end;
    return true;
}

static bool is_wanted(struct text key, const char *const *keys)
{
    for (; *keys; keys++)
        if (text_equals(key, *keys))
            return true;
    return false;
}

/* Enters objects and arrays, passes over everything else. */
static bool step(struct json_scan *scan, char *text, bool wanted, struct lifted *lifted)
{
    enum json_kind kind = json_scan_peek(scan);
    if (kind == JSON_KIND_ARRAY && wanted && lift_array(scan, text, lifted))
        return true;
    if (kind == JSON_KIND_ARRAY)
        return json_scan_array(scan);
    if (kind == JSON_KIND_OBJECT)
        return json_scan_object(scan);
    return json_scan_skip(scan);
}

void json_lift_numbers(char *text, size_t length_bytes, const char *const *keys, struct lifted *ret_lifted)
{
    struct json_scan scan;
    struct text key = TEXT_NONE;
    *ret_lifted = (struct lifted){NULL, 0};
    json_scan_init(&scan, (struct text){text, length_bytes});
    bool wanted = false;
    while (step(&scan, text, wanted, ret_lifted)) {
        bool more = false;
        while (scan.depth > 0 && !more) {
            bool object = scan.object[scan.depth - 1];
            more = object ? json_scan_member(&scan, &key) : json_scan_element(&scan);
            if (scan.error)
                return;
            wanted = object && more && is_wanted(key, keys);
        }
        if (!more)
            return;
    }
}

void lifted_finish(struct lifted *lifted)
{
    for (size_t i = 0; i < lifted->count; i++)
        free(lifted->arrays[i].values);
    free(lifted->arrays);
    *lifted = (struct lifted){NULL, 0};
}

/* The next blank that is not passed yet; behind the last one, nothing at the end of the text. */
static struct json_blank next_blank(const struct lifted_reader *reader)
{
    size_t index = reader->blanks / 2;
    if (index >= reader->lifted->count)
        return (struct json_blank){reader->text.length_bytes, reader->text.length_bytes};
    const struct lifted_array *array = &reader->lifted->arrays[index];
    return reader->blanks % 2 ? array->behind : array->before;
}

size_t lifted_read(void *buffer, size_t buffer_bytes, void *reader)
{
    struct lifted_reader *from = reader;
    size_t filled = 0;
    while (filled < buffer_bytes && from->at < from->text.length_bytes) {
        struct json_blank blank = next_blank(from);
        size_t wanted = blank.begin - from->at;
        size_t room = buffer_bytes - filled;
        size_t taken = wanted < room ? wanted : room;
        memcpy((char *)buffer + filled, from->text.data + from->at, taken);
        filled += taken;
        from->at += taken;
        if (from->at == blank.begin) {
            from->at = blank.end;
            from->blanks++;
        }
    }
    return filled;
}

const struct lifted_array *lifted_find(const struct lifted *lifted, struct text string)
{
    size_t prefix_bytes = 1 + NONCE_BYTES - 1 + 1;
    size_t index = 0;
    if (!lifted->count || string.length_bytes <= prefix_bytes || string.length_bytes > prefix_bytes + 10 ||
        string.data[0] != '@' || memcmp(string.data + 1, nonce_of_process(), NONCE_BYTES - 1) != 0)
        return NULL;
    for (size_t i = prefix_bytes; i < string.length_bytes; i++)
        index = index * 10 + (size_t)(string.data[i] - '0');
    return index < lifted->count ? &lifted->arrays[index] : NULL;
}
