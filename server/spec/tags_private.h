/* tags: the `tags` of a group or of a task, read and checked: short names with short texts. */
#ifndef SERVER_SPEC_TAGS_PRIVATE_H
#define SERVER_SPEC_TAGS_PRIVATE_H

#include "server/input/input.h"

/* path: "groups[3].tags". ret_json: as they are stored (store/tags.h), to be freed by the caller; NULL: there are none.
 * 0, or -1 with the call refused, the path being the tag's. */
int tags_read(struct json_input *input, json_t *tags, const char *path, char **ret_json);

#endif
