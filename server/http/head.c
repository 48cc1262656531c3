#include "server/http/head_private.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum { METHOD_BYTES_MAX = 32, IDENTITY_BYTES_MAX = 64 };

/* State of the lines while they are read. */
struct lines {
    struct head *head;
    unsigned fields;
    unsigned hosts;
    unsigned lengths;
    unsigned codings;
    bool version_1_0;
    bool keeps_alive;
};

static bool refuse(struct head *head, enum error_code code, const char *message)
{
    head->code = code;
    head->message = message;
    return false;
}

static bool bad(struct head *head, const char *message)
{
    return refuse(head, ERR_BAD_REQUEST, message);
}

bool head_is_token_byte(char byte)
{
    return isalnum((unsigned char)byte) || (byte && strchr("!#$%&'*+-.^_`|~", byte));
}

bool head_is_value_byte(char byte)
{
    unsigned char code = (unsigned char)byte;
    return code == '\t' || (code >= ' ' && code != 0x7F);
}

bool head_identity_is_sane(struct text identity)
{
    for (size_t i = 0; i < identity.length_bytes; i++)
        if (!isalnum((unsigned char)identity.data[i]) && (!identity.data[i] || !strchr("._-", identity.data[i])))
            return false;
    return identity.length_bytes > 0 && identity.length_bytes <= IDENTITY_BYTES_MAX;
}

static bool same_word(struct text text, const char *word)
{
    return text.length_bytes == strlen(word) && strncasecmp(text.data, word, text.length_bytes) == 0;
}

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t';
}

static struct text trimmed(struct text text)
{
    while (text.length_bytes && is_blank(text.data[0])) {
        text.data++;
        text.length_bytes--;
    }
    while (text.length_bytes && is_blank(text.data[text.length_bytes - 1]))
        text.length_bytes--;
    return text;
}

static unsigned count_byte(struct text text, char byte)
{
    unsigned count = 0;
    for (size_t i = 0; i < text.length_bytes; i++)
        count += text.data[i] == byte;
    return count;
}

/* --- the request line --- */

/* The part before the next blank, which is taken off. */
static struct text take_word(struct text *line)
{
    const char *blank = line->length_bytes ? memchr(line->data, ' ', line->length_bytes) : NULL;
    struct text word = {line->data, blank ? (size_t)(blank - line->data) : line->length_bytes};
    size_t taken_bytes = word.length_bytes + (blank != NULL);
    *line = (struct text){line->data + taken_bytes, line->length_bytes - taken_bytes};
    return word;
}

static bool read_method(struct head *head, struct text method)
{
    if (!method.length_bytes || method.length_bytes > METHOD_BYTES_MAX)
        return bad(head, "the request line begins with no method");
    for (size_t i = 0; i < method.length_bytes; i++)
        if (!head_is_token_byte(method.data[i]))
            return bad(head, "the request line begins with no method");
    head->method = method;
    return true;
}

static bool read_target(struct lines *lines, struct text target)
{
    struct head *head = lines->head;
    for (size_t i = 0; i < target.length_bytes; i++)
        if ((unsigned char)target.data[i] <= ' ' || target.data[i] == 0x7F)
            return bad(head, "the target has a control character");
    head->target = target;
    lines->fields += count_byte(target, '&');
    if (target.length_bytes &&
        (target.data[0] == '/' || (text_equals(target, "*") && text_equals(head->method, "OPTIONS"))))
        return true;
    return bad(head, "the target is no path that begins with /; this service is no proxy");
}

static bool read_version(struct lines *lines, struct text version)
{
    struct head *head = lines->head;
    lines->version_1_0 = text_equals(version, "HTTP/1.0");
    if (lines->version_1_0 || text_equals(version, "HTTP/1.1"))
        return true;
    bool some_version = version.length_bytes == 8 && memcmp(version.data, "HTTP/", 5) == 0 &&
                        isdigit((unsigned char)version.data[5]) && version.data[6] == '.' &&
                        isdigit((unsigned char)version.data[7]);
    if (some_version)
        return refuse(head, ERR_HTTP_VERSION, "this service speaks HTTP/1.1 and HTTP/1.0");
    return bad(head, "the request line is: method, one blank, path, one blank, HTTP/1.1");
}

/* Exactly one blank between the three. */
static bool read_request_line(struct lines *lines, struct text line)
{
    struct text method = take_word(&line);
    struct text target = take_word(&line);
    return read_method(lines->head, method) && read_target(lines, target) && read_version(lines, line);
}

/* --- header lines --- */

static bool read_host(struct lines *lines, struct text raw)
{
    (void)raw;
    return ++lines->hosts == 1 || bad(lines->head, "Host is given twice");
}

/* As the library compares: blanks in front are none of the value, blanks behind are. */
static struct text without_blanks_in_front(struct text raw)
{
    struct text value = trimmed(raw);
    value.length_bytes = (size_t)(raw.data + raw.length_bytes - value.data);
    return value;
}

static bool read_length(struct lines *lines, struct text raw)
{
    struct head *head = lines->head;
    struct text value = without_blanks_in_front(raw);
    if (++lines->lengths > 1)
        return bad(head, "one Content-Length, not more");
    if (!value.length_bytes)
        return bad(head, "Content-Length is no length");
    for (size_t i = 0; i < value.length_bytes; i++) {
        if (value.data[i] < '0' || value.data[i] > '9' || head->body_bytes > (INT64_MAX - 9) / 10)
            return bad(head, "Content-Length is no length");
        head->body_bytes = head->body_bytes * 10 + (uint64_t)(value.data[i] - '0');
    }
    return true;
}

