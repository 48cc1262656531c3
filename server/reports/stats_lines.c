/* The surviving line of a run: each revision in its latest incarnation. */
#include "server/reports/stats_private.h"

#include <stdlib.h>

static int read_new(struct stats_scan *scan, struct text run, struct store_lines *ret_lines)
{
    if (store_read_lines(scan->call->reader, run, ret_lines) == STORE_OK)
        return 0;
    store_lines_finish(ret_lines);
    return call_refuse_unreadable(scan->call);
}

int lines_read(struct stats_scan *scan, struct text run, const struct store_lines **ret_lines)
{
    size_t known = scan->runs.count;
    uint32_t number = names_number(&scan->runs, run);

    if (number == NAMES_NONE)
        return stats_refuse_memory(scan->call);
    if (scan->runs.count > known) {
        if (known == scan->line_room) {
            size_t room = known ? 2 * known : 8;
            struct store_lines *larger = reallocarray(scan->lines, room, sizeof *larger);
            if (!larger)
                return stats_refuse_memory(scan->call);
            scan->lines = larger;
            scan->line_room = room;
        }
        scan->lines[number] = (struct store_lines){0};
        if (read_new(scan, run, &scan->lines[number]) < 0)
            return -1;
    }
    *ret_lines = &scan->lines[number];
    return 0;
}

bool lines_have(const struct store_lines *lines, int64_t incarnation, int64_t revision)
{
    size_t low = 0;
    size_t high = lines->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (lines->lines[middle].revision < revision)
            low = middle + 1;
        else
            high = middle;
    }
    return low == lines->count || lines->lines[low].revision != revision ||
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
    *ret_survives = lines_have(lines, rollout->incarnation, rollout->policy_revision);
    return 0;
}

void lines_finish(struct stats_scan *scan)
{
    for (size_t i = 0; i < scan->runs.count && i < scan->line_room; i++)
        store_lines_finish(&scan->lines[i]);
    free(scan->lines);
    names_finish(&scan->runs);
}
