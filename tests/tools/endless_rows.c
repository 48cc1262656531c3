/* The table of verifiers with one more, for the tests of what happens to one that does not end: no verifier of the
 * service's own lets a text bring it there. `endless` judges a text of 100 times "a" and more for ever, any other one
 * is incorrect. */
#include "verifiers/registry.h"
#include "verifiers/rows.h"

#define ENDLESS_BYTES 100

static void judge(const struct verifier_input *input, struct verdict *ret_verdict)
{
    size_t count = 0;

    while (count < input->completion.length_bytes && input->completion.data[count] == 'a')
        count++;
    for (volatile bool forever = true; count >= ENDLESS_BYTES && forever;)
        continue;
    verdict_set(ret_verdict, false, "different");
}

static const struct verifier verifier_endless = {
    .name = "endless", .version = "1", .help = "does not end on a text of many a", .judge = judge};

#define VERIFIER(name) &verifier_##name,
const struct verifier *const verifiers[] = {
#include "verifiers/rows.def"
    &verifier_endless};
#undef VERIFIER
const size_t verifier_count = ARRAY_LENGTH(verifiers);
