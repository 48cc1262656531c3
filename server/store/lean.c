#include "server/store/lean.h"

#include "server/base/hash.h"
#include "server/store/digits.h"

#include <endian.h>

const size_t lean_width_bytes[LEAN_ARRAYS] = {[LEAN_IDS] = 4, [LEAN_LOGPROBS] = 4, [LEAN_MASK] = 1};

static const struct {
    const char *name;
    const char *packed_name;
    enum digits_kind kind;
} arrays[LEAN_ARRAYS] = {
    [LEAN_IDS] = {"completion_ids\"", "completion_ids_u32\"", DIGITS_U32},
    [LEAN_LOGPROBS] = {"logprobs\"", "logprobs_f32\"", DIGITS_F32},
    [LEAN_MASK] = {"completion_mask\"", "completion_mask_u8\"", DIGITS_U8},
};

/* Values of a part: few enough to be held, and whole groups of base64. */
enum { PART_VALUES = 3 * 5000, PART_LITERAL_BYTES = 64 << 10, BLOCK_OF_BASE64_BYTES = 3 * 64, NUMBER_MAX_BYTES = 64 };
enum form { FORM_DENSE, FORM_SPACED, FORM_BASE64, FORMS }; /* [1,2] [1, 2] "AQAAAAIAAAA=" */

static bool take(struct text *text, char byte)
{
    bool there = text->length_bytes && *text->data == byte;
    text->data += there;
    text->length_bytes -= there;
    return there;
}

static void move(struct text *text, size_t bytes)
{
    text->data += bytes;
    text->length_bytes -= bytes;
}

/* ---- parts ---------------------------------------------------------------------------------------------------------- */

static void put_part(struct buffer *out, struct text head, struct text rest)
{
    uint32_t length_bytes = htole32((uint32_t)(head.length_bytes + rest.length_bytes));
    buffer_append(out, &length_bytes, sizeof(length_bytes));
    buffer_append(out, head.data, head.length_bytes);
    buffer_append(out, rest.data, rest.length_bytes);
}

static void put_literal(struct buffer *out, struct text bytes)
{
    while (bytes.length_bytes) {
        size_t some = bytes.length_bytes < PART_LITERAL_BYTES ? bytes.length_bytes : PART_LITERAL_BYTES;
        put_part(out, (struct text){"", 1}, (struct text){bytes.data, some});
        move(&bytes, some);
    }
}

/* The first byte is 0 for a literal. */
static void put_values(struct buffer *out, const struct lean_part *part, struct text rest)
{
    _cleanup_buffer_ struct buffer head;
    buffer_init(&head, LEAN_PART_MAX_BYTES);
    buffer_append_byte(&head, (char)(1 + (unsigned)part->array * FORMS + part->form));
    digits_put(&head, part->group_index);
    digits_put(&head, part->sample_index);
    digits_put(&head, part->first);
    digits_put(&head, part->count);
    put_part(out, buffer_text(&head), rest);
}

size_t lean_part_bytes(const char head[LEAN_HEAD_BYTES])
{
    uint32_t length_bytes;
    memcpy(&length_bytes, head, sizeof(length_bytes));
    length_bytes = le32toh(length_bytes);
    return length_bytes <= LEAN_PART_MAX_BYTES ? length_bytes : 0;
}

bool lean_read_part(struct text part, struct lean_part *ret_part)
{
    *ret_part = (struct lean_part){0};
    if (part.length_bytes == 0)
        return false;
    unsigned tag = (uint8_t)*part.data;
    move(&part, 1);
    ret_part->has_values = tag > 0;
    if (tag > 0) {
        ret_part->array = (enum lean_array)((tag - 1) / FORMS);
        ret_part->form = (tag - 1) % FORMS;
        if (tag > LEAN_ARRAYS * FORMS || !digits_get(&part, &ret_part->group_index) ||
            !digits_get(&part, &ret_part->sample_index) || !digits_get(&part, &ret_part->first) ||
            !digits_get(&part, &ret_part->count) || ret_part->count > PART_VALUES || ret_part->first >> 32)
            return false;
    }
    ret_part->rest = part;
    return true;
}

static struct digits_value value_at(enum lean_array array, const char *values, size_t index)
{
    return (struct digits_value){arrays[array].kind, values + index * lean_width_bytes[array]};
}

