#include "server/base/json_scan.h"

#include "server/base/blocks.h"
#include "server/base/hash.h"
#include "server/base/number.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>

enum { LEAST_TEXT_BYTES = 32, NONCE_BYTES = 17, CHUNK_VALUES = 512 * 1024 - 8 };

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

/* --- room for the values: in chunks, so that it need not be known how many come --- */

struct lifted_chunk {
    struct lifted_chunk *next;
    size_t count;
    size_t capacity;
    double values[];
};

/* text_bytes can hold at most half as many values. */
static struct lifted_chunk *chunk_create(size_t text_bytes, size_t least)
{
    size_t capacity = text_bytes / 2 + 1 < CHUNK_VALUES ? text_bytes / 2 + 1 : CHUNK_VALUES;
    capacity = capacity < least ? least : capacity;
    struct lifted_chunk *chunk = block_take(sizeof(*chunk) + capacity * sizeof(double));
    if (chunk)
        *chunk = (struct lifted_chunk){.capacity = capacity};
    return chunk;
}

/* A new chunk; the array that is being read moves into it. */
static bool next_chunk(struct lifted *lifted, struct lifted_array *array, size_t text_bytes)
{
    struct lifted_chunk *chunk = chunk_create(text_bytes, 2 * array->count);
    if (!chunk)
        return false;
    if (array->count)
        memcpy(chunk->values, array->values, array->count * sizeof(double));
    chunk->count = array->count;
    array->values = chunk->values;
    chunk->next = lifted->chunks;
    lifted->chunks = chunk;
    return true;
}

static bool add_value(struct lifted *lifted, struct lifted_array *array, double value, size_t text_bytes)
{
    if ((!lifted->chunks || lifted->chunks->count == lifted->chunks->capacity) &&
        !next_chunk(lifted, array, text_bytes))
        return false;
    lifted->chunks->values[lifted->chunks->count++] = value;
    array->count++;
    return true;
}

/* --- one array --- */

static inline const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r'))
        at++;
    return at;
}

/* One number or null at `at`. NULL for anything that a double does not hold exactly as it was written by an integer, or
 * not at all: jansson's then. */
static inline const char *read_value(const char *at, const char *end, struct lifted_array *array, double *ret_value)
{
    struct number number;
    if (end - at > 4 && *at == 'n' && memcmp(at, "null", 4) == 0) {
        *ret_value = NAN;
        array->has_null = true;
        return at + 4;
    }
    at = number_parse(at, end, &number);
    if (!at || isinf(number.value))
        return NULL;
    if (!number.has_fraction &&
        (!number.is_integer || number.integer > EXACT_INTEGER || number.integer < -EXACT_INTEGER))
        return NULL;
    array->all_integer &= !number.has_fraction;
    *ret_value = number.value;
    return at;
}

/* From behind the '[' to behind the ']'. NULL: it is no array of numbers. */
static const char *read_values(const char *at, const char *end, struct lifted *lifted, struct lifted_array *array)
{
    double value;
    at = skip_blanks(at, end);
    if (at < end && *at == ']')
        return at + 1;
    while (at < end) {
        size_t text_bytes = (size_t)(end - at);
        if (!(at = read_value(at, end, array, &value)) || !add_value(lifted, array, value, text_bytes))
            return NULL;
        at = skip_blanks(at, end);
        if (at < end && *at == ']')
            return at + 1;
        if (at == end || *at != ',')
            return NULL;
        at = skip_blanks(at + 1, end);
    }
    return NULL;
}

/* --- the string in its place --- */

static size_t write_mark(size_t index, char ret_mark[LIFTED_MARK_BYTES])
{
    return (size_t)snprintf(ret_mark, LIFTED_MARK_BYTES, "\"@%s:%zu\"", nonce_of_process(), index);
}

/* Where a mark of mark_bytes can stand in the text so that as many line feeds as before precede the text's last line,
 * which keeps its length: behind the last line feed, or at the beginning with all the line feeds behind it. Without
 * room the text stays as it is. */
static void overwrite(char *text, size_t length_bytes, const char *mark, size_t mark_bytes)
{
    const char *last_feed = memrchr(text, '\n', length_bytes);
    size_t before_bytes = last_feed ? (size_t)(last_feed + 1 - text) : 0;
    if (length_bytes - before_bytes >= mark_bytes) {
        for (size_t i = 0; i < before_bytes; i++)
            text[i] = text[i] == '\n' ? '\n' : ' ';
        memcpy(text + before_bytes, mark, mark_bytes);
        memset(text + before_bytes + mark_bytes, ' ', length_bytes - before_bytes - mark_bytes);
        return;
    }
    size_t feeds = 0;
    for (size_t i = 0; i < before_bytes; i++)
        feeds += text[i] == '\n';
    if (before_bytes < mark_bytes + feeds)
        return;
    memset(text, ' ', length_bytes);
    memcpy(text, mark, mark_bytes);
    memset(text + before_bytes - feeds, '\n', feeds);
}

