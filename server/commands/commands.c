#include "server/commands/commands.h"

#include <string.h>

#include "server/base/cleanup.h"
#include "server/base/nearest.h"
#include "server/settings/settings.h"

static int help_command(int argc, char **argv);

static const struct command commands[] = {
    {"verify", "[option]...", "Judge one completion and say how.",
     "Judges in a locked-down process with a time limit, as the service does: a hostile text is safe to look at.\n"
     "\n"
     "Exit code: 0 correct (or a score above 0), 1 incorrect (or a score of 0 or below), 2 wrong usage, 3 unscored:\n"
     "the reference cannot be read, or the verifier crashed, hung or hit a limit.\n",
     verify_options, verify_command},
    {"check-references", "[FILE] [option]...", "Find references that a verifier cannot read.",
     "FILE has one task a line, as JSON; - is standard input. Each reference that cannot be read is a line with its\n"
     "number and the reason, and so is each line that is no task; then a summary. Lines of any number are read in\n"
     "constant memory. --set checks a task set on record in its place, also beside a running service; a task of it\n"
     "without a reference is a line, too.\n"
     "\n"
     "Exit code: 0 all can be read, 1 some cannot, 2 wrong usage, or the file or the record\n"
     "cannot be read.\n",
     check_references_options, check_references_command},
    {"sandbox-check", "[option]...", "Say whether programs from models can run here.",
     "Tries a whole sandbox, as the service does at its start, and prints the level that it gives (full, reduced or\n"
     "none), the step that failed, what stays open, and what to change.\n"
     "\n"
     "Exit code: 0 programs run, 1 they do not: the level is below sandbox.min_level, 2 wrong usage.\n",
     sandbox_check_options, sandbox_check_command},
    {"verify-database", "FILE", "Check a database file whole.",
     "Reads every page: SQLite's integrity check and foreign keys, the schema, and whether counters, groups and "
     "members\n"
     "agree. Each thing that is wrong is a line. Nothing is written, also beside a running service, whose write-ahead\n"
     "log cannot be shortened until this ends.\n"
     "\n"
     "Exit code: 0 all is in order, 1 something is wrong, or the file is no database of rolloutd, 2 wrong usage.\n",
     verify_database_options, verify_database_command},
    {"backup", "FILE [option]...", "Copy the database, also beside a running service.",
     "FILE is new, and shows one moment: all that was answered before. It is written as FILE.partial, checked, and "
     "only\n"
     "then called FILE. Meanwhile the service continues, and its write-ahead log grows. After kill -9 FILE.partial\n"
     "is left.\n"
     "\n"
     "Exit code: 0 FILE is there, 1 it is not, 2 wrong usage.\n",
     backup_options, backup_command},
    {"restore", "FILE [option]...", "Make a database out of a copy.",
     "FILE is checked and stays as it is. Refused while a service has the database open, and where there is a "
     "database\n"
     "without --replace.\n"
     "\n"
     "Exit code: 0 the database is in place, 1 it is not, 2 wrong usage.\n",
     restore_options, restore_command},
    {"help", "[command]", "Print this, or what a command takes.", NULL, NULL, help_command},
};

const struct command *command_find(const char *word)
{
    for (size_t i = 0; i < ARRAY_LENGTH(commands); i++)
        if (strcmp(commands[i].name, word) == 0)
            return &commands[i];
    return NULL;
}

int command_run(int argc, char **argv)
{
    const struct command *command = command_find(argv[0]);
    const char *nearest = nearest_name(argv[0], commands, sizeof commands[0], ARRAY_LENGTH(commands));

    if (command)
        return command->run(argc - 1, argv + 1);
    fprintf(stderr, "rolloutd: %.200s: there is no such command%s%s%s (see rolloutd help)\n", argv[0],
            nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
    return EXIT_USAGE;
}

void commands_print(FILE *out)
{
    fputs("Usage: rolloutd [argument]...\n       rolloutd COMMAND ...\n\nWithout a command it serves. Commands:\n\n",
          out);
    for (size_t i = 0; i < ARRAY_LENGTH(commands); i++) {
        char form[64];
        snprintf(form, sizeof form, "%s %s", commands[i].name, commands[i].arguments);
        fprintf(out, "  %-34s %s\n", form, commands[i].help);
    }
    fputc('\n', out);
}

static void print_command(const struct command *command)
{
    const struct command_option *option = command->options;

    printf("Usage: rolloutd %s %s\n\n%s\n", command->name, command->arguments, command->help);
    for (; option && option->name; option++) {
        char form[64];
        snprintf(form, sizeof form, "%s %s", option->name, option->argument ? option->argument : "");
        printf("%s  %-28s %s\n", option == command->options ? "\n" : "", form, option->help);
    }
    if (command->more)
        printf("\n%s", command->more);
}

static int help_command(int argc, char **argv)
{
    if (argc > 1)
        return command_refuse("help", "expected one command");
    if (argc == 0) {
        commands_print(stdout);
        settings_print_help(stdout);
        return 0;
    }
    const struct command *command = command_find(argv[0]);
    if (!command)
        return command_run(1, argv);
    print_command(command);
    return 0;
}
