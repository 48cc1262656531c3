/* From a body's bytes to jansson's tree, or to a refusal that names the place. */
#include "server/base/json_big.h"
#include "server/base/number.h"
#include "server/input/input_private.h"
#include "server/input/memory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define BIG_FACTOR 3 /* a mark is no longer than the shortest number that needs one */
#define TRIM_BYTES ((size_t)4 << 20)

/* --- a number that jansson cannot hold --- */

/* The way to the value that is being read: per depth its index, or its key. */
struct trail {
    struct text keys[ARRAY_LENGTH(((struct json_scan *)NULL)->first)];
    size_t indexes[ARRAY_LENGTH(((struct json_scan *)NULL)->first)];
};

static void trail_path(const struct json_scan *scan, const struct trail *trail, char ret_path[PATH_BYTES])
{
    ret_path[0] = '\0';
    for (size_t i = 0; i < scan->depth; i++) {
        if (!scan->object[i]) {
            path_index(ret_path, ret_path, "", trail->indexes[i]);
            continue;
        }
        char key[PATH_BYTES];
        struct text text = trail->keys[i];
        snprintf(key, sizeof(key), "%.*s", (int)(text.length_bytes < PATH_BYTES ? text.length_bytes : PATH_BYTES - 1),
                 text.data);
        path_join(ret_path, ret_path, key);
    }
}

static bool next_value(struct json_scan *scan, struct trail *trail)
{
    while (scan->depth > 0 && !scan->error) {
        size_t top = scan->depth - 1U;
        bool more = scan->object[top] ? json_scan_member(scan, &trail->keys[top]) : json_scan_element(scan);
        trail->indexes[top]++;
        if (more)
            return true;
    }
    return false;
}

/* Whole numbers of a reference have any size, except in a verifier's own reference. */
static bool is_in_reference(const struct json_scan *scan, const struct trail *trail)
{
    bool inside = false;
    for (size_t i = 0; i < scan->depth; i++) {
        if (scan->object[i] && text_equals(trail->keys[i], "verifiers"))
            return false;
        inside = inside || (scan->object[i] && text_equals(trail->keys[i], "reference"));
    }
    return inside;
}

/* And those of the option `schema` of a verifier. */
static bool is_in_schema(const struct json_scan *scan, const struct trail *trail)
{
    for (size_t i = 0; i + 1 < scan->depth; i++)
        if (scan->object[i] && scan->object[i + 1] && text_equals(trail->keys[i], "options") &&
            text_equals(trail->keys[i + 1], "schema"))
            return true;
    return false;
}

enum passed { PASSED, PASSED_BIG, OVERFLOW };

/* Over a scalar, or into a container. OVERFLOW: nothing was passed, the number cannot be held. *ret_number: of a number. */
static enum passed pass_value(struct json_scan *scan, struct trail *trail)
{
    struct number number;
    enum json_kind kind = json_scan_peek(scan);
    if (kind == JSON_KIND_OBJECT || kind == JSON_KIND_ARRAY) {
        if (kind == JSON_KIND_OBJECT ? json_scan_object(scan) : json_scan_array(scan))
            trail->indexes[scan->depth - 1] = SIZE_MAX;
        return PASSED;
    }
    if (kind != JSON_KIND_NUMBER || !number_parse(scan->at, scan->end, &number) ||
        (isfinite(number.value) && (number.has_fraction || number.is_integer))) {
        json_scan_skip(scan);
        return PASSED;
    }
    if (number.has_fraction || (!is_in_reference(scan, trail) && !is_in_schema(scan, trail)))
        return OVERFLOW;
    scan->at = number_parse(scan->at, scan->end, &number);
    return PASSED_BIG;
}

/* Over all values; `marked`: where the text is written with its big numbers marked. False: at a number that cannot be held,
 * or an error. */
static bool pass_all(struct text text, struct buffer *marked, struct json_scan *scan, struct trail *trail)
{
    const char *copied = text.data;
    json_scan_init(scan, text);
    do {
        json_scan_peek(scan);
        const char *start = scan->at;
        enum passed passed = pass_value(scan, trail);
        if (passed == OVERFLOW)
            return false;
        if (passed != PASSED_BIG)
            continue;
        buffer_append(marked, copied, (size_t)(start - copied));
        json_big_append(marked, (struct text){start, (size_t)(scan->at - start)});
        copied = scan->at;
    } while (next_value(scan, trail));
    buffer_append(marked, copied, (size_t)(text.data + text.length_bytes - copied));
    return !scan->error;
}

/* The place of a number that cannot be held. */
static bool find_overflow(struct text text, char ret_path[PATH_BYTES])
{
    _cleanup_buffer_ struct buffer marked;
    struct json_scan scan;
    struct trail trail = {0};
    buffer_init(&marked, 0);
    if (pass_all(text, &marked, &scan, &trail) || scan.error)
        return false;
    trail_path(&scan, &trail, ret_path);
    return true;
}

