/* The settings in force as JSON, which is also a file of settings: JSON is YAML. */
#include "server/base/clock.h"
#include "server/base/json_write.h"
#include "server/settings/table.h"

#include <string.h>

enum { UNIT_BYTES = 32 };

static void write_unit(struct json_write *json, int64_t value, void (*format)(int64_t value, char *ret_text))
{
    char text[UNIT_BYTES];
    format(value, text);
    json_write_string(json, text);
}

static void write_value(struct json_write *json, const struct setting_row *row, const void *at)
{
    switch (row->kind) {
    case SETTING_TEXT:
        json_write_string(json, *(char *const *)at ? *(char *const *)at : "");
        break;
    case SETTING_OPTIONAL_INT:
        if (*(const int64_t *)at < 0)
            json_write_string(json, "none");
        else
            json_int(json, *(const int64_t *)at);
        break;
    case SETTING_INT:
        json_int(json, *(const int64_t *)at);
        break;
    case SETTING_DOUBLE:
        json_double(json, *(const double *)at);
        break;
    case SETTING_DURATION:
        write_unit(json, *(const int64_t *)at, duration_format);
        break;
    case SETTING_SIZE:
        write_unit(json, *(const int64_t *)at, size_format);
        break;
    case SETTING_CHOICE:
        json_write_string(json, row->choices[*(const int *)at]);
        break;
    case SETTING_ENGINES:
    case SETTING_EXTERNALS:
        break;
    }
}

static void put_if_given(struct json_write *json, const char *key, const char *value)
{
    if (value)
        json_put_string(json, key, value);
}

/* Without its key, and without the file that has it. */
static void write_engine(struct json_write *json, const struct engine_settings *engine)
{
    json_object_begin(json);
    json_put_string(json, "url", engine->url);
    put_if_given(json, "name", engine->name);
    put_if_given(json, "pool", engine->pool);
    put_if_given(json, "kind", engine->kind);
    put_if_given(json, "model", engine->model);
    if (engine->in_flight > 0)
        json_put_int(json, "in_flight", engine->in_flight);
    else
        json_put_string(json, "in_flight", "auto");
    json_put_bool(json, "shared", engine->shared);
    json_object_end(json);
}

static void write_engines(struct json_write *json, const struct settings *settings)
{
    json_array_begin(json);
    for (size_t i = 0; i < settings->engine_count; i++)
        write_engine(json, &settings->engines[i]);
    json_array_end(json);
}

static void write_texts(struct json_write *json, const char *key, char *const *texts, size_t count)
{
    json_key(json, key);
    json_array_begin(json);
    for (size_t i = 0; i < count; i++)
        json_write_string(json, texts[i]);
    json_array_end(json);
}

static void write_command(struct json_write *json, const struct external_settings *external)
{
    char *paths[EXTERNAL_FILES_MAX];

    for (size_t i = 0; i < external->file_count; i++)
        paths[i] = external->files[i].path;
    write_texts(json, "command", external->command, external->word_count);
    write_texts(json, "files", paths, external->file_count);
    json_put_string(json, "sandbox", external->bare ? "none" : "full");
    json_put_string(json, "venv", external->venv);
    json_put_bool(json, "persistent", external->persistent);
    json_key(json, "memory");
    write_unit(json, external->memory_bytes, size_format);
}

static void write_url(struct json_write *json, const struct external_settings *external)
{
    _cleanup_free_ char *url = xasprintf("%s%s", external->url, external->path);

    json_put_string(json, "url", url);
    json_put_int(json, "in_flight", external->in_flight);
}

static void write_external(struct json_write *json, const struct external_settings *external)
{
    json_object_begin(json);
    json_put_string(json, "name", external->name);
    if (external->url)
        write_url(json, external);
    else
        write_command(json, external);
    json_put_string(json, "scope", external->of_group ? "group" : "rollout");
    json_key(json, "timeout");
    write_unit(json, external->timeout_us, duration_format);
    json_object_end(json);
}

static void write_externals(struct json_write *json, const struct settings *settings)
{
    json_array_begin(json);
    for (size_t i = 0; i < settings->external_count; i++)
        write_external(json, &settings->externals[i]);
    json_array_end(json);
}

static bool is_of_group(const struct setting_row *row, const char *group, size_t group_bytes)
{
    return group_bytes && strncmp(row->key, group, group_bytes) == 0 && row->key[group_bytes] == '.';
}

void settings_write_json(const struct settings *settings, const struct settings *with_engines, struct buffer *out)
{
    struct json_write json;
    const char *group = "";
    size_t group_bytes = 0;

    json_write_init(&json, out);
    json_object_begin(&json);
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        const struct setting_row *row = &setting_rows[i];
        bool inside = is_of_group(row, group, group_bytes);
        const char *dot = strchr(row->key, '.');
        if (group_bytes && !inside)
            json_object_end(&json);
        if (!inside) {
            group = row->key;
            group_bytes = dot ? (size_t)(dot - row->key) : 0;
        }
        if (group_bytes && !inside) {
            json_key_text(&json, (struct text){group, group_bytes});
            json_object_begin(&json);
        }
        json_key(&json, dot ? dot + 1 : row->key);
        if (row->kind == SETTING_ENGINES)
            write_engines(&json, with_engines);
        else if (row->kind == SETTING_EXTERNALS)
            write_externals(&json, settings);
        else
            write_value(&json, row, (const char *)settings + row->offset);
    }
    if (group_bytes)
        json_object_end(&json);
    json_object_end(&json);
}