static bool read_coding(struct lines *lines, struct text raw)
{
    struct head *head = lines->head;
    head->chunked = true;
    if (++lines->codings > 1 || !same_word(without_blanks_in_front(raw), "chunked"))
        return bad(head, "the only transfer coding understood is chunked, once");
    return true;
}

static bool read_connection(struct lines *lines, struct text value)
{
    while (value.length_bytes) {
        const char *comma = memchr(value.data, ',', value.length_bytes);
        size_t bytes = comma ? (size_t)(comma - value.data) : value.length_bytes;
        struct text word = trimmed((struct text){value.data, bytes});
        lines->head->last = lines->head->last || same_word(word, "close");
        lines->keeps_alive = lines->keeps_alive || same_word(word, "keep-alive");
        bytes += comma != NULL;
        value = (struct text){value.data + bytes, value.length_bytes - bytes};
    }
    return true;
}

static bool read_cookie(struct lines *lines, struct text value)
{
    lines->fields += count_byte(value, ';') + count_byte(value, ',');
    return true;
}

static bool read_identity(struct lines *lines, struct text value)
{
    lines->head->identity = trimmed(value);
    return true;
}

static const struct header_rule {
    const char *name;
    bool (*read)(struct lines *lines, struct text value);
} rules[] = {
    {"Host", read_host},
    {"Content-Length", read_length},
    {"Transfer-Encoding", read_coding},
    {"Connection", read_connection},
    {"Cookie", read_cookie},
    {"X-Request-Id", read_identity},
};

static bool read_header(struct lines *lines, struct text line)
{
    struct head *head = lines->head;
    if (is_blank(line.data[0]))
        return bad(head, "a header line begins with a blank (folded lines are not taken)");
    size_t name_bytes = 0;
    while (name_bytes < line.length_bytes && head_is_token_byte(line.data[name_bytes]))
        name_bytes++;
    if (!name_bytes || name_bytes == line.length_bytes || line.data[name_bytes] != ':')
        return bad(head, "a header line is: name, colon, value, with no blank before the colon");
    struct text name = {line.data, name_bytes};
    struct text value = {line.data + name_bytes + 1, line.length_bytes - name_bytes - 1};
    for (size_t i = 0; i < value.length_bytes; i++)
        if (!head_is_value_byte(value.data[i]))
            return bad(head, "the value of a header has a control character");
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
        if (same_word(name, rules[i].name))
            return rules[i].read(lines, value);
    return true;
}

/* --- the whole --- */

static enum head_verdict finish(const struct lines *lines, struct head *head)
{
    if (lines->lengths + lines->codings > 1)
        bad(head, "one Content-Length or one Transfer-Encoding, not both");
    else if (!lines->hosts && !lines->version_1_0)
        bad(head, "HTTP/1.1 wants a Host");
    else if (lines->version_1_0 && lines->codings)
        bad(head, "HTTP/1.0 has no chunks");
    else {
        head->last = head->last || (lines->version_1_0 && !lines->keeps_alive);
        return HEAD_GOOD;
    }
    return HEAD_BAD;
}

/* The next line, without its end. False with *ret_line.data NULL where it is not here in full yet. */
static bool take_line(struct head *head, struct text *rest, struct text *ret_line)
{
    const char *end = rest->length_bytes ? memchr(rest->data, '\n', rest->length_bytes) : NULL;
    *ret_line = TEXT_NONE;
    if (!end)
        return false;
    size_t length_bytes = (size_t)(end - rest->data);
    *ret_line = (struct text){rest->data, length_bytes ? length_bytes - 1 : 0};
    if (!length_bytes || end[-1] != '\r')
        return bad(head, "lines end with CR and LF, not with LF alone");
    if (ret_line->length_bytes && memchr(ret_line->data, '\r', ret_line->length_bytes))
        return bad(head, "a CR stands in the middle of a line");
    *rest = (struct text){end + 1, rest->length_bytes - length_bytes - 1};
    return true;
}

/* The beginning of a line: whether it can become one. */
static enum head_verdict look_at_beginning(struct head *head, struct text rest, bool request_line)
{
    for (size_t i = 0; i < rest.length_bytes; i++) {
        bool end = rest.data[i] == '\r' && i + 1 == rest.length_bytes;
        if (!end && !head_is_value_byte(rest.data[i])) {
            bad(head, request_line ? "this is no request of HTTP/1.1" : "a header has a control character");
            return HEAD_BAD;
        }
    }
    return HEAD_INCOMPLETE;
}

enum head_verdict head_read(const char *bytes, size_t length_bytes, struct head *ret_head)
{
    struct text rest = {bytes, length_bytes < HEAD_BYTES_MAX ? length_bytes : HEAD_BYTES_MAX};
    struct lines lines = {.head = ret_head};
    *ret_head = (struct head){.length_bytes = 0};

    for (unsigned count = 0;; count++) {
        struct text line;
        if (!take_line(ret_head, &rest, &line)) {
            if (line.data || look_at_beginning(ret_head, rest, count == 0) == HEAD_BAD)
                return HEAD_BAD;
            break;
        }
        if (count && !line.length_bytes) {
            ret_head->length_bytes = (size_t)(rest.data - bytes);
            return finish(&lines, ret_head);
        }
        if (!(count ? read_header(&lines, line) : read_request_line(&lines, line)))
            return HEAD_BAD;
        if (++lines.fields > HEAD_FIELDS_MAX)
            break;
    }
    if (lines.fields <= HEAD_FIELDS_MAX && length_bytes < HEAD_BYTES_MAX)
        return HEAD_INCOMPLETE;
    refuse(ret_head, ERR_HEAD_TOO_LARGE,
           "the head of a request has at most 32 KiB and 256 headers, parameters and cookies");
    return HEAD_BAD;
}
