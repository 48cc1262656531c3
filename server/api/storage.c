/* GET /v1/storage. */
#include "server/api/storage.h"

#include "server/api/routes.h"
#include "server/api/server.h"
#include "server/base/clock.h"
#include "server/base/json_write.h"
#include "server/http/http.h"
#include "server/settings/settings.h"
#include "server/store/store.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#define US_PER_HOUR (3600 * US_PER_S)
#define GROWTH_MIN_US (10 * US_PER_S) /* a shorter time is too little for a rate */

void storage_look(struct storage_history *history, const struct store *store)
{
    const struct store_metrics *metrics = store_metrics(store);
    int64_t now_us = clock_monotonic_us();
    const struct storage_sample *last = &history->samples[(history->count - 1) % STORAGE_SAMPLES];
    if (history->count && now_us - last->at_us < STORAGE_PERIOD_US)
        return;
    history->samples[history->count++ % STORAGE_SAMPLES] =
        (struct storage_sample){now_us, (int64_t)(metrics->file_bytes - metrics->free_bytes)};
}

/* Bytes an hour since the oldest sample; -1: it is too early to say. */
static int64_t growth(const struct storage_history *history, int64_t used_bytes, int64_t *ret_over_us)
{
    if (history->count == 0)
        return -1;
    size_t first = history->count > STORAGE_SAMPLES ? history->count % STORAGE_SAMPLES : 0;
    const struct storage_sample *oldest = &history->samples[first];
    *ret_over_us = clock_monotonic_us() - oldest->at_us;
    if (*ret_over_us < GROWTH_MIN_US)
        return -1;
    double an_hour = (double)(used_bytes - oldest->used_bytes) * (double)US_PER_HOUR / (double)*ret_over_us;
    return an_hour > 0 ? (int64_t)an_hour : 0;
}

/* -1: it cannot be told. */
static int64_t disk_free_bytes(const char *database)
{
    struct statvfs disk;
    return statvfs(database, &disk) == 0 ? (int64_t)disk.f_bavail * (int64_t)disk.f_frsize : -1;
}

static void put_growth(struct json_write *json, const struct storage_history *history, int64_t used_bytes,
                       int64_t room_bytes)
{
    int64_t over_us = 0;
    int64_t an_hour = growth(history, used_bytes, &over_us);
    json_key(json, "growth");
    json_object_begin(json);
    json_put_int_or_null(json, "bytes_per_hour", an_hour);
    json_put_double(json, "over_hours", (double)over_us / (double)US_PER_HOUR);
    json_object_end(json);
    double left_hours = an_hour > 0 && room_bytes >= 0 ? (double)room_bytes / (double)an_hour : -1;
    bool known = left_hours >= 0 && left_hours < 24.0 * 36500;
    json_put_time(json, "full_at", known ? clock_utc_us() + (int64_t)(left_hours * (double)US_PER_HOUR) : -1);
}

void get_storage(void *owner, struct request *request)
{
    struct server *server = owner;
    struct call *call = request_call(request);
    struct json_write json;
    const struct store_metrics *metrics = store_metrics(server->store);
    int64_t file_bytes = (int64_t)metrics->file_bytes;
    int64_t free_bytes = (int64_t)metrics->free_bytes;
    int64_t disk_bytes = disk_free_bytes(server->settings->database);
    int64_t room_bytes = disk_bytes < 0 ? -1 : disk_bytes + free_bytes;
    json_write_init(&json, &call->reply.body);
    json_object_begin(&json);
    json_put_string(&json, "database", server->settings->database);
    json_put_int(&json, "file_bytes", file_bytes);
    json_put_int(&json, "free_bytes", free_bytes);
    json_put_int(&json, "wal_bytes", (int64_t)metrics->wal_bytes);
    json_put_int_or_null(&json, "disk_free_bytes", disk_bytes);
    json_put_int_or_null(&json, "room_bytes", room_bytes);
    put_growth(&json, &server->storage, file_bytes - free_bytes, room_bytes);
    json_object_end(&json);
    call_answer_json(call, 200);
    request_answer(request);
}
