#include "verifiers/code/limits.h"

#include <math.h>
#include <string.h>

#include "server/base/nearest.h"

enum limit { LIMIT_WALL, LIMIT_CPU, LIMIT_MEMORY, LIMIT_OUTPUT, LIMIT_PROCESSES, LIMIT_DISK, LIMIT_TOTAL, LIMITS };

static const struct {
    const char *name;
    double fallback;
    double minimum;
    double maximum;
} table[LIMITS] = {
    [LIMIT_WALL] = {"wall_ms", 10000, 10, 600000},
    [LIMIT_CPU] = {"cpu_ms", 10000, 10, 600000},
    [LIMIT_MEMORY] = {"memory_mb", 512, 16, 65536},
    [LIMIT_OUTPUT] = {"output_kb", 1024, 1, 65536},
    [LIMIT_PROCESSES] = {"procs", 16, 1, 1024},
    [LIMIT_DISK] = {"disk_kb", 16384, 4, 1048576},
    [LIMIT_TOTAL] = {"total_ms", CODE_TOTAL_MS, 10, 3600000},
};

static int check_one(const char *name, const json_t *value, struct verifier_problem *ret_problem)
{
    char advice[ADVICE_BYTES];

    for (size_t i = 0; i < LIMITS; i++) {
        if (strcmp(name, table[i].name) != 0)
            continue;
        double number = json_number_value(value);
        if (!json_is_number(value) || number < table[i].minimum || number > table[i].maximum)
            return verifier_refuse(ret_problem, "limits", "%s must be from %.0f to %.0f", name, table[i].minimum,
                                   table[i].maximum);
        return 0;
    }
    names_advise(text_of(name), table, sizeof(table[0]), LIMITS, advice);
    return verifier_refuse(ret_problem, "limits", "%.64s is no limit; %s", name, advice);
}

int code_limits_check(const json_t *limits, struct verifier_problem *ret_problem)
{
    const char *name;
    const json_t *value;

    json_object_foreach ((json_t *)(uintptr_t)limits, name, value)
        if (check_one(name, value, ret_problem) < 0)
            return -1;
    return 0;
}

static double limit_of(const json_t *limits, enum limit limit, double of_row)
{
    const json_t *value = json_object_get(limits, table[limit].name);

    if (json_is_number(value))
        return json_number_value(value);
    return isfinite(of_row) ? fmin(fmax(of_row, table[limit].minimum), table[limit].maximum) : table[limit].fallback;
}

struct sandbox_limits code_limits_of(const json_t *limits, const struct test_set *set)
{
    double wall_ms = limit_of(limits, LIMIT_WALL, set->wall_ms);

    return (struct sandbox_limits){
        .wall_ms = (int64_t)wall_ms,
        .cpu_ms = (int64_t)limit_of(limits, LIMIT_CPU, wall_ms),
        .memory_bytes = (int64_t)(limit_of(limits, LIMIT_MEMORY, set->memory_mb) * 1048576),
        .output_bytes = (int64_t)(limit_of(limits, LIMIT_OUTPUT, NAN) * 1024),
        .disk_bytes = (int64_t)(limit_of(limits, LIMIT_DISK, NAN) * 1024),
        .processes = (int64_t)limit_of(limits, LIMIT_PROCESSES, NAN),
    };
}
