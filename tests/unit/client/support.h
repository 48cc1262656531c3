/* Shared by the tests of this room. */
#ifndef TESTS_CLIENT_SUPPORT_H
#define TESTS_CLIENT_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>

#include "client/adapters/adapter.h"

/* Ends the test program if the file cannot be read. */
json_t *load_json(const char *path);

/* The names of the files in a folder, sorted; free each and the array. */
char **list_files(const char *folder, const char *ending, size_t *ret_count);

/* A body of exactly its bytes on the heap, so that reading beyond it is seen. */
struct body {
    char *data;
    size_t length_bytes;
};
struct body body_of(const char *bytes, size_t length_bytes);

/* One parse of a reply with the given status; ret_sample must be finished if it is a SAMPLE. */
enum exchange_outcome parse_bytes(struct exchange *exchange, int status, const char *bytes, size_t length_bytes,
                                  struct sample *ret_sample, struct sample_error *ret_error);

/* A request with the defaults of the service and prompt ids 1 411 907 23. */
struct sample_request plain_request(void);

/* The current step's body as JSON, and its path. */
json_t *built_body(struct exchange *exchange, const char **ret_path);

#endif
