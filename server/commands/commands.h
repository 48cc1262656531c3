/* commands: THE table of what the program does besides serving: `rolloutd verify …`, `rolloutd check-references …`.
 *
 * A command is a row with its options as a table (command_line.h) and a function. They read what they are told to and
 * print; none listens, and only `restore` puts anything into the place of a database. */
#ifndef SERVER_COMMANDS_COMMANDS_H
#define SERVER_COMMANDS_COMMANDS_H

#include "server/commands/command_line.h"

#include <stdio.h>

#define EXIT_USAGE 2 /* of every command, and of settings that cannot be used */

struct command {
    const char *name; /* first: nearest_name() reads it */
    const char *arguments;
    const char *help;                     /* one line */
    const char *more;                     /* paragraphs, with the exit codes */
    const struct command_option *options; /* ended by a name NULL; NULL: none */
    int (*run)(int argc, char **argv);    /* argv[0] is the first word behind the command; the exit code */
};

const struct command *command_find(const char *word); /* NULL: no such command */
/* Runs it, or prints what is wrong with the word to standard error; the exit code. */
int command_run(int argc, char **argv);
void commands_print(FILE *out);

extern const struct command_option verify_options[];
int verify_command(int argc, char **argv); /* commands/verify.c */

extern const struct command_option check_references_options[];
int check_references_command(int argc, char **argv); /* commands/references.c */

extern const struct command_option sandbox_check_options[];
int sandbox_check_command(int argc, char **argv); /* commands/sandbox_check.c */

extern const struct command_option verify_database_options[];
int verify_database_command(int argc, char **argv); /* commands/database.c */

extern const struct command_option backup_options[];
int backup_command(int argc, char **argv); /* commands/backup.c */

extern const struct command_option restore_options[];
int restore_command(int argc, char **argv); /* commands/backup.c */

#endif
