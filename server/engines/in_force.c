/* The settings in force, as batches and rollouts name them on record. SIGHUP changes the engines among them. */
#include "server/engines/engines.h"

enum { SETTINGS_JSON_MAX_BYTES = 16 << 20 };

struct settings_text {
    struct settings_text *next;
    struct store_settings settings; /* points into `json` */
    struct buffer json;
};

static const struct store_settings *find(const struct engines *engines, const uint8_t sha256[SHA256_BYTES])
{
    for (const struct settings_text *text = engines->settings_texts; text; text = text->next)
        if (memcmp(text->settings.sha256, sha256, SHA256_BYTES) == 0)
            return &text->settings;
    return NULL;
}

static void settings_text_destroy(struct settings_text *text)
{
    buffer_finish(&text->json);
    free(text);
}

void engines_note_settings(struct engines *engines, const struct settings *with_engines)
{
    struct settings_text *text = xcalloc(1, sizeof(*text));
    buffer_init(&text->json, SETTINGS_JSON_MAX_BYTES);
    settings_write_json(engines->uses.settings, with_engines, &text->json);
    text->settings.json = buffer_text(&text->json);
    sha256_of(text->settings.json.data, text->settings.json.length_bytes, text->settings.sha256);
    engines->in_force = find(engines, text->settings.sha256);
    if (engines->in_force) {
        settings_text_destroy(text);
        return;
    }
    text->next = engines->settings_texts;
    engines->settings_texts = text;
    engines->in_force = &text->settings;
}

void engines_forget_settings(struct engines *engines)
{
    struct settings_text *next;
    for (struct settings_text *text = engines->settings_texts; text; text = next) {
        next = text->next;
        settings_text_destroy(text);
    }
    engines->settings_texts = NULL;
    engines->in_force = NULL;
}
