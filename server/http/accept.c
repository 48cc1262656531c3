#include "server/http/accept_private.h"

#include <string.h>

#define QUALITY_MAX 1000

static const char *skip_blanks(const char *at)
{
    return at + strspn(at, " \t");
}

/* "0.25" is 250; what is no such number is 1000. RFC 9110, section 12.4.2: at most three digits. */
static int read_quality(const char *text)
{
    int quality = *text == '0' ? 0 : QUALITY_MAX;

    if (text[0] != '0' || text[1] != '.')
        return quality;
    text += 2;
    for (int digit = QUALITY_MAX / 10; digit > 0 && *text >= '0' && *text <= '9'; digit /= 10)
        quality += digit * (*text++ - '0');
    return quality;
}

/* Of the parameters from `at` up to `end`. */
static int find_quality(const char *at, const char *end)
{
    while ((at = memchr(at, ';', (size_t)(end - at)))) {
        at = skip_blanks(at + 1);
        if (strncasecmp(at, "q=", 2) == 0)
            return read_quality(at + 2);
    }
    return QUALITY_MAX;
}

int accept_quality(const char *accept, const char *type, size_t *ret_place)
{
    size_t type_bytes = strlen(type);
    const char *next;

    for (const char *at = accept; at; at = next) {
        const char *end = strchrnul(at, ',');
        const char *begin = skip_blanks(at);
        size_t name_bytes = strcspn(begin, ";, \t");
        next = *end ? end + 1 : NULL;
        if (name_bytes != type_bytes || strncasecmp(begin, type, type_bytes) != 0)
            continue;
        *ret_place = (size_t)(begin - accept);
        return find_quality(begin, end);
    }
    return 0;
}

enum call_page accept_page_of(const char *accept)
{
    static const char *const types[] = {
        [PAGE_JSON] = "application/json", [PAGE_MARKDOWN] = "text/markdown", [PAGE_HTML] = "text/html"};
    enum call_page page = PAGE_JSON;
    size_t best_place = 0;
    int best = 0;

    for (enum call_page i = PAGE_JSON; i <= PAGE_HTML; i++) {
        size_t place = 0;
        int quality = accept_quality(accept, types[i], &place);
        if (quality < best || quality == 0 || (quality == best && place > best_place))
            continue;
        best = quality;
        best_place = place;
        page = i;
    }
    return page;
}
