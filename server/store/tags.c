#include "server/store/tags.h"

#include "server/base/json_scan.h"

#include <string.h>

bool store_tag_name_is_valid(struct text name)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    if (!name.data || name.length_bytes == 0 || name.length_bytes > STORE_TAG_NAME_BYTES)
        return false;
    for (size_t i = 0; i < name.length_bytes; i++)
        if (!memchr(allowed, name.data[i], sizeof(allowed) - 1))
            return false;
    return true;
}

/* No name has an escape in it. */
bool store_tag_find(struct text tags, struct text name, struct buffer *value)
{
    struct json_scan scan;
    struct text key;
    if (!tags.data)
        return false;
    json_scan_init(&scan, tags);
    for (json_scan_object(&scan); json_scan_member(&scan, &key);) {
        if (text_same(key, name))
            return json_scan_string(&scan, value);
        json_scan_skip(&scan);
    }
    return false;
}

bool store_tag_is(struct text tags, const struct store_tag *tag)
{
    _cleanup_buffer_ struct buffer value = {0};
    buffer_init(&value, STORE_TAG_VALUE_BYTES + 1);
    return store_tag_find(tags, tag->name, &value) && !value.failed && text_same(buffer_text(&value), tag->value);
}

bool store_tags_are(struct text tags, const struct store_tag *wanted, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!store_tag_is(tags, &wanted[i]))
            return false;
    return true;
}
