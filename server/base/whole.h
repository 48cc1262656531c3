/* whole: all bytes of a blocking descriptor's turn, however many calls that takes. Any thread, no allocation; needs no
 * system call but read and write, so that it works under a text worker's filter. */
#ifndef BASE_WHOLE_H
#define BASE_WHOLE_H

#include <stddef.h>

int write_whole(int fd, const void *bytes, size_t length_bytes); /* 0, or -1 with errno */
int read_whole(int fd, void *bytes, size_t length_bytes);        /* 0, or -1: an error, or the end came before */

#endif
