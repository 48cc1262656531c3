/* The settings file: YAML through libcyaml, its schema made from the table. */
#include "server/base/cleanup.h"
#include "server/settings/table.h"

#include <cyaml/cyaml.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml.h>

enum { LONGEST_FILE_BYTES = 1024 * 1024, GROUP_MAXIMUM = SETTING_COUNT };

/* Values as cyaml reads them: text, by row. */
struct file_values {
    char *values[SETTING_COUNT];
    struct raw_engine *engines;
    unsigned engines_count;
    struct raw_external *externals;
    unsigned externals_count;
};

/* --- the schema --- */

struct schema {
    cyaml_schema_field_t engine[ENGINE_FIELD_COUNT + 1];
    cyaml_schema_value_t engine_value;
    cyaml_schema_field_t external[EXTERNAL_FIELD_COUNT + 1];
    cyaml_schema_value_t external_value;
    cyaml_schema_value_t text_value;
    cyaml_schema_field_t groups[GROUP_MAXIMUM][SETTING_COUNT];
    char group_names[GROUP_MAXIMUM][32];
    size_t group_sizes[GROUP_MAXIMUM];
    size_t group_count;
    cyaml_schema_field_t top[SETTING_COUNT + GROUP_MAXIMUM];
    size_t top_size;
    cyaml_schema_value_t value;
};

#define OPTIONAL_POINTER ((enum cyaml_flag)(CYAML_FLAG_OPTIONAL | CYAML_FLAG_POINTER_NULL))

static cyaml_schema_field_t text_field(const char *key, size_t offset)
{
    return (cyaml_schema_field_t){
        .key = key,
        .data_offset = (uint32_t)offset,
        .value = {.type = CYAML_STRING, .flags = OPTIONAL_POINTER, .data_size = 1, .string = {0, CYAML_UNLIMITED}}};
}

/* The mapping of a key's first part, "log" of "log.level". Its fields lie where all others do. */
static size_t find_group(struct schema *schema, const char *key, size_t name_bytes)
{
    size_t i = 0;
    while (i < schema->group_count &&
           (strlen(schema->group_names[i]) != name_bytes || memcmp(schema->group_names[i], key, name_bytes) != 0))
        i++;
    if (i < schema->group_count)
        return i;
    schema->group_count++;
    memcpy(schema->group_names[i], key, name_bytes);
    schema->top[schema->top_size++] = (cyaml_schema_field_t){.key = schema->group_names[i],
                                                             .value = {.type = CYAML_MAPPING,
                                                                       .flags = CYAML_FLAG_OPTIONAL,
                                                                       .data_size = sizeof(struct file_values),
                                                                       .mapping = {schema->groups[i]}}};
    return i;
}

static void add_row(struct schema *schema, size_t row)
{
    const char *key = setting_rows[row].key;
    const char *dot = strchr(key, '.');
    size_t offset = offsetof(struct file_values, values) + row * sizeof(char *);
    if (dot) {
        size_t group = find_group(schema, key, (size_t)(dot - key));
        schema->groups[group][schema->group_sizes[group]++] = text_field(dot + 1, offset);
    } else {
        schema->top[schema->top_size++] = text_field(key, offset);
    }
}

static void add_engines(struct schema *schema)
{
    for (size_t i = 0; i < ENGINE_FIELD_COUNT; i++)
        schema->engine[i] = text_field(engine_fields[i].name, engine_fields[i].offset);
    schema->engine_value = (cyaml_schema_value_t){
        .type = CYAML_MAPPING, .data_size = sizeof(struct raw_engine), .mapping = {schema->engine}};
    schema->top[schema->top_size++] =
        (cyaml_schema_field_t){.key = "engines",
                               .data_offset = offsetof(struct file_values, engines),
                               .count_offset = offsetof(struct file_values, engines_count),
                               .count_size = sizeof(unsigned),
                               .value = {.type = CYAML_SEQUENCE,
                                         .flags = OPTIONAL_POINTER,
                                         .data_size = sizeof(struct raw_engine),
                                         .sequence = {&schema->engine_value, 0, CYAML_UNLIMITED}}};
}

