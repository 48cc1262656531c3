#include "server/base/cleanup.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void (*memory_exhausted)(void);

static void *or_end(void *pointer)
{
    if (!pointer) {
        if (memory_exhausted)
            memory_exhausted();
        static const char message[] = "rolloutd: out of memory\n";
        ssize_t written = write(STDERR_FILENO, message, sizeof(message) - 1);
        (void)written;
        abort();
    }
    return pointer;
}

void *xcalloc(size_t count, size_t size_bytes)
{
    return or_end(calloc(count ? count : 1, size_bytes ? size_bytes : 1));
}

void *xrealloc(void *pointer, size_t size_bytes)
{
    return or_end(realloc(pointer, size_bytes ? size_bytes : 1));
}

char *xstrdup(const char *text)
{
    return or_end(strdup(text));
}

char *xstrndup(const char *text, size_t length_bytes)
{
    char *copy = or_end(malloc(length_bytes + 1)); /* not strndup(): the text need not end with a NUL */
    memcpy(copy, text, length_bytes);
    copy[length_bytes] = '\0';
    return copy;
}

char *xasprintf(const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    return or_end(length < 0 ? NULL : text);
}
