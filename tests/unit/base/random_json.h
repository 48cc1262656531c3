/* Random JSON documents as text. */
#ifndef TESTS_BASE_RANDOM_JSON_H
#define TESTS_BASE_RANDOM_JSON_H

#include "server/base/buffer.h"
#include "tests/unit/base/random.h"

static inline void random_blanks(struct buffer *out)
{
    static const char *const blanks[] = {"", "", "", "", " ", "\n", "\t", "\r\n", "  \n  "};
    buffer_append_string(out, blanks[random_below(ARRAY_LENGTH(blanks))]);
}

static inline void random_number(struct buffer *out)
{
    static const char *const edges[] = {"0",
                                        "-0",
                                        "-0.0",
                                        "9007199254740993",
                                        "9223372036854775807",
                                        "-9223372036854775808",
                                        "1e-400",
                                        "5e-324",
                                        "0.1",
                                        "1E5",
                                        "1e+5",
                                        "123456789012345678901234567890.5"};
    switch (random_below(4)) {
    case 0:
        buffer_append_string(out, edges[random_below(ARRAY_LENGTH(edges))]);
        break;
    case 1:
        buffer_append_format(out, "%llu", (unsigned long long)(random_u64() >> (1 + random_below(63))));
        break;
    case 2:
        buffer_append_format(out, "-%llu.%05llu", (unsigned long long)random_below(50),
                             (unsigned long long)random_below(100000));
        break;
    default:
        buffer_append_format(out, "%.*e", (int)random_below(18), (double)random_u64() / 1e30);
        break;
    }
}

static inline void random_string(struct buffer *out)
{
    static const char *const pieces[] = {"a",       "word ",          "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80",
                                         "\\n",     "\\\"",           "\\\\",     "\\/",          "\\u0041",
                                         "\\u00e9", "\\ud83d\\ude00", "\\u0000",  "12345678",     "\\b\\f\\r\\t"};
    buffer_append_byte(out, '"');
    for (size_t i = random_below(8); i > 0; i--)
        buffer_append_string(out, pieces[random_below(ARRAY_LENGTH(pieces))]);
    buffer_append_byte(out, '"');
}

static inline void random_value(struct buffer *out, int depth);

static inline void random_container(struct buffer *out, bool object, int depth)
{
    buffer_append_byte(out, object ? '{' : '[');
    for (size_t i = 0, count = random_below(6); i < count; i++) {
        random_blanks(out);
        if (i > 0)
            buffer_append_byte(out, ',');
        random_blanks(out);
        if (object) {
            buffer_append_format(out, "\"k%zu\"", i);
            random_blanks(out);
            buffer_append_byte(out, ':');
            random_blanks(out);
        }
        random_value(out, depth - 1);
    }
    random_blanks(out);
    buffer_append_byte(out, object ? '}' : ']');
}

static inline void random_value(struct buffer *out, int depth)
{
    static const char *const words[] = {"true", "false", "null"};
    uint64_t kind = random_below(depth > 0 ? 8 : 4);
    if (kind == 0)
        buffer_append_string(out, words[random_below(3)]);
    else if (kind == 1)
        random_string(out);
    else if (kind < 4)
        random_number(out);
    else
        random_container(out, kind & 1, depth);
}

#endif
