/* safetensors: named arrays of numbers behind a JSON header, read in place and written.
 *
 * Form: 8 bytes, little endian: the length of the header; the header, a JSON object {"name": {"dtype": "F32", "shape":
 * [n], "data_offsets": [begin, end]}, …, "__metadata__": {"key": "text"}}, padded with blanks; the data. Source:
 * https://huggingface.co/docs/safetensors, "Format".
 * Checked before anything is used: lengths, offsets in range, sizes that fit dtype and shape, no overlap, no hole, no
 * name twice. Tensors whose bytes are not aligned for their type are allowed; whoever reads them copies.
 * Pure; any thread, one at a time. */
#ifndef SERVER_OBJECTIVE_CALL_SAFETENSORS_H
#define SERVER_OBJECTIVE_CALL_SAFETENSORS_H

#include "server/base/buffer.h"
#include "server/base/text.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SAFETENSORS_MAX 64 /* tensors of one file */
#define SAFETENSORS_MESSAGE_BYTES 160

enum safetensors_type {
    TENSOR_F64,
    TENSOR_I64,
    TENSOR_F32,
    TENSOR_I32,
    TENSOR_U32,
    TENSOR_F16,
    TENSOR_BF16,
    TENSOR_I8,
    TENSOR_U8,
    TENSOR_BOOL
};
/* "F64" …, and bytes per value. */
extern const char *const safetensors_type_names[];
extern const uint8_t safetensors_type_bytes[];

struct safetensor {
    const char *name; /* lives with the header */
    enum safetensors_type type;
    size_t rank;
    size_t count;     /* of values: the product of the shape */
    const char *data; /* in the body, which must stay */
    size_t begin_bytes;
    bool aligned; /* may be read as an array of its type */
};

struct safetensors {
    json_t *header;
    struct text long_key;    /* in the body; TEXT_NONE: none */
    struct buffer long_text; /* of the metadata, read apart from the header, which has "" in its place */
    struct safetensor tensors[SAFETENSORS_MAX]; /* in the order of their data */
    size_t count;
};

/* header_limit_bytes: the largest header that is read. 0; -1 with a sentence and the name of the tensor that it is about (""
 * if it is the file). ret needs safetensors_finish() either way. */
int safetensors_read(struct text body, size_t header_limit_bytes, struct safetensors *ret, const char **ret_name,
                     char message[SAFETENSORS_MESSAGE_BYTES]);
void safetensors_finish(struct safetensors *file);

const struct safetensor *safetensors_find(const struct safetensors *file, const char *name); /* NULL: none */
struct text safetensors_metadata(const struct safetensors *file, const char *key);           /* TEXT_NONE: none */

/* Value i as double, whatever the type and the alignment. 64-bit integers beyond 2^53 lose their last bits. */
double safetensor_value(const struct safetensor *tensor, size_t i);
/* All values of an F16 or BF16 tensor as float, which holds every one of them exactly. */
void safetensor_widen(const struct safetensor *tensor, float *ret_values);

/* --- writing: the header first, then each tensor's bytes, appended by the caller in the same order --- */

struct safetensors_column {
    const char *name;
    enum safetensors_type type;
    size_t count;
};
/* Columns of one dimension, and one text under __metadata__. Order them by the size of their values, largest first, and
 * all are aligned. */
void safetensors_write_header(struct buffer *out, const struct safetensors_column *columns, size_t column_count,
                              const char *metadata_key, struct text metadata);

#endif
