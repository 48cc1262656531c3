/* Shared by the tests of the settings: arguments to settings, and files in a directory of the test. */
#ifndef TESTS_SERVER_SETTINGS_FIXTURE_H
#define TESTS_SERVER_SETTINGS_FIXTURE_H

#include "server/base/cleanup.h"
#include "server/settings/settings.h"

#include <sys/stat.h>

struct loading {
    struct settings settings;
    struct settings_run run;
    char message[SETTINGS_MESSAGE_BYTES];
    int result;
};

void loading_finish(struct loading *loading);

#define _cleanup_loading_ _cleanup_(loading_finish)

/* Arguments up to a NULL. */
void load(struct loading *loading, ...);
void assert_refused(const struct loading *loading, const char *message_part);

/* Set-up of a group: an empty directory, and no setting of the caller's environment. */
int make_directory(void **state);
/* The path; the caller frees it. remove_directory() knows "settings.yaml" and "token". */
char *write_file(const char *name, const char *content, mode_t mode);
int remove_directory(void **state);

#endif
