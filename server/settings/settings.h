/* settings: the configuration of the service, from one table (settings/keys.def): a row is a key, its type, default, limits and help.
 *
 * Precedence: command line, environment (ROLLOUTD_ and the key in capitals, dots as underscores), file, default. An
 * empty variable counts as none; so does a key without a value in the file. Any fault ends the start with one
 * line that names the key, the value, where it came from and what was expected. Loaded once, before threads; then
 * read-only, so any thread may read it. */
#ifndef SERVER_SETTINGS_SETTINGS_H
#define SERVER_SETTINGS_SETTINGS_H

#include "server/base/buffer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct engine_settings {
    char *name;        /* e1, e2, … unless given */
    char *pool;        /* "default" unless given; a batch's field `engine` names it */
    char *url;         /* without the fragment and without a slash at the end */
    const char *kind;  /* one of engine_kinds; NULL: find out by probing */
    char *model;       /* NULL: the engine's first */
    char *token;       /* content of its token_file, without white space around it; NULL: none */
    int64_t in_flight; /* requests at once; 0: learned */
    bool shared;       /* several runs may use it at the same time */
};

#define EXTERNAL_WORDS_MAX 16
#define EXTERNAL_FILES_MAX 4

struct external_file {
    char *name;  /* the last part of its path: what it is called in the box */
    char *bytes; /* read with the settings */
    size_t length_bytes;
    char *path;
};

/* A reward function of the user's own. */
struct external_settings {
    char *name;
    char *command[EXTERNAL_WORDS_MAX]; /* its words; NULL behind the last one if there is room */
    size_t word_count;
    struct external_file files[EXTERNAL_FILES_MAX]; /* beside the command, in its box */
    size_t file_count;
    char *url;   /* scheme, host and port of a server that is asked instead of a command; NULL: a command is run */
    char *path;  /* what follows in its URL */
    char *token; /* its key; NULL: none */
    int64_t in_flight; /* requests that it gets at once */
    bool of_group;     /* it judges all members of a group at once */
    int64_t timeout_us;
    int64_t memory_bytes;
    bool bare;       /* sandbox: none */
    bool persistent; /* one process serves many verdicts */
    char *venv;      /* folder of a virtual environment; NULL: none */
};

/* The C type of each kind of setting; table.h says what the value is. */
#define SETTING_TYPE_TEXT char *
#define SETTING_TYPE_INT int64_t
#define SETTING_TYPE_OPTIONAL_INT int64_t
#define SETTING_TYPE_DOUBLE double
#define SETTING_TYPE_DURATION int64_t
#define SETTING_TYPE_SIZE int64_t
#define SETTING_TYPE_CHOICE int
#define SETTING_TYPE_ENGINES struct engine_settings *
#define SETTING_TYPE_EXTERNALS struct external_settings *

enum least_level { LEAST_FULL, LEAST_REDUCED };
enum durability { DURABILITY_FULL, DURABILITY_NORMAL };

/* A member for each row of keys.def, and what follows from them. */
struct settings {
#define SETTING(kind, member, key, standard, limits, help) SETTING_TYPE_##kind member;
#define GROUP(name, help)
#include "server/settings/keys.def"
#undef SETTING
#undef GROUP
    char *listen_host;    /* "127.0.0.1", "::1": a numeric address */
    uint16_t listen_port; /* 0: a free one */
    bool listen_ipv6;
    char *token; /* content of token_file without white space around it; NULL: requests need no token */
    size_t engine_count;
    size_t external_count;
};

/* Requests of the command line besides serving. */
struct settings_run {
    bool check;
    bool version;
    bool help;
    const char *print; /* "config", "routes" or "tables"; NULL: nothing */
};

#define SETTINGS_MESSAGE_BYTES 1024

/* 0, or -1 with one line (no line feed) in ret_message. With --help, --version or --print-… nothing is loaded or checked. Either
 * way the settings may be finished afterwards. Reads the file, the token files and environ; changes nothing. */
int settings_load(int argc, char **argv, struct settings *ret_settings, struct settings_run *ret_run,
                  char ret_message[SETTINGS_MESSAGE_BYTES]);
void settings_finish(struct settings *settings);

/* The setting database alone, found as settings_load() finds it, for a command: `config` and `database` are those of its
 * flags, NULL if not given. Other settings are not checked, and no token is read. 0 with a path that is the caller's to
 * free, or -1. */
int settings_find_database(const char *config, const char *database, char **ret_database,
                           char ret_message[SETTINGS_MESSAGE_BYTES]);

/* Each variable that begins like those of settings and is none, with the one that was probably meant, or NULL.
 * ROLLOUTD_TOKEN_NAME holds the key of an engine and is known. Reads environ; both texts live until `found` returns. */
void settings_find_unknown(void (*found)(const char *name, const char *nearest));

void settings_print_help(FILE *out);   /* arguments and settings */
void settings_print_config(FILE *out); /* the whole file of settings: config/rolloutd.yaml */
/* Every setting with the value in force, as one JSON object that can be read as a file of settings, too; the engines are
 * those of `with_engines`. Neither a key nor an engine's key file is in it. */
void settings_write_json(const struct settings *settings, const struct settings *with_engines, struct buffer *out);

#endif
