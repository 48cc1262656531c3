/* Reward functions of the user's own: the entries of the list `externals`. */
#include "server/base/cleanup.h"
#include "server/base/clock.h"
#include "server/base/number.h"
#include "server/settings/table.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MOST_EXTERNALS = 64,
    LONGEST_WORD_BYTES = 4096,
    LONGEST_NAME_BYTES = 63,
    FILES_BYTES = 256 * 1024, /* of an entry: they go to a slot with every call */
    LONGEST_PATH_BYTES = 2048,
    IN_FLIGHT = 64,
    MOST_IN_FLIGHT = 65536,
    MOST_VENVS = 8, /* that differ: programs of a slot see all of them */
    LONGEST_VENV_BYTES = 255,
};
#define TIMEOUT_US (10 * US_PER_S)
#define TIMEOUT_MAX_US (3600 * US_PER_S)
#define MEMORY_BYTES ((int64_t)512 << 20)
#define MEMORY_MIN_BYTES ((int64_t)16 << 20)
#define MEMORY_MAX_BYTES ((int64_t)1 << 40)

void raw_external_finish(struct raw_external *external)
{
    for (size_t i = 0; i < external->command_count; i++)
        free(external->command[i]);
    for (size_t i = 0; i < external->files_count; i++)
        free(external->files[i]);
    free(external->command);
    free(external->files);
    free(external->name);
    free(external->url);
    free(external->scope);
    free(external->sandbox);
    free(external->timeout);
    free(external->memory);
    free(external->venv);
    free(external->in_flight);
    free(external->token_file);
    free(external->persistent);
}

void settings_finish_externals(struct settings *settings)
{
    for (size_t i = 0; i < settings->external_count; i++) {
        struct external_settings *external = &settings->externals[i];
        for (size_t word = 0; word < external->word_count; word++)
            free(external->command[word]);
        for (size_t file = 0; file < external->file_count; file++) {
            free(external->files[file].path);
            free(external->files[file].name);
            free(external->files[file].bytes);
        }
        free(external->name);
        free(external->venv);
        free(external->url);
        free(external->path);
        free(external->token);
    }
    free(settings->externals);
}

/* --- one entry --- */

struct entry {
    const struct raw_external *raw;
    const char *source;
    struct external_settings *external;
    char *message; /* SETTINGS_MESSAGE_BYTES */
};

static int refuse(const struct entry *entry, const char *field, const char *value, const char *expected)
{
    snprintf(entry->message, SETTINGS_MESSAGE_BYTES, "externals: %s \"%.200s\" of \"%.64s\" from %.200s: %s", field,
             value, entry->raw->name ? entry->raw->name : "", entry->source, expected);
    return -1;
}

static int read_file(const struct entry *entry, const char *path, size_t room_bytes, struct external_file *file)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat status;

    if (fd < 0 || fstat(fd, &status) < 0)
        return refuse(entry, "files", path, strerror(errno));
    if (!S_ISREG(status.st_mode))
        return refuse(entry, "files", path, "expected a regular file");
    if (status.st_size > (off_t)room_bytes)
        return refuse(entry, "files", path, "expected 256KiB of files in all");
    file->bytes = xcalloc(1, (size_t)status.st_size + 1);
    ssize_t count = read(fd, file->bytes, (size_t)status.st_size);
    if (count < 0)
        return refuse(entry, "files", path, strerror(errno));
    file->length_bytes = (size_t)count;
    return 0;
}

static int check_file(const struct entry *entry, const char *path)
{
    const struct external_settings *external = entry->external;
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : "";

    if (path[0] != '/' || !*name || strlen(name) > LONGEST_NAME_BYTES || strcmp(name, ".") == 0 ||
        strcmp(name, "..") == 0)
        return refuse(entry, "files", path, "expected an absolute path of a file with a name of 63 bytes at most");
    for (size_t i = 0; i < external->file_count; i++)
        if (strcmp(external->files[i].name, name) == 0)
            return refuse(entry, "files", path, "expected a name that no other file of the list has");
    return 0;
}

static int read_files(const struct entry *entry)
{
    struct external_settings *external = entry->external;
    size_t sum_bytes = 0;

    if (entry->raw->files_count > EXTERNAL_FILES_MAX)
        return refuse(entry, "files", entry->raw->files[EXTERNAL_FILES_MAX], "expected at most 4 files");
    for (size_t i = 0; i < entry->raw->files_count; i++) {
        const char *path = entry->raw->files[i];
        struct external_file file = {0};
        if (check_file(entry, path) < 0 || read_file(entry, path, FILES_BYTES - sum_bytes, &file) < 0)
            return -1;
        sum_bytes += file.length_bytes;
        file.path = xstrdup(path);
        file.name = xstrdup(strrchr(path, '/') + 1);
        external->files[external->file_count++] = file;
    }
    return 0;
}

