/* Shared by the files of POST /v1/audits. */
#ifndef SERVER_API_AUDITS_PRIVATE_H
#define SERVER_API_AUDITS_PRIVATE_H

#include "server/input/input.h"

/* Worker thread: `kind: "adversarial"`. Refuses, or leaves call->parsed for verify_on_loop(). */
void audit_probes_parse(struct json_input *input);

#endif
