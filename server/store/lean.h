/* lean: a request without the arrays of its completions, for a record that has those arrays anyhow. It is a row of parts:
 * bytes as they were, or some values of an array and how they were written. Every byte comes out as it was posted. Pure; any
 * thread. */
#ifndef STORE_LEAN_H
#define STORE_LEAN_H

#include "server/base/buffer.h"
#include "server/base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum lean_array { LEAN_IDS, LEAN_LOGPROBS, LEAN_MASK, LEAN_ARRAYS }; /* of u32, f32, u8 */
extern const size_t lean_width_bytes[LEAN_ARRAYS];

/* One completion of the request, in their order. */
struct lean_member {
    uint64_t group_index;
    uint64_t sample_index;
    const void *arrays[LEAN_ARRAYS]; /* NULL: it has none */
    size_t count;                    /* of values in each */
};

/* Appends the parts, each behind its length. False: none of the arrays was found in the body as the members have it, or there
 * is no memory; a lean form is of no use then. */
bool lean_pack(struct text body, const struct lean_member *members, size_t count, struct buffer *out);

enum { LEAN_HEAD_BYTES = 4, LEAN_PART_MAX_BYTES = 1 << 20 };
/* The length of the part behind this head; 0: it is damaged. */
size_t lean_part_bytes(const char head[LEAN_HEAD_BYTES]);

struct lean_part {
    struct text rest; /* the bytes, or how the values were written */
    bool has_values;  /* then all of these tell which */
    enum lean_array array;
    uint64_t group_index;
    uint64_t sample_index;
    uint64_t first;
    uint64_t count;
    unsigned form;
};
/* False: it is damaged. */
bool lean_read_part(struct text part, struct lean_part *ret_part);
/* Appends the bytes that the part stands for. values: part->count of them, if it has some. False: it is damaged. */
bool lean_write_part(const struct lean_part *part, struct text values, struct buffer *out);

/* The whole body, appended. find: gives the values of a part, if they are there. False: it is damaged, or they are not. */
typedef bool lean_find(void *arg, const struct lean_part *part, struct text *ret_values);
bool lean_unpack(struct text lean, lean_find *find, void *arg, struct buffer *out);

#endif
