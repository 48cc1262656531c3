/* rolloutd backup, rolloutd restore: whole copies of the record. */
#include "server/commands/commands.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "server/base/cleanup.h"
#include "server/base/signals.h"
#include "server/settings/settings.h"
#include "server/store/backup.h"

#define MIB (INT64_C(1) << 20)

struct arguments {
    const char *file;
    const char *config;
    const char *database;
    bool replace;
};

static int take_file(void *target, const char *word, char *ret_message)
{
    struct arguments *arguments = target;

    if (arguments->file || !*word) {
        snprintf(ret_message, COMMAND_MESSAGE_BYTES, "%.200s: expected one FILE", word);
        return -1;
    }
    arguments->file = word;
    return 0;
}

static int take_config(void *target, const char *value, char *ret_message)
{
    (void)ret_message;
    ((struct arguments *)target)->config = value;
    return 0;
}

static int take_database(void *target, const char *value, char *ret_message)
{
    (void)ret_message;
    ((struct arguments *)target)->database = value;
    return 0;
}

static int take_replace(void *target, const char *value, char *ret_message)
{
    (void)value;
    (void)ret_message;
    ((struct arguments *)target)->replace = true;
    return 0;
}

#define CONFIG_OPTION                                                                                                  \
    {                                                                                                                  \
        "--config", "FILE", take_config, "The service's settings; also from ROLLOUTD_CONFIG."                          \
    }

const struct command_option backup_options[] = {
    CONFIG_OPTION,
    {"--database", "FILE", take_database, "The database to copy; by default the setting database."},
    {NULL, NULL, NULL, NULL},
};

const struct command_option restore_options[] = {
    CONFIG_OPTION,
    {"--database", "FILE", take_database, "The database to make; by default the setting database."},
    {"--replace", NULL, take_replace, "Keep a database that is there under another name."},
    {NULL, NULL, NULL, NULL},
};

/* --- signals: the copy ends, and leaves nothing behind; the second one ends at once --- */

static volatile sig_atomic_t stop;

static void stop_copy(int number)
{
    (void)number;
    stop = 1;
}

static void catch_signals(void)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = stop_copy, .sa_flags = (int)SA_RESETHAND};

    signals_ignore_meaningless();
    for (size_t i = 0; i < ARRAY_LENGTH(ends); i++)
        sigaction(ends[i], &action, NULL);
}

static void print_progress(int64_t copied_bytes, int64_t whole_bytes)
{
    fprintf(stderr, "%" PRId64 " of %" PRId64 " MiB\n", copied_bytes / MIB, whole_bytes / MIB);
}

static const struct store_watch watch = {print_progress, &stop};

/* --- the commands --- */

static int fail(const char *command, const char *message)
{
    fprintf(stderr, "rolloutd %s: %s\n", command, message);
    return 1;
}

/* 0 with the path of the database, or -1 when what is wrong was printed. */
static int read_arguments(const struct command_line *line, int argc, char **argv, struct arguments *ret_arguments,
                          char **ret_database)
{
    char message[SETTINGS_MESSAGE_BYTES] = "expected FILE";

    *ret_arguments = (struct arguments){0};
    if (command_line_read(line, argc, argv, ret_arguments) < 0)
        return -1;
    if (ret_arguments->file &&
        settings_find_database(ret_arguments->config, ret_arguments->database, ret_database, message) == 0)
        return 0;
    command_refuse(line->command, message);
    return -1;
}

static int print_copy(const struct store_copy_report *report)
{
    printf("%s: schema version %" PRId64 ", %" PRId64 " batches, %" PRId64 " rollouts, %" PRId64 " bytes\n",
           report->copy, report->schema_version, report->batches, report->rollouts, report->bytes);
    if (report->kept)
        printf("the old database is kept as %s\n", report->kept);
    return fflush(stdout) == 0 ? 0 : 1;
}

static int copy(const struct command_line *line, bool restores, int argc, char **argv)
{
    _cleanup_(store_copy_report_finish) struct store_copy_report report = {0};
    _cleanup_free_ char *database = NULL;
    struct arguments arguments;
    char message[STORE_MESSAGE_BYTES];

    if (read_arguments(line, argc, argv, &arguments, &database) < 0)
        return EXIT_USAGE;
    catch_signals();
    int copied = restores ? store_restore(arguments.file, database, arguments.replace, &watch, &report, message)
                          : store_backup(database, arguments.file, &watch, &report, message);
    return copied < 0 ? fail(line->command, message) : print_copy(&report);
}

int backup_command(int argc, char **argv)
{
    static const struct command_line line = {"backup", backup_options, take_file};
    return copy(&line, false, argc, argv);
}

int restore_command(int argc, char **argv)
{
    static const struct command_line line = {"restore", restore_options, take_file};
    return copy(&line, true, argc, argv);
}
