#include "server/settings/settings.h"

#include "server/base/cleanup.h"
#include "server/base/nearest.h"
#include "server/settings/table.h"

#include <ctype.h>
#include <sched.h>
#include <stdarg.h>
#include <string.h>

#define VARIABLE_PREFIX "ROLLOUTD_"
#define VARIABLE_BYTES 64
#define FOLDER_BYTES 256

static int fail(char *ret_message, const char *format, ...) _printf_(2, 3);

static int fail(char *ret_message, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(ret_message, SETTINGS_MESSAGE_BYTES, format, arguments);
    va_end(arguments);
    return -1;
}

/* A message quotes what was given, whatever that was. */
static void make_one_line(char *message)
{
    for (; *message; message++)
        if ((unsigned char)*message < ' ' || *message == 0x7f)
            *message = '?';
}

static int find_row(const char *key, size_t key_bytes)
{
    for (size_t i = 0; i < SETTING_COUNT; i++)
        if (strlen(setting_rows[i].key) == key_bytes && memcmp(setting_rows[i].key, key, key_bytes) == 0)
            return (int)i;
    return -1;
}

/* --- engines --- */

static int add_engine(struct raw_settings *raw, const char *text, const char *source, char *ret_message)
{
    struct raw_engine engine;
    if (raw_engine_from_url(text, source, &engine, ret_message) < 0)
        return -1;
    raw->engines = xrealloc(raw->engines, (raw->engine_count + 1) * sizeof(*raw->engines));
    raw->engines[raw->engine_count++] = engine;
    if (!raw->engines_source)
        raw->engines_source = xstrdup(source);
    return 0;
}

/* URLs with blanks between them. */
static int add_engines(struct raw_settings *raw, const char *text, const char *source, char *ret_message)
{
    _cleanup_free_ char *copy = xstrdup(text);
    char *rest = NULL;
    for (char *url = strtok_r(copy, " \t\n", &rest); url; url = strtok_r(NULL, " \t\n", &rest))
        if (add_engine(raw, url, source, ret_message) < 0)
            return -1;
    return 0;
}

/* --- one value --- */

/* A later source has lower priority; within one source the last value counts. */
static int give(struct raw_settings *raw, size_t row, const char *value, const char *source, char *ret_message)
{
    struct raw_setting *setting = &raw->settings[row];
    if (setting_rows[row].kind == SETTING_ENGINES)
        return add_engines(raw, value, source, ret_message);
    if (setting_rows[row].kind == SETTING_EXTERNALS)
        return settings_read_externals(value, source, raw, ret_message);
    free(setting->value);
    free(setting->source);
    *setting = (struct raw_setting){xstrdup(value), xstrdup(source)};
    return 0;
}

/* --- the command line --- */

struct command_line {
    struct raw_settings *raw;
    struct settings_run *run;
    const char *config;
    char *message; /* SETTINGS_MESSAGE_BYTES */
};

static int take_assignment(struct command_line *line, const char *text)
{
    const char *equals = strchrnul(text, '=');
    _cleanup_free_ char *key = xstrndup(text, (size_t)(equals - text));
    int row = find_row(key, strlen(key));
    if (row < 0) {
        const char *nearest = nearest_name(key, setting_rows, sizeof(*setting_rows), SETTING_COUNT);
        return fail(line->message, "%s: \"%s\" from --set: there is no setting of this name%s%s%s", key, text,
                    nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : " (see --help)");
    }
    if (!*equals)
        return fail(line->message, "%s: \"%s\" from --set: expected key=value", key, text);
    return give(line->raw, (size_t)row, equals + 1, "--set", line->message);
}

static int take_config(struct command_line *line, const char *text)
{
    line->config = text;
    return 0;
}

static int take_engine(struct command_line *line, const char *text)
{
    return add_engine(line->raw, text, "--engine", line->message);
}

static int take_check(struct command_line *line, const char *text)
{
    (void)text;
    line->run->check = true;
    return 0;
}

static int take_version(struct command_line *line, const char *text)
{
    (void)text;
    line->run->version = true;
    return 0;
}

static int take_print(struct command_line *line, const char *text)
{
    line->run->print = text + strlen("--print-");
    return 0;
}

static int take_help(struct command_line *line, const char *text)
{
    (void)text;
    line->run->help = true;
    return 0;
}

