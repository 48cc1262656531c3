/* The commands that may run without a sandbox. The client of a slot reads hostile text: its request is not believed, but
 * compared with the settings of the time when the slot was made. */
#include "verifiers/sandbox/slot.h"

#include <stdio.h>
#include <string.h>

/* With its length, so that no two lists of texts are the same bytes. */
static void add(struct sha256 *sha256, struct text text)
{
    char length[24];

    sha256_add(sha256, length, (size_t)snprintf(length, sizeof length, "%zu:", text.length_bytes));
    sha256_add(sha256, text.data, text.length_bytes);
}

void sandbox_command_digest(const struct sandbox_program *command, uint8_t ret_digest[SHA256_BYTES])
{
    struct sha256 *sha256 = sha256_create();

    for (size_t i = 0; i < command->argument_count; i++)
        add(sha256, text_of(command->arguments[i]));
    add(sha256, TEXT_LITERAL("files"));
    for (size_t i = 0; i < command->file_count; i++) {
        add(sha256, text_of(command->files[i].name));
        add(sha256, command->files[i].bytes);
    }
    if (command->venv)
        add(sha256, text_of(command->venv));
    sha256_finish(sha256, ret_digest);
}

void sandbox_allow_bare(struct sandbox_settings *settings, const struct sandbox_program *command)
{
    if (settings->bare_count < SANDBOX_BARE_MAX)
        sandbox_command_digest(command, settings->bare[settings->bare_count++]);
}

bool sandbox_may_be_bare(const struct sandbox_settings *settings, const struct sandbox_program *program)
{
    uint8_t asked[SHA256_BYTES];

    if (program->language != SANDBOX_COMMAND)
        return false;
    sandbox_command_digest(program, asked);
    for (size_t i = 0; i < settings->bare_count && i < SANDBOX_BARE_MAX; i++)
        if (memcmp(settings->bare[i], asked, sizeof asked) == 0)
            return true;
    return false;
}
