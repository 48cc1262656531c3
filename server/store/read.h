/* read: shared by all reads of the record.
 *
 * A read returns OK, NOT_FOUND (for a malformed id too) or UNAVAILABLE. A result needs its finish function after
 * any of them, because a read that failed half way holds what it had read; zeroed, it accepts it, too. */
#ifndef STORE_READ_H
#define STORE_READ_H

#include "server/store/words.h"

#include <stddef.h>

#define STORE_MESSAGE_BYTES 512

struct store;
struct store_reader;
struct store_memory; /* what a result owns: its texts and arrays live until the result's finish function */

/* One for each thread, which may be another than the one that made it. NULL: cannot be opened (message says why). */
struct store_reader *store_reader_create(struct store *store, char message[STORE_MESSAGE_BYTES]);
/* Reads a file that this process has not opened, also beside a running service, and writes nothing. NULL, too, if it is
 * of an older schema. */
struct store_reader *store_reader_open(const char *path, char message[STORE_MESSAGE_BYTES]);
void store_reader_destroy(struct store_reader *reader); /* NULL is fine */

/* A page of a list ends at the first of them, with `next` set if there may be more. */
struct store_page_limits {
    size_t rows;
    size_t scanned; /* rows that are looked at */
    size_t bytes;   /* that the page takes, with one row more */
};

#endif
