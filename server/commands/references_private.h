/* Shared by the files of check-references. */
#ifndef SERVER_COMMANDS_REFERENCES_PRIVATE_H
#define SERVER_COMMANDS_REFERENCES_PRIVATE_H

#include "server/commands/commands.h"
#include "server/input/memory.h"
#include "verifiers/registry.h"

#define REFERENCES_COMMAND "check-references"
#define REFERENCES_VERIFIERS_MAX 16

struct references_asked {
    const struct verifier *verifier;
    json_t *options; /* complete */
};

struct references_arguments {
    const char *file;
    const char *field;
    const char *set;                               /* NULL: a file is checked */
    const char *config, *database;                 /* of the set */
    const char *options[REFERENCES_VERIFIERS_MAX]; /* [verifier]; NULL: none */
    struct references_asked asked[REFERENCES_VERIFIERS_MAX];
    size_t count;
    bool json;
};

struct references_counts {
    size_t tasks;
    size_t unreadable; /* references, each for one verifier */
    size_t broken;     /* lines that are no task; of a set: tasks without a reference */
};

/* Of a line; of a set: of that line of its upload. */
void references_check_one(const struct references_arguments *arguments, struct references_counts *counts, size_t line,
                          const char *task, const json_t *reference);
/* task: NULL: it has no name. */
void references_say_broken(const struct references_arguments *arguments, struct references_counts *counts, size_t line,
                           const char *task, const char *code, const char *message);

/* references_set.c: every task of a set on record, in order of its lines. 0; EXIT_USAGE: the record cannot be read, or has
 * no such set, and what is wrong was printed. */
int references_check_set(const struct references_arguments *arguments, struct references_counts *counts);

#endif
