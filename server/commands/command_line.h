/* command_line: the words behind a command, read by a table of options.
 *
 * `--name value`, `--name=value`, or `--name` alone for a flag; a single "-" is a word like any other. A fault is
 * one line on standard error that names the command and the word. */
#ifndef SERVER_COMMANDS_COMMAND_LINE_H
#define SERVER_COMMANDS_COMMAND_LINE_H

#include <stddef.h>

#define COMMAND_MESSAGE_BYTES 1024

struct command_option {
    const char *name;     /* "--options"; first: nearest_name() reads it */
    const char *argument; /* NULL: takes none, and `take` gets NULL */
    /* 0, or -1 with a message. */
    int (*take)(void *target, const char *value, char ret_message[COMMAND_MESSAGE_BYTES]);
    const char *help;
};

struct command_line {
    const char *command;
    const struct command_option *options; /* ended by a name NULL */
    /* A word that is no option; NULL: there are none. As `take`. */
    int (*take_word)(void *target, const char *value, char ret_message[COMMAND_MESSAGE_BYTES]);
};

/* 0, or -1 when the line was printed. */
int command_line_read(const struct command_line *line, int argc, char **argv, void *target);
/* Prints "rolloutd COMMAND: message"; returns EXIT_USAGE. */
int command_refuse(const char *command, const char *message);

#endif
