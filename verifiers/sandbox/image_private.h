/* image: the program that a holder is. It is a small one of its own, carried by the service in itself: each fork of a holder or of its
 * zygote copies what the process has mapped, and the service's fifty libraries, which no program needs, cost 0.3 ms of it. Nor is
 * there anything of the service in the memory that every program of Python can read. */
#ifndef SANDBOX_IMAGE_PRIVATE_H
#define SANDBOX_IMAGE_PRIVATE_H

#include "verifiers/sandbox/slot.h"

#define IMAGE_SOCKET_FD 3
#define IMAGE_SETTINGS_FD 4

/* Becomes the image, which calls holder_serve(). IMAGE_SOCKET_FD is the socket of its orders and is inherited; every other
 * descriptor from 3 on is closed. Returns only if a machine runs no program from a memfd: the holder is then what it was. */
void image_exec(const struct sandbox_settings *settings);

#endif