struct flag {
    const char *name;                                         /* first: nearest_name() reads it */
    const char *argument;                                     /* NULL: takes none, and `take` gets the name */
    int (*take)(struct command_line *line, const char *text); /* NULL: sets the setting of its name */
    const char *help;
};

static const struct flag flags[] = {
    {"--config", "FILE", take_config, "Settings in YAML; also from ROLLOUTD_CONFIG."},
    {"--listen", "ADDRESS:PORT", NULL, "The setting listen."},
    {"--database", "FILE", NULL, "The setting database."},
    {"--engine", "URL", take_engine, "An engine, URL or URL#kind=vllm&model=NAME; may be repeated; replaces engines."},
    {"--ready-file", "FILE", NULL, "The setting ready_file."},
    {"--set", "KEY=VALUE", take_assignment, "Any setting; may be repeated."},
    {"--check", NULL, take_check, "Check everything, start nothing."},
    {"--print-config", NULL, take_print, "Print a settings file with every key, its default and what it may be."},
    {"--print-routes", NULL, take_print, "Print the method and path of every route."},
    {"--print-tables", NULL, take_print, "Print verifiers, metrics and every closed list of words as JSON."},
    {"--version", NULL, take_version, "Print the version."},
    {"--help", NULL, take_help, "Print this."},
};

/* "--ready-file" is the row "ready_file". */
static size_t row_of_flag(const struct flag *flag)
{
    char key[32];
    snprintf(key, sizeof(key), "%s", flag->name + 2);
    for (char *at = key; *at; at++)
        if (*at == '-')
            *at = '_';
    return (size_t)find_row(key, strlen(key));
}

static const struct flag *find_flag(const char *text)
{
    size_t name_bytes = strcspn(text, "=");
    for (size_t i = 0; i < ARRAY_LENGTH(flags); i++)
        if (strlen(flags[i].name) == name_bytes && memcmp(flags[i].name, text, name_bytes) == 0)
            return &flags[i];
    return NULL;
}

static int refuse_argument(const struct command_line *line, const char *text)
{
    const char *nearest = nearest_name(text, flags, sizeof(*flags), ARRAY_LENGTH(flags));
    return fail(line->message, "%s: there is no such argument%s%s%s", text, nearest ? "; did you mean " : "",
                nearest ? nearest : "", nearest ? "?" : " (see --help)");
}

/* Returns how many arguments were used, or -1. */
static int take_argument(struct command_line *line, const char *text, const char *next)
{
    const struct flag *flag = find_flag(text);
    const char *equals = strchr(text, '=');
    const char *value = equals ? equals + 1 : next;
    if (flag && !flag->argument)
        value = flag->name;
    if (!flag || (equals && !flag->argument))
        return refuse_argument(line, text);
    if (flag->argument && !value)
        return fail(line->message, "%s: expected %s %s", flag->name, flag->name, flag->argument);
    int taken =
        flag->take ? flag->take(line, value) : give(line->raw, row_of_flag(flag), value, flag->name, line->message);
    return taken < 0 ? -1 : 1 + (flag->argument && !equals);
}

/* --- the environment --- */

/* "log.level" is ROLLOUTD_LOG_LEVEL. */
static void name_variable(size_t row, char ret_name[VARIABLE_BYTES])
{
    size_t length = (size_t)snprintf(ret_name, VARIABLE_BYTES, VARIABLE_PREFIX "%s", setting_rows[row].key);
    for (size_t i = strlen(VARIABLE_PREFIX); i < length; i++)
        ret_name[i] = ret_name[i] == '.' ? '_' : (char)toupper((unsigned char)ret_name[i]);
}

static int take_environment(struct raw_settings *raw, char *ret_message)
{
    for (size_t row = 0; row < SETTING_COUNT; row++) {
        char name[VARIABLE_BYTES];
        name_variable(row, name);
        bool given = raw->settings[row].value || (setting_rows[row].kind == SETTING_ENGINES && raw->engines_source) ||
                     (setting_rows[row].kind == SETTING_EXTERNALS && raw->externals_source);
        const char *value = getenv(name);
        if (!given && value && *value && give(raw, row, value, name, ret_message) < 0)
            return -1;
    }
    return 0;
}

/* The variables of settings without their prefix, in the form that nearest_name() reads. */
struct variable {
    const char *name; /* in text */
    char text[VARIABLE_BYTES];
};

