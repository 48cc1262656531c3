/* The references of a task set on record. */
#include "server/commands/references_private.h"

#include <stdio.h>
#include <string.h>

#include "server/base/cleanup.h"
#include "server/settings/settings.h"
#include "server/store/store.h"

#define PAGE_TASKS 200
#define PAGE_BYTES ((size_t)8 << 20)

static void check_task(const struct references_arguments *arguments, struct references_counts *counts,
                       const struct store_task *task)
{
    _cleanup_free_ char *name = xstrndup(task->task.data, task->task.length_bytes);
    size_t held_bytes;

    if (!task->reference.data) {
        references_say_broken(arguments, counts, (size_t)task->line, name, "missing_field", "there is no reference");
        return;
    }
    json_memory_begin();
    json_t *reference =
        json_loadb(task->reference.data, task->reference.length_bytes, JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);
    json_memory_end(&held_bytes);
    if (reference) {
        counts->tasks++;
        references_check_one(arguments, counts, (size_t)task->line, name, reference);
    } else {
        references_say_broken(arguments, counts, (size_t)task->line, name, "invalid_json",
                              "the reference on record is no JSON");
    }
    json_decref(reference);
    json_memory_give(held_bytes);
}

static int check_page(const struct references_arguments *arguments, struct references_counts *counts,
                      struct store_reader *reader, char cursor[64])
{
    static const struct store_page_limits limits = {.rows = PAGE_TASKS, .scanned = PAGE_TASKS, .bytes = PAGE_BYTES};
    _cleanup_(store_tasks_finish) struct store_tasks page = {0};
    enum store_status status = store_list_tasks(reader, text_of(arguments->set), TEXT_NONE,
                                                cursor[0] ? text_of(cursor) : TEXT_NONE, &limits, &page);
    char message[COMMAND_MESSAGE_BYTES];

    if (status == STORE_NOT_FOUND) {
        snprintf(message, sizeof message, "--set: there is no task set \"%.100s\" on record", arguments->set);
        return command_refuse(REFERENCES_COMMAND, message);
    }
    if (status != STORE_OK)
        return command_refuse(REFERENCES_COMMAND, "the database cannot be read");
    for (size_t i = 0; i < page.count; i++)
        check_task(arguments, counts, &page.tasks[i]);
    memcpy(cursor, page.next, sizeof page.next);
    return 0;
}

static int check_pages(const struct references_arguments *arguments, struct references_counts *counts,
                       struct store_reader *reader)
{
    char cursor[64] = "";
    int result;

    do {
        result = check_page(arguments, counts, reader, cursor);
    } while (result == 0 && cursor[0]);
    return result;
}

int references_check_set(const struct references_arguments *arguments, struct references_counts *counts)
{
    _cleanup_free_ char *database = NULL;
    char message[STORE_MESSAGE_BYTES > SETTINGS_MESSAGE_BYTES ? STORE_MESSAGE_BYTES : SETTINGS_MESSAGE_BYTES];

    if (settings_find_database(arguments->config, arguments->database, &database, message) < 0)
        return command_refuse(REFERENCES_COMMAND, message);
    struct store_reader *reader = store_reader_open(database, message);
    if (!reader)
        return command_refuse(REFERENCES_COMMAND, message);
    int result = check_pages(arguments, counts, reader);
    store_reader_destroy(reader);
    return result;
}
