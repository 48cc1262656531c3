/* From text to typed settings. */
#include "server/base/cleanup.h"
#include "server/base/clock.h"
#include "server/base/number.h"
#include "server/settings/table.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <string.h>

/* --- what was expected --- */

static void describe_units(const struct setting_row *row, const char *what, void (*format)(int64_t, char *),
                           char *ret_text, size_t size)
{
    char least[32];
    char most[32];
    format(row->minimum, least);
    format(row->maximum, most);
    snprintf(ret_text, size, "%s from %s to %s", what, least, most);
}

static void describe_choices(const struct setting_row *row, char *ret_text, size_t size)
{
    snprintf(ret_text, size, "one of");
    for (size_t i = 0; row->choices[i]; i++) {
        size_t length = strlen(ret_text);
        snprintf(ret_text + length, size - length, "%s %s", i ? "," : "", row->choices[i]);
    }
}

void setting_describe(const struct setting_row *row, bool with_example, char *ret_text, size_t size)
{
    switch (row->kind) {
    case SETTING_DURATION:
        describe_units(row, with_example ? "a duration like 250ms, 30s or 5m" : "a duration", duration_format, ret_text,
                       size);
        break;
    case SETTING_SIZE:
        describe_units(row, with_example ? "a size like 64MiB" : "a size", size_format, ret_text, size);
        break;
    case SETTING_CHOICE:
        describe_choices(row, ret_text, size);
        break;
    case SETTING_DOUBLE:
        snprintf(ret_text, size, "a number from %" PRId64 " to %" PRId64, row->minimum, row->maximum);
        break;
    case SETTING_OPTIONAL_INT:
        snprintf(ret_text, size, "none or an integer from %" PRId64 " to %" PRId64, row->minimum, row->maximum);
        break;
    case SETTING_INT:
        snprintf(ret_text, size, "an integer from %" PRId64 " to %" PRId64, row->minimum, row->maximum);
        break;
    case SETTING_TEXT:
    case SETTING_ENGINES:
    case SETTING_EXTERNALS:
        snprintf(ret_text, size, "text that is not empty");
        break;
    }
}

/* --- one parser per kind: false if the text is not of the kind or out of range --- */

static bool in_range(const struct setting_row *row, int64_t value, void *target)
{
    if (value < row->minimum || value > row->maximum)
        return false;
    *(int64_t *)target = value;
    return true;
}

static bool read_number(struct text text, struct number *ret_number)
{
    const char *end = text.data + text.length_bytes;
    return number_parse(text.data, end, ret_number) == end;
}

static bool parse_text(const struct setting_row *row, struct text text, void *target)
{
    if (text.length_bytes == 0 && *row->standard)
        return false;
    *(char **)target = text.length_bytes ? xstrdup(text.data) : NULL;
    return true;
}

static bool parse_int(const struct setting_row *row, struct text text, void *target)
{
    struct number number;
    return read_number(text, &number) && number.is_integer && in_range(row, number.integer, target);
}

static bool parse_optional_int(const struct setting_row *row, struct text text, void *target)
{
    if (!text_equals(text, "none"))
        return parse_int(row, text, target);
    *(int64_t *)target = -1;
    return true;
}

static bool parse_double(const struct setting_row *row, struct text text, void *target)
{
    struct number number;
    if (!read_number(text, &number) || number.value < (double)row->minimum || number.value > (double)row->maximum)
        return false;
    *(double *)target = number.value;
    return true;
}

static bool parse_duration(const struct setting_row *row, struct text text, void *target)
{
    int64_t value;
    return duration_parse(text, &value) && in_range(row, value, target);
}

static bool parse_size(const struct setting_row *row, struct text text, void *target)
{
    int64_t value;
    return size_parse(text, &value) && in_range(row, value, target);
}

static bool parse_choice(const struct setting_row *row, struct text text, void *target)
{
    for (int i = 0; row->choices[i]; i++)
        if (text_equals(text, row->choices[i])) {
            *(int *)target = i;
            return true;
        }
    return false;
}

static bool (*const parsers[])(const struct setting_row *row, struct text text, void *target) = {
    [SETTING_TEXT] = parse_text,     [SETTING_INT] = parse_int,   [SETTING_OPTIONAL_INT] = parse_optional_int,
    [SETTING_DOUBLE] = parse_double, [SETTING_SIZE] = parse_size, [SETTING_DURATION] = parse_duration,
    [SETTING_CHOICE] = parse_choice,
};

int setting_parse(const struct setting_row *row, const struct raw_setting *raw, struct settings *settings,
                  char ret_message[SETTINGS_MESSAGE_BYTES])
{
    char expected[256];
    const char *value = raw->value ? raw->value : row->standard;
    if (parsers[row->kind](row, text_of(value), (char *)settings + row->offset))
        return 0;
    setting_describe(row, true, expected, sizeof(expected));
    snprintf(ret_message, SETTINGS_MESSAGE_BYTES, "%s: \"%s\" from %s: expected %s", row->key, value, raw->source,
             expected);
    return -1;
}

/* --- the address --- */

static bool split_address(const char *text, char ret_host[64], const char **ret_port)
{
    const char *colon = strrchr(text, ':');
    bool bracketed = *text == '[';
    const char *host = text + bracketed;
    size_t host_bytes = colon ? (size_t)(colon - host) : 0;
    if (bracketed) {
        if (!colon || host_bytes < 1 || colon[-1] != ']')
            return false;
        host_bytes--;
    }
    if (!colon || host_bytes == 0 || host_bytes >= 64 || (!bracketed && memchr(host, ':', host_bytes)))
        return false;
    memcpy(ret_host, host, host_bytes);
    ret_host[host_bytes] = '\0';
    *ret_port = colon + 1;
    return true;
}

static bool read_port(const char *text, uint16_t *ret_port)
{
    struct number number;
    if (!read_number(text_of(text), &number) || !number.is_integer || number.integer < 0 || number.integer > 65535)
        return false;
    *ret_port = (uint16_t)number.integer;
    return true;
}

int settings_parse_listen(const struct raw_setting *raw, struct settings *settings,
                          char ret_message[SETTINGS_MESSAGE_BYTES])
{
    char host[64];
    const char *port;
    struct in6_addr six;
    struct in_addr four;
    bool good = split_address(settings->listen, host, &port) && read_port(port, &settings->listen_port);
    if (good && strcmp(host, "localhost") == 0)
        snprintf(host, sizeof(host), "127.0.0.1");
    settings->listen_ipv6 = *settings->listen == '[';
    good = good && (settings->listen_ipv6 ? inet_pton(AF_INET6, host, &six) : inet_pton(AF_INET, host, &four)) == 1;
    if (good) {
        settings->listen_host = xstrdup(host);
        return 0;
    }
    snprintf(ret_message, SETTINGS_MESSAGE_BYTES,
             "listen: \"%s\" from %s: expected a numeric address and a port, like 127.0.0.1:8787 or [::1]:0",
             settings->listen, raw->source);
    return -1;
}

bool settings_listen_is_loopback(const struct settings *settings)
{
    struct in6_addr six;
    struct in_addr four;
    if (!settings->listen_ipv6)
        return inet_pton(AF_INET, settings->listen_host, &four) == 1 && ntohl(four.s_addr) >> 24 == 127;
    return inet_pton(AF_INET6, settings->listen_host, &six) == 1 &&
           (IN6_IS_ADDR_LOOPBACK(&six) || (IN6_IS_ADDR_V4MAPPED(&six) && six.s6_addr[12] == 127));
}
