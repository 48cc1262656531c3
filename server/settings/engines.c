/* Engines and tokens. */
#include "client/pool/pool.h"
#include "server/base/cleanup.h"
#include "server/base/clock.h"
#include "server/base/nearest.h"
#include "server/base/number.h"
#include "server/settings/table.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

enum { LONGEST_URL_BYTES = 2048, LONGEST_TOKEN_BYTES = 4096, MOST_ENGINES = POOL_ENGINES_MAX, MOST_IN_FLIGHT = 65536 };

/* --- as written --- */

static char **field_of(struct raw_engine *engine, size_t field)
{
    return (char **)(void *)((char *)engine + engine_fields[field].offset);
}

void raw_engine_finish(struct raw_engine *engine)
{
    for (size_t i = 0; i < ENGINE_FIELD_COUNT; i++)
        free(TAKE_PTR(*field_of(engine, i)));
}

void raw_settings_finish(struct raw_settings *raw)
{
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        free(raw->settings[i].value);
        free(raw->settings[i].source);
    }
    for (size_t i = 0; i < raw->engine_count; i++)
        raw_engine_finish(&raw->engines[i]);
    free(raw->engines);
    free(raw->engines_source);
    for (size_t i = 0; i < raw->external_count; i++)
        raw_external_finish(&raw->externals[i]);
    free(raw->externals);
    free(raw->externals_source);
}

static int hex_digit(char byte)
{
    static const char digits[] = "0123456789abcdef";
    const char *digit = byte ? strchr(digits, byte | 0x20) : NULL;
    return digit ? (int)(digit - digits) : -1;
}

/* "%2F" becomes "/"; anything else stays. */
static char *decoded(const char *text, size_t length_bytes)
{
    char *copy = xstrndup(text, length_bytes);
    char *to = copy;
    for (const char *from = copy; *from; from++) {
        int high = *from == '%' ? hex_digit(from[1]) : -1;
        int low = high >= 0 ? hex_digit(from[2]) : -1;
        if (low >= 0 && (high || low)) {
            *to++ = (char)(high << 4 | low);
            from += 2;
        } else {
            *to++ = *from;
        }
    }
    *to = '\0';
    return copy;
}

/* "kind=vllm"; nor does it take a NUL, written as %00. */
static bool set_field(struct raw_engine *engine, const char *pair, size_t pair_bytes)
{
    const char *equals = memchr(pair, '=', pair_bytes);
    size_t name_bytes = equals ? (size_t)(equals - pair) : 0;
    for (size_t i = 1; i < ENGINE_FIELD_COUNT; i++) { /* but not the URL again */
        char **field = field_of(engine, i);
        if (strlen(engine_fields[i].name) != name_bytes || memcmp(engine_fields[i].name, pair, name_bytes) != 0)
            continue;
        if (*field || memmem(pair, pair_bytes, "%00", 3))
            return false;
        *field = decoded(equals + 1, pair_bytes - name_bytes - 1);
        return true;
    }
    return false;
}

int raw_engine_from_url(const char *text, const char *source, struct raw_engine *ret_engine,
                        char ret_message[SETTINGS_MESSAGE_BYTES])
{
    const char *end = strchrnul(text, '#');
    *ret_engine = (struct raw_engine){.url = xstrndup(text, (size_t)(end - text))};
    while (*end) {
        const char *pair = end + 1;
        end = strchrnul(pair, '&');
        if (set_field(ret_engine, pair, (size_t)(end - pair)))
            continue;
        snprintf(ret_message, SETTINGS_MESSAGE_BYTES,
                 "engines: \"%.*s\" in \"%s\" from %s: expected name=value once each, without NUL, with name one of "
                 "name, pool, kind, "
                 "model, token_file, in_flight, shared",
                 (int)(end - pair), pair, text, source);
        raw_engine_finish(ret_engine);
        return -1;
    }
    return 0;
}

/* --- tokens --- */

static int refuse_token(const char *key, const char *path, const char *why, char *ret_message)
{
    snprintf(ret_message, SETTINGS_MESSAGE_BYTES, "%s: \"%s\": %s", key, path, why);
    return -1;
}

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

