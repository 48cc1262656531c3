/* Shared by the files of json_input. Private to the room. */
#ifndef SERVER_INPUT_INPUT_PRIVATE_H
#define SERVER_INPUT_INPUT_PRIVATE_H

#include "server/input/input.h"

/* The tree has been freed: its memory may be others'. */
void json_input_release(struct json_input *input);

/* The array that a string stands for, or NULL. */
const struct lifted_array *json_input_lifted(const struct json_input *input, const json_t *value);

/* The packing of numbers under a name with a suffix: "_f32", …; NULL if it is no such suffix. */
struct packed_format {
    const char *suffix;
    size_t width_bytes;
    bool integer;
    double (*read)(const void *bytes);
};
const struct packed_format *packed_format_of(const char *suffix);

/* Reads the numbers of object[name] if they are there in packed form; *ret_packed says whether. Refuses two forms at
 * once. */
int json_read_packed(struct json_input *input, const json_t *object, const char *name, const char *path,
                     struct numbers *ret_numbers, bool *ret_packed);

#endif
