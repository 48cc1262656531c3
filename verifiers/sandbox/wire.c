#include "verifiers/sandbox/wire_private.h"

#include "server/base/cleanup.h"

#include <string.h>

static size_t string_bytes(const char *string)
{
    return string ? strlen(string) + 1 : 0;
}

static bool is_name(const char *name)
{
    return name && name[0] && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static uint32_t bounded(size_t size_bytes)
{
    return size_bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)size_bytes;
}

const char *wire_describe(const struct sandbox_program *program, struct wire_program *ret_wire)
{
    *ret_wire = (struct wire_program){
        .language = program->language,
        .flags = (program->records ? WIRE_RECORDS : 0) | (program->include_testlib ? WIRE_TESTLIB : 0) |
                 (program->bare ? WIRE_BARE : 0) | (program->stay == SANDBOX_STAYS ? WIRE_STAYS : 0) |
                 (program->stay == SANDBOX_LEAVES ? WIRE_LEAVES : 0),
        .argument_count = bounded(program->argument_count),
        .file_count = bounded(program->file_count),
        .venv_bytes = bounded(string_bytes(program->venv)),
        .limits = program->limits,
        .source_bytes = program->source.length_bytes,
        .input_bytes = program->input.length_bytes,
    };
    for (size_t i = 0; i < program->argument_count && i < SANDBOX_ARGUMENTS_MAX; i++)
        ret_wire->argument_bytes[i] = bounded(string_bytes(program->arguments[i]));
    for (size_t i = 0; i < program->file_count && i < SANDBOX_FILES_MAX; i++) {
        ret_wire->name_bytes[i] = bounded(string_bytes(program->files[i].name));
        ret_wire->file_bytes[i] = program->files[i].bytes.length_bytes;
        if (!is_name(program->files[i].name))
            return "the name of a file is none";
    }
    return wire_check_program(ret_wire);
}

static const char *check_limits(const struct sandbox_limits *limits)
{
    const struct {
        int64_t value, least, most;
        const char *wrong;
    } bounds[] = {
        {limits->wall_ms, 1, 86400000, "wall_ms is out of its bounds"},
        {limits->cpu_ms, 1, 86400000, "cpu_ms is out of its bounds"},
        {limits->memory_bytes, 1 << 20, INT64_C(1) << 40, "memory_bytes is out of its bounds"},
        {limits->output_bytes, 0, SANDBOX_OUTPUT_LIMIT_BYTES, "output_bytes is out of its bounds"},
        {limits->disk_bytes, 4096, INT64_C(1) << 40, "disk_bytes is out of its bounds"},
        {limits->processes, 1, 1 << 16, "processes is out of its bounds"},
    };

    for (size_t i = 0; i < ARRAY_LENGTH(bounds); i++)
        if (bounds[i].value < bounds[i].least || bounds[i].value > bounds[i].most)
            return bounds[i].wrong;
    return NULL;
}

static const char *check_arguments(const struct wire_program *wire)
{
    if (wire->argument_count > SANDBOX_ARGUMENTS_MAX)
        return "too many arguments";
    if (wire->language == SANDBOX_COMMAND && wire->argument_count == 0)
        return "a command without a word";
    for (size_t i = 0; i < wire->argument_count; i++)
        if (wire->argument_bytes[i] == 0 || wire->argument_bytes[i] > SANDBOX_ARGUMENT_LIMIT_BYTES + 1)
            return "an argument is absent or too long";
    return NULL;
}

static const char *check_files(const struct wire_program *wire)
{
    if (wire->file_count > SANDBOX_FILES_MAX)
        return "too many files";
    for (size_t i = 0; i < wire->file_count; i++) {
        if (wire->name_bytes[i] < 2 || wire->name_bytes[i] > SANDBOX_NAME_LIMIT_BYTES + 1)
            return "the name of a file is absent or too long";
        if (wire->file_bytes[i] > SANDBOX_TEXT_LIMIT_BYTES)
            return "a file is too long";
    }
    return NULL;
}