static size_t list_variables(struct variable ret_variables[SETTING_COUNT + 1])
{
    for (size_t row = 0; row < SETTING_COUNT; row++)
        name_variable(row, ret_variables[row].text);
    snprintf(ret_variables[SETTING_COUNT].text, VARIABLE_BYTES, VARIABLE_PREFIX "CONFIG");
    for (size_t i = 0; i <= SETTING_COUNT; i++)
        ret_variables[i].name = ret_variables[i].text + strlen(VARIABLE_PREFIX);
    return SETTING_COUNT + 1;
}

/* The nearest variable, the same one if it is known; NULL: none. The keys of engines have names of the user's own, but
 * a slip in ROLLOUTD_TOKEN_FILE would leave the door open. */
static const char *nearest_variable(const struct variable *known, size_t count, const char *name, bool *ret_is_key)
{
    static const struct variable file[] = {{"FILE"}};
    *ret_is_key = strncmp(name, "TOKEN_", strlen("TOKEN_")) == 0 && name[strlen("TOKEN_")];
    if (!*ret_is_key)
        return nearest_name(name, known, sizeof(known[0]), count);
    return nearest_name(name + strlen("TOKEN_"), file, sizeof(file[0]), ARRAY_LENGTH(file)) ? "TOKEN_FILE" : NULL;
}

/* Kubernetes makes variables of its own for a service that is named like this program, so an unknown one is told and
 * not refused. */
void settings_find_unknown(void (*found)(const char *name, const char *nearest))
{
    struct variable known[SETTING_COUNT + 1];
    size_t count = list_variables(known);
    for (char **entry = environ; entry && *entry; entry++) {
        bool is_key;
        if (strncmp(*entry, VARIABLE_PREFIX, strlen(VARIABLE_PREFIX)) != 0)
            continue;
        _cleanup_free_ char *name = xstrndup(*entry, strcspn(*entry, "="));
        const char *nearest = nearest_variable(known, count, name + strlen(VARIABLE_PREFIX), &is_key);
        if ((nearest && strcmp(nearest, name + strlen(VARIABLE_PREFIX)) == 0) || (is_key && !nearest))
            continue;
        _cleanup_free_ char *meant = nearest ? xasprintf(VARIABLE_PREFIX "%s", nearest) : NULL;
        make_one_line(name);
        found(name, meant);
    }
}

/* --- the whole --- */

static void resolve_processors(int64_t *count)
{
    cpu_set_t set;
    if (*count > 0)
        return;
    *count = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 2;
    if (*count < 2)
        *count = 2;
}

/* It travels in a message of fixed size, to a process with another working directory. */
static int check_folder(const char *key, const char *folder, char *ret_message)
{
    if (!folder || (folder[0] == '/' && strlen(folder) < FOLDER_BYTES))
        return 0;
    return fail(ret_message, "%s: \"%.300s\": expected an absolute path of fewer than %d bytes", key, folder,
                FOLDER_BYTES);
}

static int check_together(struct settings *settings, struct raw_settings *raw, char *ret_message)
{
    if (settings_parse_listen(&raw->settings[find_row("listen", 6)], settings, ret_message) < 0)
        return -1;
    if (settings->token_file &&
        settings_read_token("token_file", settings->token_file, &settings->token, ret_message) < 0)
        return -1;
    if (!settings->token && !settings_listen_is_loopback(settings))
        return fail(ret_message, "listen: \"%s\" from %s: expected a loopback address, or a token_file beside it",
                    settings->listen, raw->settings[find_row("listen", 6)].source);
    if (settings->engine_backoff_min_us > settings->engine_backoff_max_us)
        return fail(ret_message, "engine.backoff_min: expected at most engine.backoff_max");
    resolve_processors(&settings->workers);
    resolve_processors(&settings->text_workers);
    resolve_processors(&settings->sandbox_slots);
    if (check_folder("sandbox.testlib", settings->sandbox_testlib, ret_message) < 0 ||
        check_folder("python.venv", settings->python_venv, ret_message) < 0)
        return -1;
    if (settings->readers == 0)
        settings->readers = (settings->workers + 1) / 2;
    return 0;
}

static int parse_all(struct settings *settings, struct raw_settings *raw, char *ret_message)
{
    for (size_t row = 0; row < SETTING_COUNT; row++) {
        struct raw_setting *setting = &raw->settings[row];
        if (setting_rows[row].kind == SETTING_ENGINES || setting_rows[row].kind == SETTING_EXTERNALS)
            continue;
        if (!setting->source)
            setting->source = xstrdup("the default");
        if (setting_parse(&setting_rows[row], setting, settings, ret_message) < 0)
            return -1;
    }
    return settings_parse_engines(raw, settings, ret_message) < 0
               ? -1
               : settings_parse_externals(raw, settings, ret_message);
}

