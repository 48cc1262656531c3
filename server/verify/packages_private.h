/* packages: the packages of a virtual environment, for the version of a verdict of code that runs there. */
#ifndef SERVER_VERIFY_PACKAGES_PRIVATE_H
#define SERVER_VERIFY_PACKAGES_PRIVATE_H

#include "server/base/hash.h"

/* Adds its path, then the names of its packages' folders of metadata (NAME-VERSION.dist-info) in the order of their bytes,
 * each behind its length in bytes and a colon. Reads folders. */
void packages_add(struct sha256 *sha256, const char *venv);

#endif
