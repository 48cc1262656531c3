#include "server/verify/packages_private.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>

#include "server/base/cleanup.h"

static void add(struct sha256 *sha256, const char *text)
{
    char length[24];

    sha256_add(sha256, length, (size_t)snprintf(length, sizeof length, "%zu:", strlen(text)));
    sha256_add(sha256, text, strlen(text));
}

static int by_name(const void *left, const void *right)
{
    const char *const *a = left;
    const char *const *b = right;

    return strcmp(strrchr(*a, '/'), strrchr(*b, '/'));
}

/* Of the characters that a pattern knows none may mean more than itself. */
static char *quoted(const char *path)
{
    char *text = xcalloc(1, 2 * strlen(path) + 1);
    size_t length = 0;

    for (; *path; path++) {
        if (strchr("*?[]\\", *path))
            text[length++] = '\\';
        text[length++] = *path;
    }
    return text;
}

void packages_add(struct sha256 *sha256, const char *venv)
{
    _cleanup_free_ char *folder = quoted(venv);
    _cleanup_free_ char *pattern = xasprintf("%s/lib/python3*/site-packages/*.dist-info", folder);
    glob_t found = {.gl_pathc = 0};

    add(sha256, venv);
    if (glob(pattern, GLOB_NOSORT, NULL, &found) == 0 && found.gl_pathc)
        qsort(found.gl_pathv, found.gl_pathc, sizeof found.gl_pathv[0], by_name);
    for (size_t i = 0; i < found.gl_pathc; i++)
        add(sha256, strrchr(found.gl_pathv[i], '/') + 1);
    globfree(&found);
}
