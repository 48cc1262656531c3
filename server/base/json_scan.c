#include "server/base/json_scan.h"

#include "server/base/number.h"
#include "server/base/utf8.h"

#include <math.h>
#include <strings.h>

void json_scan_init(struct json_scan *scan, struct text text)
{
    scan->start = scan->at = text.data ? text.data : "";
    scan->end = scan->start + text.length_bytes;
    scan->error = NULL;
    scan->replaced = 0;
    scan->depth = 0;
}

static bool fail(struct json_scan *scan, const char *error)
{
    if (!scan->error)
        scan->error = error;
    return false;
}

static inline bool is_blank(char byte)
{
    return byte == ' ' || byte == '\n' || byte == '\t' || byte == '\r';
}

static inline void skip_blanks(struct json_scan *scan)
{
    while (scan->at < scan->end && is_blank(*scan->at))
        scan->at++;
}

/* The next byte that is no blank, or 0 (which no value begins with) after an error or at the end. */
static inline char next_byte(struct json_scan *scan)
{
    if (scan->error)
        return '\0';
    skip_blanks(scan);
    return scan->at < scan->end ? *scan->at : '\0';
}

static bool word_at(const struct json_scan *scan, const char *at, const char *word, bool any_case)
{
    size_t length = strlen(word);
    if ((size_t)(scan->end - at) < length)
        return false;
    if (any_case ? strncasecmp(at, word, length) != 0 : memcmp(at, word, length) != 0)
        return false;
    at += length;
    return at == scan->end || *at == ',' || *at == ']' || *at == '}' || is_blank(*at);
}

/* NaN and infinities as Python, JavaScript, Go and C write them. Returns the place behind, or NULL. */
static const char *non_finite_at(const struct json_scan *scan, double *ret_value)
{
    static const struct {
        const char *word;
        double value;
    } words[] = {{"nan", NAN}, {"infinity", INFINITY}, {"inf", INFINITY}};
    const char *at = scan->at;
    bool negative = *at == '-';
    at += negative || *at == '+';
    for (size_t i = 0; i < ARRAY_LENGTH(words); i++)
        if (word_at(scan, at, words[i].word, true)) {
            *ret_value = negative ? -words[i].value : words[i].value;
            return at + strlen(words[i].word);
        }
    return NULL;
}

enum json_kind json_scan_peek(struct json_scan *scan)
{
    double ignored;
    switch (next_byte(scan)) {
    case '{':
        return JSON_KIND_OBJECT;
    case '[':
        return JSON_KIND_ARRAY;
    case '"':
        return JSON_KIND_STRING;
    case 't':
    case 'f':
        return JSON_KIND_BOOL;
    case '-':
    case '0' ... '9':
        return JSON_KIND_NUMBER;
    case '\0':
        return JSON_KIND_NONE;
    default:
        if (non_finite_at(scan, &ignored))
            return JSON_KIND_NUMBER;
        return *scan->at == 'n' ? JSON_KIND_NULL : JSON_KIND_NONE;
    }
}

/* --- containers --- */

static bool enter(struct json_scan *scan, char opening, bool object, const char *error)
{
    if (next_byte(scan) != opening)
        return fail(scan, error);
    if (scan->depth == ARRAY_LENGTH(scan->first))
        return fail(scan, "nested too deep");
    scan->first[scan->depth] = true;
    scan->object[scan->depth] = object;
    scan->depth++;
    scan->at++;
    return true;
}

bool json_scan_object(struct json_scan *scan)
{
    return enter(scan, '{', true, "expected an object");
}

bool json_scan_array(struct json_scan *scan)
{
    return enter(scan, '[', false, "expected an array");
}

