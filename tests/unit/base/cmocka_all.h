/* Headers that cmocka.h wants before it. */
#ifndef TESTS_BASE_CMOCKA_ALL_H
#define TESTS_BASE_CMOCKA_ALL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
