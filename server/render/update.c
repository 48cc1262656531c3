/* A weight update, wherever it is shown. */
#include "server/render/render.h"

#include "server/base/clock.h"

void update_write_record(struct json_write *json, const struct store_policy_update *record)
{
    json_put_int(json, "revision", record->revision);
    json_put_string(json, "mode", store_update_mode_names[record->mode]);
    json_put_string(json, "state", store_update_state_names[record->state]);
    json_put_int_or_null(json, "rewind_to_step", record->rewind_to_step);
    json_put_time(json, "begun_at", record->begun_at_us);
    json_put_time(json, "deadline_at", record->deadline_us);
    json_put_time(json, "ended_at", record->ended_at_us);
    if (record->state == STORE_UPDATE_EXPIRED)
        json_put_string(json, "warning",
                        "not committed before its deadline: the run continues at its old revision,"
                        " whatever the engines have");
}