/* The environment and the file, beneath what the command line gave. */
static int gather(struct raw_settings *raw, const char *config, char *ret_message)
{
    if (take_environment(raw, ret_message) < 0)
        return -1;
    return config && *config ? settings_read_file(config, raw, ret_message) : 0;
}

static int load(int argc, char **argv, struct settings *ret_settings, struct settings_run *ret_run, char *ret_message)
{
    _cleanup_(raw_settings_finish) struct raw_settings raw = {0};
    struct command_line line = {&raw, ret_run, getenv(VARIABLE_PREFIX "CONFIG"), ret_message};
    *ret_settings = (struct settings){0};
    *ret_run = (struct settings_run){0};
    for (int i = 1, used; i < argc; i += used) {
        used = take_argument(&line, argv[i], i + 1 < argc ? argv[i + 1] : NULL);
        if (used < 0)
            return -1;
    }
    if (ret_run->version || ret_run->help || ret_run->print)
        return 0;
    if (gather(&raw, line.config, ret_message) < 0)
        return -1;
    if (parse_all(ret_settings, &raw, ret_message) < 0)
        return -1;
    return check_together(ret_settings, &raw, ret_message);
}

int settings_load(int argc, char **argv, struct settings *ret_settings, struct settings_run *ret_run,
                  char ret_message[SETTINGS_MESSAGE_BYTES])
{
    int result = load(argc, argv, ret_settings, ret_run, ret_message);
    if (result < 0)
        make_one_line(ret_message);
    return result;
}

static int find_database(const char *config, const char *database, char **ret_database, char *ret_message)
{
    _cleanup_(raw_settings_finish) struct raw_settings raw = {0};
    size_t row = (size_t)find_row("database", strlen("database"));
    struct settings settings = {0};
    if (database && give(&raw, row, database, "--database", ret_message) < 0)
        return -1;
    if (gather(&raw, config ? config : getenv(VARIABLE_PREFIX "CONFIG"), ret_message) < 0)
        return -1;
    if (!raw.settings[row].source)
        raw.settings[row].source = xstrdup("the default");
    if (setting_parse(&setting_rows[row], &raw.settings[row], &settings, ret_message) < 0)
        return -1;
    *ret_database = settings.database;
    return 0;
}

int settings_find_database(const char *config, const char *database, char **ret_database,
                           char ret_message[SETTINGS_MESSAGE_BYTES])
{
    int result = find_database(config, database, ret_database, ret_message);
    if (result < 0)
        make_one_line(ret_message);
    return result;
}

void settings_finish(struct settings *settings)
{
    for (size_t i = 0; i < settings->engine_count; i++) {
        struct engine_settings *engine = &settings->engines[i];
        free(engine->name);
        free(engine->pool);
        free(engine->url);
        free(engine->model);
        free(engine->token);
    }
    free(settings->engines);
    settings_finish_externals(settings);
    for (size_t row = 0; row < SETTING_COUNT; row++)
        if (setting_rows[row].kind == SETTING_TEXT)
            free(*(char **)(void *)((char *)settings + setting_rows[row].offset));
    free(settings->listen_host);
    free(settings->token);
    *settings = (struct settings){0};
}

void settings_print_help(FILE *out)
{
    fputs("Arguments:\n\n", out);
    for (size_t i = 0; i < ARRAY_LENGTH(flags); i++) {
        char form[48];
        snprintf(form, sizeof(form), "%s %s", flags[i].name, flags[i].argument ? flags[i].argument : "");
        fprintf(out, "  %-24s %s\n", form, flags[i].help);
    }
    fputs("\nSettings, for --set, for the file and for the environment (log.level is ROLLOUTD_LOG_LEVEL); a flag wins "
          "over the\n"
          "environment, that over the file:\n\n",
          out);
    for (size_t row = 0; row < SETTING_COUNT; row++) {
        const char *standard = setting_rows[row].standard;
        fprintf(out, "  %-24s %s", setting_rows[row].key, setting_rows[row].help);
        fprintf(out, "%s%s\n", *standard ? " Default: " : "", standard);
    }
}
