/* value: data of a program and of a reference as one kind of tree, and whether two of them are equal.
 *
 * Numbers are compared as numbers: 5 and 5.0 are equal, whole numbers exactly at any size, floats within the tolerance.
 * true is not 1. Lists and tuples are lists; an object is a dict with texts for keys, as JSON has them ({3: …} is {"3": …}).
 * Sets, bytes and whatever else JSON has no word for are equal to nothing. Neither NaN nor an infinity is equal to anything.
 *
 * Hostile text is read without recursion beyond VALUE_DEPTH_MAX. One thread at a time. */
#ifndef VERIFIERS_CODE_VALUE_H
#define VERIFIERS_CODE_VALUE_H

#include "server/base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VALUE_DEPTH_MAX 256

enum value_kind {
    VALUE_NULL,
    VALUE_FALSE,
    VALUE_TRUE,
    VALUE_INTEGER,
    VALUE_BIG, /* beyond 64 bits: `text` has its digits, `base` how they are meant */
    VALUE_FLOAT,
    VALUE_TEXT,
    VALUE_LIST,
    VALUE_DICT, /* keys and values in turn */
    VALUE_OTHER
};

struct value_node {
    enum value_kind kind;
    int base;
    uint32_t count; /* of children */
    uint32_t end;   /* index behind its last descendant; a child follows its parent or its elder sibling's end */
    int64_t integer;
    double number;
    struct text text;
};

struct value {
    struct value_node *nodes; /* the first is the root */
    size_t count;
    size_t capacity;
    char *texts; /* those with escapes, undone */
};

struct tolerance {
    double absolute;
    double relative; /* of what is expected */
};

/* Texts point into what was read, or into the value. 0, or -1 if it is no such text; finish in both cases. */
int value_read_json(struct text json, struct value *ret_value);
int value_read_tagged(struct text tagged, struct value *ret_value); /* codec.py */
void value_finish(struct value *value);
#define _cleanup_value_ _cleanup_(value_finish)

bool value_equal(const struct value *got, const struct value *expected, const struct tolerance *tolerance);
/* The only element of a list of one, against `got`. False if it is no such list. */
bool value_equal_only(const struct value *got, const struct value *expected, const struct tolerance *tolerance);

/* |got - expected| <= max(absolute, relative * |expected|), for finite numbers. */
bool tolerance_holds(const struct tolerance *tolerance, double got, double expected);

#endif
