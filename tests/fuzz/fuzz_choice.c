/* Letters of options in completions. Input: a byte for the mode and three flags, the texts of options A and B, each ended by
 * the separator, and the completion. */
#include "tests/fuzz/fuzz.h"
#include "verifiers/text/claims.h"
#include "verifiers/text/extract.h"
#include "verifiers/text/lookalikes.h"

enum { MULTI = 8, FOLD = 16, STRIP = 32, TEXTS = 64 };

static const struct text markers[] = {TEXT_LITERAL("answer"), TEXT_LITERAL("####")};

static bool holds_letter(struct text text, const struct labels_rule *rule, size_t place)
{
    for (size_t i = 0; i < text.length_bytes; i++)
        if (labels_place(rule, text.data[i]) == place)
            return true;
    return false;
}

static void check_claim(const struct labels_rule *rule, struct text text, const struct claim *claim, bool by_text)
{
    struct labels labels = claim->labels;

    FUZZ_CHECK(!claim->value.data || (claim->value.data >= text.data &&
                                      claim->value.data + claim->value.length_bytes <= text.data + text.length_bytes));
    FUZZ_CHECK(claim->value.data || labels.outcome == LABELS_BLANK || labels.outcome == LABELS_SEVERAL);
    if (labels.outcome != LABELS_READ)
        return;
    FUZZ_CHECK(labels.set && labels.set < UINT64_C(1) << rule->letters.length_bytes);
    FUZZ_CHECK(rule->multi || !(labels.set & (labels.set - 1)));
    for (size_t i = 0; !by_text && i < rule->letters.length_bytes; i++)
        FUZZ_CHECK(!(labels.set >> i & 1) || holds_letter(claim->value, rule, i));
}

/* An answer that is no letter is the last one, with any text before it. */
static void check_last_marker(const struct claims_rule *rule, struct text text)
{
    static const char last[] = "\nAnswer: Banana";
    _cleanup_buffer_ struct buffer longer;
    struct claim claim;

    buffer_init(&longer, text.length_bytes + sizeof last);
    buffer_append(&longer, text.data, text.length_bytes);
    buffer_append_string(&longer, last);
    if (extract_turn(buffer_text(&longer)).length_bytes < longer.length_bytes)
        return;
    claims_find(rule, buffer_text(&longer), CLAIMS_MARKER, &claim);
    FUZZ_CHECK(claim.labels.outcome == LABELS_UNREADABLE || claim.labels.outcome == LABELS_BLANK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
    struct text rest = {size_bytes ? (const char *)data : "", size_bytes};
    uint8_t how = fuzz_take_byte(&rest);
    struct labels_rule labels = {.letters = TEXT_LITERAL("ABCD"), .multi = how & MULTI};
    struct claims_rule rule = {&labels, markers, ARRAY_LENGTH(markers), 2 + how % 3};
    enum claims_mode mode = (enum claims_mode)((how & 7) % (CLAIMS_MARKER + 1));
    _cleanup_buffer_ struct buffer room;
    struct claim claim;
    size_t bytes[2];

    _cleanup_free_ char *first = fuzz_take_part(&rest, &bytes[0]);
    _cleanup_free_ char *second = fuzz_take_part(&rest, &bytes[1]);
    labels.strict = mode == CLAIMS_STRICT_BOX;
    if (how & TEXTS) {
        labels.text[0] = (struct text){first, bytes[0]};
        labels.text[1] = (struct text){second, bytes[1]};
    }
    buffer_init(&room, rest.length_bytes + 1);
    struct text plain = lookalikes_plain(rest, how & FOLD, how & STRIP, &room);
    FUZZ_CHECK(plain.length_bytes <= rest.length_bytes && !room.failed);
    claims_find(&rule, plain, mode, &claim);
    check_claim(&labels, plain, &claim, how & TEXTS);
    if (!(how & TEXTS))
        check_last_marker(&rule, plain);
    return 0;
}