/* The one word in the text, or NULL. */
static char *only_word(const char *text, size_t length_bytes)
{
    const char *end = text + length_bytes;
    while (text < end && is_blank(*text))
        text++;
    while (end > text && is_blank(end[-1]))
        end--;
    for (const char *at = text; at < end; at++)
        if (*at <= ' ' || *at > '~')
            return NULL;
    return text < end ? xstrndup(text, (size_t)(end - text)) : NULL;
}

int settings_read_token(const char *key, const char *path, char **ret_token, char ret_message[SETTINGS_MESSAGE_BYTES])
{
    char content[LONGEST_TOKEN_BYTES + 1];
    struct stat status;
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &status) < 0)
        return refuse_token(key, path, strerror(errno), ret_message);
    if (!S_ISREG(status.st_mode))
        return refuse_token(key, path, "expected a regular file", ret_message);
    if (status.st_mode & (S_IROTH | S_IWOTH))
        return refuse_token(key, path, "everybody may read or write this file; expected mode 0600 or 0640",
                            ret_message);
    ssize_t length = read(fd, content, sizeof(content));
    if (length < 0)
        return refuse_token(key, path, strerror(errno), ret_message);
    if (length > LONGEST_TOKEN_BYTES)
        return refuse_token(key, path, "the token is too long; expected at most 4096 bytes", ret_message);
    *ret_token = only_word(content, (size_t)length);
    if (!*ret_token)
        return refuse_token(key, path, "expected one word of printable ASCII", ret_message);
    return 0;
}

/* --- as meant --- */

static int refuse_engine(const struct raw_engine *raw, const char *source, const char *field, const char *value,
                         const char *expected, char *ret_message)
{
    snprintf(ret_message, SETTINGS_MESSAGE_BYTES, "engines: %s \"%s\" of engine \"%s\" from %s: expected %s", field,
             value, raw->url ? raw->url : "", source, expected);
    return -1;
}

/* ":8000", or nothing. */
static bool port_is_sane(const char *text, size_t length_bytes)
{
    struct number number;
    const char *end = text + length_bytes;
    if (length_bytes == 0)
        return true;
    return *text == ':' && length_bytes <= 6 && strspn(text + 1, "0123456789") >= length_bytes - 1 &&
           number_parse(text + 1, end, &number) == end && number.integer >= 1 && number.integer <= 65535;
}

/* "host:8000", "[::1]:8000", without what comes behind. */
static bool authority_is_sane(const char *text, size_t length_bytes)
{
    char address[64];
    struct in6_addr six;
    const char *close = *text == '[' ? memchr(text, ']', length_bytes) : NULL;
    size_t host_bytes = strcspn(text, ":/");
    if (*text == '[') {
        if (!close || (size_t)(close - text) >= sizeof(address))
            return false;
        host_bytes = (size_t)(close + 1 - text);
        snprintf(address, sizeof(address), "%.*s", (int)(host_bytes - 2), text + 1);
        address[strcspn(address, "%")] = '\0'; /* a zone */
        if (inet_pton(AF_INET6, address, &six) != 1)
            return false;
    }
    return host_bytes > 0 && port_is_sane(text + host_bytes, length_bytes - host_bytes);
}

bool engine_url_is_sane(const char *url)
{
    size_t scheme = strncmp(url, "http://", 7) == 0 ? 7 : strncmp(url, "https://", 8) == 0 ? 8 : 0;
    if (!scheme || strlen(url) > LONGEST_URL_BYTES)
        return false;
    for (const char *at = url; *at; at++)
        if (*at <= ' ' || *at > '~' || strchr("?#\"<>\\^`{|}@", *at))
            return false;
    return authority_is_sane(url + scheme, strcspn(url + scheme, "/"));
}

static char *without_slashes(const char *url)
{
    size_t length = strlen(url);
    while (length > 0 && url[length - 1] == '/')
        length--;
    return xstrndup(url, length);
}

static const char *find_kind(const char *kind)
{
    const struct engine_adapter *adapter = engine_adapter_find(text_of(kind));
    return adapter ? adapter->kind : NULL;
}

