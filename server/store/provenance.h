/* provenance: the models, programs and settings that made the rollouts of a batch. */
#ifndef STORE_PROVENANCE_H
#define STORE_PROVENANCE_H

#include "server/base/hash.h"
#include "server/store/read.h"

#include <stddef.h>
#include <stdint.h>

/* Settings as they are in force: JSON without any key, and its digest. Must stay until the operations that name it are
 * handed back. */
struct store_settings {
    struct text json;
    uint8_t sha256[SHA256_BYTES];
};

/* Distinct values, in the order in which they came, without unknown ones. */
struct store_names {
    struct text *names;
    size_t count;
    size_t capacity;
};

struct store_provenance {
    struct store_names engines;
    struct store_names engine_models;
    struct store_names engine_versions;
    struct store_names tokenizer_sha256s;
    struct store_names rolloutd_versions;
    struct store_names settings_sha256s; /* hexadecimal; those at its creation first */
    struct store_memory *memory;
};
/* Of the rollouts on record. A batch from before there was provenance names its engines alone. */
enum store_status store_read_provenance(struct store_reader *reader, struct text batch_id,
                                        struct store_provenance *ret_provenance);
void store_provenance_finish(struct store_provenance *provenance);

struct store_settings_row {
    struct text json;
    int64_t first_at_us;
    struct store_memory *memory;
};
enum store_status store_read_settings(struct store_reader *reader, const uint8_t sha256[SHA256_BYTES],
                                      struct store_settings_row *ret_settings);
void store_settings_row_finish(struct store_settings_row *settings);

#endif
