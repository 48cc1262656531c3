/* From an engine's refusal (status, error object, Retry-After) to a sample's error. */
#include "client/adapters/reply.h"
#include "server/base/clock.h"
#include "server/base/utf8.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define RETRY_AFTER_MAX_US (3600 * US_PER_S)
#define QUOTED_BYTES 180 /* of the engine's message */

/* --- messages ------------------------------------------------------------------------------------ */

/* Valid UTF-8, no control characters, cut at a character. */
static void copy_printable(char *out, size_t size_bytes, struct text text)
{
    _cleanup_buffer_ struct buffer mended;
    size_t length_bytes;

    buffer_init(&mended, 8192);
    utf8_append_mended(&mended, text);
    length_bytes = mended.length_bytes < size_bytes ? mended.length_bytes : size_bytes - 1;
    while (length_bytes && length_bytes < mended.length_bytes &&
           ((unsigned char)mended.data[length_bytes] & 0xC0) == 0x80)
        length_bytes--;
    for (size_t i = 0; i < length_bytes; i++)
        out[i] = (unsigned char)mended.data[i] < 0x20 || mended.data[i] == 0x7F ? ' ' : mended.data[i];
    out[length_bytes] = '\0';
}

static void error_message_list(struct sample_error *error, const char *format, va_list arguments) _printf_(2, 0);
static void error_message_list(struct sample_error *error, const char *format, va_list arguments)
{
    char raw[2 * SAMPLE_MESSAGE_BYTES];
    int length = vsnprintf(raw, sizeof(raw), format, arguments);

    if (length < 0)
        length = 0;
    copy_printable(error->message, sizeof(error->message),
                   (struct text){raw, (size_t)length < sizeof(raw) ? (size_t)length : sizeof(raw) - 1});
}

void error_message(struct sample_error *error, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    error_message_list(error, format, arguments);
    va_end(arguments);
}

enum exchange_outcome refuse_reply(struct sample_error *ret_error, enum sample_failure code, const char *format, ...)
{
    va_list arguments;

    ret_error->code = code;
    ret_error->resample = code == SAMPLE_INVALID_REPLY || code == SAMPLE_NON_FINITE_LOGPROB;
    ret_error->retryable = ret_error->resample;
    va_start(arguments, format);
    error_message_list(ret_error, format, arguments);
    va_end(arguments);
    return EXCHANGE_ERROR;
}

/* The beginning of a text, for a message; NUL and control characters become blanks. */
static void quote(char out[QUOTED_BYTES], struct text text)
{
    struct text head = {text.data, text.length_bytes < 2 * QUOTED_BYTES ? text.length_bytes : 2 * QUOTED_BYTES};
    char spaced[2 * QUOTED_BYTES];

    for (size_t i = 0; i < head.length_bytes; i++)
        spaced[i] = head.data[i] ? head.data[i] : ' ';
    copy_printable(out, QUOTED_BYTES, (struct text){spaced, head.length_bytes});
}

enum exchange_outcome refuse_bytes(struct sample_error *ret_error, const struct json_scan *scan,
                                   const struct engine_reply *reply)
{
    char head[QUOTED_BYTES];
    size_t line;
    size_t column;

    ret_error->code = SAMPLE_INVALID_REPLY;
    ret_error->retryable = true;
    ret_error->resample = false;
    quote(head, (struct text){reply->body.data, reply->body.length_bytes < 60 ? reply->body.length_bytes : 60});
    if (!reply->body.length_bytes) {
        error_message(ret_error, "the engine answered %d with an empty body", reply->status);
        return EXCHANGE_ERROR;
    }
    json_position(reply->body, (size_t)(scan->at - scan->start), &line, &column);
    error_message(ret_error, "the reply is not the JSON it should be (line %zu, column %zu: %s); it begins: %s", line,
                  column, scan->error ? scan->error : "something follows it", head);
    return EXCHANGE_ERROR;
}

/* --- the error object ---------------------------------------------------------------------------- */

#define ERROR_TEXT_BYTES (64 * 1024)

static void read_error_text(struct json_scan *scan, struct buffer *out)
{
    buffer_finish(out);
    buffer_init(out, ERROR_TEXT_BYTES);
    if (json_scan_peek(scan) == JSON_KIND_STRING)
        json_scan_string(scan, out);
    else {
        struct text raw = json_scan_raw(scan);

        if (raw.data)
            buffer_append(out, raw.data, raw.length_bytes < QUOTED_BYTES ? raw.length_bytes : QUOTED_BYTES);
    }
}

static void read_error_code(struct json_scan *scan, struct engine_error *error)
{
    if (json_scan_peek(scan) == JSON_KIND_NUMBER)
        error->code_number = scan_integer_or(scan, 0);
    else if (!json_scan_null(scan))
        read_error_text(scan, &error->code);
}

