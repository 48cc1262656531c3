#include "verifiers/code/harness_private.h"

#include "schema/embedded.h"

extern const struct embedded_file harness_files[];

enum { HARNESS_CALLS, HARNESS_CANDIDATE, HARNESS_TESTS };

static struct text file_text(int index)
{
    return (struct text){harness_files[index].data, harness_files[index].size_bytes};
}

struct text harness_calls(void)
{
    return file_text(HARNESS_CALLS);
}

struct text harness_candidate(void)
{
    return file_text(HARNESS_CANDIDATE);
}

struct text harness_tests(void)
{
    return file_text(HARNESS_TESTS);
}
