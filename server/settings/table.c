#include "server/settings/table.h"

#include "server/base/cleanup.h"
#include "server/base/clock.h"
#include "server/base/words.h"

#include <string.h>

#define DAYS(days) ((days)*INT64_C(86400) * US_PER_S)
#define GIB(number) ((number)*INT64_C(1073741824))
#define RANGE(least, most) .minimum = (least), .maximum = (most)
#define CHOICES(...)                                                                                                   \
    .choices = (const char *const[])                                                                                   \
    {                                                                                                                  \
        __VA_ARGS__, NULL                                                                                              \
    }
#define WORDS(LIST)                                                                                                    \
    .choices = (const char *const[])                                                                                   \
    {                                                                                                                  \
        LIST(WORD_TEXT) NULL                                                                                           \
    }
#define ANY .choices = NULL

#define SETTING(kind, member, key, standard, limits, help)                                                             \
    {key, SETTING_##kind, offsetof(struct settings, member), standard, help, limits},
#define GROUP(name, help)
const struct setting_row setting_rows[SETTING_COUNT] = {
#include "server/settings/keys.def"
};
#undef SETTING
#undef GROUP

#define SETTING(...)
#define GROUP(name, help) {name, help},
static const struct {
    const char *name;
    const char *help;
} groups[] = {
#include "server/settings/keys.def"
};
#undef SETTING
#undef GROUP

const char *setting_group_help(const char *name, size_t name_bytes)
{
    for (size_t i = 0; i < ARRAY_LENGTH(groups); i++)
        if (strlen(groups[i].name) == name_bytes && memcmp(groups[i].name, name, name_bytes) == 0)
            return groups[i].help;
    return NULL;
}

#define FIELD_TEXT(member) #member, offsetof(struct raw_external, member), 0
#define FIELD_TEXTS(member)                                                                                            \
#member, offsetof(struct raw_external, member), offsetof(struct raw_external, member##_count)
const struct external_field external_fields[EXTERNAL_FIELD_COUNT] = {
    {FIELD_TEXT(name), "style", "required; a request names it"},
    {FIELD_TEXTS(command), "[/usr/bin/python3, style.py]", "run in a sandbox for each verdict; or a url"},
    {FIELD_TEXT(url), "http://127.0.0.1:9000/style", "asked for each verdict; or a command"},
    {FIELD_TEXTS(files), "[/opt/rewards/style.py]", "put beside it; at most 4, 256KiB in all"},
    {FIELD_TEXT(scope), "rollout", "group: all members of a group at once"},
    {FIELD_TEXT(sandbox), "full", "none: as a process of the service, without walls"},
    {FIELD_TEXT(timeout), "10s", "of one verdict, repeats of a url's included"},
    {FIELD_TEXT(memory), "512MiB", "of all processes of a command"},
    {FIELD_TEXT(in_flight), "64", "requests that a url gets at once"},
    {FIELD_TEXT(token_file), "FILE", "holds the key of a url"},
    {FIELD_TEXT(venv), "/opt/rewards/venv", "a virtual environment: its bin is first in PATH"},
    {FIELD_TEXT(persistent), "false", "true: one process serves many verdicts, a line each"},
};
#undef FIELD_TEXT
#undef FIELD_TEXTS

const struct engine_field engine_fields[ENGINE_FIELD_COUNT] = {
    {"url", offsetof(struct raw_engine, url), "http://127.0.0.1:8000", "required"},
    {"name", offsetof(struct raw_engine, name), "e1", "left out: e1, e2, …"},
    {"pool", offsetof(struct raw_engine, pool), "default", "the engine of a batch names it"},
    {"kind", offsetof(struct raw_engine, kind), "vllm", "left out: found by probing; scorer: only judges ask it"},
    {"model", offsetof(struct raw_engine, model), "NAME", "left out: the engine's first"},
    {"token_file", offsetof(struct raw_engine, token_file), "FILE", "holds the engine's key"},
    {"in_flight", offsetof(struct raw_engine, in_flight), "256", "requests at once; auto: found by trying"},
    {"shared", offsetof(struct raw_engine, shared), "false", "true: several runs at the same time"},
};
