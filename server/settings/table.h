/* settings_table: the rows of keys.def, and what the files of settings share. See settings.h. */
#ifndef SERVER_SETTINGS_TABLE_H
#define SERVER_SETTINGS_TABLE_H

#include "server/settings/settings.h"

enum setting_kind {
    SETTING_TEXT,         /* char *, NULL if empty */
    SETTING_INT,          /* int64_t within minimum..maximum */
    SETTING_OPTIONAL_INT, /* the same, or "none" = -1 */
    SETTING_DOUBLE,       /* double within minimum..maximum */
    SETTING_DURATION,     /* int64_t microseconds within minimum..maximum */
    SETTING_SIZE,         /* int64_t bytes within minimum..maximum */
    SETTING_CHOICE,       /* int: index in choices */
    SETTING_ENGINES,      /* a list of URLs */
    SETTING_EXTERNALS,    /* a list of mappings */
};

struct setting_row {
    const char *key; /* first: nearest_name() reads it */
    enum setting_kind kind;
    size_t offset; /* in struct settings */
    const char *standard;
    const char *help;
    int64_t minimum;
    int64_t maximum;
    const char *const *choices;
};

#define SETTING(...) +1
#define GROUP(...)
enum {
    SETTING_COUNT = 0
#include "server/settings/keys.def"
};
#undef SETTING
#undef GROUP

extern const struct setting_row setting_rows[SETTING_COUNT];

/* The comment over the keys of a group in the file; NULL: none. */
const char *setting_group_help(const char *name, size_t name_bytes);
/* The form of a value: "an integer from 0 to 1024", "one of text, json". */
void setting_describe(const struct setting_row *row, bool with_example, char *ret_text, size_t size);

/* An engine as it was written: all text, NULL where nothing was said. */
struct raw_engine {
    char *url;
    char *name;
    char *pool;
    char *kind;
    char *model;
    char *token_file;
    char *in_flight;
    char *shared;
};

struct engine_field {
    const char *name;
    size_t offset; /* in struct raw_engine */
    const char *example;
    const char *help;
};

#define ENGINE_FIELD_COUNT 8
extern const struct engine_field engine_fields[ENGINE_FIELD_COUNT];

/* A reward function as it was written, likewise. */
struct raw_external {
    char *name;
    char **command;
    char **files;
    char *url;
    char *scope;
    char *sandbox;
    char *timeout;
    char *memory;
    char *venv;
    char *in_flight;
    char *token_file;
    char *persistent;
    unsigned command_count;
    unsigned files_count;
};

struct external_field {
    const char *name;
    size_t offset;       /* in struct raw_external */
    size_t count_offset; /* of a list of texts; 0: it is a text */
    const char *example;
    const char *help;
};

#define EXTERNAL_FIELD_COUNT 12
extern const struct external_field external_fields[EXTERNAL_FIELD_COUNT];

/* A value before it is understood, and where it came from ("--listen", "ROLLOUTD_LISTEN", "rolloutd.yaml line 3"). */
struct raw_setting {
    char *value; /* NULL: not given */
    char *source;
};

struct raw_settings {
    struct raw_setting settings[SETTING_COUNT]; /* by row; not used for the engines */
    struct raw_engine *engines;
    size_t engine_count;
    char *engines_source; /* NULL: nobody named any */
    struct raw_external *externals;
    size_t external_count;
    char *externals_source; /* NULL: nobody named any */
};

/* All of these give 0, or -1 with a line in ret_message. */

/* The list of externals from a text of YAML or JSON, as it would stand in the file. */
int settings_read_externals(const char *list, const char *source, struct raw_settings *raw,
                            char ret_message[SETTINGS_MESSAGE_BYTES]);
/* Applies file values that no flag or variable has set. */
int settings_read_file(const char *path, struct raw_settings *raw, char ret_message[SETTINGS_MESSAGE_BYTES]);
int setting_parse(const struct setting_row *row, const struct raw_setting *raw, struct settings *settings,
                  char ret_message[SETTINGS_MESSAGE_BYTES]);
int settings_parse_engines(const struct raw_settings *raw, struct settings *settings,
                           char ret_message[SETTINGS_MESSAGE_BYTES]);
/* Their files are read. */
int settings_parse_externals(const struct raw_settings *raw, struct settings *settings,
                             char ret_message[SETTINGS_MESSAGE_BYTES]);
void settings_finish_externals(struct settings *settings);
void raw_external_finish(struct raw_external *external);
/* "URL#kind=vllm&model=…" */
int raw_engine_from_url(const char *text, const char *source, struct raw_engine *ret_engine,
                        char ret_message[SETTINGS_MESSAGE_BYTES]);
void raw_engine_finish(struct raw_engine *engine);
void raw_settings_finish(struct raw_settings *raw);
/* Splits the address; refuses what is no numeric address. */
int settings_parse_listen(const struct raw_setting *raw, struct settings *settings,
                          char ret_message[SETTINGS_MESSAGE_BYTES]);
bool settings_listen_is_loopback(const struct settings *settings);
/* http or https, a host, perhaps a port from 1 to 65535 and a path; no user, query or fragment. */
bool engine_url_is_sane(const char *url);
/* Of engines and pools. "." and "..": a client would take them out of a path before it asks. */
#define ENGINE_NAME_FORM "1 to 64 of A-Z a-z 0-9 . _ -, and neither . nor .."
bool engine_name_is_sane(const char *name);
/* The token in a file that is not readable for everybody. */
int settings_read_token(const char *key, const char *path, char **ret_token, char ret_message[SETTINGS_MESSAGE_BYTES]);

#endif
