/* rolloutd sandbox-check: what this machine offers to programs from models, and what to change. */
#include "server/commands/commands.h"

#include <stdio.h>

#include "server/base/cleanup.h"
#include "server/commands/sandbox_private.h"
#include "server/verify/externals.h"
#include "server/verify/sandbox.h"
#include "verifiers/sandbox/probe.h"
#include "verifiers/worker/worker.h"

#define COMMAND "sandbox-check"

struct arguments {
    const char *config;
    bool json;
};

static int take_config(void *target, const char *value, char ret_message[COMMAND_MESSAGE_BYTES])
{
    (void)ret_message;
    ((struct arguments *)target)->config = value;
    return 0;
}

static int take_json(void *target, const char *value, char ret_message[COMMAND_MESSAGE_BYTES])
{
    (void)value;
    (void)ret_message;
    ((struct arguments *)target)->json = true;
    return 0;
}

const struct command_option sandbox_check_options[] = {
    {"--config", "FILE", take_config, "The service's settings; also from ROLLOUTD_CONFIG."},
    {"--json", NULL, take_json, "Print one object."},
    {NULL, NULL, NULL, NULL},
};

static int load(const char *config, struct settings *ret_settings, char ret_message[SETTINGS_MESSAGE_BYTES])
{
    char *words[] = {(char *)(uintptr_t) "rolloutd", (char *)(uintptr_t) "--config", (char *)(uintptr_t)config};
    struct settings_run run;

    return settings_load(config ? 3 : 1, words, ret_settings, &run, ret_message);
}

const struct settings *command_settings(const char *config, char ret_message[SETTINGS_MESSAGE_BYTES])
{
    static struct settings settings;

    if (load(config, &settings, ret_message) < 0)
        return NULL;
    externals_setup(&settings);
    return &settings;
}

int command_sandbox(const char *config, struct sandbox_settings *ret_sandbox, char ret_message[SETTINGS_MESSAGE_BYTES])
{
    struct settings settings;
    int result = load(config, &settings, ret_message);

    if (result >= 0)
        sandbox_settings_of(&settings, ret_sandbox);
    settings_finish(&settings);
    return result;
}

static void print_json(const struct sandbox_settings *sandbox, const struct sandbox_report *report)
{
    json_t *json = json_object();
    json_object_set_new(json, "level", json_string(sandbox_level_names[report->level]));
    json_object_set_new(json, "min_level", json_string(sandbox_level_names[sandbox->min_level]));
    json_object_set_new(json, "programs_run", json_boolean(sandbox_is_enough(sandbox, report->level)));
    json_object_set_new(json, "landlock_abi", json_integer(report->landlock_abi));
    json_object_set_new(json, "failed_step", report->step[0] ? json_string(report->step) : json_null());
    json_object_set_new(json, "error", report->error ? json_string(strerror(report->error)) : json_null());
    json_object_set_new(json, "advice", report->advice[0] ? json_string(report->advice) : json_null());
    json_object_set_new(json, "open", report->open[0] ? json_string(report->open) : json_null());
    _cleanup_free_ char *text = json_dumps(json, 0);
    printf("%s\n", text);
    json_decref(json);
}

static void print_line(const char *label, const char *text)
{
    if (text[0])
        printf("%-12s%s\n", label, text);
}

static void print_report(const struct sandbox_settings *sandbox, const struct sandbox_report *report)
{
    bool enough = sandbox_is_enough(sandbox, report->level);

    print_line("level", sandbox_level_names[report->level]);
    printf("%-12s%s (sandbox.min_level is %s)\n", "programs", enough ? "run" : "do not run",
           sandbox_level_names[sandbox->min_level]);
    if (report->landlock_abi)
        printf("%-12sversion %d\n", "landlock", report->landlock_abi);
    else
        print_line("landlock", "not there");
    if (report->step[0])
        printf("%-12s%s%s%s\n", "failed", report->step, report->error ? ": " : "",
               report->error ? strerror(report->error) : "");
    print_line("open", report->open);
    print_line("change", report->advice);
}

int sandbox_check_command(int argc, char **argv)
{
    static const struct command_line line = {COMMAND, sandbox_check_options, NULL};
    struct arguments arguments = {NULL, false};
    struct sandbox_settings sandbox;
    struct sandbox_report report = {SANDBOX_LEVEL_NONE};
    char message[SETTINGS_MESSAGE_BYTES];

    if (command_line_read(&line, argc, argv, &arguments) < 0)
        return EXIT_USAGE;
    if (command_sandbox(arguments.config, &sandbox, message) < 0)
        return command_refuse(COMMAND, message);
    sandbox_probe(&sandbox, &report);
    if (arguments.json)
        print_json(&sandbox, &report);
    else
        print_report(&sandbox, &report);
    if (fflush(stdout) != 0)
        return EXIT_USAGE;
    return sandbox_is_enough(&sandbox, report.level) ? 0 : 1;
}
