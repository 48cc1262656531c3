/* The verifier json_schema alone, on one thread.
 *
 *     json_schema CASES ROUNDS
 *
 * CASES: a line of JSON for each, {"id","completion","options","reference"}. Each is judged ROUNDS times, all of them in
 * turn; the schema is read anew each time, as a worker does. One line of JSON for each case: its id, verdict, reason and
 * the CPU time of its fastest and slowest round in ns. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "server/base/cleanup.h"
#include "server/base/json_big.h"
#include "verifiers/registry.h"

struct one {
    json_t *root; /* of the line */
    json_t *options;
    struct verifier_input input;
    char reason[40];
    const char *verdict;
    int64_t fastest_ns;
    int64_t slowest_ns;
};

static int64_t cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static const struct verifier *verifier(void)
{
    return registry_find(TEXT_LITERAL("json_schema"));
}

static void read_case(struct text line, struct one *ret_one)
{
    struct verifier_problem problem;
    json_t *root = json_big_load(line, JSON_ALLOW_NUL, NULL);
    json_t *options = registry_fill_options(verifier(), json_object_get(root, "options"), &problem);

    if (!options) {
        fprintf(stderr, "json_schema: %s\n", root ? problem.message : "a line is no JSON");
        exit(1);
    }
    *ret_one = (struct one){.root = root, .options = options, .fastest_ns = INT64_MAX};
    ret_one->input = (struct verifier_input){.completion = json_text_of(json_object_get(root, "completion")),
                                             .reference = json_object_get(root, "reference"),
                                             .options = options,
                                             .completion_tokens = -1,
                                             .sandbox_fd = -1};
}

static size_t read_cases(const char *path, struct one **ret_all)
{
    FILE *file = fopen(path, "r");
    _cleanup_free_ char *line = NULL;
    size_t room_bytes = 0;
    size_t count = 0;
    ssize_t length_bytes;

    *ret_all = NULL;
    while (file && (length_bytes = getline(&line, &room_bytes, file)) > 0) {
        *ret_all = xrealloc(*ret_all, (count + 1) * sizeof **ret_all);
        read_case((struct text){line, (size_t)length_bytes}, &(*ret_all)[count++]);
    }
    if (file)
        fclose(file);
    return count;
}

static void grade(struct one *one)
{
    int64_t before_ns = cpu_ns();
    struct verdict verdict;

    registry_grade(verifier(), &one->input, &verdict);
    verdict_finish(&verdict);
    int64_t took_ns = cpu_ns() - before_ns;
    one->verdict = verdict_kind_names[verdict.kind];
    snprintf(one->reason, sizeof one->reason, "%s", verdict.reason);
    one->fastest_ns = took_ns < one->fastest_ns ? took_ns : one->fastest_ns;
    one->slowest_ns = took_ns > one->slowest_ns ? took_ns : one->slowest_ns;
}

int main(int argc, char **argv)
{
    struct one *all = NULL;
    size_t count = argc == 3 ? read_cases(argv[1], &all) : 0;

    if (!count) {
        fprintf(stderr, "usage: json_schema CASES ROUNDS\n");
        return 2;
    }
    for (int round = 0; round < atoi(argv[2]); round++)
        for (size_t i = 0; i < count; i++)
            grade(&all[i]);
    for (size_t i = 0; i < count; i++) {
        printf("{\"id\":\"%s\",\"verdict\":\"%s\",\"reason\":\"%s\",\"fastest_ns\":%lld,\"slowest_ns\":%lld}\n",
               json_string_value(json_object_get(all[i].root, "id")), all[i].verdict, all[i].reason,
               (long long)all[i].fastest_ns, (long long)all[i].slowest_ns);
        json_decref(all[i].root);
        json_decref(all[i].options);
    }
    free(all);
    return 0;
}
