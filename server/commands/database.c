/* rolloutd verify-database: the whole check of a record. */
#include "server/commands/commands.h"

#include <inttypes.h>
#include <stdio.h>

#include "server/store/store.h"

#define COMMAND "verify-database"
#define PROBLEMS_BYTES ((size_t)1 << 20)

struct arguments {
    const char *file;
};

static int take_file(void *target, const char *word, char *ret_message)
{
    struct arguments *arguments = target;

    if (arguments->file) {
        snprintf(ret_message, COMMAND_MESSAGE_BYTES, "%.200s: expected one FILE", word);
        return -1;
    }
    arguments->file = word;
    return 0;
}

const struct command_option verify_database_options[] = {{NULL, NULL, NULL, NULL}};

int verify_database_command(int argc, char **argv)
{
    static const struct command_line line = {COMMAND, verify_database_options, take_file};
    struct arguments arguments = {NULL};
    struct store_verify_report report;
    char message[STORE_MESSAGE_BYTES];
    _cleanup_buffer_ struct buffer problems;

    buffer_init(&problems, PROBLEMS_BYTES);
    if (command_line_read(&line, argc, argv, &arguments) < 0)
        return EXIT_USAGE;
    if (!arguments.file)
        return command_refuse(COMMAND, "expected FILE");
    if (store_verify(arguments.file, &problems, &report, message) < 0) {
        printf("%s\n", message);
        return 1;
    }
    printf("%.*s", (int)problems.length_bytes, problems.data ? problems.data : "");
    if (report.problems)
        printf("%s: %zu found wrong, at most 20 of a kind are listed\n", arguments.file, report.problems);
    else
        printf("%s is in order: schema version %" PRId64 ", %" PRId64 " batches, %" PRId64 " rollouts\n",
               arguments.file, report.schema_version, report.batches, report.rollouts);
    return fflush(stdout) == 0 && !report.problems ? 0 : 1;
}
