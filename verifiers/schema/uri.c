#include "verifiers/schema/schema_private.h"

/* The parts of a URI reference (RFC 3986, appendix B), the fragment left out. */
struct parts {
    struct text scheme;    /* TEXT_NONE: none; with its colon */
    struct text authority; /* with its two slashes */
    struct text path;
    struct text query; /* with its question mark */
};

static struct text take(struct text *rest, size_t length_bytes)
{
    struct text taken = {rest->data, length_bytes};

    rest->data += length_bytes;
    rest->length_bytes -= length_bytes;
    return taken;
}

static size_t up_to(struct text text, const char *bytes, size_t from)
{
    while (from < text.length_bytes && (text.data[from] == '\0' || !strchr(bytes, text.data[from])))
        from++;
    return from;
}

static bool is_scheme(struct text text)
{
    for (size_t i = 0; i < text.length_bytes; i++) {
        char byte = (char)(text.data[i] | 0x20);
        bool letter = byte >= 'a' && byte <= 'z';
        bool other = (text.data[i] >= '0' && text.data[i] <= '9') || text.data[i] == '+' || text.data[i] == '-' ||
                     text.data[i] == '.';
        if (!letter && (i == 0 || !other))
            return false;
    }
    return text.length_bytes > 0;
}

static struct parts split(struct text uri)
{
    struct parts parts = {.scheme = TEXT_NONE};
    size_t colon = up_to(uri, ":/?", 0);

    if (colon < uri.length_bytes && uri.data[colon] == ':' && is_scheme((struct text){uri.data, colon}))
        parts.scheme = take(&uri, colon + 1);
    if (uri.length_bytes >= 2 && uri.data[0] == '/' && uri.data[1] == '/')
        parts.authority = take(&uri, up_to(uri, "/?", 2));
    parts.path = take(&uri, up_to(uri, "?", 0));
    parts.query = uri.length_bytes ? uri : TEXT_NONE;
    return parts;
}

static bool is_segment(struct text text, size_t at, size_t end, const char *segment)
{
    return text_equals((struct text){text.data + at, end - at}, segment);
}

/* Appends the path without its "." and ".." (section 5.2.4). `begin`: of the path in `out`. */
static void append_path(struct text path, struct buffer *out)
{
    size_t begin = out->length_bytes;

    for (size_t at = 0; at < path.length_bytes;) {
        bool slash = path.data[at] == '/';
        size_t end = up_to(path, "/", at + slash);
        bool last = end == path.length_bytes;
        if (is_segment(path, at + slash, end, ".")) {
            if (last && slash)
                buffer_append_byte(out, '/');
        } else if (is_segment(path, at + slash, end, "..")) {
            while (out->length_bytes > begin && out->data[--out->length_bytes] != '/')
                ;
            if (last && slash)
                buffer_append_byte(out, '/');
        } else {
            buffer_append(out, path.data + at, end - at);
        }
        at = end;
    }
}

/* The base's path up to its last slash, and the reference's behind it (section 5.2.3). */
static void append_merged(const struct parts *base, struct text path, struct buffer *out)
{
    _cleanup_buffer_ struct buffer merged;
    size_t keep = base->path.length_bytes;

    buffer_init(&merged, SCHEMA_URI_BYTES);
    while (keep > 0 && base->path.data[keep - 1] != '/')
        keep--;
    if (base->authority.data && base->path.length_bytes == 0)
        buffer_append_byte(&merged, '/');
    buffer_append(&merged, base->path.data, keep);
    buffer_append(&merged, path.data, path.length_bytes);
    append_path(buffer_text(&merged), out);
}

static void append(struct text text, struct buffer *out)
{
    if (text.data)
        buffer_append(out, text.data, text.length_bytes);
}

void uri_resolve(struct text base, struct text reference, struct buffer *out)
{
    struct parts from = split(base);
    struct parts to = split(reference);

    if (to.scheme.data || to.authority.data) {
        append(to.scheme.data ? to.scheme : from.scheme, out);
        append(to.authority, out);
        append_path(to.path, out);
        append(to.query, out);
        return;
    }
    append(from.scheme, out);
    append(from.authority, out);
    if (to.path.length_bytes == 0) {
        append(from.path, out);
        append(to.query.data ? to.query : from.query, out);
        return;
    }
    if (to.path.data[0] == '/')
        append_path(to.path, out);
    else
        append_merged(&from, to.path, out);
    append(to.query, out);
}

static int hex_digit(char byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    byte |= 0x20;
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

bool uri_split(struct text reference, struct text *ret_whole, struct buffer *fragment, bool *ret_has_fragment)
{
    size_t mark = up_to(reference, "#", 0);

    *ret_whole = (struct text){reference.data, mark};
    *ret_has_fragment = mark < reference.length_bytes;
    for (size_t i = mark + 1; i < reference.length_bytes; i++) {
        char byte = reference.data[i];
        if (byte == '%') {
            if (i + 2 >= reference.length_bytes || hex_digit(reference.data[i + 1]) < 0 ||
                hex_digit(reference.data[i + 2]) < 0)
                return false;
            byte = (char)(hex_digit(reference.data[i + 1]) * 16 + hex_digit(reference.data[i + 2]));
            i += 2;
        }
        buffer_append_byte(fragment, byte);
    }
    return !fragment->failed;
}
