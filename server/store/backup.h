/* backup: whole copies of the record, made beside a running service and put back.
 *
 * For commands: each call takes as long as the file is large, and reports on the way. A failure leaves nothing under a
 * final name. One thread at a time. */
#ifndef STORE_BACKUP_H
#define STORE_BACKUP_H

#include "server/store/store.h"

#include <signal.h>

/* The observer of a copy. */
struct store_watch {
    void (*progress)(int64_t copied_bytes, int64_t whole_bytes); /* every 64 MiB of a larger file; may be NULL */
    const volatile sig_atomic_t *stop;                           /* looked at between pages; NULL: never stopped */
};

struct store_copy_report {
    char *copy; /* its real path; the caller's to free */
    char *kept; /* the new name of a database that was replaced; NULL: none. The caller's to free */
    int64_t schema_version;
    int64_t batches;
    int64_t rollouts;
    int64_t bytes;
};

/* Copies the database, as it is at this moment, into a new file of mode 0600; a service may write meanwhile, but
 * its write-ahead log is not shortened until the copy is made. The copy is written as FILE.partial, is on disk and
 * checked (as many rows in each table, quick_check), and only then called FILE. 0, or a negative errno value with a
 * message: no database of ours, EEXIST, ENOSPC, ECANCELED (stopped)… */
int store_backup(const char *database, const char *file, const struct store_watch *watch,
                 struct store_copy_report *ret_report, char message[STORE_MESSAGE_BYTES]);

/* Makes a database out of a copy of one, with the log beside it if there is one; the copy stays. Checked as in
 * store_backup(), and each index. Under `replace` a database that is there is kept under another name, with its log.
 * When this was cut off no service opens the database, and calling it again finishes it. 0, or a negative errno value
 * with a message: EWOULDBLOCK (a service has the database open), EEXIST (it is there, without `replace`)… */
int store_restore(const char *file, const char *database, bool replace, const struct store_watch *watch,
                  struct store_copy_report *ret_report, char message[STORE_MESSAGE_BYTES]);

void store_copy_report_finish(struct store_copy_report *report);

#endif
