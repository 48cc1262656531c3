/* Settings from everywhere. Input: the file's content, then arguments and (ROLLOUTD_NAME=value) variables, each ended
 * by the separator. */
#include "server/settings/table.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <sys/mman.h>

enum { ARGUMENTS_MAX = 16 };

/* --- what comes out --- */

static void check_value(const struct setting_row *row, const struct settings *settings)
{
    const void *at = (const char *)settings + row->offset;
    int64_t value = 0;

    if (row->kind == SETTING_INT || row->kind == SETTING_DURATION || row->kind == SETTING_SIZE ||
        row->kind == SETTING_OPTIONAL_INT)
        memcpy(&value, at, sizeof(value));
    else if (row->kind == SETTING_DOUBLE)
        FUZZ_CHECK(isfinite(*(const double *)at));
    if (row->kind == SETTING_INT || row->kind == SETTING_DURATION || row->kind == SETTING_SIZE)
        FUZZ_CHECK(value >= row->minimum && value <= row->maximum);
    if (row->kind == SETTING_OPTIONAL_INT)
        FUZZ_CHECK(value == -1 || (value >= row->minimum && value <= row->maximum));
    if (row->kind == SETTING_DOUBLE)
        FUZZ_CHECK(*(const double *)at >= (double)row->minimum && *(const double *)at <= (double)row->maximum);
}

static void check_settings(const struct settings *settings)
{
    for (size_t i = 0; i < SETTING_COUNT; i++)
        check_value(&setting_rows[i], settings);
    FUZZ_CHECK(settings->listen_host && settings->database && settings->workers > 0 && settings->text_workers > 0);
    for (size_t i = 0; i < settings->engine_count; i++) {
        const struct engine_settings *engine = &settings->engines[i];
        FUZZ_CHECK(engine->name && engine->pool && engine->url && engine->in_flight > 0 && !strchr(engine->url, '#'));
    }
}

/* --- what goes in --- */

struct given {
    char *argv[ARGUMENTS_MAX + 1];
    int argc;
    char *variables[ARGUMENTS_MAX]; /* NAME, cut at the '=' */
    size_t variable_count;
};

static bool give_variable(struct given *given, char *part)
{
    char *equals = strchr(part, '=');

    if (strncmp(part, "ROLLOUTD_", 9) != 0 || !equals || strncmp(part, "ROLLOUTD_CONFIG", 15) == 0)
        return false;
    *equals = '\0';
    setenv(part, equals + 1, 1);
    given->variables[given->variable_count++] = part;
    return true;
}

static void take_given(struct text *rest, const char *file, struct given *given)
{
    *given = (struct given){.argv = {xstrdup("rolloutd"), xstrdup("--config"), xstrdup(file)}, .argc = 3};
    while (rest->length_bytes > 0 && given->argc < ARGUMENTS_MAX && given->variable_count < ARGUMENTS_MAX) {
        char *part = fuzz_take_part(rest, NULL);
        if (strncmp(part, "--config", 8) == 0) /* no other file than ours */
            free(part);
        else if (!give_variable(given, part))
            given->argv[given->argc++] = part;
    }
}

static void given_finish(struct given *given)
{
    for (int i = 0; i < given->argc; i++)
        free(given->argv[i]);
    for (size_t i = 0; i < given->variable_count; i++) {
        unsetenv(given->variables[i]);
        free(given->variables[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
    struct text rest = {(const char *)data, size_bytes};
    char message[SETTINGS_MESSAGE_BYTES] = "";
    struct settings settings;
    struct settings_run run;
    struct given given;
    size_t length_bytes;

    _cleanup_free_ char *content = fuzz_take_part(&rest, &length_bytes);
    _cleanup_close_ int fd = memfd_create("settings", MFD_CLOEXEC);
    FUZZ_CHECK(fd >= 0 && write(fd, content, length_bytes) == (ssize_t)length_bytes);
    _cleanup_free_ char *path = xasprintf("/proc/self/fd/%d", fd);
    take_given(&rest, path, &given);
    int result = settings_load(given.argc, given.argv, &settings, &run, message);
    if (result < 0)
        FUZZ_CHECK(message[0] && strnlen(message, sizeof(message)) < sizeof(message) && !strchr(message, '\n'));
    else if (!run.help && !run.version && !run.print)
        check_settings(&settings);
    settings_finish(&settings);
    given_finish(&given);
    return 0;
}
