#include "tests/unit/verifiers/scripted_slot.h"

#include <stdio.h>
#include <stdlib.h>

#include "server/base/cleanup.h"
#include "tests/unit/verifiers/grade.h"

#define TEXTS (SANDBOX_FILES_MAX + 2)

const char *const sandbox_language_names[SANDBOX_LANGUAGES + 1] = {"python", "sh", "c", "cpp", "command", NULL};

static const struct scripted_result *script;
static size_t script_count;
static size_t taken;
static bool lost;
static struct kept_program {
    struct sandbox_program program;
    char *texts[TEXTS];
    char *names[TEXTS];
} kept[2];

void script_results(const struct scripted_result *results, size_t count)
{
    script = results;
    script_count = count;
    taken = 0;
}

void script_lost_slot(void)
{
    lost = true;
}

size_t script_programs(void)
{
    return taken;
}

const char *script_text(size_t program, const char *name)
{
    for (size_t i = 0; i < TEXTS; i++)
        if (kept[program].names[i] && strcmp(kept[program].names[i], name) == 0)
            return kept[program].texts[i];
    return NULL;
}

const struct sandbox_program *script_program(size_t program)
{
    return &kept[program].program;
}

static void keep_text(struct kept_program *to, size_t index, const char *name, struct text text)
{
    to->names[index] = xstrdup(name);
    to->texts[index] = xstrndup(text.data ? text.data : "", text.length_bytes);
}

static void keep(struct kept_program *to, const struct sandbox_program *program)
{
    for (size_t i = 0; i < TEXTS; i++) {
        free(to->names[i]);
        free(to->texts[i]);
        to->names[i] = to->texts[i] = NULL;
    }
    to->program = *program;
    keep_text(to, 0, "source", program->source);
    keep_text(to, 1, "input", program->input);
    for (size_t i = 0; i < program->file_count; i++)
        keep_text(to, 2 + i, program->files[i].name, program->files[i].bytes);
}

static void take_result(struct sandbox_result *ret_result)
{
    const struct scripted_result *from = &script[taken];
    const char *texts[] = {from->output, from->error, from->records};
    struct text *targets[] = {&ret_result->standard_output, &ret_result->standard_error, &ret_result->records};

    if (taken >= script_count)
        fail_msg("program %zu was run, and the script has %zu", taken, script_count);
    taken++;
    *ret_result = (struct sandbox_result){.outcome = from->outcome,
                                          .exit_code = from->signal ? -1 : from->exit_code,
                                          .signal = from->signal,
                                          .wall_us = from->wall_ms * 1000,
                                          .began = from->outcome != SANDBOX_BROKEN};
    snprintf(ret_result->message, sizeof ret_result->message, "%s", "the script says so");
    buffer_init(&ret_result->bytes, 0);
    for (size_t i = 0; i < ARRAY_LENGTH(texts); i++)
        *targets[i] = text_of(texts[i] ? texts[i] : "");
}

int sandbox_run(int fd, const struct sandbox_program *programs, size_t count, struct sandbox_result *ret_results)
{
    (void)fd;
    for (size_t i = 0; i < count; i++) {
        ret_results[i] = (struct sandbox_result){.exit_code = -1};
        keep(&kept[i], &programs[i]);
    }
    if (lost) {
        lost = false;
        return -1;
    }
    for (size_t i = 0; i < count; i++)
        take_result(&ret_results[i]);
    return 0;
}

void sandbox_result_finish(struct sandbox_result *result)
{
    buffer_finish(&result->bytes);
}
