#include "server/base/clock.h"

#include "server/base/cleanup.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#define LONGEST_US (INT64_C(100) * 365 * 86400 * US_PER_S)

static int64_t read_clock(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (int64_t)now.tv_sec * US_PER_S + now.tv_nsec / 1000;
}

int64_t clock_monotonic_us(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t clock_utc_us(void)
{
    return read_clock(CLOCK_REALTIME);
}

/* --- RFC 3339 --- */

#define LAST_UTC_US (INT64_C(253402300800) * US_PER_S - 1) /* 9999-12-31T23:59:59.999999Z */

/* A number in [0.5, 1). */
static double part_of(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return 0.5 + (double)((z ^ (z >> 31)) >> 11) * 0x1p-54;
}

int64_t backoff_us(unsigned tries, int64_t min_us, int64_t max_us, uint64_t spread)
{
    int64_t delay_us = min_us;

    for (unsigned i = 1; i < tries && delay_us < max_us; i++)
        delay_us *= 2;
    if (delay_us > max_us)
        delay_us = max_us;
    return (int64_t)((double)delay_us * part_of(spread * UINT64_C(0x9e3779b97f4a7c15)));
}

void clock_format_rfc3339(int64_t utc_us, char ret_text[RFC3339_BYTES])
{
    if (utc_us < 0)
        utc_us = 0;
    if (utc_us > LAST_UTC_US)
        utc_us = LAST_UTC_US;
    time_t seconds = (time_t)(utc_us / US_PER_S);
    struct tm parts;
    gmtime_r(&seconds, &parts);
    size_t length = strftime(ret_text, RFC3339_BYTES, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(ret_text + length, RFC3339_BYTES - length, ".%06dZ", (int)(utc_us % US_PER_S));
}

struct cursor {
    const char *at;
    const char *end;
};

static bool take(struct cursor *cursor, const char *allowed)
{
    if (cursor->at == cursor->end || !*cursor->at || !strchr(allowed, *cursor->at))
        return false;
    cursor->at++;
    return true;
}

static bool take_digits(struct cursor *cursor, int digits, int lowest, int highest, int *ret_value)
{
    int value = 0;
    for (int i = 0; i < digits; i++, cursor->at++) {
        if (cursor->at == cursor->end || *cursor->at < '0' || *cursor->at > '9')
            return false;
        value = value * 10 + (*cursor->at - '0');
    }
    *ret_value = value;
    return value >= lowest && value <= highest;
}

static bool take_fraction(struct cursor *cursor, int64_t *ret_us)
{
    int64_t us = 0;
    int digits = 0;
    for (; cursor->at < cursor->end && *cursor->at >= '0' && *cursor->at <= '9'; cursor->at++, digits++)
        us = digits < 6 ? us * 10 + (*cursor->at - '0') : us;
    if (digits < 1 || digits > 6)
        return false;
    for (; digits < 6; digits++)
        us *= 10;
    *ret_us = us;
    return true;
}

static bool take_offset(struct cursor *cursor, int64_t *ret_seconds)
{
    int hours;
    int minutes;
    if (take(cursor, "Zz")) {
        *ret_seconds = 0;
        return true;
    }
    bool negative = cursor->at < cursor->end && *cursor->at == '-';
    if (!take(cursor, "+-") || !take_digits(cursor, 2, 0, 23, &hours) || !take(cursor, ":") ||
        !take_digits(cursor, 2, 0, 59, &minutes))
        return false;
    *ret_seconds = (negative ? -1 : 1) * (hours * 3600 + minutes * 60);
    return true;
}

static bool take_date_and_time(struct cursor *cursor, struct tm *ret_parts)
{
    struct tm parts = {0};
    if (!take_digits(cursor, 4, 0, 9999, &parts.tm_year) || !take(cursor, "-") ||
        !take_digits(cursor, 2, 1, 12, &parts.tm_mon) || !take(cursor, "-") ||
        !take_digits(cursor, 2, 1, 31, &parts.tm_mday) || !take(cursor, "Tt ") ||
        !take_digits(cursor, 2, 0, 23, &parts.tm_hour) || !take(cursor, ":") ||
        !take_digits(cursor, 2, 0, 59, &parts.tm_min) || !take(cursor, ":") ||
        !take_digits(cursor, 2, 0, 60, &parts.tm_sec))
        return false;
    parts.tm_year -= 1900;
    parts.tm_mon -= 1;
    *ret_parts = parts;
    return true;
}

bool clock_parse_rfc3339(struct text text, int64_t *ret_utc_us)
{
    struct cursor cursor = {text.data, text.data + text.length_bytes};
    struct tm parts;
    int64_t fraction_us = 0;
    int64_t offset_s;
    if (!take_date_and_time(&cursor, &parts))
        return false;
    if (take(&cursor, ".") && !take_fraction(&cursor, &fraction_us))
        return false;
    if (!take_offset(&cursor, &offset_s) || cursor.at != cursor.end)
        return false;
    struct tm date = {.tm_year = parts.tm_year, .tm_mon = parts.tm_mon, .tm_mday = parts.tm_mday};
    timegm(&date);
    bool same_day = date.tm_mday == parts.tm_mday; /* a leap second, :60, may still move the time into the next */
    int64_t seconds = (int64_t)timegm(&parts);
    if (!same_day) /* timegm moves 31 February into March */
        return false;
    int64_t utc_us = (seconds - offset_s) * US_PER_S + fraction_us;
    if (utc_us < 0 || utc_us > LAST_UTC_US)
        return false;
    *ret_utc_us = utc_us;
    return true;
}

/* --- durations and sizes: digits and a unit --- */

struct unit {
    const char *name;
    int64_t factor;
};

static const struct unit duration_units[] = {{"d", 86400 * US_PER_S}, {"h", 3600 * US_PER_S}, {"m", 60 * US_PER_S},
                                             {"s", US_PER_S},         {"ms", US_PER_MS},      {"us", 1}};

static const struct unit size_units[] = {{"TiB", INT64_C(1) << 40},
                                         {"GiB", INT64_C(1) << 30},
                                         {"MiB", INT64_C(1) << 20},
                                         {"KiB", INT64_C(1) << 10},
                                         {"B", 1},
                                         {"", 1}};

static bool parse_with_unit(struct text text, const struct unit *units, size_t count, int64_t highest, int64_t *ret)
{
    int64_t digits = 0;
    size_t at = 0;
    for (; at < text.length_bytes && text.data[at] >= '0' && text.data[at] <= '9'; at++)
        if (__builtin_mul_overflow(digits, 10, &digits) || __builtin_add_overflow(digits, text.data[at] - '0', &digits))
            return false;
    if (at == 0)
        return false;
    struct text name = {text.data + at, text.length_bytes - at};
    for (size_t i = 0; i < count; i++) {
        int64_t value;
        if (!text_equals(name, units[i].name))
            continue;
        if (__builtin_mul_overflow(digits, units[i].factor, &value) || value > highest)
            return false;
        *ret = value;
        return true;
    }
    return false;
}

static void format_with_unit(int64_t value, const struct unit *units, char ret_text[32])
{
    const struct unit *unit = units;
    while (unit->factor > 1 && (value == 0 || value % unit->factor != 0))
        unit++;
    snprintf(ret_text, 32, "%" PRId64 "%s", value / unit->factor, unit->name);
}

bool duration_parse(struct text text, int64_t *ret_us)
{
    return parse_with_unit(text, duration_units, ARRAY_LENGTH(duration_units), LONGEST_US, ret_us);
}

void duration_format(int64_t us, char ret_text[32])
{
    if (us == 0)
        snprintf(ret_text, 32, "0s");
    else
        format_with_unit(us, duration_units, ret_text);
}

bool size_parse(struct text text, int64_t *ret_bytes)
{
    return parse_with_unit(text, size_units, ARRAY_LENGTH(size_units), INT64_MAX, ret_bytes);
}

void size_format(int64_t bytes, char ret_text[32])
{
    format_with_unit(bytes, size_units, ret_text);
}