/* For a text with whole numbers beyond 64 bits in its references, and nowhere else. */
static json_t *parse_big(struct text text, size_t flags, json_error_t *ret_error)
{
    _cleanup_buffer_ struct buffer marked;
    struct json_scan scan;
    struct trail trail = {0};
    json_error_t error;
    buffer_init(&marked, BIG_FACTOR * text.length_bytes);
    if (!pass_all(text, &marked, &scan, &trail) || marked.failed)
        return NULL;
    json_t *root = json_loadb(marked.data, marked.length_bytes, flags, &error);
    if (!root)
        *ret_error = error;
    return root;
}

/* --- errors --- */

static int refuse_json(struct json_input *input, const json_error_t *error)
{
    struct call *call = input->call;
    char path[PATH_BYTES];
    enum json_error_code code = json_error_code(error);
    if (code == json_error_numeric_overflow && find_overflow((struct text){call->body, call->body_bytes}, path))
        return call_refuse(call, ERR_INVALID_FIELD, path,
                           "this number is too large: integers have at most 63 bits, other numbers are doubles");
    if (code == json_error_out_of_memory)
        return call_refuse(call, ERR_QUEUE_FULL, NULL, "there is no memory for this body now");
    int text_bytes = (int)sizeof(error->text);
    const char *mark = strstr(error->text, " near '\"@"); /* might show what stands for a lifted array */
    if (mark)
        text_bytes = (int)(mark - error->text);
    return call_refuse(call, ERR_INVALID_JSON, NULL, "line %d, column %d: %.*s", error->line, error->column, text_bytes,
                       error->text);
}

void json_input_release(struct json_input *input)
{
    json_memory_give(input->memory_bytes);
    input->memory_bytes = 0;
}

static int refuse_memory(struct json_input *input, enum json_memory_end end)
{
    if (end == JSON_MEMORY_TOO_LARGE)
        return call_refuse(input->call, ERR_BODY_TOO_LARGE, NULL,
                           "the values of this body take more than memory_budget; send fewer at once");
    return call_refuse(input->call, ERR_QUEUE_FULL, NULL,
                       "the bodies of other requests use up memory_budget; try again");
}

/* jansson 2.14 passes over a NUL behind a number. The text is as long as it came, and nothing in it moved. */
static int refuse_nul(struct json_input *input, const char *nul)
{
    struct call *call = input->call;
    size_t line;
    size_t column;
    json_position((struct text){call->body, call->body_bytes}, (size_t)(nul - call->body), &line, &column);
    return call_refuse(call, ERR_INVALID_JSON, NULL, "line %zu, column %zu: a NUL byte between values", line, column);
}

enum { PARSING = JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL };

/* Short strings in place of the lifted arrays. After a failure the text is parsed once more with padded ones, so that
 * the message's line and column are those of the text. */
static json_t *parse(const struct json_input *input, json_error_t *ret_error)
{
    struct text text = {input->call->body, input->call->body_bytes};
    struct lifted_reader reader;
    lifted_reader_init(&reader, text, &input->lifted);
    json_t *root = input->lifted.count ? json_load_callback(lifted_read, &reader, PARSING, ret_error) : NULL;
    if (root)
        return root;
    lifted_overwrite(&input->lifted, input->call->body);
    root = json_loadb(text.data, text.length_bytes, PARSING, ret_error);
    if (!root && json_error_code(ret_error) == json_error_numeric_overflow)
        root = parse_big(text, PARSING, ret_error);
    return root;
}

int json_input_init(struct json_input *input, struct call *call, const char *const *lift)
{
    json_error_t error;
    *input = (struct json_input){.call = call};
    if (!call->body || call->body_bytes == 0)
        return call_refuse(call, ERR_INVALID_JSON, NULL, "line 1, column 1: the body is empty, expected a JSON object");
    if (lift)
        json_lift_numbers((struct text){call->body, call->body_bytes}, lift, &input->lifted);
    json_memory_begin();
    input->root = parse(input, &error);
    enum json_memory_end end = json_memory_end(&input->memory_bytes);
    const char *nul = input->root ? lifted_find_nul(&input->lifted, (struct text){call->body, call->body_bytes}) : NULL;
    if (input->root && !nul)
        return 0;
    json_decref(TAKE_PTR(input->root));
    if (input->memory_bytes >= TRIM_BYTES)
        json_memory_trim(); /* or it stays with this thread, and the next body takes as much on another */
    json_input_release(input);
    if (end != JSON_MEMORY_FITS)
        return refuse_memory(input, end);
    return nul ? refuse_nul(input, nul) : refuse_json(input, &error);
}
