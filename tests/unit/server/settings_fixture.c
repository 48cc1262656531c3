#include "tests/unit/server/settings_fixture.h"

#include "tests/unit/base/cmocka_all.h"

#include <string.h>

/* --- loading with arguments --- */

void loading_finish(struct loading *loading)
{
    settings_finish(&loading->settings);
}

void load(struct loading *loading, ...)
{
    char program[] = "rolloutd";
    char *argv[16] = {program};
    int argc = 1;
    va_list arguments;
    va_start(arguments, loading);
    while ((argv[argc] = va_arg(arguments, char *)))
        argc++;
    va_end(arguments);
    *loading = (struct loading){0};
    loading->result = settings_load(argc, argv, &loading->settings, &loading->run, loading->message);
}

void assert_refused(const struct loading *loading, const char *message_part)
{
    assert_int_equal(loading->result, -1);
    assert_null(strchr(loading->message, '\n'));
    if (!strstr(loading->message, message_part))
        fail_msg("\"%s\" is not in \"%s\"", message_part, loading->message);
}

/* --- files for a test --- */

static char directory[] = "/tmp/rolloutd-settings-XXXXXX";

int make_directory(void **state)
{
    (void)state;
    for (char **variable = environ; *variable;) {
        _cleanup_free_ char *name = xstrndup(*variable, strcspn(*variable, "="));
        if (strncmp(name, "ROLLOUTD_", 9) == 0)
            unsetenv(name);
        else
            variable++;
    }
    return mkdtemp(directory) ? 0 : -1;
}

char *write_file(const char *name, const char *content, mode_t mode)
{
    char *path = xasprintf("%s/%s", directory, name);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs(content, file);
    fclose(file);
    chmod(path, mode);
    return path;
}

int remove_directory(void **state)
{
    (void)state;
    static const char *const names[] = {"settings.yaml", "token"};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        _cleanup_free_ char *path = xasprintf("%s/%s", directory, names[i]);
        unlink(path);
    }
    return rmdir(directory);
}