/* To the next item of the innermost container; false at its end, which is consumed, or on an error. */
static bool advance(struct json_scan *scan, char closing, const char *error)
{
    char byte = next_byte(scan);
    if (scan->error || scan->depth == 0)
        return fail(scan, "not inside of an array or object");
    bool *first = &scan->first[scan->depth - 1];
    if (byte == closing) {
        scan->at++;
        scan->depth--;
        return false;
    }
    if (*first) {
        *first = false;
        return byte != '\0' || fail(scan, error);
    }
    if (byte != ',')
        return fail(scan, error);
    scan->at++;
    byte = next_byte(scan);
    return (byte != '\0' && byte != closing) || fail(scan, "expected a value after the comma");
}

bool json_scan_element(struct json_scan *scan)
{
    return advance(scan, ']', "expected a comma or ]");
}

/* --- strings --- */

/* Bytes that end a run inside a string: quote, backslash, control characters. */
static inline bool ends_run(unsigned char byte)
{
    return byte == '"' || byte == '\\' || byte < 0x20;
}

static const char *find_run_end(const char *at, const char *end)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    const uint64_t tops = UINT64_C(0x8080808080808080);
    while (end - at >= 8) {
        uint64_t word;
        memcpy(&word, at, sizeof(word));
        uint64_t quotes = word ^ ones * '"';
        uint64_t slashes = word ^ ones * '\\';
        uint64_t found = ((quotes - ones) & ~quotes) | ((slashes - ones) & ~slashes) | ((word - ones * 0x20) & ~word);
        if (found & tops)
            break;
        at += 8;
    }
    while (at < end && !ends_run((unsigned char)*at))
        at++;
    return at;
}

static bool read_hex(const char *at, const char *end, uint32_t *ret_value)
{
    uint32_t value = 0;
    if (end - at < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        unsigned char byte = (unsigned char)at[i];
        unsigned char letter = byte | 0x20;
        if (byte >= '0' && byte <= '9')
            value = value << 4 | (uint32_t)(byte - '0');
        else if (letter >= 'a' && letter <= 'f')
            value = value << 4 | (uint32_t)(letter - 'a' + 10);
        else
            return false;
    }
    *ret_value = value;
    return true;
}

