#include "server/api/page.h"

#include "server/http/call.h"

enum { LIMIT_DEFAULT = 100, LIMIT_MAXIMUM = 1000 };

int query_page(struct call *call, struct page *ret_page)
{
    ret_page->limit = LIMIT_DEFAULT;
    ret_page->cursor = call_query(call, "cursor");
    return call_query_int(call, "limit", 1, LIMIT_MAXIMUM, &ret_page->limit);
}