static int read_command(const struct entry *entry)
{
    const struct raw_external *raw = entry->raw;

    if (raw->command_count > EXTERNAL_WORDS_MAX)
        return refuse(entry, "command", raw->command[EXTERNAL_WORDS_MAX], "expected at most 16 words");
    for (size_t i = 0; i < raw->command_count; i++) {
        size_t length_bytes = strlen(raw->command[i]);
        if (length_bytes > LONGEST_WORD_BYTES || (i == 0 && raw->command[0][0] != '/'))
            return refuse(entry, "command", raw->command[i],
                          "expected the absolute path of a program, and words of at most 4096 bytes");
        entry->external->command[entry->external->word_count++] = xstrdup(raw->command[i]);
    }
    return read_files(entry);
}

static bool is_path(const char *path)
{
    for (const char *at = path; *at; at++)
        if (*at <= ' ' || *at > '~' || *at == '#')
            return false;
    return strlen(path) <= LONGEST_PATH_BYTES;
}

/* http://HOST:PORT and the rest: the path and query of a request, as they were written. */
static int read_url(const struct entry *entry)
{
    const char *url = entry->raw->url;
    const char *host = strstr(url, "://");
    size_t length_bytes = host ? (size_t)(host + 3 - url) + strcspn(host + 3, "/?") : strlen(url);
    const char *path = url + length_bytes;

    entry->external->url = xstrndup(url, length_bytes);
    entry->external->path = xasprintf("%s%s", *path == '/' ? "" : "/", path);
    if (!engine_url_is_sane(entry->external->url) || !is_path(path))
        return refuse(entry, "url", url, "expected http://HOST:PORT/PATH or https://HOST:PORT/PATH, without a user");
    return 0;
}

static int read_token(const struct entry *entry)
{
    const char *path = entry->raw->token_file;

    return path ? settings_read_token("externals: token_file", path, &entry->external->token, entry->message) : 0;
}

/* Keys that only a command has, or only a URL. */
static int check_kind(const struct entry *entry, bool is_url)
{
    const struct raw_external *raw = entry->raw;
    const struct {
        const char *key, *value;
    } of_a_command[] = {
        {"memory", raw->memory}, {"sandbox", raw->sandbox}, {"venv", raw->venv}, {"persistent", raw->persistent}};

    if (is_url && raw->command_count)
        return refuse(entry, "url", raw->url, "expected a command or a url, not both");
    if (is_url && raw->files_count)
        return refuse(entry, "files", raw->files[0], "belongs to a command");
    for (size_t i = 0; i < ARRAY_LENGTH(of_a_command) && is_url; i++)
        if (of_a_command[i].value)
            return refuse(entry, of_a_command[i].key, of_a_command[i].value, "belongs to a command");
    if (!is_url && (raw->in_flight || raw->token_file))
        return refuse(entry, raw->in_flight ? "in_flight" : "token_file",
                      raw->in_flight ? raw->in_flight : raw->token_file, "belongs to a url");
    return 0;
}

static int read_place(const struct entry *entry)
{
    const struct raw_external *raw = entry->raw;
    bool is_url = raw->url && *raw->url;

    if (!is_url && raw->command_count == 0)
        return refuse(entry, "command", "", "expected at least one word, or a url");
    if (check_kind(entry, is_url) < 0)
        return -1;
    if (!is_url)
        return read_command(entry);
    return read_url(entry) < 0 ? -1 : read_token(entry);
}

static bool read_in_flight(const char *text, int64_t *ret_value)
{
    const char *end = text + strlen(text);
    struct number number;

    if (number_parse(text, end, &number) != end || !number.is_integer || number.integer < 1 ||
        number.integer > MOST_IN_FLIGHT)
        return false;
    *ret_value = number.integer;
    return true;
}

static int read_limits(const struct entry *entry)
{
    const struct raw_external *raw = entry->raw;
    struct external_settings *external = entry->external;

    if (raw->timeout && (!duration_parse(text_of(raw->timeout), &external->timeout_us) ||
                         external->timeout_us < US_PER_MS || external->timeout_us > TIMEOUT_MAX_US))
        return refuse(entry, "timeout", raw->timeout, "expected a duration from 1ms to 1h");
    if (raw->memory && (!size_parse(text_of(raw->memory), &external->memory_bytes) ||
                        external->memory_bytes < MEMORY_MIN_BYTES || external->memory_bytes > MEMORY_MAX_BYTES))
        return refuse(entry, "memory", raw->memory, "expected a size from 16MiB to 1TiB");
    if (raw->in_flight && !read_in_flight(raw->in_flight, &external->in_flight))
        return refuse(entry, "in_flight", raw->in_flight, "expected an integer from 1 to 65536");
    return 0;
}