static cyaml_schema_field_t external_field(const struct schema *schema, const struct external_field *field)
{
    if (!field->count_offset)
        return text_field(field->name, field->offset);
    return (cyaml_schema_field_t){.key = field->name,
                                  .data_offset = (uint32_t)field->offset,
                                  .count_offset = (uint32_t)field->count_offset,
                                  .count_size = sizeof(unsigned),
                                  .value = {.type = CYAML_SEQUENCE,
                                            .flags = OPTIONAL_POINTER,
                                            .data_size = sizeof(char *),
                                            .sequence = {&schema->text_value, 0, CYAML_UNLIMITED}}};
}

static void add_externals(struct schema *schema)
{
    schema->text_value = (cyaml_schema_value_t){
        .type = CYAML_STRING, .flags = CYAML_FLAG_POINTER, .data_size = 1, .string = {0, CYAML_UNLIMITED}};
    for (size_t i = 0; i < EXTERNAL_FIELD_COUNT; i++)
        schema->external[i] = external_field(schema, &external_fields[i]);
    schema->external_value = (cyaml_schema_value_t){
        .type = CYAML_MAPPING, .data_size = sizeof(struct raw_external), .mapping = {schema->external}};
    schema->top[schema->top_size++] =
        (cyaml_schema_field_t){.key = "externals",
                               .data_offset = offsetof(struct file_values, externals),
                               .count_offset = offsetof(struct file_values, externals_count),
                               .count_size = sizeof(unsigned),
                               .value = {.type = CYAML_SEQUENCE,
                                         .flags = OPTIONAL_POINTER,
                                         .data_size = sizeof(struct raw_external),
                                         .sequence = {&schema->external_value, 0, CYAML_UNLIMITED}}};
}

static void make_schema(struct schema *schema)
{
    *schema = (struct schema){0};
    for (size_t row = 0; row < SETTING_COUNT; row++) {
        if (setting_rows[row].kind == SETTING_ENGINES)
            add_engines(schema);
        else if (setting_rows[row].kind == SETTING_EXTERNALS)
            add_externals(schema);
        else
            add_row(schema, row);
    }
    schema->value = (cyaml_schema_value_t){.type = CYAML_MAPPING,
                                           .flags = CYAML_FLAG_POINTER,
                                           .data_size = sizeof(struct file_values),
                                           .mapping = {schema->top}};
}

/* --- lines, which cyaml does not know well --- */

/* Whether the line is "name: …", perhaps as an item of a list. */
static bool is_line_of(const char *line, const char *name, size_t name_bytes)
{
    line += strspn(line, " -");
    return strncmp(line, name, name_bytes) == 0 && line[name_bytes + strspn(line + name_bytes, " ")] == ':';
}

