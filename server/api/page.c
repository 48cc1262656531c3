#include "server/api/page.h"

#include "server/base/nearest.h"
#include "server/http/call.h"
#include "server/render/render.h"

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

static int refuse_member(struct call *call, struct text name)
{
    char advice[ADVICE_BYTES];
    render_advise(name, advice);
    return call_refuse(call, ERR_INVALID_FIELD, "fields", "a rollout has no member \"%.*s\"; %s",
                       (int)(name.length_bytes < 64 ? name.length_bytes : 64), name.data, advice);
}

/* Blanks around the names or not; the id is always there. */
int query_fields(struct call *call, render_fields *fields)
{
    struct text list = call_query(call, "fields");
    if (!list.data)
        return 0;
    *fields = render_field(TEXT_LITERAL("id"));
    const char *end = list.data + list.length_bytes;
    for (const char *at = list.data; at <= end;) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        struct text name = text_without_blanks((struct text){at, (size_t)((comma ? comma : end) - at)});
        render_fields field = render_field(name);
        if (!field)
            return refuse_member(call, name);
        *fields |= field;
        at = (comma ? comma : end) + 1;
    }
    return 0;
}

int query_check_cursor(struct call *call, bool fits)
{
    if (fits)
        return 0;
    return call_refuse(call, ERR_INVALID_FIELD, "cursor",
                       "not a cursor of this list with these filters and this order");
}