static int read_words(const struct entry *entry)
{
    const struct raw_external *raw = entry->raw;

    entry->external->of_group = raw->scope && strcmp(raw->scope, "group") == 0;
    if (raw->scope && !entry->external->of_group && strcmp(raw->scope, "rollout") != 0)
        return refuse(entry, "scope", raw->scope, "expected rollout or group");
    if (raw->sandbox && strcmp(raw->sandbox, "full") != 0 && strcmp(raw->sandbox, "none") != 0)
        return refuse(entry, "sandbox", raw->sandbox, "expected full or none");
    if (raw->persistent && *raw->persistent && strcmp(raw->persistent, "true") != 0 &&
        strcmp(raw->persistent, "false") != 0)
        return refuse(entry, "persistent", raw->persistent, "expected true or false");
    entry->external->persistent = raw->persistent && strcmp(raw->persistent, "true") == 0;
    entry->external->bare = raw->sandbox && strcmp(raw->sandbox, "none") == 0;
    return 0;
}

static size_t count_venvs(const struct settings *settings)
{
    size_t count = 0;

    for (size_t i = 0; i < settings->external_count; i++) {
        size_t before = 0;
        while (before < i && (!settings->externals[i].venv || !settings->externals[before].venv ||
                              strcmp(settings->externals[before].venv, settings->externals[i].venv) != 0))
            before++;
        count += settings->externals[i].venv && before == i;
    }
    return count;
}

/* As it is mounted: no link or step back in the path that is written. */
static bool is_plain(const char *path)
{
    size_t length = strlen(path);

    return path[0] == '/' && length > 1 && length <= LONGEST_VENV_BYTES && path[length - 1] != '/' &&
           !strstr(path, "//") && !strstr(path, "/./") && !strstr(path, "/../") &&
           strcmp(path + length - 2, "/.") != 0 && (length < 3 || strcmp(path + length - 3, "/..") != 0);
}

static int read_venv(const struct entry *entry, const struct settings *settings)
{
    const char *venv = entry->raw->venv;
    _cleanup_free_ char *config = venv ? xasprintf("%s/pyvenv.cfg", venv) : NULL;

    if (!venv || !*venv)
        return 0;
    if (!is_plain(venv) || access(config, R_OK) < 0)
        return refuse(entry, "venv", venv, "expected the absolute path of a virtual environment");
    entry->external->venv = xstrdup(venv);
    if (count_venvs(settings) > MOST_VENVS)
        return refuse(entry, "venv", venv, "expected at most 8 different ones");
    return 0;
}

static int read_entry(const struct entry *entry, const struct settings *settings)
{
    *entry->external =
        (struct external_settings){.in_flight = IN_FLIGHT, .timeout_us = TIMEOUT_US, .memory_bytes = MEMORY_BYTES};
    entry->external->name = xstrdup(entry->raw->name ? entry->raw->name : "");
    if (!engine_name_is_sane(entry->external->name))
        return refuse(entry, "name", entry->external->name, "expected " ENGINE_NAME_FORM);
    for (size_t i = 0; &settings->externals[i] != entry->external; i++)
        if (strcmp(settings->externals[i].name, entry->external->name) == 0)
            return refuse(entry, "name", entry->external->name, "expected a name that no other entry has");
    if (read_place(entry) < 0 || read_limits(entry) < 0 || read_venv(entry, settings) < 0)
        return -1;
    return read_words(entry);
}

int settings_parse_externals(const struct raw_settings *raw, struct settings *settings,
                             char ret_message[SETTINGS_MESSAGE_BYTES])
{
    if (raw->external_count > MOST_EXTERNALS) {
        snprintf(ret_message, SETTINGS_MESSAGE_BYTES, "externals: %zu entries from %.300s: expected at most %d",
                 raw->external_count, raw->externals_source, MOST_EXTERNALS);
        return -1;
    }
    settings->externals = xcalloc(raw->external_count, sizeof(*settings->externals));
    for (size_t i = 0; i < raw->external_count; i++) {
        struct entry entry = {&raw->externals[i], raw->externals_source,
                              &settings->externals[settings->external_count++], ret_message};
        if (read_entry(&entry, settings) < 0)
            return -1;
    }
    return 0;
}
