/* Memory of a report. */
#include "server/reports/report_private.h"

#include <stdlib.h>

int report_refuse_memory(struct report *report)
{
    return call_refuse(report->call, ERR_QUEUE_FULL, NULL, "there is no memory for this report now");
}

bool report_make_room(void *array, size_t count, size_t *room, size_t size_bytes)
{
    if (count < *room)
        return true;
    size_t wanted = *room ? 2 * *room : 16;
    void *larger = reallocarray(*(void **)array, wanted, size_bytes);
    if (!larger)
        return false;
    *(void **)array = larger;
    *room = wanted;
    return true;
}