static bool read_error_member(struct json_scan *scan, struct engine_error *error, struct text key)
{
    if (text_equals(key, "message") || text_equals(key, "detail"))
        read_error_text(scan, &error->message);
    else if (text_equals(key, "type") || text_equals(key, "error_type"))
        read_error_text(scan, &error->type);
    else if (text_equals(key, "code"))
        read_error_code(scan, error);
    else
        return false;
    return true;
}

void scan_error_object(struct json_scan *scan, struct engine_error *error)
{
    struct text key;

    if (json_scan_null(scan))
        return;
    error->present = true;
    if (json_scan_peek(scan) != JSON_KIND_OBJECT) {
        read_error_text(scan, &error->message);
        return;
    }
    for (json_scan_object(scan); json_scan_member(scan, &key);)
        if (!read_error_member(scan, error, key))
            json_scan_skip(scan);
}

void engine_error_finish(struct engine_error *error)
{
    buffer_finish(&error->message);
    buffer_finish(&error->type);
    buffer_finish(&error->code);
}

/* The body of a reply that is no success: nested or flat. A body that is no JSON leaves the error absent. */
static void read_error_body(struct text body, struct engine_error *ret_error)
{
    struct json_scan scan;
    struct text key;

    *ret_error = (struct engine_error){.present = false};
    json_scan_init(&scan, body);
    if (json_scan_peek(&scan) != JSON_KIND_OBJECT)
        return;
    for (json_scan_object(&scan); json_scan_member(&scan, &key);) {
        if (text_equals(key, "error"))
            scan_error_object(&scan, ret_error);
        else if (!read_error_member(&scan, ret_error, key))
            json_scan_skip(&scan);
    }
    ret_error->present = ret_error->present || ret_error->message.length_bytes > 0;
}

/* --- Retry-After --------------------------------------------------------------------------------- */

static int64_t seconds_us(struct text digits)
{
    int64_t seconds = 0;

    for (size_t i = 0; i < digits.length_bytes; i++) {
        if (!isdigit((unsigned char)digits.data[i]))
            return 0;
        seconds = seconds * 10 + (digits.data[i] - '0');
        if (seconds > RETRY_AFTER_MAX_US / US_PER_S)
            return RETRY_AFTER_MAX_US;
    }
    return seconds * US_PER_S;
}

static int64_t date_us(struct text value, int64_t now_utc_us)
{
    /* Not strptime(): month names must be English in every locale. RFC 9110 section 5.6.7, the form that is still
     * written. */
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    char copy[40];
    char month[4];
    char zone[4];
    struct tm tm = {.tm_isdst = 0};
    const char *found;

    if (value.length_bytes >= sizeof(copy))
        return 0;
    memcpy(copy, value.data, value.length_bytes);
    copy[value.length_bytes] = '\0';
    /* NOLINTNEXTLINE(cert-err34-c): the widths leave no room for an overflow */
    if (sscanf(copy, "%*3[A-Za-z], %2d %3[A-Za-z] %4d %2d:%2d:%2d %3[A-Z]", &tm.tm_mday, month, &tm.tm_year,
               &tm.tm_hour, &tm.tm_min, &tm.tm_sec, zone) != 7)
        return 0;
    found = strstr(months, month);
    if (!found || strlen(month) != 3 || (found - months) % 3 || strcmp(zone, "GMT") != 0)
        return 0;
    tm.tm_mon = (int)(found - months) / 3;
    tm.tm_year -= 1900;
    int64_t wait_us = (int64_t)timegm(&tm) * US_PER_S - now_utc_us;

    return wait_us < 0 ? 0 : wait_us > RETRY_AFTER_MAX_US ? RETRY_AFTER_MAX_US : wait_us;
}

static int64_t retry_after_parse_us(struct text value, int64_t now_utc_us)
{
    while (value.length_bytes && (*value.data == ' ' || *value.data == '\t'))
        value = (struct text){value.data + 1, value.length_bytes - 1};
    while (value.length_bytes &&
           (value.data[value.length_bytes - 1] == ' ' || value.data[value.length_bytes - 1] == '\t'))
        value.length_bytes--;
    if (!value.length_bytes)
        return 0;
    return isdigit((unsigned char)*value.data) ? seconds_us(value) : date_us(value, now_utc_us);
}

/* --- meanings ------------------------------------------------------------------------------- */

struct meaning {
    enum sample_failure code;
    bool retryable;
    bool resample;
};

