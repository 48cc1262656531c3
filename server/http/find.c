/* Matching a raw path against the table. Segments are decoded after the split, so that %2F is part of a name, not a
 * separator. */
#include "server/http/find_private.h"

#include "server/base/utf8.h"

#include <stdio.h>

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Appends the decoded text; false for a broken escape, NUL, or broken UTF-8. */
bool percent_decode(struct text raw, bool plus_is_space, struct buffer *storage, struct text *ret_decoded)
{
    size_t start = storage->length_bytes;
    for (size_t i = 0; i < raw.length_bytes; i++) {
        char c = raw.data[i];
        if (c == '%') {
            if (i + 2 >= raw.length_bytes)
                return false;
            int high = hex_digit(raw.data[i + 1]);
            int low = hex_digit(raw.data[i + 2]);
            if (high < 0 || low < 0)
                return false;
            c = (char)(high << 4 | low);
            i += 2;
        } else if (c == '+' && plus_is_space) {
            c = ' ';
        }
        if (c == '\0')
            return false;
        buffer_append_byte(storage, c);
    }
    if (storage->failed)
        return false;
    *ret_decoded = (struct text){storage->data ? storage->data + start : "", storage->length_bytes - start};
    return utf8_is_valid(*ret_decoded, NULL);
}

/* Takes the part before the separator, or all of it, and the separator off the text. */
static struct text take_part(struct text *text, char separator)
{
    const char *found = memchr(text->data, separator, text->length_bytes);
    struct text part = {text->data, found ? (size_t)(found - text->data) : text->length_bytes};
    size_t used_bytes = part.length_bytes + (found != NULL);
    text->data += used_bytes;
    text->length_bytes -= used_bytes;
    return part;
}

/* Collects the raw segments that stand at {…}; false if the pattern does not fit. */
static bool pattern_fits(const char *pattern, struct text path, struct text args[CALL_ARGS_MAX], size_t *ret_count)
{
    struct text rest = text_of(pattern);
    *ret_count = 0;
    if (path.length_bytes > 0 && path.data[path.length_bytes - 1] == '/' && path.length_bytes > 1)
        return false;
    while (rest.length_bytes > 0 && path.length_bytes > 0) {
        struct text wanted = take_part(&rest, '/');
        struct text got = take_part(&path, '/');
        if (wanted.length_bytes > 0 && wanted.data[0] == '{') {
            if (got.length_bytes == 0)
                return false;
            args[(*ret_count)++] = got;
        } else if (!text_same(wanted, got)) {
            return false;
        }
    }
    return rest.length_bytes == 0 && path.length_bytes == 0;
}

const struct route *route_find(const struct route_table *table, const char *method, struct text raw_path,
                               struct call *call, struct buffer *storage, enum error_code *ret_error)
{
    struct text args[CALL_ARGS_MAX];
    size_t count;

    *ret_error = ERR_NOT_FOUND;
    for (size_t i = 0; i < table->count; i++) {
        if (!pattern_fits(table->rows[i].pattern, raw_path, args, &count))
            continue;
        *ret_error = ERR_METHOD_NOT_ALLOWED;
        if (strcmp(table->rows[i].method, method) != 0)
            continue;
        for (size_t arg = 0; arg < count; arg++)
            if (!percent_decode(args[arg], false, storage, &call->args[arg])) {
                *ret_error = ERR_BAD_REQUEST;
                return NULL;
            }
        call->arg_count = count;
        return &table->rows[i];
    }
    return NULL;
}

void route_allowed(const struct route_table *table, struct text raw_path, char ret_allow[64])
{
    struct text args[CALL_ARGS_MAX];
    size_t count;
    size_t used = 0;

    ret_allow[0] = '\0';
    for (size_t i = 0; i < table->count; i++)
        if (pattern_fits(table->rows[i].pattern, raw_path, args, &count) && used < 48)
            used += (size_t)snprintf(ret_allow + used, 64 - used, "%s%s", used ? ", " : "", table->rows[i].method);
}

int query_parse(struct text raw, struct call *call, struct buffer *storage)
{
    while (raw.length_bytes > 0) {
        struct text whole = take_part(&raw, '&');
        struct text rest = whole;
        struct text name = take_part(&rest, '=');
        struct query_parameter parameter = {TEXT_NONE, TEXT_NONE};

        if (!percent_decode(name, true, storage, &parameter.name) ||
            (name.length_bytes < whole.length_bytes && !percent_decode(rest, true, storage, &parameter.value)))
            return call_refuse(call, ERR_BAD_REQUEST, NULL, "the query has a broken escape, a NUL or broken UTF-8");
        if (whole.length_bytes == 0)
            continue;
        if (call->query_count == CALL_QUERY_MAX)
            return call_refuse(call, ERR_BAD_REQUEST, NULL, "more than %d query parameters", CALL_QUERY_MAX);
        call->query[call->query_count++] = parameter;
    }
    return 0;
}
