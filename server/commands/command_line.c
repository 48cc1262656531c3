#include "server/commands/command_line.h"

#include <stdio.h>
#include <string.h>

#include "server/base/cleanup.h"
#include "server/base/nearest.h"
#include "server/commands/commands.h"

int command_refuse(const char *command, const char *message)
{
    fprintf(stderr, "rolloutd %s: %s\n", command, message);
    return EXIT_USAGE;
}

static const struct command_option *find_option(const struct command_line *line, const char *word)
{
    size_t name_bytes = strcspn(word, "=");

    for (const struct command_option *option = line->options; option->name; option++)
        if (strlen(option->name) == name_bytes && memcmp(option->name, word, name_bytes) == 0)
            return option;
    return NULL;
}

static int refuse(const struct command_line *line, const char *message)
{
    command_refuse(line->command, message);
    return -1;
}

static int refuse_word(const struct command_line *line, const char *word)
{
    char message[COMMAND_MESSAGE_BYTES];
    size_t count = 0;

    while (line->options[count].name)
        count++;
    const char *nearest = nearest_name(word, line->options, sizeof line->options[0], count);
    snprintf(message, sizeof message, "%.200s: there is no such option%s%s%s (see rolloutd help %s)", word,
             nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "", line->command);
    return refuse(line, message);
}

/* Returns how many words were used, or -1. */
static int take_word(const struct command_line *line, const char *word, const char *next, void *target)
{
    const struct command_option *option = find_option(line, word);
    const char *equals = strchr(word, '=');
    const char *value = equals ? equals + 1 : next;
    char message[COMMAND_MESSAGE_BYTES] = "";
    int result;

    if (line->take_word && (word[0] != '-' || !word[1])) {
        result = line->take_word(target, word, message);
        return result < 0 ? refuse(line, message) : 1;
    }
    if (!option || (equals && !option->argument))
        return refuse_word(line, word);
    if (option->argument && !value) {
        snprintf(message, sizeof message, "%s: expected %s %s", option->name, option->name, option->argument);
        return refuse(line, message);
    }
    result = option->take(target, option->argument ? value : NULL, message);
    if (result < 0)
        return refuse(line, message);
    return 1 + (option->argument && !equals);
}

int command_line_read(const struct command_line *line, int argc, char **argv, void *target)
{
    for (int i = 0, used; i < argc; i += used) {
        used = take_word(line, argv[i], i + 1 < argc ? argv[i + 1] : NULL, target);
        if (used < 0)
            return -1;
    }
    return 0;
}
