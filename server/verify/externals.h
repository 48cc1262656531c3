/* externals: the reward functions that the settings name, as verifiers ask for them.
 *
 * externals_setup() before threads; then read-only, any thread. */
#ifndef SERVER_VERIFY_EXTERNALS_H
#define SERVER_VERIFY_EXTERNALS_H

#include "server/base/hash.h"
#include "server/base/json_write.h"
#include "server/base/nearest.h"

struct external_settings;
struct sandbox_settings;
struct settings;

#define EXTERNAL_VERSION_BYTES (SHA256_HEX_BYTES + 8)

struct external {
    const char *name;
    const struct external_settings *settings;
    char version[EXTERNAL_VERSION_BYTES]; /* "sha256:…" over the command and its files, or the URL */
    char *entry_json;                     /* what the grader gets of it (graders/external.c) */
};

void externals_setup(const struct settings *settings);
void externals_finish(void);
/* Tells slots beforehand: the commands that run without a sandbox, and
 * the virtual environments of the others. */
void externals_tell_slots(const struct settings *settings, struct sandbox_settings *sandbox);
/* NULL: there is none of this name. */
const struct external *externals_find(struct text name);
/* Advice for a name that no external has. */
void externals_advise(struct text name, char ret_advice[ADVICE_BYTES]);
/* [{"name","version","scope","sandbox","persistent","timeout_s"}] */
void externals_write(struct json_write *json);

#endif
