/* engines: the engines from the settings and from PUT, their probes, and the replies and messages about them.
 *
 * The settings file names engines, and so does PUT /v1/engines/{name}; the latter are on record. If both use a name,
 * the file wins, and the row on record waits until the file no longer has it. Engines from the file can only be drained
 * at run time; that is on record, too. Loop thread unless marked otherwise. */
#ifndef SERVER_ENGINES_ENGINES_H
#define SERVER_ENGINES_ENGINES_H

#include "client/pool/pool.h"
#include "client/transport/transport.h"
#include "server/base/json_write.h"
#include "server/runtime/loop.h"
#include "server/runtime/workers.h"
#include "server/settings/settings.h"
#include "server/store/store.h"

#include <uthash.h>

#define ENGINE_TOKEN_NAME_MAX 64
#define IN_FLIGHT_MAX 65536

/* The settings given at run time; on record, or about to be. */
struct known_engine {
    char *name;
    char *url;  /* NULL: one of the settings file, of which only `draining` was said */
    char *kind; /* NULL in all of these: not said */
    char *model;
    char *pool;
    char *token_name;
    char *token;       /* what the file or variable of that name held; never written anywhere */
    int64_t in_flight; /* -1: not said; 0: learned */
    bool shared;
    bool draining;
    bool changing; /* a change is on its way into the store */
    UT_hash_handle hh;
};

/* Parts of the service that the room uses; all of them outlive the engines. */
struct engines_options {
    const struct settings *settings;
    struct loop *loop;
    struct workers *workers;
    struct store *store;
    char **token; /* the service's own key, which is read again with the settings */
    int argc;     /* as the settings were read, and are read again */
    char **argv;
};

struct engines {
    struct engines_options uses;
    struct pool *pool;
    struct transport *transport; /* NULL until engines_connect() */
    void (*changed)(void *arg);  /* NULL: no subscriber */
    void *changed_arg;
    struct probe_flight *probes; /* under way */
    struct loop_timer probe_timer;
    struct known_engine *known;                  /* by name */
    size_t creating;                             /* new ones on their way into the store */
    int64_t settings_read_at_us;                 /* UTC: when the settings were read last */
    int64_t settings_tried_at_us;                /* UTC: likewise, or tried to be */
    char settings_error[SETTINGS_MESSAGE_BYTES]; /* why the last try failed; "": it did not */
    struct reload *reload;                       /* one that is under way */
    const struct store_settings *in_force;       /* never NULL; its texts live as long as the engines */
    struct settings_text *settings_texts;        /* all that were in force since the start */
    bool reload_again;
};

/* With the pool, from the settings and the record. NULL with a message. */
struct engines *engines_create(const struct engines_options *options, char ret_message[SETTINGS_MESSAGE_BYTES]);
void engines_destroy(struct engines *engines); /* after the transport; NULL is fine */
/* Probes can be sent from now on. */
void engines_connect(struct engines *engines, struct transport *transport);
/* `changed` is called after an engine came, went, or was probed: work that waits for engines may continue. One subscriber. */
void engines_subscribe(struct engines *engines, void (*changed)(void *arg), void *arg);

struct known_engine *engines_known(struct engines *engines, struct text name); /* NULL: nothing was said of it */
struct known_engine *known_engine_create(struct text name);
struct known_engine *known_engine_copy(const struct known_engine *known);
void known_engine_destroy(struct known_engine *known);
/* Replaces the known engine of the same name by `known` (taken), and brings the pool in line with it. */
void engines_put(struct engines *engines, struct known_engine *known);
/* Forgets the known engine of that name. The pool removes its engine; one from the file stays and is not drained. */
void engines_forget(struct engines *engines, struct text name);
/* Brings the pool in line with the present settings: engines come, change and go; no request in flight is cut off. */
void engines_follow_settings(struct engines *engines, const struct settings *settings);

/* engines/token.c, any thread: the key named `name`, from the folder of the settings or from ROLLOUTD_TOKEN_<name>. 0,
 * or -1 with a sentence that holds neither the key nor a path. */
int engine_token_read(const struct settings *settings, const char *name, char **ret_token, char ret_message[256]);
bool engine_token_name_is_sane(struct text name);

/* engines/probes.c: sends the probes that are due, and comes back by itself when others are. */
void engines_probe(struct engines *engines);
void engines_forget_probes(struct engines *engines); /* at the end: their transfers are gone */
/* One line in the log when an engine comes or goes. */
void engine_log_change(const struct engine *engine, enum engine_state before);

/* engines/show.c. One object with everything; `now` as both clocks say. */
void engine_write(struct json_write *json, const struct engines *engines, const struct engine *engine);
/* The reason of its state and the next step, as one sentence without a full stop; "" if all is well. */
#define ENGINE_SENTENCE_BYTES 512
void engine_say_why(const struct engines *engines, const struct engine *engine, char ret_why[ENGINE_SENTENCE_BYTES]);
/* "no engine of pool "x" can be used: e1 is down (…)": false if one can. pauses: one that pauses cannot. */
bool pool_say_why(const struct engines *engines, const struct named_pool *named, bool pauses,
                  char ret_why[ENGINE_SENTENCE_BYTES]);
void engines_write_metrics(const struct engines *engines, struct buffer *out);

/* in_force.c: the settings in force from now on, with the engines of `with_engines`. */
void engines_note_settings(struct engines *engines, const struct settings *with_engines);
void engines_forget_settings(struct engines *engines); /* at the end: no operation names them any more */

/* reload.c: reads settings and keys again, on a worker; an invalid file is ignored and logged. */
void engines_reload(struct engines *engines);
/* One that is under way; when the workers have ended. */
void engines_reload_forget(struct engines *engines);

#endif