/* Words are better evidence than the status: the first row found anywhere in message, type or code wins. */
static const struct {
    const char *words;
    struct meaning meaning;
} known_words[] = {
    {"insufficient_quota", {SAMPLE_ENGINE_ERROR, false, false}},
    {"exceeded your current quota", {SAMPLE_ENGINE_ERROR, false, false}},
    {"maximum context length", {SAMPLE_CONTEXT_OVERFLOW, false, false}},
    {"context_length_exceeded", {SAMPLE_CONTEXT_OVERFLOW, false, false}},
    {"exceed_context_size", {SAMPLE_CONTEXT_OVERFLOW, false, false}},
    {"available context size", {SAMPLE_CONTEXT_OVERFLOW, false, false}},
    {"longer than the model's context", {SAMPLE_CONTEXT_OVERFLOW, false, false}},
    {"longer than the maximum model length", {SAMPLE_CONTEXT_OVERFLOW, false, false}},
    /* vLLM, when the prompt fills the context to the last token */
    {"max_tokens must be at least 1, got 0", {SAMPLE_CONTEXT_OVERFLOW, false, false}},
    /* A NaN among the log-probabilities breaks vLLM's JSON writer: a 400 that is the engine's fault. */
    {"Out of range float values", {SAMPLE_ENGINE_ERROR, true, false}},
    /* llama.cpp cannot deliver a generation that is no UTF-8: a 500 that comes back for every try with this seed. */
    {"does not match the expected Content-only format", {SAMPLE_INVALID_REPLY, true, true}},
    {"rate_limit", {SAMPLE_ENGINE_OVERLOADED, true, false}},
};

static const struct {
    int status;
    struct meaning meaning;
} known_statuses[] = {
    {408, {SAMPLE_ENGINE_TIMEOUT, true, false}},    {425, {SAMPLE_ENGINE_OVERLOADED, true, false}},
    {429, {SAMPLE_ENGINE_OVERLOADED, true, false}}, {500, {SAMPLE_ENGINE_ERROR, true, false}},
    {501, {SAMPLE_ENGINE_ERROR, false, false}},     {502, {SAMPLE_ENGINE_OVERLOADED, true, false}},
    {503, {SAMPLE_ENGINE_OVERLOADED, true, false}}, {504, {SAMPLE_ENGINE_TIMEOUT, true, false}},
};

static bool holds(const struct buffer *buffer, const char *words)
{
    return buffer->length_bytes && memmem(buffer->data, buffer->length_bytes, words, strlen(words));
}

static struct meaning meaning_of(int status, const struct engine_error *error)
{
    for (size_t i = 0; i < ARRAY_LENGTH(known_words); i++)
        if (holds(&error->message, known_words[i].words) || holds(&error->type, known_words[i].words) ||
            holds(&error->code, known_words[i].words))
            return known_words[i].meaning;
    for (size_t i = 0; i < ARRAY_LENGTH(known_statuses); i++)
        if (status == known_statuses[i].status)
            return known_statuses[i].meaning;
    return (struct meaning){SAMPLE_ENGINE_ERROR, status >= 500, false};
}

enum exchange_outcome refuse_engine_error(struct sample_error *ret_error, int status, const struct engine_error *error,
                                          const struct engine_reply *reply)
{
    struct meaning meaning = meaning_of(status, error);
    char message[QUOTED_BYTES];
    char code[QUOTED_BYTES];

    quote(message, buffer_text(&error->message));
    quote(code, buffer_text(error->code.length_bytes ? &error->code : &error->type));
    ret_error->code = meaning.code;
    ret_error->retryable = meaning.retryable;
    ret_error->resample = meaning.resample;
    ret_error->retry_after_us = retry_after_parse_us(reply->retry_after, reply->now_utc_us);
    error_message(ret_error, "the engine answered %d: %.40s%s%s", reply->status, code, *code ? ": " : "", message);
    return EXCHANGE_ERROR;
}

enum exchange_outcome refuse_status(struct sample_error *ret_error, const struct engine_reply *reply)
{
    struct engine_error error;

    read_error_body(reply->body, &error);
    if (!error.present) {
        buffer_finish(&error.message);
        buffer_init(&error.message, ERROR_TEXT_BYTES);
        buffer_append(&error.message, reply->body.data,
                      reply->body.length_bytes < QUOTED_BYTES ? reply->body.length_bytes : QUOTED_BYTES);
    }
    refuse_engine_error(ret_error, reply->status, &error, reply);
    engine_error_finish(&error);
    return EXCHANGE_ERROR;
}

bool status_is_success(int status)
{
    return status >= 200 && status < 300;
}

bool engine_reply_refuses(const struct engine_reply *reply, struct sample_error *ret_error)
{
    *ret_error = (struct sample_error){.status = reply->status};
    if (!status_is_success(reply->status))
        refuse_status(ret_error, reply);
    return !status_is_success(reply->status);
}