static void list_kinds(char *ret_text, size_t size)
{
    snprintf(ret_text, size, "one of");
    for (size_t i = 0; engine_kinds[i]; i++) {
        size_t length = strlen(ret_text);
        snprintf(ret_text + length, size - length, "%s %s", i ? "," : "", engine_kinds[i]);
    }
}

static bool read_in_flight(const char *text, int64_t *ret_value)
{
    struct number number;
    const char *end = text + strlen(text);
    *ret_value = 0;
    if (strcmp(text, "auto") == 0)
        return true;
    if (number_parse(text, end, &number) != end || !number.is_integer || number.integer < 1 ||
        number.integer > MOST_IN_FLIGHT)
        return false;
    *ret_value = number.integer;
    return true;
}

static bool read_bool(const char *text, bool *ret_value)
{
    *ret_value = strcmp(text, "true") == 0;
    return *ret_value || strcmp(text, "false") == 0;
}

bool engine_name_is_sane(const char *name)
{
    size_t length = strlen(name);
    return length > 0 && length <= 64 && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
           strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == length;
}

static int parse_engine(const struct raw_engine *raw, const char *source, struct engine_settings *engine,
                        char *ret_message)
{
    char kinds[128];
    static const char name_form[] = ENGINE_NAME_FORM;
    list_kinds(kinds, sizeof(kinds));
    if (!raw->url || !engine_url_is_sane(raw->url))
        return refuse_engine(raw, source, "url", raw->url ? raw->url : "",
                             "http://HOST:PORT or https://HOST:PORT, with a port from 1 to 65535", ret_message);
    engine->url = without_slashes(raw->url);
    if (!engine_name_is_sane(engine->name))
        return refuse_engine(raw, source, "name", engine->name, name_form, ret_message);
    engine->pool = xstrdup(raw->pool ? raw->pool : "default");
    if (!engine_name_is_sane(engine->pool))
        return refuse_engine(raw, source, "pool", engine->pool, name_form, ret_message);
    if (raw->kind && !(engine->kind = find_kind(raw->kind)))
        return refuse_engine(raw, source, "kind", raw->kind, kinds, ret_message);
    if (raw->in_flight && !read_in_flight(raw->in_flight, &engine->in_flight))
        return refuse_engine(raw, source, "in_flight", raw->in_flight, "auto or an integer from 1 to 65536",
                             ret_message);
    if (raw->shared && !read_bool(raw->shared, &engine->shared))
        return refuse_engine(raw, source, "shared", raw->shared, "true or false", ret_message);
    engine->model = raw->model && *raw->model ? xstrdup(raw->model) : NULL;
    if (raw->token_file)
        return settings_read_token("engines: token_file", raw->token_file, &engine->token, ret_message);
    return 0;
}

int settings_parse_engines(const struct raw_settings *raw, struct settings *settings,
                           char ret_message[SETTINGS_MESSAGE_BYTES])
{
    if (raw->engine_count > MOST_ENGINES) {
        snprintf(ret_message, SETTINGS_MESSAGE_BYTES, "engines: %zu engines from %s: expected at most %d",
                 raw->engine_count, raw->engines_source, MOST_ENGINES);
        return -1;
    }
    settings->engines = xcalloc(raw->engine_count, sizeof(*settings->engines));
    for (size_t i = 0; i < raw->engine_count; i++) {
        struct engine_settings *engine = &settings->engines[settings->engine_count++];
        const struct raw_engine *written = &raw->engines[i];
        engine->in_flight = 256;
        engine->name = written->name ? xstrdup(written->name) : xasprintf("e%zu", i + 1);
        if (parse_engine(written, raw->engines_source, engine, ret_message) < 0)
            return -1;
        for (size_t before = 0; before < i; before++)
            if (strcmp(settings->engines[before].name, engine->name) == 0)
                return refuse_engine(written, raw->engines_source, "name", engine->name,
                                     "a name that no other engine has", ret_message);
        for (size_t before = 0; before < i; before++)
            if (strcmp(settings->engines[before].pool, engine->pool) == 0 &&
                engine_kind_samples(settings->engines[before].kind) != engine_kind_samples(engine->kind))
                return refuse_engine(written, raw->engines_source, "pool", engine->pool,
                                     "a pool of scorers alone, or one without any", ret_message);
    }
    return 0;
}
