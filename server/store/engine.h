/* engine: engines that were named at run time. */
#ifndef STORE_ENGINE_H
#define STORE_ENGINE_H

#include "server/store/read.h"

#include <stdbool.h>
#include <stdint.h>

/* An engine that was named at run time. Written whole: what was on record under the name is replaced. */
struct store_engine {
    struct text name;
    struct text url; /* TEXT_NONE: one of the settings file, of which only `draining` is kept */
    struct text kind;
    struct text model;
    struct text pool;
    int64_t in_flight; /* -1: not said; 0: learned */
    bool shared;
    bool draining;
    struct text token_name; /* names a file or a variable; the key itself is never on record */
};

struct store_engines {
    struct store_engine *engines; /* by name */
    size_t count;
    struct store_memory *memory;
};
enum store_status store_list_engines(struct store_reader *reader, struct store_engines *ret_engines);
void store_engines_finish(struct store_engines *engines);

#endif
