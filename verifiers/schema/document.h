/* document: a JSON text (RFC 8259) as a flat array of its values, in the order of the text.
 *
 * Strict: no byte order mark, no lone surrogate, no broken UTF-8, no key twice in an object, however it is written. A
 * value stands before what is in it; a member of an object is two values, its key and its own. Numbers stay text
 * (decimal.h). Reading takes one pass and n log n for the keys; it never recurses. One thread at a time. */
#ifndef VERIFIERS_SCHEMA_DOCUMENT_H
#define VERIFIERS_SCHEMA_DOCUMENT_H

#include "server/base/buffer.h"
#include "server/base/text.h"

#include <stdbool.h>
#include <stdint.h>

#define DOCUMENT_DEPTH_MAX 1000
#define DOCUMENT_VALUES_MAX 1000000
#define NO_VALUE UINT32_MAX

enum value_kind { VALUE_NULL, VALUE_FALSE, VALUE_TRUE, VALUE_NUMBER, VALUE_STRING, VALUE_ARRAY, VALUE_OBJECT };

struct value {
    uint32_t start; /* bytes of the text */
    uint32_t end;
    uint32_t next;  /* of the value behind it and all that is in it; while it is read, what it is in */
    uint32_t count; /* strings: bytes; arrays: elements; objects: members */
    uint32_t place; /* escaped strings: in `strings`; ordered objects: in `order` */
    uint8_t kind;
    bool is_escaped;
    bool is_ordered; /* an object with many members: its keys by their order */
};

struct document {
    struct text text; /* somebody else's */
    struct value *values;
    uint32_t count;
    uint32_t room;
    struct buffer strings; /* those with escapes, escapes undone */
    uint32_t *order;       /* indices of keys */
    uint32_t order_count;
    uint32_t order_room;
    size_t stopped_at;   /* where it could not be read */
    const char *problem; /* static text; NULL if it was read */
};

enum document_status {
    DOCUMENT_READ,
    DOCUMENT_NOT_JSON,
    DOCUMENT_DUPLICATE_KEY,
    DOCUMENT_TOO_DEEP, /* deeper than DOCUMENT_DEPTH_MAX */
    DOCUMENT_TOO_LARGE /* more than DOCUMENT_VALUES_MAX values, or than there is memory for */
};

/* The text must outlive it. document_finish() is due in any case. */
enum document_status document_read(struct text text, struct document *ret_document);
void document_finish(struct document *document);

/* --- values: an index each. Value 0 is the whole. --- */

static inline const struct value *value_at(const struct document *document, uint32_t value)
{
    return &document->values[value];
}

/* Of a string: escapes undone. */
static inline struct text value_text(const struct document *document, uint32_t string)
{
    const struct value *value = &document->values[string];

    if (value->is_escaped)
        return (struct text){document->strings.data + value->place, value->count};
    return (struct text){document->text.data + value->start + 1, value->count};
}

/* As it stands in the text. */
static inline struct text value_written(const struct document *document, uint32_t value)
{
    const struct value *at = &document->values[value];
    return (struct text){document->text.data + at->start, at->end - at->start};
}

/* The value of a key; NO_VALUE: the object has no such key. */
uint32_t value_member(const struct document *document, uint32_t object, struct text key);
/* The element of an array; NO_VALUE: it has fewer. Walks. */
uint32_t value_element(const struct document *document, uint32_t array, uint64_t index);

/* A total order over all values in which those are equal that JSON Schema calls equal: 1.0 is 1, and members have no
 * order. Adds to *units what it costs, and is 0 once they are more than `units_max`. */
int value_compare(const struct document *left, uint32_t left_value, const struct document *right, uint32_t right_value,
                  uint64_t *units, uint64_t units_max);

/* Order of texts: by their length, then by their bytes. */
static inline int text_order(struct text left, struct text right)
{
    if (left.length_bytes != right.length_bytes)
        return left.length_bytes < right.length_bytes ? -1 : 1;
    return left.length_bytes ? memcmp(left.data, right.data, left.length_bytes) : 0;
}

/* Appends the JSON pointer of a value; no more than about `limit_bytes`, then "…". A key has the pointer of its value. */
void value_path(const struct document *document, uint32_t value, size_t limit_bytes, struct buffer *out);

#endif
