/* detokenize: the text of the first ids of a sample, asked of its engine. Pure; the replies are hostile input. */
#ifndef CLIENT_ADAPTERS_DETOKENIZE_H
#define CLIENT_ADAPTERS_DETOKENIZE_H

#include "client/adapters/adapter.h"

/* False (nothing to finish): this kind of engine is not asked. model: TEXT_NONE: not sent. */
bool detokenize_build(const struct engine_adapter *adapter, struct text model, const uint32_t *ids, size_t count,
                      struct engine_call *ret_call);

/* Appends the text of a reply. False: it has none. */
bool detokenize_read(const struct engine_adapter *adapter, struct text body, struct buffer *out);

#endif
