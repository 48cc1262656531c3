/* schema: JSON Schema, draft 2020-12, in one document: a schema made ready once, then instances validated.
 *
 * Offered are the keywords of KEYWORDS in keywords.def, no other. Every reference is resolved when the schema is made;
 * nothing is ever fetched. Numbers are exact decimals. The work of a validation is counted, not timed. Pure; one thread
 * at a time for each schema. */
#ifndef VERIFIERS_SCHEMA_SCHEMA_H
#define VERIFIERS_SCHEMA_SCHEMA_H

#include "server/base/buffer.h"
#include "verifiers/schema/document.h"

#include <jansson.h>

#define SCHEMA_PROBLEM_BYTES 400

struct schema;

/* NULL with a sentence that names the place in the schema: an unknown keyword, a value that it may not have, a reference
 * that loops, points nowhere or outside, a pattern that is none, or more than the limits of schema_private.h. */
struct schema *schema_create(const json_t *json, char ret_problem[SCHEMA_PROBLEM_BYTES]);
void schema_destroy(struct schema *schema); /* NULL is fine */

/* The same for one validation after the other by one thread, which keeps some of them until it ends: a schema of the same
 * text is not made again. A borrowed schema must be returned. */
struct schema *schema_borrow(const json_t *json, char ret_problem[SCHEMA_PROBLEM_BYTES]);
void schema_return(struct schema *schema); /* NULL is fine */
static inline void schema_returnp(struct schema **schema)
{
    schema_return(*schema);
}

enum schema_result {
    SCHEMA_VALID,
    SCHEMA_INVALID,
    SCHEMA_WORK_LIMIT, /* beyond the counted work */
    SCHEMA_TOO_DEEP,   /* schemas and values too deep in each other */
    SCHEMA_LOOPS       /* a $dynamicRef that came back to the same value: the schema's fault */
};

struct schema_violation {
    const char *keyword; /* of the first violation; static text. "false": the schema is just that */
    uint32_t value;      /* of the instance */
};

enum schema_result schema_validate(struct schema *schema, const struct document *instance,
                                   struct schema_violation *ret_violation);

/* A tree as text, for document_read(): reals as their shortest decimal, whole numbers of any size as they came. */
void schema_text(const json_t *json, struct buffer *out);
/* Is this how such a text begins? It is taken off then. false where a key needs an escape, too. */
bool schema_text_is(const json_t *json, struct text *rest);

#endif
