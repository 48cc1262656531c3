/* record_list: a list of the record as a reply in parts: {"items":[…],"next":…}. A part holds as many rows as its room,
 * and is made of short reads: no list keeps a thread, a snapshot or memory for long. */
#ifndef SERVER_RENDER_LIST_H
#define SERVER_RENDER_LIST_H

#include "server/base/json_write.h"
#include "server/http/call.h"
#include "server/store/store.h"

struct record_list;

/* The text around the items, written to json.out. */
struct record_list_frame {
    void (*begin)(struct record_list *list);
    void (*end)(struct record_list *list);
};

struct record_list {
    struct stream stream;                  /* first */
    const struct record_list_frame *frame; /* a page's, by record_list_init() */
    struct json_write json;
    bool begun;
    struct text cursor; /* where the page begins; the call's */
    char next[64];      /* cursor of the next page; empty: no more */
    int64_t rows_left;  /* of the page */
    int64_t scan_left;
    int64_t bytes_left;
    /* Worker: adds some rows by record_list_item(), sets `next`, and lowers what is left. 0, or -1: the record cannot
     * be read. */
    int (*add)(struct record_list *list, struct store_reader *reader, const struct store_page_limits *limits);
};

#define RECORD_LIST_BYTES_MAX ((int64_t)32 * 1024 * 1024) /* of the record in one page */

/* The list lives at the beginning of an object from malloc(), which `destroy` frees; scan: rows to look at. */
void record_list_init(struct record_list *list, struct text cursor, int64_t rows, int64_t scan);
/* The reply owns the list from now on. */
void record_list_answer(struct call *call, struct record_list *list);

/* Before each item. */
struct json_write *record_list_item(struct record_list *list);
struct text record_list_cursor(const struct record_list *list);
/* After a read of so many rows, rows looked at and bytes. */
void record_list_read(struct record_list *list, const char *next, size_t rows, size_t scanned, size_t bytes);

#endif