/* Behind "\u". A pair of surrogates is one character; a lone one is replaced and counted. */
static bool read_unicode(struct json_scan *scan, struct buffer *out)
{
    uint32_t code;
    uint32_t low;
    if (!read_hex(scan->at, scan->end, &code))
        return fail(scan, "\\u needs four hexadecimal digits");
    scan->at += 4;
    if (code >= 0xD800 && code <= 0xDBFF && scan->end - scan->at >= 6 && scan->at[0] == '\\' && scan->at[1] == 'u' &&
        read_hex(scan->at + 2, scan->end, &low) && low >= 0xDC00 && low <= 0xDFFF) {
        scan->at += 6;
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    if (code >= 0xD800 && code <= 0xDFFF)
        scan->replaced++;
    if (out)
        utf8_append(out, code);
    return true;
}

static bool read_escape(struct json_scan *scan, struct buffer *out)
{
    static const char letters[] = "\"\\/bfnrt";
    static const char meanings[] = "\"\\/\b\f\n\r\t";
    if (scan->end - scan->at < 2)
        return fail(scan, "the text ends inside a string");
    if (scan->at[1] == 'u') {
        scan->at += 2;
        return read_unicode(scan, out);
    }
    const char *letter = memchr(letters, scan->at[1], sizeof(letters) - 1);
    if (!letter)
        return fail(scan, "unknown escape in a string");
    if (out)
        buffer_append_byte(out, meanings[letter - letters]);
    scan->at += 2;
    return true;
}

/* out may be NULL: checked only. */
static bool read_string(struct json_scan *scan, struct buffer *out)
{
    if (next_byte(scan) != '"')
        return fail(scan, "expected a string");
    scan->at++;
    for (;;) {
        const char *run_end = find_run_end(scan->at, scan->end);
        if (out && run_end > scan->at)
            scan->replaced += utf8_append_mended(out, (struct text){scan->at, (size_t)(run_end - scan->at)});
        scan->at = run_end;
        if (run_end == scan->end)
            return fail(scan, "the text ends inside a string");
        if (*run_end == '"')
            break;
        if (*run_end != '\\')
            return fail(scan, "a control character inside a string");
        if (!read_escape(scan, out))
            return false;
    }
    scan->at++;
    return true;
}

bool json_scan_string(struct json_scan *scan, struct buffer *out)
{
    if (!read_string(scan, out))
        return false;
    return !out->failed || fail(scan, "a string is too long");
}

/* As json_scan_member(), and a lone surrogate in the key counts as replaced. */
static bool next_member(struct json_scan *scan, struct text *ret_key)
{
    if (!advance(scan, '}', "expected a comma or }"))
        return false;
    const char *opening = scan->at;
    if (!read_string(scan, NULL))
        return false;
    *ret_key = (struct text){opening + 1, (size_t)(scan->at - opening) - 2};
    if (next_byte(scan) != ':')
        return fail(scan, "expected a colon");
    scan->at++;
    return true;
}

bool json_scan_member(struct json_scan *scan, struct text *ret_key)
{
    uint64_t replaced = scan->replaced;
    bool more = next_member(scan, ret_key);
    scan->replaced = replaced;
    return more;
}

/* --- scalars --- */

static bool read_number(struct json_scan *scan, bool strict, struct number *ret_number)
{
    char byte = next_byte(scan);
    if (byte == '\0')
        return fail(scan, "expected a number");
    const char *behind = number_parse(scan->at, scan->end, ret_number);
    if (!behind && !strict) {
        ret_number->is_integer = false;
        behind = non_finite_at(scan, &ret_number->value);
    } else if (behind && isinf(ret_number->value) && !strict) {
        return fail(scan, "a number beyond the range of double");
    }
    if (!behind)
        return fail(scan, "expected a number");
    scan->at = behind;
    return true;
}

bool json_scan_number(struct json_scan *scan, double *ret_value)
{
    struct number number;
    if (!read_number(scan, false, &number))
        return false;
    *ret_value = number.value;
    return true;
}

bool json_scan_integer(struct json_scan *scan, int64_t *ret_value)
{
    struct number number;
    const char *at = scan->at;
    if (!read_number(scan, true, &number))
        return false;
    if (!number.is_integer) {
        scan->at = at;
        return fail(scan, "expected an integer of 64 bits");
    }
    *ret_value = number.integer;
    return true;
}

static bool read_word(struct json_scan *scan, const char *word)
{
    if (next_byte(scan) != word[0] || !word_at(scan, scan->at, word, false))
        return false;
    scan->at += strlen(word);
    return true;
}

bool json_scan_bool(struct json_scan *scan, bool *ret_value)
{
    if (read_word(scan, "true"))
        *ret_value = true;
    else if (read_word(scan, "false"))
        *ret_value = false;
    else
        return fail(scan, "expected true or false");
    return true;
}

bool json_scan_null(struct json_scan *scan)
{
    return read_word(scan, "null");
}

/* --- any value --- */

/* Consumes a scalar, or enters a container. */
static bool begin_value(struct json_scan *scan, bool strict)
{
    struct number number;
    bool ignored;
    switch (json_scan_peek(scan)) {
    case JSON_KIND_OBJECT:
        return json_scan_object(scan);
    case JSON_KIND_ARRAY:
        return json_scan_array(scan);
    case JSON_KIND_STRING:
        return read_string(scan, NULL);
    case JSON_KIND_NUMBER:
        return read_number(scan, strict, &number);
    case JSON_KIND_BOOL:
        return json_scan_bool(scan, &ignored);
    case JSON_KIND_NULL:
        return json_scan_null(scan) || fail(scan, "expected a value");
    case JSON_KIND_NONE:
        break;
    }
    return fail(scan, "expected a value");
}

/* Strict: refuses what may not be handed on as JSON. */
static bool skip(struct json_scan *scan, bool strict)
{
    struct text key;
    uint8_t depth = scan->depth;
    uint64_t replaced = scan->replaced;
    do {
        if (!begin_value(scan, strict))
            return false;
        while (scan->depth > depth &&
               !(scan->object[scan->depth - 1] ? next_member(scan, &key) : json_scan_element(scan)))
            if (scan->error)
                return false;
    } while (scan->depth > depth);
    bool mended = scan->replaced > replaced;
    scan->replaced = replaced;
    return !(strict && mended) || fail(scan, "a lone surrogate");
}

bool json_scan_skip(struct json_scan *scan)
{
    return skip(scan, false);
}

struct text json_scan_raw(struct json_scan *scan)
{
    next_byte(scan);
    struct text raw = {scan->at, 0};
    if (!skip(scan, true))
        return TEXT_NONE;
    raw.length_bytes = (size_t)(scan->at - raw.data);
    if (utf8_is_valid(raw, NULL))
        return raw;
    scan->at = raw.data;
    fail(scan, "broken UTF-8");
    return TEXT_NONE;
}

/* --- arrays of numbers --- */

/* Behind a value: over the comma (true), or over the closing bracket (false). */
static inline bool next_in_array(struct json_scan *scan)
{
    if (scan->at < scan->end && *scan->at == ',') {
        scan->at++;
        skip_blanks(scan);
        scan->first[scan->depth - 1] = false;
        return true;
    }
    if (!json_scan_element(scan))
        return false;
    return true;
}

ssize_t json_scan_floats(struct json_scan *scan, float *values, size_t limit)
{
    struct number number;
    size_t count = 0;
    if (!json_scan_array(scan))
        return -1;
    for (bool more = json_scan_element(scan); more; more = next_in_array(scan)) {
        if (count == limit) {
            fail(scan, "more numbers than expected");
            return -1;
        }
        const char *behind = number_parse(scan->at, scan->end, &number);
        if (behind && !isinf(number.value))
            scan->at = behind;
        else if (json_scan_null(scan))
            number.value = NAN;
        else if (!read_number(scan, false, &number))
            return -1;
        values[count++] = (float)number.value;
    }
    return scan->error ? -1 : (ssize_t)count;
}

ssize_t json_scan_u32(struct json_scan *scan, uint32_t *values, size_t limit)
{
    struct number number;
    size_t count = 0;
    if (!json_scan_array(scan))
        return -1;
    for (bool more = json_scan_element(scan); more; more = next_in_array(scan)) {
        if (count == limit) {
            fail(scan, "more numbers than expected");
            return -1;
        }
        const char *behind = number_parse(scan->at, scan->end, &number);
        if (!behind || !number.is_integer || number.integer < 0 || number.integer > UINT32_MAX) {
            fail(scan, "expected an integer from 0 to 4294967295");
            return -1;
        }
        scan->at = behind;
        values[count++] = (uint32_t)number.integer;
    }
    return scan->error ? -1 : (ssize_t)count;
}

/* --- the end --- */

bool json_scan_ok(const struct json_scan *scan)
{
    return !scan->error;
}

bool json_scan_end(struct json_scan *scan)
{
    next_byte(scan);
    if (scan->error)
        return false;
    if (scan->depth > 0)
        return fail(scan, "the text ends too early");
    return scan->at == scan->end || fail(scan, "something follows the value");
}

void json_position(struct text text, size_t offset_bytes, size_t *ret_line, size_t *ret_column)
{
    size_t line = 1;
    const char *line_start = text.data;
    const char *at = text.data + (offset_bytes < text.length_bytes ? offset_bytes : text.length_bytes);
    const char *feed;
    while (line_start < at && (feed = memchr(line_start, '\n', (size_t)(at - line_start)))) {
        line++;
        line_start = feed + 1;
    }
    *ret_line = line;
    *ret_column = (size_t)(at - line_start) + 1;
}
