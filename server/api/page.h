/* page: the parameters of lists: ?limit, ?cursor, ?fields. */
#ifndef SERVER_API_PAGE_H
#define SERVER_API_PAGE_H

#include "server/base/text.h"
#include "server/store/words.h"

#include "server/render/render.h"

#include <stdbool.h>
#include <stdint.h>

struct call;

struct page {
    int64_t limit;      /* rows */
    struct text cursor; /* as given; an empty one is none of ours */
};

/* 0, or -1 with the call refused. */
int query_page(struct call *call, struct page *ret_page);
/* fields=reward,text; absent leaves *fields. 0, or -1 with the call refused. */
int query_fields(struct call *call, render_fields *fields);
int query_check_cursor(struct call *call, bool fits);

/* The list of one run could not be read: there is no such run, the cursor is another list's, or the record fails. -1,
 * with the call refused. */
int page_refuse_run(struct call *call, enum store_status status);

#endif
