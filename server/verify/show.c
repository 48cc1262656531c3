/* The verifiers as GET /v1/verifiers shows them. */
#include "server/base/json_write.h"
#include "server/verify/externals.h"
#include "server/verify/pool.h"
#include "server/verify/spec.h"
#include "verifiers/registry.h"

static void write_choices(struct json_write *json, const struct verifier_option *option)
{
    if (!option->choices)
        return;
    json_key(json, "choices");
    json_array_begin(json);
    for (const char *const *choice = option->choices; *choice; choice++)
        json_text(json, text_of(*choice));
    json_array_end(json);
}

static void write_option(struct json_write *json, const struct verifier_option *option)
{
    bool has_range = option->kind != OPTION_BOOL && option->kind != OPTION_CHOICE;

    json_key(json, option->name);
    json_object_begin(json);
    json_put_string(json, "type", option_kind_names[option->kind]);
    json_put_bool(json, "required", !option->fallback);
    json_put_raw(json, "default", text_of(option->fallback));
    write_choices(json, option);
    if (has_range) {
        json_put_double(json, "minimum", option->minimum);
        json_put_double(json, "maximum", option->maximum);
    }
    json_put_string(json, "help", option->help);
    json_object_end(json);
}

static void write_verifier(struct json_write *json, const struct verifier *verifier)
{
    json_object_begin(json);
    json_put_string(json, "name", verifier->name);
    json_put_string(json, "version", verifier->version);
    json_put_string(json, "help", verifier->help);
    json_put_bool(json, "needs_reference", verifier->needs_reference);
    json_put_bool(json, "runs_programs", verifier->runs_programs);
    json_put_bool(json, "asks_external", verifier->asks_external);
    json_put_bool(json, "asks_engine", verifier->asks_engine);
    json_put_bool(json, "asks_engine", verifier->asks_engine);
    json_key(json, "options");
    json_object_begin(json);
    for (size_t i = 0; i < verifier->option_count; i++)
        write_option(json, &verifier->options[i]);
    json_object_end(json);
    json_object_end(json);
}

static void write_limits(struct json_write *json)
{
    json_key(json, "limits");
    json_object_begin(json);
    json_put_int(json, "verifiers", VERIFIER_LIST_LIMIT);
    json_put_int(json, "items", VERIFY_ITEMS_MAX);
    json_put_int(json, "item_bytes", VERIFIER_FRAME_LIMIT_BYTES);
    json_put_int(json, "program_item_bytes", VERIFIER_PROGRAM_FRAME_LIMIT_BYTES);
    json_object_end(json);
}

void verifiers_write(struct json_write *json, const struct verify_pool *code)
{
    json_object_begin(json);
    json_key(json, "verifiers");
    json_array_begin(json);
    for (size_t i = 0; i < verifier_count; i++)
        write_verifier(json, verifiers[i]);
    json_array_end(json);
    json_key(json, "externals");
    externals_write(json);
    write_limits(json);
    if (code)
        verify_pool_write_sandbox(json, code);
    json_object_end(json);
}