bool lean_write_part(const struct lean_part *part, struct text values, struct buffer *out)
{
    struct text rest = part->rest;
    if (!part->has_values)
        buffer_append(out, rest.data, rest.length_bytes);
    else if (values.length_bytes != part->count * lean_width_bytes[part->array])
        return false;
    else if (part->form == FORM_BASE64)
        base64_encode(values.data, values.length_bytes, out);
    for (size_t i = 0; part->has_values && part->form != FORM_BASE64 && i < part->count; i++) {
        struct digits_value value = value_at(part->array, values.data, i);
        if (part->first + i > 0)
            buffer_append_string(out, part->form == FORM_SPACED ? ", " : ",");
        if (!digits_unpack(&rest, &value, out))
            return false;
    }
    return !out->failed;
}

static bool unpack_part(struct text part, lean_find *find, void *arg, struct buffer *out)
{
    struct lean_part read;
    struct text values = TEXT_NONE;
    return lean_read_part(part, &read) && (!read.has_values || find(arg, &read, &values)) &&
           lean_write_part(&read, values, out);
}

bool lean_unpack(struct text lean, lean_find *find, void *arg, struct buffer *out)
{
    while (lean.length_bytes >= LEAN_HEAD_BYTES) {
        size_t bytes = lean_part_bytes(lean.data);
        move(&lean, LEAN_HEAD_BYTES);
        if (bytes == 0 || bytes > lean.length_bytes || !unpack_part((struct text){lean.data, bytes}, find, arg, out))
            return false;
        move(&lean, bytes);
    }
    return lean.length_bytes == 0;
}

/* ---- a body --------------------------------------------------------------------------------------------------------- */

struct packing {
    const struct lean_member *members;
    size_t count;
    size_t next[LEAN_ARRAYS]; /* the member whose array is expected */
    struct text rest;         /* of the body, from where the scan is */
    const char *kept;         /* what is before it is in `out` */
    struct buffer *out;
    struct buffer parts; /* of one array */
    struct buffer written;
    bool found;
};

/* No more of a long text than a number may have. */
static struct text take_number(struct text *rest)
{
    size_t limit_bytes = rest->length_bytes < NUMBER_MAX_BYTES ? rest->length_bytes : NUMBER_MAX_BYTES;
    static const char ends[] = {',', ' ', ']'};
    size_t bytes = 0;
    while (bytes < limit_bytes && !memchr(ends, rest->data[bytes], sizeof(ends)))
        bytes++;
    struct text number = {rest->data, bytes};
    move(rest, bytes);
    return number;
}

/* The values of one part. Adds to *strangers those that are not what was written. */
static bool pack_some(struct packing *packing, struct text *rest, const char *values, struct lean_part *part,
                      size_t *strangers)
{
    buffer_clear(&packing->written);
    for (size_t i = 0; i < part->count; i++) {
        struct digits_value value = value_at(part->array, values, part->first + i);
        if (part->first + i > 0 && (!take(rest, ',') || take(rest, ' ') != (part->form == FORM_SPACED)))
            return false;
        struct text number = take_number(rest);
        if (number.length_bytes == 0)
            return false;
        *strangers += !digits_pack(number, &value, &packing->written);
    }
    put_values(&packing->parts, part, buffer_text(&packing->written));
    return packing->written.length_bytes < LEAN_PART_MAX_BYTES / 2;
}

/* Block by block, so that text which is no such array costs no more than it is long. */
static bool take_base64(struct packing *packing, struct text *rest, struct text bytes)
{
    while (bytes.length_bytes) {
        size_t some = bytes.length_bytes < BLOCK_OF_BASE64_BYTES ? bytes.length_bytes : BLOCK_OF_BASE64_BYTES;
        buffer_clear(&packing->written);
        base64_encode(bytes.data, some, &packing->written);
        struct text want = buffer_text(&packing->written);
        if (rest->length_bytes < want.length_bytes || memcmp(rest->data, want.data, want.length_bytes) != 0)
            return false;
        move(rest, want.length_bytes);
        move(&bytes, some);
    }
    return true;
}

