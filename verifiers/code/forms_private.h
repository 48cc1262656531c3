/* Shared by the readers of reference forms: forms.c has those with standard input, forms_calls.c those that call a function,
 * forms_asserts.c those that run code of the reference. */
#ifndef VERIFIERS_CODE_FORMS_PRIVATE_H
#define VERIFIERS_CODE_FORMS_PRIVATE_H

#include "verifiers/code/forms.h"

struct form {
    struct test_set *set;
    struct verifier_problem *problem;
    struct text entry; /* of the options */
    enum forms_depth depth;
    bool no_memory;  /* for a test */
    bool large_text; /* of JSON was not read; what was read of it is let go, so that nobody knows why */
    bool packed;     /* there are tests that were not unpacked */
};

int form_refuse(struct form *form, const char *why);             /* -1 */
json_t *form_load(struct form *form, struct text json);          /* lives as long as the set; NULL: it is no JSON */
const json_t *form_list(struct form *form, const json_t *value); /* a list, or a text of one; NULL */
bool form_add(struct form *form, json_t *test);                  /* takes the reference */
int form_add_stdin(struct form *form, const json_t *input, const json_t *output);
/* input: a list of arguments, or a text with one JSON value a line; then the output is a JSON text, too. */
int form_add_call(struct form *form, const json_t *input, const json_t *output, bool wrapped);

int form_read_calls(struct form *form, const json_t *row);
int form_read_live_code_bench(struct form *form, const json_t *row);
int form_read_asserts(struct form *form, const json_t *row);
int form_read_human_eval(struct form *form, const json_t *row);
int form_read_mbpp(struct form *form, const json_t *row);
int form_read_test_list(struct form *form, const json_t *list); /* texts */
int form_read_functions(struct form *form, const json_t *row);

#endif
