/* Locals that free themselves: `_cleanup_free_ char *text = NULL;`. A destructor takes a pointer to the variable and
 * accepts NULL. */
#ifndef BASE_CLEANUP_H
#define BASE_CLEANUP_H

#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(function) __attribute__((cleanup(function)))
#define _must_check_ __attribute__((warn_unused_result))
#define _printf_(text, first) __attribute__((format(printf, text, first)))

static inline void freep(void *pointer)
{
    free(*(void **)pointer);
}

static inline void closep(const int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

#define _cleanup_free_ _cleanup_(freep)
#define _cleanup_close_ _cleanup_(closep)

/* Hands the pointer over and leaves NULL behind, so that the cleanup has nothing to do. */
#define TAKE_PTR(variable)                                                                                             \
    ({                                                                                                                 \
        typeof(variable) taken_ = (variable);                                                                          \
        (variable) = NULL;                                                                                             \
        taken_;                                                                                                        \
    })

#define ARRAY_LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* Small internal allocations: end the process when there is no memory. Memory of a size that a client chooses is allocated with
 * checks. */
extern void (*memory_exhausted)(void); /* called before that, if it is set, before threads */
void *xcalloc(size_t count, size_t size_bytes) __attribute__((returns_nonnull));
void *xrealloc(void *pointer, size_t size_bytes) __attribute__((returns_nonnull));
char *xstrdup(const char *text) __attribute__((returns_nonnull));
char *xstrndup(const char *text, size_t length_bytes) __attribute__((returns_nonnull));
char *xasprintf(const char *format, ...) _printf_(1, 2) __attribute__((returns_nonnull));

#endif
