/* The surviving line of a run: each revision in its latest incarnation. */
#include "server/reports/stats_private.h"

#include <stdlib.h>
#include <string.h>

static int read_new(struct stats_scan *scan, struct text run, struct store_lines *ret_lines)
{
    if (store_read_lines(scan->call->reader, run, ret_lines) == STORE_OK)
        return 0;
    store_lines_finish(ret_lines);
    return call_refuse_unreadable(scan->call);
}

/* Room for one more; unread members are zero. */
static int make_room(struct stats_scan *scan)
{
    size_t room = scan->line_room ? 2 * scan->line_room : 8;

    if (scan->runs.count < scan->line_room)
        return 0;
    struct store_lines *larger = reallocarray(scan->lines, room, sizeof *larger);
    if (!larger)
        return stats_refuse_memory(scan->call);
    memset(larger + scan->line_room, 0, (room - scan->line_room) * sizeof *larger);
    scan->lines = larger;
    scan->line_room = room;
    return 0;
}

int lines_read(struct stats_scan *scan, struct text run, const struct store_lines **ret_lines)
{
    size_t known = scan->runs.count;

    if (make_room(scan) < 0)
        return -1;
    uint32_t number = names_number(&scan->runs, run);
    if (number == NAMES_NONE) {
        stats_refuse_memory(scan->call);
        return -1;
    }
    if (scan->runs.count > known && read_new(scan, run, &scan->lines[number]) < 0)
        return -1;
    *ret_lines = &scan->lines[number];
    return 0;
}

/* Negative: the line comes before. */
static int64_t compare(const struct store_line *line, int64_t revision, enum store_purpose purpose)
{
    return line->revision != revision ? line->revision - revision : (int64_t)line->purpose - (int64_t)purpose;
}

bool lines_have(const struct store_lines *lines, int64_t incarnation, int64_t revision, enum store_purpose purpose)
{
    size_t low = 0;
    size_t high = lines->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(&lines->lines[middle], revision, purpose) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low == lines->count || compare(&lines->lines[low], revision, purpose) != 0 ||
           incarnation >= lines->lines[low].incarnation;
}

int lines_survives(struct stats_scan *scan, const struct store_rollout *rollout, bool *ret_survives)
{
    const struct store_lines *lines;

    *ret_survives = true;
    if (scan->query->every_incarnation)
        return 0;
    if (lines_read(scan, rollout->run, &lines) < 0)
        return -1;
    *ret_survives = lines_have(lines, rollout->incarnation, rollout->policy_revision, rollout->purpose);
    return 0;
}

void lines_finish(struct stats_scan *scan)
{
    for (size_t i = 0; i < scan->line_room; i++)
        store_lines_finish(&scan->lines[i]);
    free(scan->lines);
    names_finish(&scan->runs);
}
