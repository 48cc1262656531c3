#include "server/api/page.h"

#include "server/http/call.h"

enum { LIMIT_DEFAULT = 100, LIMIT_MAXIMUM = 1000 };

int query_page(struct call *call, struct page *ret_page)
{
    ret_page->limit = LIMIT_DEFAULT;
    ret_page->cursor = call_query(call, "cursor");
    return call_query_int(call, "limit", 1, LIMIT_MAXIMUM, &ret_page->limit);
}

int page_refuse_run(struct call *call, enum store_status status)
{
    if (status == STORE_NOT_FOUND)
        return call_refuse(call, ERR_NOT_FOUND, "run", "there is no run of this name");
    if (status == STORE_INVALID_CURSOR)
        return call_refuse(call, ERR_INVALID_FIELD, "cursor", "not a cursor of this list with these filters");
    return call_refuse_unreadable(call);
}
