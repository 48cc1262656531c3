#include "server/spec/tags_private.h"

#include "server/store/tags.h"

#include <string.h>

static int check_tag(struct json_input *input, const char *name, const json_t *value, const char *path)
{
    char where[PATH_BYTES];
    path_join(where, path, name);
    if (!store_tag_name_is_valid(text_of(name)))
        return call_refuse(input->call, ERR_INVALID_FIELD, where,
                           "the name of a tag is 1 to %d of A-Z a-z 0-9 . _ -, \"%.*s\" is not", STORE_TAG_NAME_BYTES,
                           STORE_TAG_NAME_BYTES, name);
    if (!json_is_string(value))
        return call_refuse(input->call, ERR_INVALID_FIELD, where, "the tag \"%s\" is a text", name);
    if (json_string_length(value) > STORE_TAG_VALUE_BYTES)
        return call_refuse(input->call, ERR_INVALID_FIELD, where, "the tag \"%s\" has %zu bytes; at most %d are kept",
                           name, json_string_length(value), STORE_TAG_VALUE_BYTES);
    if (memchr(json_string_value(value), '\0', json_string_length(value)))
        return call_refuse(input->call, ERR_INVALID_FIELD, where, "the tag \"%s\" has a NUL in it", name);
    return 0;
}

int tags_read(struct json_input *input, json_t *tags, const char *path, char **ret_json)
{
    const char *name;
    json_t *value;
    *ret_json = NULL;
    if (!tags || json_object_size(tags) == 0)
        return 0;
    if (json_object_size(tags) > STORE_TAGS_MAX)
        return call_refuse(input->call, ERR_INVALID_FIELD, path, "%zu tags are more than the %d that are kept",
                           json_object_size(tags), STORE_TAGS_MAX);
    json_object_foreach (tags, name, value)
        if (check_tag(input, name, value, path) < 0)
            return -1;
    *ret_json = json_dumps(tags, JSON_COMPACT | JSON_SORT_KEYS);
    return *ret_json ? 0 : call_refuse(input->call, ERR_QUEUE_FULL, path, "there is no memory for these tags now");
}
