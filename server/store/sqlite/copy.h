/* copy: one database file, page for page, and names that are safe on disk. Private to the room. */
#ifndef SERVER_STORE_SQLITE_COPY_H
#define SERVER_STORE_SQLITE_COPY_H

#include "server/store/backup.h"

/* Behind the name of a database: its files, the main one first. Ended by NULL. */
extern const char *const copy_suffixes[];

/* The file `from` with its log, as one read transaction sees it, into the new file `to` of mode 0600, which is on disk
 * then. Checked: as many rows in each table, and quick_check, or integrity_check if `whole`. 0, or a negative errno value
 * with a message; then there is no file `to` but one that was there before. */
int copy_make(const char *from, const char *to, bool whole, const struct store_watch *watch,
              struct store_copy_report *ret_report, char message[STORE_MESSAGE_BYTES]);

/* As rename(), but never over a file that is there (EEXIST). 0, or a negative errno value. */
int copy_rename(const char *from, const char *to);
/* Puts the names in the folder of this path on disk. 0, or a negative errno value. */
int copy_sync_folder(const char *path);
bool copy_is_same_file(const char *path, const char *other);
bool copy_is_there(const char *path, const char *suffix); /* whatever it is, also a link to nowhere */

#endif
