#include "server/tables_private.h"

#include "client/pool/pool.h"
#include "server/api/routes.h"
#include "server/base/buffer.h"
#include "server/base/json_write.h"
#include "server/http/errors.h"
#include "server/objective/knobs.h"
#include "server/runtime/metrics.h"
#include "server/settings/settings.h"
#include "server/verify/spec.h"
#include "verifiers/registry.h"

#include <stdio.h>
#include <string.h>

enum { TABLES_BYTES = 1 << 20 };

static void print_routes(void)
{
    for (size_t i = 0; i < routes.count; i++)
        printf("%s %s\n", routes.rows[i].method, routes.rows[i].pattern);
}

/* --- closed lists of words, as schema/openapi.yaml names them --- */

static void write_words(struct json_write *json, const char *name, const char *const *words)
{
    json_key(json, name);
    json_array_begin(json);
    for (; *words; words++)
        json_text(json, text_of(*words));
    json_array_end(json);
}

static void write_verifier_names(struct json_write *json)
{
    json_key(json, "verifiers");
    json_array_begin(json);
    for (size_t i = 0; i < verifier_count; i++)
        json_text(json, text_of(verifiers[i]->name));
    json_array_end(json);
}

static void write_error_codes(struct json_write *json)
{
    json_key(json, "error_codes");
    json_array_begin(json);
    for (size_t i = 0; i < ERR_COUNT; i++)
        json_text(json, text_of(error_rows[i].code));
    json_array_end(json);
}

static void write_knob_choices(struct json_write *json)
{
    for (size_t i = 0; i < objective_knobs_count; i++) {
        const struct objective_knob *knob = &objective_knobs_table[i];
        char name[64];
        snprintf(name, sizeof(name), "objective.%s.%s", knob->section, knob->name);
        if (knob->choices)
            write_words(json, name, knob->choices);
    }
}

static void write_losses(struct json_write *json)
{
    json_array_begin(json);
    for (size_t i = 0; i < OBJECTIVE_LOSS_COUNT; i++) {
        const struct objective_loss_text *loss = &objective_loss_texts[i];
        json_object_begin(json);
        json_put_string(json, "name", loss->name);
        json_put_string(json, "value", loss->value);
        json_put_string(json, "derivative", loss->derivative);
        json_put_string(json, "source", loss->source);
        json_object_end(json);
    }
    json_array_end(json);
}

static void print_tables(void)
{
    _cleanup_buffer_ struct buffer text;
    struct json_write json;
    buffer_init(&text, TABLES_BYTES);
    json_write_init(&json, &text);
    json_object_begin(&json);
    json_key(&json, "lists");
    json_object_begin(&json);
    write_verifier_names(&json);
    write_words(&json, "engine_kinds", engine_kinds);
    write_words(&json, "engine_states", engine_state_names);
    write_error_codes(&json);
    write_knob_choices(&json);
    json_object_end(&json);
    json_key(&json, "losses");
    write_losses(&json);
    json_key(&json, "metrics");
    metrics_write(&json);
    json_key(&json, "verifiers");
    verifiers_write(&json, NULL);
    json_object_end(&json);
    fwrite(text.data, 1, text.length_bytes, stdout);
    putchar('\n');
}

int tables_print(const char *name)
{
    if (strcmp(name, "config") == 0)
        settings_print_config(stdout);
    else if (strcmp(name, "routes") == 0)
        print_routes();
    else
        print_tables();
    return fflush(stdout) == 0 ? 0 : 1;
}
