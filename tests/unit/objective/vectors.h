/* tests/cases/objective_vectors.json as scenes: each case builds one, runs it and compares within the tolerance that
 * the file states. */
#ifndef OBJECTIVE_VECTORS_H
#define OBJECTIVE_VECTORS_H

#include "tests/unit/objective/fixture.h"

#include <jansson.h>

extern json_t *vectors; /* the file */

/* Sets each member of `params` that is not null as a knob of the section; NULL sets none. A list's items are structs.
 */
void set_knobs(void *item, const char *section, const json_t *params);
void set_choice(void *item, const char *section, const char *name, const char *value);
/* Settles and runs: fails with the case's id. */
void vector_run(struct scene *scene, const json_t *one);

const json_t *at(const json_t *value, const char *path); /* "expected.loss"; fails if it is absent */
double number_at(const json_t *value, const char *path);
void fill_numbers(double *ret_values, const json_t *list);
/* A sequence whose arrays come from lists; NULL leaves what scene_add() put there. */
size_t add_lists(struct scene *scene, size_t group, const json_t *logp, const json_t *old, const json_t *mask);
size_t group_number(struct scene *scene, const json_t *groups, size_t index);

void same_number(const json_t *one, const char *what, double got, const json_t *want);
void same_numbers(const json_t *one, const char *what, const double *got, const json_t *want);

#define FOR_SECTION(section, one)                                                                                      \
    size_t index_of_case_;                                                                                             \
    json_t *one;                                                                                                       \
    json_array_foreach (json_object_get(vectors, section), index_of_case_, one)

#endif
