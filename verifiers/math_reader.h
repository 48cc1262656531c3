/* What the files of math_number share: looking at the text, refusing, bounding sizes. Not for others. */
#ifndef VERIFIERS_MATH_READER_H
#define VERIFIERS_MATH_READER_H

#include <ctype.h>
#include <string.h>

#include "server/base/cleanup.h"
#include "verifiers/math_number.h"

#define BITS_MAX 65536     /* of a numerator or denominator */
#define EXPONENT_MAX 65536 /* of powers; a quarter of it, of ten in E notation */
#define STEPS_MAX 2000

#define _cleanup_rational_ _cleanup_(clear_rational)

static inline void clear_rational(mpq_t *value)
{
    mpq_clear(*value);
}

static inline bool refuse(struct number_reader *reader, enum number_status status)
{
    if (reader->status == NUMBER_OK)
        reader->status = status;
    return false;
}

/* --- looking --- */

static inline char peek(const struct number_reader *reader)
{
    return reader->at < reader->end ? *reader->at : 0;
}

static inline char peek_at(const struct number_reader *reader, size_t ahead)
{
    return (size_t)(reader->end - reader->at) > ahead ? reader->at[ahead] : 0;
}

static inline bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

static inline bool sees(const struct number_reader *reader, const char *what)
{
    size_t length_bytes = strlen(what);
    bool same = (size_t)(reader->end - reader->at) >= length_bytes && memcmp(reader->at, what, length_bytes) == 0;

    /* A command's name must end here: \pi is not the beginning of \pitchfork. */
    return same && (what[0] != '\\' || !isalpha((unsigned char)what[length_bytes - 1]) ||
                    !isalpha((unsigned char)peek_at(reader, length_bytes)));
}

static inline bool take(struct number_reader *reader, const char *what)
{
    if (!sees(reader, what))
        return false;
    reader->at += strlen(what);
    return true;
}

static inline void skip_space(struct number_reader *reader)
{
    while (peek(reader) == ' ')
        reader->at++;
}

/* What stands where a value was expected: mathematics of another kind, or nothing that makes sense? */
static inline bool refuse_here(struct number_reader *reader)
{
    char byte = peek(reader);
    return refuse(reader, isalpha((unsigned char)byte) || byte == '\\' ? NUMBER_OUTSIDE : NUMBER_NONE);
}

/* --- sizes --- */

static inline bool fits(struct number_reader *reader, const mpq_t value)
{
    if (mpz_sizeinbase(mpq_numref(value), 2) > BITS_MAX || mpz_sizeinbase(mpq_denref(value), 2) > BITS_MAX ||
        ++reader->steps > STEPS_MAX)
        return refuse(reader, NUMBER_LIMIT);
    return true;
}

/* One number in digits. ret_integer: it was a whole number. */
bool number_read_literal(struct number_reader *reader, mpq_t value, bool *ret_integer);

#endif
