/* salt: hashes that a text cannot foresee, so that none can choose how long a table is searched.
 *
 * The kernel's bytes of this process are read without a system call. They may decide nothing but the order of slots: no verdict
 * depends on them. Otherwise pure; any thread. */
#ifndef VERIFIERS_TEXT_SALT_H
#define VERIFIERS_TEXT_SALT_H

#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

static inline uint64_t salt_of_process(void)
{
    uint64_t salt = 0x9e3779b97f4a7c15;
    const void *random = (const void *)getauxval(AT_RANDOM); // NOLINT(performance-no-int-to-ptr)

    if (random)
        memcpy(&salt, random, sizeof salt);
    return salt | 1;
}

static inline uint64_t salt_mix(uint64_t value, uint64_t salt)
{
    __extension__ typedef unsigned __int128 wide;
    wide product = (wide)(value ^ 0xa0761d6478bd642f) * salt;

    return (uint64_t)(product >> 64) ^ (uint64_t)product;
}

#endif
