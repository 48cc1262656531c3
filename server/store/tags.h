/* tags: short names and texts that a group carries, as they are on record: canonical JSON, {"level":"2","source":"gsm8k"}.
 *
 * Pure: any thread. */
#ifndef STORE_TAGS_H
#define STORE_TAGS_H

#include "server/base/buffer.h"
#include "server/base/text.h"

#include <stdbool.h>

#define STORE_TAGS_MAX 16
#define STORE_TAG_NAME_BYTES 64
#define STORE_TAG_VALUE_BYTES 256

struct store_tag {
    struct text name;
    struct text value;
};

/* A name has 1 to STORE_TAG_NAME_BYTES of A-Z a-z 0-9 . _ - */
bool store_tag_name_is_valid(struct text name);
/* Appends the value of one tag. False, with nothing appended: it is not among them. tags: TEXT_NONE: none. */
bool store_tag_find(struct text tags, struct text name, struct buffer *value);
/* Whether the tag is among them, with this value. */
bool store_tag_is(struct text tags, const struct store_tag *tag);
/* Whether all of these are. */
bool store_tags_are(struct text tags, const struct store_tag *wanted, size_t count);

#endif
