/* The slices of a report: groups with one value of the tag that it is split by, beside the whole. */
#include "server/reports/report_private.h"

#include "server/base/buffer.h"
#include "server/base/cleanup.h"

#include <stdlib.h>

#define SLICES_MAX 100

/* The key of a value: '=' and it, so that a group without the tag is told from one with an empty text. */
int report_find_slice(struct report *report, struct text tags, int64_t *ret_slice)
{
    _cleanup_buffer_ struct buffer key = {0};
    _cleanup_buffer_ struct buffer value = {0};
    uint32_t number;

    *ret_slice = REPORT_WHOLE;
    if (!report->split.data)
        return 0;
    buffer_init(&key, STORE_TAG_VALUE_BYTES + 1);
    buffer_init(&value, STORE_TAG_VALUE_BYTES);
    if (store_tag_find(tags, report->split, &value)) {
        buffer_append_byte(&key, '=');
        buffer_append(&key, value.data, value.length_bytes);
    }
    number = key.failed || value.failed
                 ? NAMES_NONE
                 : names_number(&report->values, key.data ? buffer_text(&key) : TEXT_LITERAL(""));
    if (number == NAMES_NONE)
        return report_refuse_memory(report);
    if (number >= SLICES_MAX)
        return call_refuse(report->call, ERR_TOO_MANY_ROLLOUTS, "by",
                           "the tag has more than %d values; GET /v1/stats lists so many, by pages", SLICES_MAX);
    *ret_slice = number;
    return 0;
}

static struct text value_of(const struct report *report, size_t slice)
{
    struct text key = names_key(&report->values, (uint32_t)slice);

    return key.length_bytes ? (struct text){key.data + 1, key.length_bytes - 1} : TEXT_NONE;
}

static int compare_slices(const void *left, const void *right)
{
    const struct report_slice *a = left;
    const struct report_slice *b = right;

    if (!a->value.data || !b->value.data)
        return (a->value.data != NULL) - (b->value.data != NULL);
    return cell_text_order(a->value, b->value);
}

/* Rows of cells are in the order of slices: each one's totals, then its revisions. */
int report_take_slices(struct report *report, struct report_row *rows, size_t count)
{
    report->slices = calloc(report->values.count + 1, sizeof *report->slices);
    if (!report->slices)
        return report_refuse_memory(report);
    report->slice_count = report->values.count;
    for (size_t slice = 0; slice < report->slice_count; slice++)
        report->slices[slice] = (struct report_slice){.number = (int64_t)slice, .value = value_of(report, slice)};
    for (size_t i = 0; i < count; i++) {
        struct report_slice *slice = &report->slices[rows[i].slice];
        if (slice->row_count++ == 0)
            slice->rows = &rows[i];
    }
    qsort(report->slices, report->slice_count, sizeof *report->slices, compare_slices);
    return 0;
}
