#include "server/verify/externals.h"

#include <stdio.h>

#include "server/base/cleanup.h"
#include "server/base/clock.h"
#include "server/settings/settings.h"
#include "server/verify/packages_private.h"
#include "verifiers/sandbox/slot.h"

#define ENTRY_BYTES ((size_t)1 << 20)

static struct external *list;
static size_t count;

/* --- version --- */

/* With its length, so that no two lists of texts are the same bytes. */
static void add_text(struct sha256 *sha256, const char *bytes, size_t length_bytes)
{
    char length[24];

    sha256_add(sha256, length, (size_t)snprintf(length, sizeof length, "%zu:", length_bytes));
    sha256_add(sha256, bytes, length_bytes);
}

static void set_version(struct external *external)
{
    const struct external_settings *settings = external->settings;
    struct sha256 *sha256 = sha256_create();
    uint8_t digest[SHA256_BYTES];
    char hex[SHA256_HEX_BYTES];

    if (settings->url) {
        add_text(sha256, settings->url, strlen(settings->url));
        add_text(sha256, settings->path, strlen(settings->path));
    }
    for (size_t i = 0; i < settings->word_count; i++)
        add_text(sha256, settings->command[i], strlen(settings->command[i]));
    for (size_t i = 0; i < settings->file_count; i++) {
        add_text(sha256, settings->files[i].name, strlen(settings->files[i].name));
        add_text(sha256, settings->files[i].bytes, settings->files[i].length_bytes);
    }
    if (settings->venv)
        packages_add(sha256, settings->venv);
    sha256_finish(sha256, digest);
    sha256_hex(digest, hex);
    snprintf(external->version, sizeof external->version, "sha256:%s", hex);
}

/* --- the grader's part --- */

static void write_file(struct json_write *json, const struct external_file *file)
{
    _cleanup_buffer_ struct buffer bytes;

    buffer_init(&bytes, ENTRY_BYTES);
    base64_encode(file->bytes, file->length_bytes, &bytes);
    json_object_begin(json);
    json_put_string(json, "name", file->name);
    json_put_text(json, "base64", bytes.data ? buffer_text(&bytes) : TEXT_LITERAL(""));
    json_object_end(json);
}

static void write_entry(struct json_write *json, const struct external_settings *settings)
{
    json_object_begin(json);
    json_put_bool(json, "asked", settings->url != NULL);
    json_put_bool(json, "group", settings->of_group);
    json_put_int(json, "timeout_ms", settings->timeout_us / US_PER_MS);
    json_put_int(json, "memory_bytes", settings->memory_bytes);
    json_put_bool(json, "bare", settings->bare);
    json_put_bool(json, "persistent", settings->persistent);
    json_put_string(json, "venv", settings->venv);
    json_key(json, "command");
    json_array_begin(json);
    for (size_t i = 0; i < settings->word_count; i++)
        json_write_string(json, settings->command[i]);
    json_array_end(json);
    json_key(json, "files");
    json_array_begin(json);
    for (size_t i = 0; i < settings->file_count; i++)
        write_file(json, &settings->files[i]);
    json_array_end(json);
    json_object_end(json);
}

static void set_entry(struct external *external)
{
    _cleanup_buffer_ struct buffer out;
    struct json_write json;

    buffer_init(&out, ENTRY_BYTES);
    json_write_init(&json, &out);
    write_entry(&json, external->settings);
    external->entry_json = xstrndup(out.data, out.length_bytes);
}

/* --- what slots know of them --- */

static void allow(const struct external_settings *settings, struct sandbox_settings *sandbox)
{
    struct sandbox_program command = {
        .language = SANDBOX_COMMAND, .argument_count = settings->word_count, .venv = settings->venv};

    for (size_t i = 0; i < settings->word_count; i++)
        command.arguments[i] = settings->command[i];
    for (size_t i = 0; i < settings->file_count; i++)
        command.files[command.file_count++] =
            (struct sandbox_file){settings->files[i].name, {settings->files[i].bytes, settings->files[i].length_bytes}};
    sandbox_allow_bare(sandbox, &command);
}

/* Each once; the settings have no more of them than there are places. */
static void show_venv(const char *venv, struct sandbox_settings *sandbox)
{
    size_t i = 0;

    while (i < SANDBOX_VENVS_MAX && *sandbox->venvs[i] && strcmp(sandbox->venvs[i], venv) != 0)
        i++;
    if (i < SANDBOX_VENVS_MAX)
        snprintf(sandbox->venvs[i], sizeof sandbox->venvs[i], "%s", venv);
}

void externals_tell_slots(const struct settings *settings, struct sandbox_settings *sandbox)
{
    for (size_t i = 0; i < settings->external_count; i++) {
        const struct external_settings *external = &settings->externals[i];
        if (external->bare)
            allow(external, sandbox);
        else if (external->venv)
            show_venv(external->venv, sandbox);
    }
}

/* --- the list --- */

void externals_setup(const struct settings *settings)
{
    externals_finish();
    list = xcalloc(settings->external_count, sizeof *list);
    for (count = 0; count < settings->external_count; count++) {
        struct external *external = &list[count];
        external->settings = &settings->externals[count];
        external->name = external->settings->name;
        set_version(external);
        set_entry(external);
    }
}

void externals_finish(void)
{
    for (size_t i = 0; i < count; i++)
        free(list[i].entry_json);
    free(TAKE_PTR(list));
    count = 0;
}

const struct external *externals_find(struct text name)
{
    for (size_t i = 0; i < count; i++)
        if (text_equals(name, list[i].name))
            return &list[i];
    return NULL;
}

void externals_advise(struct text name, char ret_advice[ADVICE_BYTES])
{
    if (count)
        names_advise(name, list, sizeof list[0], count, ret_advice);
    else
        snprintf(ret_advice, ADVICE_BYTES, "the settings name none in `externals`");
}

static void write_external(struct json_write *json, const struct external *external)
{
    json_object_begin(json);
    json_put_string(json, "name", external->name);
    json_put_string(json, "version", external->version);
    json_put_string(json, "scope", external->settings->of_group ? "group" : "rollout");
    json_put_string(json, "sandbox", external->settings->url ? NULL : external->settings->bare ? "none" : "full");
    json_put_bool(json, "asked", external->settings->url != NULL);
    json_put_bool(json, "persistent", external->settings->persistent);
    json_put_double(json, "timeout_s", (double)external->settings->timeout_us / US_PER_S);
    json_object_end(json);
}

void externals_write(struct json_write *json)
{
    json_array_begin(json);
    for (size_t i = 0; i < count; i++)
        write_external(json, &list[i]);
    json_array_end(json);
}