const char *wire_check_program(const struct wire_program *wire)
{
    const char *wrong = check_limits(&wire->limits);

    if (wire->language >= SANDBOX_LANGUAGES)
        return "no language";
    if (wire->flags & ~(WIRE_RECORDS | WIRE_TESTLIB | WIRE_BARE | WIRE_STAYS | WIRE_LEAVES))
        return "no flag";
    if (wire->flags & WIRE_STAYS && wire->flags & WIRE_LEAVES)
        return "a program stays or leaves";
    if (wire->source_bytes > SANDBOX_TEXT_LIMIT_BYTES || wire->input_bytes > SANDBOX_TEXT_LIMIT_BYTES)
        return "the source or the input is too long";
    if (wire->venv_bytes > SANDBOX_PATH_BYTES)
        return "the path of a virtual environment is too long";
    if (!wrong)
        wrong = check_arguments(wire);
    return wrong ? wrong : check_files(wire);
}

size_t wire_program_text_bytes(const struct wire_program *wire)
{
    size_t sum_bytes = wire->source_bytes + wire->input_bytes + wire->venv_bytes;

    for (size_t i = 0; i < wire->argument_count; i++)
        sum_bytes += wire->argument_bytes[i];
    for (size_t i = 0; i < wire->file_count; i++)
        sum_bytes += wire->name_bytes[i] + wire->file_bytes[i];
    return sum_bytes;
}

static struct text take(const char **texts, size_t length_bytes)
{
    struct text text = {*texts, length_bytes};

    *texts += length_bytes;
    return text;
}

/* NULL: it has another NUL, or none. */
static const char *take_string(const char **texts, size_t size_bytes)
{
    struct text text = take(texts, size_bytes);

    return memchr(text.data, '\0', size_bytes) == text.data + size_bytes - 1 ? text.data : NULL;
}

bool wire_read_program(const struct wire_program *wire, const char *texts, struct sandbox_program *ret_program)
{
    bool good = true;

    *ret_program = (struct sandbox_program){
        .language = (enum sandbox_language)wire->language,
        .argument_count = wire->argument_count,
        .file_count = wire->file_count,
        .limits = wire->limits,
        .records = wire->flags & WIRE_RECORDS,
        .include_testlib = wire->flags & WIRE_TESTLIB,
        .bare = wire->flags & WIRE_BARE,
        .stay = wire->flags & WIRE_LEAVES  ? SANDBOX_LEAVES
                : wire->flags & WIRE_STAYS ? SANDBOX_STAYS
                                           : SANDBOX_ONCE,
    };
    ret_program->source = take(&texts, wire->source_bytes);
    ret_program->input = take(&texts, wire->input_bytes);
    if (wire->venv_bytes) {
        ret_program->venv = take_string(&texts, wire->venv_bytes);
        good = ret_program->venv;
    }
    for (size_t i = 0; i < wire->argument_count; i++) {
        ret_program->arguments[i] = take_string(&texts, wire->argument_bytes[i]);
        good = good && ret_program->arguments[i];
    }
    for (size_t i = 0; i < wire->file_count; i++) {
        ret_program->files[i].name = take_string(&texts, wire->name_bytes[i]);
        ret_program->files[i].bytes = take(&texts, wire->file_bytes[i]);
        good = good && is_name(ret_program->files[i].name);
    }
    return good;
}

bool wire_check_result(const struct wire_result *wire, const struct sandbox_limits *limits)
{
    size_t limit_bytes = (size_t)limits->output_bytes;
    size_t error_limit_bytes = limit_bytes;

    if (wire->outcome == SANDBOX_NOT_COMPILED && error_limit_bytes < WIRE_COMPILER_TEXT_BYTES)
        error_limit_bytes = WIRE_COMPILER_TEXT_BYTES;
    return wire->outcome <= SANDBOX_ANSWERED && wire->began <= 1 && wire->exit_code >= -1 && wire->exit_code <= 255 &&
           wire->signal >= 0 && wire->signal <= 127 && wire->wall_us >= 0 && wire->cpu_us >= 0 &&
           wire->peak_bytes >= 0 && wire->output_bytes <= limit_bytes && wire->error_bytes <= error_limit_bytes &&
           wire->records_bytes <= limit_bytes && memchr(wire->message, '\0', sizeof wire->message);
}