void lifted_overwrite(const struct lifted *lifted, char *text)
{
    for (size_t i = 0; i < lifted->count; i++) {
        char mark[LIFTED_MARK_BYTES];
        size_t mark_bytes = write_mark(i, mark);
        overwrite(text + lifted->arrays[i].begin, lifted->arrays[i].end - lifted->arrays[i].begin, mark, mark_bytes);
    }
}

/* --- a whole text --- */

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

static bool keep_array(struct lifted *lifted, const struct lifted_array *array)
{
    if (array->end - array->begin < LEAST_TEXT_BYTES || !grow_list(lifted))
        return false;
    lifted->arrays[lifted->count++] = *array;
    return true;
}

/* The scan stands at '['. True: the array was lifted and the scan is behind it. */
static bool lift_array(struct json_scan *scan, struct lifted *lifted)
{
    struct lifted_chunk *chunk = lifted->chunks;
    struct lifted_array array = {.values = chunk ? chunk->values + chunk->count : NULL, .all_integer = true};
    const char *end = read_values(scan->at + 1, scan->end, lifted, &array);
    array.begin = (size_t)(scan->at - scan->start);
    array.end = end ? (size_t)(end - scan->start) : 0;
    if (end && keep_array(lifted, &array)) {
        scan->at = end;
        return true;
    }
    if (lifted->chunks)
        lifted->chunks->count -= array.count;
    return false;
}

static bool is_wanted(struct text key, const char *const *keys)
{
    for (; *keys; keys++)
        if (text_equals(key, *keys))
            return true;
    return false;
}

/* Enters objects and arrays, passes over everything else. */
static bool step(struct json_scan *scan, bool wanted, struct lifted *lifted)
{
    enum json_kind kind = json_scan_peek(scan);
    if (kind == JSON_KIND_ARRAY && wanted && lift_array(scan, lifted))
        return true;
    if (kind == JSON_KIND_ARRAY)
        return json_scan_array(scan);
    if (kind == JSON_KIND_OBJECT)
        return json_scan_object(scan);
    return json_scan_skip(scan);
}

void json_lift_numbers(struct text text, const char *const *keys, struct lifted *ret_lifted)
{
    struct json_scan scan;
    struct text key = TEXT_NONE;
    *ret_lifted = (struct lifted){0};
    json_scan_init(&scan, text);
    bool wanted = false;
    while (step(&scan, wanted, ret_lifted)) {
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
    for (struct lifted_chunk *chunk = lifted->chunks; chunk;) {
        struct lifted_chunk *next = chunk->next;
        block_give(chunk);
        chunk = next;
    }
    free(lifted->arrays);
    *lifted = (struct lifted){0};
}

/* --- reading the rest --- */

void lifted_reader_init(struct lifted_reader *reader, struct text text, const struct lifted *lifted)
{
    *reader = (struct lifted_reader){.text = text, .lifted = lifted};
}

/* The next piece: text up to the next array, or the mark in its place. */
static struct text next_piece(struct lifted_reader *reader)
{
    const struct lifted *lifted = reader->lifted;
    size_t end = reader->index < lifted->count ? lifted->arrays[reader->index].begin : reader->text.length_bytes;
    if (reader->at < end)
        return (struct text){reader->text.data + reader->at, end - reader->at};
    if (reader->index == lifted->count)
        return TEXT_NONE;
    if (reader->mark_bytes == 0)
        reader->mark_bytes = write_mark(reader->index, reader->mark);
    return (struct text){reader->mark + reader->mark_at, reader->mark_bytes - reader->mark_at};
}

static void pass(struct lifted_reader *reader, size_t bytes)
{
    if (reader->mark_bytes == 0) {
        reader->at += bytes;
        return;
    }
    reader->mark_at += bytes;
    if (reader->mark_at < reader->mark_bytes)
        return;
    reader->mark_at = reader->mark_bytes = 0;
    reader->at = reader->lifted->arrays[reader->index++].end;
}

size_t lifted_read(void *buffer, size_t buffer_bytes, void *reader)
{
    size_t filled = 0;
    for (struct text piece; filled < buffer_bytes && (piece = next_piece(reader)).data;) {
        size_t room = buffer_bytes - filled;
        size_t taken = piece.length_bytes < room ? piece.length_bytes : room;
        memcpy((char *)buffer + filled, piece.data, taken);
        filled += taken;
        pass(reader, taken);
    }
    return filled;
}

const char *lifted_find_nul(const struct lifted *lifted, struct text text)
{
    const char *at = text.data;
    for (size_t i = 0; i <= lifted->count; i++) {
        const char *end = text.data + (i < lifted->count ? lifted->arrays[i].begin : text.length_bytes);
        const char *nul = at < end ? memchr(at, '\0', (size_t)(end - at)) : NULL;
        if (nul)
            return nul;
        at = text.data + (i < lifted->count ? lifted->arrays[i].end : 0);
    }
    return NULL;
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
