/* of: verifiers whose score depends on that of another one, which their option `of` names (struct verifier, settle). */
#ifndef SERVER_VERIFY_OF_PRIVATE_H
#define SERVER_VERIFY_OF_PRIVATE_H

#include "server/input/input.h"

struct verdict_set;
struct verifier_list;

/* Once all are read: finds who is named, and fills spec->of. path: the list's. 0, or -1 with the call refused: nobody of
 * this id, itself, one that is held out, or names that lead round in a ring. */
int of_find(struct call *call, const char *path, struct verifier_list *list);

/* Once all verdicts are known: their last word. Unscored (of_unscored) where the other one has no score. Any thread. */
void of_settle(const struct verifier_list *list, struct verdict_set *set);

#endif