static bool pack_base64(struct packing *packing, struct text *rest, const char *values, struct lean_part *part)
{
    size_t width_bytes = lean_width_bytes[part->array];
    if (!take_base64(packing, rest, (struct text){values + part->first * width_bytes, part->count * width_bytes}))
        return false;
    put_values(&packing->parts, part, TEXT_LITERAL(""));
    return true;
}

static enum form form_of(struct text rest)
{
    (void)take_number(&rest);
    return take(&rest, ',') && take(&rest, ' ') ? FORM_SPACED : FORM_DENSE;
}

/* Whether *rest begins with the member's array, which then is in packing->parts. */
static bool pack_array(struct packing *packing, enum lean_array array, bool base64, const struct lean_member *member,
                       struct text *rest)
{
    struct lean_part part = {.array = array,
                             .group_index = member->group_index,
                             .sample_index = member->sample_index,
                             .form = base64 ? FORM_BASE64 : form_of(*rest)};
    const char *values = member->arrays[array];
    size_t strangers = 0;
    buffer_clear(&packing->parts);
    for (; part.first < member->count; part.first += part.count) {
        size_t left = member->count - part.first;
        part.count = left < PART_VALUES ? left : PART_VALUES;
        if (base64 ? !pack_base64(packing, rest, values, &part) : !pack_some(packing, rest, values, &part, &strangers))
            return false;
    }
    return strangers <= member->count / 2 && rest->length_bytes && *rest->data == (base64 ? '"' : ']');
}

/* The expected member that has such an array, or the one behind it: what only looks like an array of a completion, or is
 * written in another way, must not spoil the rest. */
static void replace_array(struct packing *packing, enum lean_array array, bool base64)
{
    enum { TRIES = 2 };
    size_t *next = &packing->next[array];
    while (*next < packing->count && !packing->members[*next].arrays[array])
        (*next)++;
    for (size_t i = *next; i < packing->count && i < *next + TRIES; i++) {
        struct text rest = packing->rest;
        if (!packing->members[i].arrays[array] || !pack_array(packing, array, base64, &packing->members[i], &rest))
            continue;
        put_literal(packing->out, (struct text){packing->kept, (size_t)(packing->rest.data - packing->kept)});
        buffer_append(packing->out, packing->parts.data, packing->parts.length_bytes);
        packing->kept = rest.data;
        packing->rest = rest;
        *next = i + 1;
        packing->found = true;
        return;
    }
}

static bool take_name(struct text *rest, const char *name)
{
    size_t name_bytes = strlen(name);
    if (rest->length_bytes < name_bytes || memcmp(rest->data, name, name_bytes) != 0)
        return false;
    move(rest, name_bytes);
    return true;
}

static void skip_blanks(struct text *rest)
{
    while (take(rest, ' ') || take(rest, '\t') || take(rest, '\n') || take(rest, '\r'))
        ;
}

/* Behind a quote: if a key with its value follows, moves to the value's inside. In JSON these bytes are nothing else. */
static void look_at_key(struct packing *packing)
{
    for (int array = 0; array < LEAN_ARRAYS; array++) {
        struct text rest = packing->rest;
        bool plain = take_name(&rest, arrays[array].name);
        if (!plain && !take_name(&rest, arrays[array].packed_name))
            continue;
        skip_blanks(&rest);
        if (!take(&rest, ':'))
            return;
        skip_blanks(&rest);
        if (!take(&rest, plain ? '[' : '"'))
            return;
        packing->rest = rest;
        replace_array(packing, (enum lean_array)array, !plain);
        return;
    }
}

bool lean_pack(struct text body, const struct lean_member *members, size_t count, struct buffer *out)
{
    struct packing packing = {.members = members, .count = count, .rest = body, .kept = body.data, .out = out};
    buffer_init(&packing.parts, SIZE_MAX);
    buffer_init(&packing.written, SIZE_MAX);
    const char *quote;
    while ((quote = memchr(packing.rest.data, '"', packing.rest.length_bytes))) {
        move(&packing.rest, (size_t)(quote + 1 - packing.rest.data));
        look_at_key(&packing);
    }
    put_literal(out, (struct text){packing.kept, (size_t)(body.data + body.length_bytes - packing.kept)});
    buffer_finish(&packing.parts);
    buffer_finish(&packing.written);
    return packing.found && !out->failed;
}
