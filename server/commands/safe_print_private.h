/* safe_print: a text of a model on a terminal. Characters that would move the cursor, change the direction of writing
 * or stay invisible are shown as \x1b or \u{202e}, broken UTF-8 byte by byte, all others unchanged. */
#ifndef SERVER_COMMANDS_SAFE_PRINT_PRIVATE_H
#define SERVER_COMMANDS_SAFE_PRINT_PRIVATE_H

#include "server/base/text.h"

#include <stdio.h>

void safe_print(FILE *out, struct text text);

#endif
