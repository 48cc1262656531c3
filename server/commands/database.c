/* rolloutd verify-database: the whole check of a record. */
#include "server/commands/commands.h"
#include "server/commands/recompute_private.h"

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

static void say_recomputed(const struct recompute_report *recomputed, const char *message)
{
    if (message[0])
        printf("advantages were not recomputed: %s\n", message);
    else
        printf("advantages of %" PRId64 " groups, %" PRId64 " rollouts, were recomputed\n", recomputed->groups,
               recomputed->rollouts);
    if (recomputed->older)
        printf("%" PRId64 " groups have the advantages of an older arithmetic: today's gives other values\n",
               recomputed->older);
    if (recomputed->unread)
        printf("%" PRId64 " batches have an objective that this version cannot read\n", recomputed->unread);
}

int verify_database_command(int argc, char **argv)
{
    static const struct command_line line = {COMMAND, verify_database_options, take_file};
    struct arguments arguments = {NULL};
    struct store_verify_report report;
    struct recompute_report recomputed = {0};
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
    message[0] = '\0';
    if (!report.problems) /* a damaged file is not recomputed */
        (void)recompute_advantages(arguments.file, &problems, &recomputed, message);
    printf("%.*s", (int)problems.length_bytes, problems.data ? problems.data : "");
    if (report.problems || recomputed.wrong)
        printf("%s: %zu found wrong, at most 20 of a kind are listed\n", arguments.file,
               report.problems + (size_t)recomputed.wrong);
    else
        printf("%s is in order: schema version %" PRId64 ", %" PRId64 " batches, %" PRId64 " rollouts\n",
               arguments.file, report.schema_version, report.batches, report.rollouts);
    say_recomputed(&recomputed, message);
    return fflush(stdout) == 0 && !report.problems && !recomputed.wrong ? 0 : 1;
}
