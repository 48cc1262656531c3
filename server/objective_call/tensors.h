/* objective_tensors: POST /v1/objective as safetensors, in and out (INTERFACE section 5).
 *
 * The request's arrays are flat tensors, one value for each token of the whole request, and `cu_seqlens` says where
 * each sequence begins; the JSON without arrays is in __metadata__.request. float and double tensors are used where
 * they stand in the body; others, and those that are not aligned, are copied once. The reply has the same form, its
 * JSON without arrays in __metadata__.reply. One thread at a time. */
#ifndef SERVER_OBJECTIVE_CALL_TENSORS_H
#define SERVER_OBJECTIVE_CALL_TENSORS_H

#include "server/objective_call/objective_call.h"

#define SAFETENSORS_MEDIA_TYPE "application/x-safetensors"

/* Instead of json_input_init(): takes call->body and leaves the JSON in its place. 0, or -1 with the call refused. */
int objective_tensors_read(struct objective_call *objective, const char *const *lift);
/* The tensors' bytes are not needed any more. */
void objective_tensors_release(struct objective_tensors *tensors);
void objective_tensors_destroy(struct objective_tensors *tensors); /* NULL is fine */

/* The arrays of sequence `index`, which was read from `object` by `fields`, into `target`. Does nothing without
 * tensors. 0, or -1 with the call refused. */
int objective_tensors_fill(struct objective_call *objective, size_t index, const json_t *object,
                           const struct field *fields, size_t field_count, void *target);

/* Where token `token` of sequence `index` is in a tensor of this name, for messages. False: it came as JSON. */
bool objective_tensors_place(const struct objective_call *objective, size_t index, const char *name, size_t token,
                             size_t *ret_element);

/* The numbers as the evaluation takes them. */
struct objective_values objective_values_of(const struct numbers *numbers);

/* Writes the reply in the form that the request accepts. */
void objective_tensors_reply(struct objective_call *objective, const struct objective_request *request,
                             const struct objective_result *result);
/* Answers with it. */
int objective_answer(struct call *call);

#endif
