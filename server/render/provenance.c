#include "server/render/render.h"

#include "server/store/provenance.h"

#include <stddef.h>

void render_provenance(struct json_write *json, const struct store_provenance *provenance)
{
    static const struct {
        const char *key;
        size_t offset;
    } lists[] = {
        {"engines", offsetof(struct store_provenance, engines)},
        {"engine_models", offsetof(struct store_provenance, engine_models)},
        {"engine_versions", offsetof(struct store_provenance, engine_versions)},
        {"tokenizer_sha256s", offsetof(struct store_provenance, tokenizer_sha256s)},
        {"rolloutd_versions", offsetof(struct store_provenance, rolloutd_versions)},
        {"settings_sha256s", offsetof(struct store_provenance, settings_sha256s)},
    };
    json_key(json, "provenance");
    json_object_begin(json);
    for (size_t i = 0; i < ARRAY_LENGTH(lists); i++) {
        const struct store_names *names = (const void *)((const char *)provenance + lists[i].offset);
        json_key(json, lists[i].key);
        json_array_begin(json);
        for (size_t n = 0; n < names->count; n++)
            json_text(json, names->names[n]);
        json_array_end(json);
    }
    json_object_end(json);
}
