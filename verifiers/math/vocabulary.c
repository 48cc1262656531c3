/* The words of the texts that an answer is read beside: of the references, of the prompt. */
#include <ctype.h>
#include <strings.h>

#include "verifiers/math/words.h"

static bool is_letter_at(struct text text, size_t at)
{
    return at < text.length_bytes && isalpha((unsigned char)text.data[at]);
}

/* One of them may have the plural's s or es more than the other. */
static bool is_same_word(struct text left, struct text right)
{
    struct text shorter = left.length_bytes <= right.length_bytes ? left : right;
    struct text longer = left.length_bytes <= right.length_bytes ? right : left;
    size_t more = longer.length_bytes - shorter.length_bytes;

    if (more > 2 || strncasecmp(shorter.data, longer.data, shorter.length_bytes) != 0)
        return false;
    return more == 0 || strncasecmp(longer.data + shorter.length_bytes, more == 1 ? "s" : "es", more) == 0;
}

static bool has_word(struct text text, struct text word)
{
    for (size_t at = 0; at < text.length_bytes;) {
        struct text found = {text.data + at, 0};
        bool command = at && text.data[at - 1] == '\\';
        while (is_letter_at(text, at + found.length_bytes))
            found.length_bytes++;
        if (found.length_bytes && !command && is_same_word(found, word))
            return true;
        at += found.length_bytes ? found.length_bytes : 1;
    }
    return false;
}

bool math_is_in_prompt(const struct math_reading *reading, struct text word)
{
    return reading->prompt.data && has_word(reading->prompt, word);
}

bool math_is_in_references(const struct math_reading *reading, struct text word)
{
    for (size_t i = 0; i < reading->reference_count; i++)
        if (has_word(reading->references[i], word))
            return true;
    return false;
}
