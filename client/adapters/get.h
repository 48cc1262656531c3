/* get: the facts in an engine's reply to a GET, before they are believed. Shared by the adapters and the probe.
 *
 * Each kind has a list of GETs in its row (struct engine_adapter); the probe sends them, cheapest evidence first.
 * Pure; any thread; replies are hostile input. */
#ifndef CLIENT_ADAPTERS_GET_H
#define CLIENT_ADAPTERS_GET_H

#include "server/base/buffer.h"
#include "server/base/json_scan.h"
#include "server/base/text.h"

#include <stdbool.h>
#include <stdint.h>

struct engine_findings {
    bool found;        /* the reply has the form of this kind of engine */
    bool is_ambiguous; /* and members that this kind does not write there: another service may have written it */
    struct buffer model;
    struct buffer models; /* all of them, each with a line feed behind it */
    struct buffer version;
    struct buffer weight_version;
    struct buffer chat_template;
    struct text wanted; /* the model that the settings name, or TEXT_NONE; stays the caller's */
    bool lists_models;
    bool serves_wanted;
    int64_t context_tokens; /* 0: not told */
    int64_t slots;          /* 0: not told */
};

struct engine_get {
    const char *path;
    void (*read)(struct engine_findings *findings, struct json_scan *scan); /* consumes an object: the reply's body */
    bool is_last_resort;   /* asked only while no reply has shown the kind */
    bool is_weak;          /* shows an engine only where no other reply speaks against one */
    bool may_be_forbidden; /* some keys may sample and not read this: a 403 with an error object shows the kind, too */
};

void engine_findings_init(struct engine_findings *findings, struct text wanted, size_t maximum_bytes);
void engine_findings_finish(struct engine_findings *findings);

/* GETs of several kinds. */
void read_models(struct engine_findings *findings, struct json_scan *scan);
void read_health(struct engine_findings *findings, struct json_scan *scan);
#define GET_MODELS                                                                                                     \
    {                                                                                                                  \
        .path = "/v1/models", .read = read_models, .may_be_forbidden = true                                            \
    }
#define GET_MODELS_AS_LAST_RESORT                                                                                      \
    {                                                                                                                  \
        .path = "/v1/models", .read = read_models, .may_be_forbidden = true, .is_last_resort = true                    \
    }
#define GET_HEALTH                                                                                                     \
    {                                                                                                                  \
        .path = "/health", .read = read_health, .is_last_resort = true, .is_weak = true                                \
    }
#define GET_END                                                                                                        \
    {                                                                                                                  \
        .path = NULL                                                                                                   \
    }

#endif
