/* Files that the binary carries in itself, made by schema/embed.py. */
#ifndef SCHEMA_EMBEDDED_H
#define SCHEMA_EMBEDDED_H

#include <stddef.h>

/* data ends with a NUL that size_bytes does not count. A table ends with a row whose name is NULL. */
struct embedded_file {
    const char *name;
    const char *data;
    size_t size_bytes;
};

#endif
