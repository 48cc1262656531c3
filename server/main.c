/* rolloutd: between a reinforcement-learning trainer and its inference engines. */
#include "client/transport/transport.h"
#include "server/api/server.h"
#include "server/commands/commands.h"
#include "server/runtime/limits.h"
#include "server/settings/settings.h"
#include "server/store/store.h"
#include "server/tables_private.h"
#include "verifiers/worker/spawner.h"

#include <curl/curl.h>
#include <jansson.h>
#include <microhttpd.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

static int print_version(void)
{
    printf("rolloutd %s (libmicrohttpd %s, libcurl %s, jansson %s, SQLite %s)\n", ROLLOUTD_VERSION, MHD_get_version(),
           curl_version_info(CURLVERSION_NOW)->version, JANSSON_VERSION, sqlite3_libversion());
    return 0;
}

static void print_unknown(const char *name, const char *nearest)
{
    fprintf(stderr, "rolloutd: warning: %s: there is no setting of this name%s%s%s\n", name,
            nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
}

static int check(const struct settings *settings)
{
    struct store_options options = {.path = settings->database};
    char message[STORE_MESSAGE_BYTES];
    struct descriptor_shares shares;
    settings_find_unknown(print_unknown);
    if (limits_check(settings, false, &shares, message) < 0 || store_check(&options, message) < 0) {
        fprintf(stderr, "rolloutd: %s\n", message);
        return 1;
    }
    printf("rolloutd: settings and database are in order\n");
    return 0;
}

int main(int argc, char **argv)
{
    struct settings settings;
    struct settings_run run;
    char message[SETTINGS_MESSAGE_BYTES];
    int code = 0;

    spawner_main(argc, argv);
    json_object_seed(0);
    if (argc > 1 && argv[1][0] != '-')
        return command_run(argc - 1, argv + 1);
    if (settings_load(argc, argv, &settings, &run, message) < 0) {
        fprintf(stderr, "rolloutd: %s\n", message);
        code = EXIT_USAGE;
    } else if (run.help) {
        commands_print(stdout);
        settings_print_help(stdout);
    } else if (run.print) {
        code = tables_print(run.print);
    } else if (run.version) {
        code = print_version();
    } else {
        code = run.check ? check(&settings) : server_run(&settings, argc, argv);
    }
    settings_finish(&settings);
    return code;
}
