/* SIGHUP: the settings' engines and all keys are read again. On a worker, because files may be slow. An
 * invalid file is ignored, logged and shown in GET /v1/engines. */
#include "server/engines/engines.h"

#include "server/base/clock.h"
#include "server/base/log.h"

#include <stdio.h>

struct reload {
    struct job job; /* first */
    struct engines *engines;
    int argc;
    char **argv;
    struct settings settings;
    bool read;
    char message[SETTINGS_MESSAGE_BYTES];
    struct known_engine **keyed; /* copies of those that have a key, which is read again */
    size_t keyed_count;
};

static void reload_destroy(struct reload *reload)
{
    settings_finish(&reload->settings);
    for (size_t i = 0; i < reload->keyed_count; i++)
        known_engine_destroy(reload->keyed[i]);
    free(reload->keyed);
    free(reload);
}

static void read_again(struct job *job, struct store_reader *reader)
{
    (void)reader;
    struct reload *reload = (struct reload *)job;
    struct settings_run run;
    reload->read = settings_load(reload->argc, reload->argv, &reload->settings, &run, reload->message) == 0;
    for (size_t i = 0; i < reload->keyed_count; i++) {
        struct known_engine *known = reload->keyed[i];
        char message[256];
        free(known->token);
        if (engine_token_read(reload->engines->uses.settings, known->token_name, &known->token, message) < 0)
            log_event(LOG_LEVEL_ERROR, "the key of an engine cannot be read", "engine", known->name, "why", message,
                      NULL);
    }
}

/* Unless it was changed meanwhile. A key that cannot be read now leaves the old one in use. */
static void take_keys(struct engines *engines, struct reload *reload)
{
    for (size_t i = 0; i < reload->keyed_count; i++) {
        struct known_engine *read = reload->keyed[i];
        struct known_engine *known = engines_known(engines, text_of(read->name));
        if (!known || !known->token_name || strcmp(known->token_name, read->token_name) != 0 || !read->token)
            continue;
        free(known->token);
        known->token = TAKE_PTR(read->token);
    }
}

/* The service's own key may change; whether it wants one may not. */
static void take_service_key(char **token, struct settings *settings)
{
    if (!*token || !settings->token || strcmp(*token, settings->token) == 0)
        return;
    free(*token);
    *token = TAKE_PTR(settings->token);
}

static void have_read(struct job *job)
{
    struct reload *reload = (struct reload *)job;
    struct engines *engines = reload->engines;
    bool again = engines->reload_again;

    engines->reload = NULL;
    engines->reload_again = false;
    engines->settings_tried_at_us = clock_utc_us();
    snprintf(engines->settings_error, sizeof(engines->settings_error), "%s", reload->read ? "" : reload->message);
    take_keys(engines, reload);
    if (reload->read) {
        engines->settings_read_at_us = engines->settings_tried_at_us;
        take_service_key(engines->uses.token, &reload->settings);
        log_event(LOG_LEVEL_INFO, "settings read again", NULL);
        engines_note_settings(engines, &reload->settings);
        engines_follow_settings(engines, &reload->settings);
    } else {
        log_event(LOG_LEVEL_ERROR, "settings not read again, all stays as it was", "why", reload->message, NULL);
    }
    reload_destroy(reload);
    if (again)
        engines_reload(engines);
}

static void copy_keyed(struct engines *engines, struct reload *reload)
{
    reload->keyed = xcalloc(HASH_COUNT(engines->known) + 1, sizeof(struct known_engine *));
    for (const struct known_engine *known = engines->known; known; known = known->hh.next)
        if (known->token_name)
            reload->keyed[reload->keyed_count++] = known_engine_copy(known);
}

void engines_reload(struct engines *engines)
{
    if (engines->reload) { /* it may have read before the change that this signal is about */
        engines->reload_again = true;
        return;
    }
    struct reload *reload = xcalloc(1, sizeof(*reload));
    reload->engines = engines;
    reload->argc = engines->uses.argc;
    reload->argv = engines->uses.argv;
    reload->job.run = read_again;
    reload->job.done = have_read;
    copy_keyed(engines, reload);
    engines->reload = reload;
    workers_submit_reserved(engines->uses.workers, &reload->job);
}

void engines_reload_forget(struct engines *engines)
{
    if (engines->reload)
        reload_destroy(TAKE_PTR(engines->reload));
}
