/* The lean form of a request: any body comes out as it was, whatever arrays the completions have; any bytes are a lean form that is
 * read or refused. */
#include "server/store/lean.h"
#include "tests/fuzz/fuzz.h"

enum { MEMBERS = 2, VALUES_MAX = 64 };

struct made {
    struct lean_member members[MEMBERS];
    uint32_t ids[MEMBERS][VALUES_MAX];
    uint32_t logprobs[MEMBERS][VALUES_MAX]; /* bits */
    uint8_t mask[MEMBERS][VALUES_MAX];
};

static uint32_t take_word(struct text *rest)
{
    uint32_t word = 0;
    for (size_t i = 0; i < sizeof(word); i++)
        word = word << 8 | fuzz_take_byte(rest);
    return word;
}

/* Exponents of 128 are no finite numbers, which a completion never has. */
static uint32_t finite_bits(uint32_t bits)
{
    enum { INFINITE = 0x7F800000 };
    return (bits & INFINITE) == INFINITE ? bits ^ (INFINITE & -INFINITE) : bits;
}

static void make_members(struct made *made, struct text *rest)
{
    for (size_t m = 0; m < MEMBERS; m++) {
        size_t count = fuzz_take_byte(rest) % VALUES_MAX;
        for (size_t i = 0; i < count; i++) {
            made->ids[m][i] = take_word(rest);
            made->logprobs[m][i] = finite_bits(take_word(rest));
            made->mask[m][i] = fuzz_take_byte(rest) & 1;
        }
        made->members[m] = (struct lean_member){.group_index = m,
                                                .sample_index = 3,
                                                .arrays = {made->ids[m], made->logprobs[m], made->mask[m]},
                                                .count = count};
    }
}

static bool find_values(void *arg, const struct lean_part *part, struct text *ret_values)
{
    const struct made *made = arg;
    size_t width_bytes = lean_width_bytes[part->array];
    if (part->group_index >= MEMBERS || part->first + part->count > made->members[part->group_index].count)
        return false;
    *ret_values =
        (struct text){(const char *)made->members[part->group_index].arrays[part->array] + part->first * width_bytes,
                      part->count * width_bytes};
    return true;
}

static void check_body(struct made *made, struct text body)
{
    _cleanup_buffer_ struct buffer lean;
    _cleanup_buffer_ struct buffer out;
    buffer_init(&lean, SIZE_MAX);
    buffer_init(&out, SIZE_MAX);
    (void)lean_pack(body, made->members, MEMBERS, &lean);
    FUZZ_CHECK(lean_unpack(buffer_text(&lean), find_values, made, &out));
    FUZZ_CHECK(text_same(buffer_text(&out), body));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
    static struct made made;
    struct text rest = {data ? (const char *)data : "", size_bytes};
    _cleanup_buffer_ struct buffer out;
    buffer_init(&out, 1 << 20);
    make_members(&made, &rest);
    _cleanup_free_ char *exact = xcalloc(rest.length_bytes ? rest.length_bytes : 1, 1); /* a sanitizer sees its end */
    memcpy(exact, rest.data, rest.length_bytes);
    (void)lean_unpack((struct text){exact, rest.length_bytes}, find_values, &made, &out);
    check_body(&made, (struct text){exact, rest.length_bytes});
    return 0;
}
