#include "server/base/log.h"

#include "server/base/clock.h"
#include "server/base/json_write.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>

enum { LONGEST_VALUE_BYTES = 512, LONGEST_LINE_BYTES = 64 * 1024 };

static const char *const level_names[] = {"debug", "info", "warning", "error"};

static enum log_level minimum_level = LOG_LEVEL_INFO;
static enum log_format line_format = LOG_FORMAT_TEXT;

void log_setup(enum log_level minimum, enum log_format format)
{
    minimum_level = minimum;
    line_format = format;
}

/* Not in the middle of a character. */
static struct text cut(const char *value)
{
    size_t length = strnlen(value, LONGEST_VALUE_BYTES + 1);
    if (length > LONGEST_VALUE_BYTES)
        for (length = LONGEST_VALUE_BYTES; length > 0 && ((unsigned char)value[length] & 0xC0) == 0x80;)
            length--;
    return (struct text){value, length};
}

/* How many bytes of a character that JSON may carry as it is, and that ends a line or commands a terminal: U+0080 to
 * U+009F, U+2028, U+2029. 0: another one. */
static size_t unsafe_bytes(const char *at, size_t left)
{
    if (left >= 2 && (unsigned char)at[0] == 0xC2 && (unsigned char)at[1] >= 0x80 && (unsigned char)at[1] < 0xA0)
        return 2;
    return left >= 3 && (memcmp(at, "\u2028", 3) == 0 || memcmp(at, "\u2029", 3) == 0) ? 3 : 0;
}

/* A question mark in the place of each. */
static struct text defused(struct text value, char room[static LONGEST_VALUE_BYTES])
{
    size_t length = 0;
    for (size_t i = 0; i < value.length_bytes;) {
        size_t unsafe = unsafe_bytes(value.data + i, value.length_bytes - i);
        room[length++] = unsafe ? '?' : value.data[i];
        i += unsafe ? unsafe : 1;
    }
    return (struct text){room, length};
}

static bool is_plain(struct text value)
{
    for (size_t i = 0; i < value.length_bytes; i++)
        if (value.data[i] <= ' ' || value.data[i] > '~' || strchr("\"\\=", value.data[i]))
            return false;
    return value.length_bytes > 0;
}

static void write_key(struct json_write *json, const char *key)
{
    if (line_format == LOG_FORMAT_JSON) {
        json_key(json, key);
        return;
    }
    buffer_append_byte(json->out, ' ');
    buffer_append_string(json->out, key);
    buffer_append_byte(json->out, '=');
    json_write_init(json, json->out); /* each value is a document of its own */
}

static void write_text(struct json_write *json, const char *key, struct text value)
{
    write_key(json, key);
    if (line_format == LOG_FORMAT_TEXT && is_plain(value))
        buffer_append(json->out, value.data, value.length_bytes);
    else
        json_text(json, value);
}

static void write_pair(struct json_write *json, const char *key, va_list *pairs)
{
    if (key[0] == LOG_INT_MARK[0]) {
        write_key(json, key + 1);
        json_int(json, va_arg(*pairs, int64_t));
    } else if (key[0] == LOG_BOOL_MARK[0]) {
        write_key(json, key + 1);
        json_bool(json, va_arg(*pairs, int) != 0);
    } else {
        const char *value = va_arg(*pairs, const char *);
        char room[LONGEST_VALUE_BYTES];
        if (value)
            write_text(json, key, defused(cut(value), room));
    }
}

static void write_head(struct json_write *json, enum log_level level, const char *event)
{
    char now[RFC3339_BYTES];
    clock_format_rfc3339(clock_utc_us(), now);
    if (line_format == LOG_FORMAT_TEXT) {
        buffer_append_format(json->out, "%s %s %s", now, level_names[level], event);
        return;
    }
    json_object_begin(json);
    json_put_string(json, "time", now);
    json_put_string(json, "level", level_names[level]);
    json_put_string(json, "event", event);
}

static void write_line(const struct buffer *line)
{
    const char *at = line->data;
    size_t left = line->length_bytes;
    while (left) {
        ssize_t written = write(STDERR_FILENO, at, left);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0) /* a log that cannot be written ends nothing else */
            return;
        at += written;
        left -= (size_t)written;
    }
}

void log_event(enum log_level level, const char *event, ...)
{
    if (level < minimum_level)
        return;
    int saved_errno = errno;
    _cleanup_buffer_ struct buffer line;
    struct json_write json;
    buffer_init(&line, LONGEST_LINE_BYTES);
    json_write_init(&json, &line);
    write_head(&json, level, event);
    va_list pairs;
    va_start(pairs, event);
    for (const char *key; (key = va_arg(pairs, const char *));)
        write_pair(&json, key, &pairs);
    va_end(pairs);
    if (line_format == LOG_FORMAT_JSON)
        json_object_end(&json);
    buffer_append_byte(&line, '\n');
    write_line(&line);
    errno = saved_errno;
}
