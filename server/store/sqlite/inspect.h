/* inspect: may this file be our database? Nothing is written to it. Private to the room. */
#ifndef SERVER_STORE_SQLITE_INSPECT_H
#define SERVER_STORE_SQLITE_INSPECT_H

#include "server/store/store.h"

#define INSPECT_RESTORING ".restoring" /* behind the database's name: a restore has begun to replace it */

/* The file's real path, or where it would be made. 0, or a negative errno value with a message. */
int inspect_resolve(const char *path, char **ret_path, char message[STORE_MESSAGE_BYTES]);
/* The directory: exists, local, writable. */
int inspect_place(const char *path, char message[STORE_MESSAGE_BYTES]);
/* The file: ours, not newer, not damaged, writable, not half replaced. An absent or empty one is fine. */
int inspect_file(const char *path, char message[STORE_MESSAGE_BYTES]);
/* The file has the header of a database; for whoever only reads it. */
int inspect_to_read(const char *path, char message[STORE_MESSAGE_BYTES]);
struct database;
/* The open database is ours, and not newer. */
int inspect_version(struct database *database, const char *path, char message[STORE_MESSAGE_BYTES]);
/* The file has the bytes that its header counts, where no log can hold the rest. */
int inspect_size(struct database *database, const char *path, char message[STORE_MESSAGE_BYTES]);
/* Why a file system with this magic number (statfs) is refused: its name, or NULL if it is fine. */
const char *inspect_network_name(unsigned long magic);

/* The negated errno value `error`, with the message in words. */
__attribute__((format(printf, 3, 4))) int store_refuse(int error, char message[STORE_MESSAGE_BYTES], const char *format,
                                                       ...);

#endif
