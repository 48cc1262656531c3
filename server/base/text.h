/* struct text: bytes that belong to somebody else, with their length. NUL is an ordinary byte. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct text {
    const char *data; /* NULL means absent; an empty text has a pointer */
    size_t length_bytes;
};

#define TEXT_NONE ((struct text){NULL, 0})
#define TEXT_LITERAL(literal) ((struct text){(literal), sizeof(literal) - 1})

static inline struct text text_of(const char *string)
{
    return string ? (struct text){string, strlen(string)} : TEXT_NONE;
}

static inline bool text_equals(struct text text, const char *string)
{
    size_t length_bytes = strlen(string);
    return text.data && text.length_bytes == length_bytes && memcmp(text.data, string, length_bytes) == 0;
}

static inline bool text_same(struct text left, struct text right)
{
    return left.length_bytes == right.length_bytes &&
           (left.length_bytes == 0 || memcmp(left.data, right.data, left.length_bytes) == 0);
}

/* Without the spaces and tabs around it. */
static inline struct text text_without_blanks(struct text text)
{
    while (text.length_bytes > 0 && (text.data[0] == ' ' || text.data[0] == '\t')) {
        text.data++;
        text.length_bytes--;
    }
    while (text.length_bytes > 0 &&
           (text.data[text.length_bytes - 1] == ' ' || text.data[text.length_bytes - 1] == '\t'))
        text.length_bytes--;
    return text;
}

#endif
