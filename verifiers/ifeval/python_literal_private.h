/* python_literal_private: lists and dictionaries as Python's repr() writes them, to JSON. Linear; any thread. */
#ifndef VERIFIERS_IFEVAL_PYTHON_LITERAL_PRIVATE_H
#define VERIFIERS_IFEVAL_PYTHON_LITERAL_PRIVATE_H

#include "server/base/buffer.h"
#include "server/base/text.h"

#include <stdbool.h>

/* False: a text in it never ends, or has an escape that is not known. Valid UTF-8. */
bool python_append_json(struct text literal, struct buffer *out);

#endif
