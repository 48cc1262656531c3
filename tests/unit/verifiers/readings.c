#include "tests/unit/verifiers/readings.h"

#include "tests/unit/base/cmocka_all.h"
#include "verifiers/math/parse.h"

#include <string.h>

const char TOO_LARGE[] = "too large";

static const struct math_reading reading = {.max_depth = 256};

static void check_refused(const struct reading_row *row, enum math_parse_status status,
                          const struct math_parse_error *error)
{
    enum math_parse_status wanted = row->printed == TOO_LARGE ? MATH_TOO_LARGE : MATH_UNPARSED;

    if (status != wanted)
        fail_msg("%s: status %d, not %d", row->answer, (int)status, (int)wanted);
    if (!error->expected || error->at_bytes > strlen(row->answer))
        fail_msg("%s: refused without a place and a reason", row->answer);
}

static void check_row(const struct reading_row *row)
{
    _cleanup_math_arena_ struct math_arena *arena = math_arena_create(1 << 20);
    _cleanup_buffer_ struct buffer printed;
    struct math_parse_error error = {0, NULL};
    struct math_node *node, *again;
    enum math_parse_status status = math_parse(arena, text_of(row->answer), &reading, &node, &error);

    buffer_init(&printed, 1 << 16);
    if (row->printed == REFUSED || row->printed == TOO_LARGE) {
        check_refused(row, status, &error);
        return;
    }
    if (status != MATH_PARSED)
        fail_msg("%s: refused at %zu: %s", row->answer, error.at_bytes, error.expected);
    math_print(node, &printed);
    assert_string_equal(printed.data, row->printed);
    if (math_parse(arena, buffer_text(&printed), &reading, &again, NULL) != MATH_PARSED || !math_same_tree(node, again))
        fail_msg("%s: %s does not read back", row->answer, printed.data);
}

void check_readings(const struct reading_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        check_row(&rows[i]);
}
