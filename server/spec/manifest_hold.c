#include "server/spec/manifest_hold.h"

static json_t *load(struct text text)
{
    return json_loadb(text.data, text.length_bytes, JSON_ALLOW_NUL, NULL);
}

static bool agrees(void *arg, struct text text)
{
    struct manifest_hold *hold = arg;
    json_auto_t *frozen = load(text);
    if (!frozen)
        return false;
    if (hold->spec)
        return manifest_agrees(frozen, hold->spec, &hold->difference);
    return manifest_agrees_with_objective(frozen, hold->objective, &hold->difference);
}

int manifest_refuse_difference(struct call *call, const struct manifest_difference *difference)
{
    return call_refuse(call, ERR_STATE_CONFLICT, *difference->key ? difference->key : "manifest",
                       "the run's manifest says %s, and this request %s", difference->wanted, difference->found);
}

int manifest_look(struct call *call, struct text run, struct manifest_hold *hold)
{
    _cleanup_(store_manifest_finish) struct store_manifest manifest = {0};
    hold->version = 0;
    if (!call->reader) /* the store decides alone */
        return 0;
    enum store_status status = store_read_manifest(call->reader, run, &manifest);
    if (status != STORE_OK && status != STORE_NOT_FOUND)
        return call_refuse_unreadable(call);
    if (status == STORE_NOT_FOUND || manifest.version == 0)
        return 0;
    if (!agrees(hold, manifest.frozen))
        return manifest_refuse_difference(call, &hold->difference);
    hold->version = manifest.version;
    return 0;
}

struct store_manifest_guard manifest_guard(struct manifest_hold *hold)
{
    return (struct store_manifest_guard){.version = hold->version, .agrees = agrees, .arg = hold};
}
