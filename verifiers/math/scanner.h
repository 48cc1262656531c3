/* Shared by the files of the tokenizer. Private to them. */
#ifndef VERIFIERS_MATH_SCANNER_H
#define VERIFIERS_MATH_SCANNER_H

#include <ctype.h>
#include <string.h>

#include "server/base/cleanup.h"
#include "verifiers/math/words.h"

struct scanner {
    struct math_reader *reader;
    size_t at;
    uint8_t flags; /* of the next token */
};

static inline size_t left(const struct scanner *scanner)
{
    return scanner->reader->text.length_bytes - scanner->at;
}

static inline char byte_at(const struct scanner *scanner, size_t ahead)
{
    return ahead < left(scanner) ? scanner->reader->text.data[scanner->at + ahead] : 0;
}

static inline struct text rest(const struct scanner *scanner)
{
    return (struct text){scanner->reader->text.data + scanner->at, left(scanner)};
}

static inline bool begins(struct text text, const char *what)
{
    size_t length_bytes = strlen(what);
    return text.length_bytes >= length_bytes && memcmp(text.data, what, length_bytes) == 0;
}

static inline bool is_letter(char byte)
{
    return isalpha((unsigned char)byte) != 0;
}

/* Ends `length` bytes further on. */
struct math_token *math_add_token(struct scanner *scanner, enum token_kind kind, unsigned value, size_t length);

/* Does the command take words? Then `*ret_mathematics` says whether it is a font for mathematics too. */
bool math_is_text_command(struct text name, bool *ret_mathematics);
/* `scanner->at` is behind such a command. Words become one token; anything else is an ordinary group. */
bool math_scan_text(struct scanner *scanner, bool mathematics);

/* One sign, word or command. false: it is in no list. */
bool math_scan_one(struct scanner *scanner);

/* --- tokens_groups.c --- */

/* \color{red}{42}, \SI{12}{cm}, \mathbf{1 2}: `scanner->at` is behind the command. */
bool math_scan_grouped(struct scanner *scanner, unsigned command);

/* --- tokens_wide.c --- */

/* A full-width sign or, where they are read, digit. false: there is none. */
bool math_scan_wide(struct scanner *scanner);

#endif
