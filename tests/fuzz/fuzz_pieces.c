/* The steps of texts, and their ends as tokens. Input: a byte for the kind, one for the number of tokens, a byte for the
 * length of each but the last, and the text. */
#include "server/verify/spec.h"
#include "tests/fuzz/fuzz.h"
#include "verifiers/text/pieces.h"

static bool is_white(char byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

/* Only white space stands between the pieces. */
static void check_between(struct text whole, size_t from, struct text piece)
{
    size_t start = (size_t)(piece.data - whole.data);

    FUZZ_CHECK(start >= from && start + piece.length_bytes <= whole.length_bytes);
    for (size_t i = from; i < start; i++)
        FUZZ_CHECK(is_white(whole.data[i]));
}

static void check_pieces(struct text whole, enum pieces_kind kind, const struct piece *pieces, size_t count)
{
    size_t before = 0;

    for (size_t i = 0; i < count; i++) {
        struct text text = pieces[i].text;
        check_between(whole, before, text);
        FUZZ_CHECK(text.length_bytes > 0 && pieces[i].end_bytes > before);
        FUZZ_CHECK(kind != PIECES_PER_LINE || !memchr(text.data, '\n', text.length_bytes));
        FUZZ_CHECK(text.data[text.length_bytes - 1] != '\n');
        before = pieces[i].end_bytes;
    }
    for (size_t i = before; count <= PIECES_MAX && i < whole.length_bytes; i++)
        FUZZ_CHECK(is_white(whole.data[i]));
}

static size_t read_ends(struct text *rest, uint32_t ends[256])
{
    size_t count = (size_t)fuzz_take_byte(rest) + 1;
    uint32_t end = 0;

    for (size_t i = 0; i + 1 < count; i++)
        ends[i] = end += fuzz_take_byte(rest);
    for (size_t i = 0; i < count; i++)
        if (i + 1 == count || ends[i] > rest->length_bytes)
            ends[i] = (uint32_t)rest->length_bytes;
    return count;
}

static void check_placed(const struct verdict_record *record, const struct piece *pieces, const uint32_t *ends,
                         size_t tokens)
{
    for (size_t i = 0; i < record->step_count; i++) {
        const struct verdict_step *step = &record->steps[i];
        FUZZ_CHECK(step->byte_end == pieces[i].end_bytes && step->end > 0 && step->end <= tokens);
        FUZZ_CHECK(ends[step->end - 1] >= step->byte_end);
        FUZZ_CHECK(step->end == 1 || ends[step->end - 2] < step->byte_end);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
    struct text rest = {size_bytes ? (const char *)data : "", size_bytes};
    enum pieces_kind kind = fuzz_take_byte(&rest) & 1 ? PIECES_PER_LINE : PIECES_PER_PARAGRAPH;
    uint32_t ends[256];
    size_t tokens = read_ends(&rest, ends);
    size_t count;
    _cleanup_free_ struct piece *pieces = pieces_of(rest, kind, &count);
    struct verdict_record record = {.kind = VERDICT_SCORED, .step_count = count};
    struct verdict_set set = {1, &record};

    check_pieces(rest, kind, pieces, count);
    record.steps = xcalloc(count + 1, sizeof record.steps[0]);
    for (size_t i = 0; i < count; i++)
        record.steps[i].byte_end = (uint32_t)pieces[i].end_bytes;
    verdict_set_place_steps(&set, ends, tokens);
    FUZZ_CHECK(record.kind == VERDICT_SCORED);
    check_placed(&record, pieces, ends, tokens);
    free(record.steps);
    return 0;
}
