/* From a body's bytes to jansson's tree, or to a refusal that names the place. */
#include "server/base/number.h"
#include "server/input/input_private.h"
#include "server/input/memory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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

/* Over a scalar, or into a container. False at the number that is looked for, and on an error. */
static bool pass_value(struct json_scan *scan, struct trail *trail)
{
    struct number number;
    enum json_kind kind = json_scan_peek(scan);
    if (kind == JSON_KIND_OBJECT || kind == JSON_KIND_ARRAY) {
        bool entered = kind == JSON_KIND_OBJECT ? json_scan_object(scan) : json_scan_array(scan);
        if (entered)
            trail->indexes[scan->depth - 1] = SIZE_MAX;
        return entered;
    }
    if (kind == JSON_KIND_NUMBER && number_parse(scan->at, scan->end, &number) &&
        (isinf(number.value) || (!number.has_fraction && !number.is_integer)))
        return false;
    return json_scan_skip(scan);
}

static bool find_overflow(struct text text, char ret_path[PATH_BYTES])
{
    struct json_scan scan;
    struct trail trail = {0};
    json_scan_init(&scan, text);
    do {
        if (!pass_value(&scan, &trail)) {
            trail_path(&scan, &trail, ret_path);
            return !scan.error;
        }
    } while (next_value(&scan, &trail));
    return false;
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
    return json_loadb(text.data, text.length_bytes, PARSING, ret_error);
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