/* The line of a key such as "log.level", from 1; 0 if it is not found. */
static int find_line(const char *text, const char *key)
{
    int number = 1;
    size_t name_bytes = strcspn(key, ".");
    for (const char *line = text; line; number++) {
        if (is_line_of(line, key, name_bytes)) {
            if (!key[name_bytes])
                return number;
            key += name_bytes + 1;
            name_bytes = strcspn(key, ".");
        }
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    return 0;
}

static char *source_of(const char *path, const char *text, const char *key)
{
    int line = find_line(text, key);
    return line ? xasprintf("%s line %d", path, line) : xstrdup(path);
}

/* --- reading --- */

/* Of what cyaml has to say: the first line, and of its backtrace the field. */
__attribute__((format(printf, 3, 0))) static void keep_first(cyaml_log_t level, void *context, const char *format,
                                                             va_list arguments)
{
    char line[SETTINGS_MESSAGE_BYTES];
    char *message = context;
    size_t length = strlen(message);
    vsnprintf(line, sizeof(line), format, arguments);
    line[strcspn(line, "\n")] = '\0';
    bool field = strstr(line, "in mapping field") && !strstr(message, "in mapping field");
    if (level >= CYAML_LOG_ERROR && (length == 0 || field))
        snprintf(message + length, SETTINGS_MESSAGE_BYTES - length, "%s%.400s", length ? "," : "",
                 length ? line + 1 : line);
}

static bool is_setting(const char *key)
{
    for (size_t row = 0; row < SETTING_COUNT; row++)
        if (strcmp(setting_rows[row].key, key) == 0)
            return true;
    return false;
}

static void refuse_key(const char *source, const char *name, char *ret_message)
{
    const char *dot = strchr(name, '.');

    if (dot && is_setting(name))
        snprintf(ret_message, SETTINGS_MESSAGE_BYTES,
                 "%.300s: %.300s: in a file \"%.100s: …\" stands in a line of its own below \"%.*s:\", indented", name,
                 source, dot + 1, (int)(dot - name), name);
    else
        snprintf(ret_message, SETTINGS_MESSAGE_BYTES, "%.300s: %.300s: there is no setting of this name", name, source);
}

static void explain(const char *path, const char *text, const char *said, const char *error, char *ret_message)
{
    static const char unexpected[] = "Load: Unexpected key: ";
    static const char load[] = "Load: ";
    if (strncmp(said, unexpected, sizeof(unexpected) - 1) == 0) {
        _cleanup_free_ char *name =
            xstrndup(said + sizeof(unexpected) - 1, strcspn(said + sizeof(unexpected) - 1, ","));
        _cleanup_free_ char *source = source_of(path, text, name);
        refuse_key(source, name, ret_message);
        return;
    }
    if (strncmp(said, load, sizeof(load) - 1) == 0)
        said += sizeof(load) - 1;
    snprintf(ret_message, SETTINGS_MESSAGE_BYTES, "config: \"%.300s\": %.600s", path, *said ? said : error);
}

/* A pipe does at the start; at a SIGHUP nobody may be there to write, and nobody may wait for that. */
static FILE *open_without_waiting(const char *path, bool *ret_is_file)
{
    struct stat status = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (fd >= 0)
        (void)fcntl(fd, F_SETFL, 0);
    *ret_is_file = fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
    if (fd >= 0 && !file)
        close(fd);
    return file;
}

static int read_text(const char *path, char **ret_text, char *ret_message)
{
    char *text = xcalloc(1, LONGEST_FILE_BYTES + 1);
    bool is_file;
    FILE *file = open_without_waiting(path, &is_file);
    size_t length = file ? fread(text, 1, LONGEST_FILE_BYTES + 1, file) : 0;
    bool failed = !file || ferror(file);
    int reason = errno;
    bool nothing = !failed && !length && !is_file;
    if (file)
        fclose(file);
    *ret_text = text;
    if (!failed && !nothing && length <= LONGEST_FILE_BYTES && !memchr(text, '\0', length))
        return 0;
    snprintf(ret_message, SETTINGS_MESSAGE_BYTES, "config: \"%s\": %s", path,
             failed                        ? strerror(reason)
             : nothing                     ? "it is no regular file, and nothing comes from it"
             : length > LONGEST_FILE_BYTES ? "expected at most 1 MiB"
                                           : "a NUL byte is no text");
    return -1;
}

/* cyaml hands out C strings, which end at a NUL ("\0", "\u0000", binary data): what stands behind it would be lost in
 * silence. The line of the first such
 * scalar, from 1, and the scalar before it, which is its key; 0: there is none. Text that is no YAML is left to cyaml. */
static int find_nul(const char *text, char ret_near[64])
{
    yaml_parser_t parser;
    yaml_event_t event;
    int line = 0;
    bool more = yaml_parser_initialize(&parser);
    *ret_near = '\0';
    if (!more)
        return 0;
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, strlen(text));
    while (more && !line && yaml_parser_parse(&parser, &event)) {
        more = event.type != YAML_STREAM_END_EVENT;
        if (event.type == YAML_SCALAR_EVENT) {
            const char *value = (const char *)event.data.scalar.value;
            if (memchr(value, '\0', event.data.scalar.length))
                line = (int)event.start_mark.line + 1;
            else
                snprintf(ret_near, 64, "%.60s", value);
        }
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return line;
}

static int refuse_nul(const char *path, const char *text, char *ret_message)
{
    char near[64];
    int line = find_nul(text, near);
    if (line)
        snprintf(ret_message, SETTINGS_MESSAGE_BYTES, "%s: %.300s line %d: a NUL is no text", near[0] ? near : "config",
                 path, line);
    return line ? -1 : 0;
}

static char **copy_texts(char **texts, unsigned count)
{
    char **copy = xcalloc(count + 1, sizeof(*copy));
    for (unsigned i = 0; i < count; i++)
        copy[i] = xstrdup(texts[i] ? texts[i] : "");
    return copy;
}

static void copy_external(const struct raw_external *from, struct raw_external *to)
{
    *to = (struct raw_external){.command_count = from->command_count, .files_count = from->files_count};
    for (size_t i = 0; i < EXTERNAL_FIELD_COUNT; i++) {
        const char *text;
        if (external_fields[i].count_offset)
            continue;
        memcpy(&text, (const char *)from + external_fields[i].offset, sizeof(text));
        text = text ? xstrdup(text) : NULL;
        memcpy((char *)to + external_fields[i].offset, &text, sizeof(text));
    }
    to->command = copy_texts(from->command, from->command_count);
    to->files = copy_texts(from->files, from->files_count);
}

/* Those of a source of higher priority stay. */
static void take_externals(const char *source, const struct file_values *values, struct raw_settings *raw)
{
    if (raw->externals_source || !values->externals_count)
        return;
    raw->externals_source = xstrdup(source);
    raw->externals = xcalloc(values->externals_count, sizeof(*raw->externals));
    for (; raw->external_count < values->externals_count; raw->external_count++)
        copy_external(&values->externals[raw->external_count], &raw->externals[raw->external_count]);
}

static void take_values(const char *path, const char *text, struct file_values *values, struct raw_settings *raw)
{
    for (size_t row = 0; row < SETTING_COUNT; row++) {
        if (!values->values[row] || raw->settings[row].value)
            continue;
        raw->settings[row] =
            (struct raw_setting){xstrdup(values->values[row]), source_of(path, text, setting_rows[row].key)};
    }
    take_externals(path, values, raw);
    if (raw->engines_source || !values->engines_count)
        return;
    raw->engines_source = xstrdup(path);
    raw->engines = xcalloc(values->engines_count, sizeof(*raw->engines));
    for (; raw->engine_count < values->engines_count; raw->engine_count++)
        for (size_t i = 0; i < ENGINE_FIELD_COUNT; i++) {
            size_t offset = engine_fields[i].offset;
            char *value = *(char **)(void *)((char *)&values->engines[raw->engine_count] + offset);
            *(char **)(void *)((char *)&raw->engines[raw->engine_count] + offset) = value ? xstrdup(value) : NULL;
        }
}

/* path: of the file, or another source. */
static int read_values(const char *path, const char *text, struct raw_settings *raw, char *ret_message)
{
    _cleanup_free_ struct schema *schema = xcalloc(1, sizeof(*schema));
    char said[SETTINGS_MESSAGE_BYTES] = "";
    const cyaml_config_t config = {
        .log_fn = keep_first, .log_ctx = said, .mem_fn = cyaml_mem, .log_level = CYAML_LOG_ERROR};
    cyaml_data_t *data = NULL;

    if (refuse_nul(path, text, ret_message) < 0)
        return -1;
    make_schema(schema);
    cyaml_err_t error = cyaml_load_data((const uint8_t *)text, strlen(text), &config, &schema->value, &data, NULL);
    if (error != CYAML_OK) {
        explain(path, text, said, cyaml_strerror(error), ret_message);
        return -1;
    }
    if (data) /* an empty file has none */
        take_values(path, text, data, raw);
    cyaml_free(&config, &schema->value, data, 0);
    return 0;
}

int settings_read_file(const char *path, struct raw_settings *raw, char ret_message[SETTINGS_MESSAGE_BYTES])
{
    _cleanup_free_ char *text = NULL;

    return read_text(path, &text, ret_message) < 0 ? -1 : read_values(path, text, raw, ret_message);
}

int settings_read_externals(const char *list, const char *source, struct raw_settings *raw,
                            char ret_message[SETTINGS_MESSAGE_BYTES])
{
    /* A line feed would begin another setting. */
    if (*list != '[' || strchr(list, '\n')) {
        snprintf(ret_message, SETTINGS_MESSAGE_BYTES,
                 "externals: \"%.300s\" from %s: expected a list as JSON, in one line", list, source);
        return -1;
    }
    _cleanup_free_ char *text = xasprintf("externals: %s\n", list);
    return read_values(source, text, raw, ret_message);
}
