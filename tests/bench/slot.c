/* Programs in a slot: the round trip of one, one after the other.
 *
 *     slot [rounds] [venv or -] [one way alone]
 *
 * Each row of the table below is a program. The first one of its kind is not counted: it makes the zygote, or the binary. A round
 * runs each of them in turn, so that a load of the machine meets all alike.
 * One line of JSON: percentiles in microseconds. */
#include "verifiers/sandbox/slot.h"
#include "verifiers/sandbox/probe.h"
#include "verifiers/sandbox/sandbox.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/base/words.h"

#define ROUNDS_MAX 100000
#define IMPORTS                                                                                                        \
    "import sys, math, re, collections, itertools, functools, heapq, bisect, json, typing, random, string, datetime, " \
    "fractions, decimal, copy, operator, io, time\n"

static const struct way {
    const char *name;
    enum sandbox_language language;
    const char *source;
    const char *arguments[4];
    bool needs_venv;
} ways[] = {
    {"python", SANDBOX_PYTHON, "print(1)", {0}, false},
    {"python_19_imports", SANDBOX_PYTHON, IMPORTS "print(1)", {0}, false},
    {"python_numpy", SANDBOX_PYTHON, "import numpy\nprint(int(numpy.arange(2)[1]))", {0}, true},
    {"sh", SANDBOX_SH, "echo 1", {0}, false},
    {"c", SANDBOX_C, "#include <stdio.h>\nint main(void)\n{\n    puts(\"1\");\n    return 0;\n}\n", {0}, false},
    {"command_true", SANDBOX_COMMAND, NULL, {"/bin/echo", "1"}, false},
    {"command_python3", SANDBOX_COMMAND, NULL, {"/usr/bin/python3", "-c", "print(1)"}, false},
    {"command_python3_I_S", SANDBOX_COMMAND, NULL, {"/usr/bin/python3", "-IS", "-c", "print(1)"}, false},
    {"command_python3_I_S_19_imports",
     SANDBOX_COMMAND,
     NULL,
     {"/usr/bin/python3", "-IS", "-c", IMPORTS "print(1)"},
     false},
};

static int64_t times_us[ARRAY_LENGTH(ways)][ROUNDS_MAX];

static int start_slot(const struct sandbox_settings *settings)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        exit(1);
    if (fork() == 0) {
        int null = open("/dev/null", O_RDWR);

        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        dup2(pair[1], 3);
        for (int i = 0; i < 3; i++)
            dup2(null, i);
        close_range(4, ~0u, 0);
        slot_main(3, settings);
    }
    close(pair[1]);
    return pair[0];
}

static int64_t run(int slot, const struct way *way)
{
    struct sandbox_program program = {
        .language = way->language,
        .source = text_of(way->source),
        .input = TEXT_LITERAL(""),
        .limits = {.wall_ms = 60000,
                   .cpu_ms = 60000,
                   .memory_bytes = 512 << 20,
                   .output_bytes = 1 << 20,
                   .disk_bytes = 16 << 20,
                   .processes = 16},
    };
    struct sandbox_result result;
    int64_t began_us;
    int64_t took_us;

    for (; program.argument_count < ARRAY_LENGTH(way->arguments) && way->arguments[program.argument_count];
         program.argument_count++)
        program.arguments[program.argument_count] = way->arguments[program.argument_count];
    began_us = clock_monotonic_us();
    if (sandbox_run(slot, &program, 1, &result) < 0 || !text_equals(result.standard_output, "1\n")) {
        fprintf(stderr, "%s: %s%.*s\n", way->name, result.message, (int)result.standard_error.length_bytes,
                result.standard_error.data);
        exit(1);
    }
    took_us = clock_monotonic_us() - began_us;
    sandbox_result_finish(&result);
    return took_us;
}

static int compare(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left;
    int64_t b = *(const int64_t *)right;

    return (a > b) - (a < b);
}

static void print(size_t way, size_t rounds)
{
    int64_t *times = times_us[way];

    qsort(times, rounds, sizeof *times, compare);
    printf("%s\"%s\":{\"min_us\":%lld,\"p50_us\":%lld,\"p99_us\":%lld}", way ? "," : "{", ways[way].name,
           (long long)times[0], (long long)times[rounds / 2], (long long)times[rounds * 99 / 100]);
}

static bool is_wanted(const struct way *way, const struct sandbox_settings *settings, const char *only)
{
    return (!way->needs_venv || *settings->venv) && (!only || strcmp(only, way->name) == 0);
}

int main(int argc, char **argv)
{
    size_t rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 200;
    struct sandbox_settings settings = {.uid = 65534, .min_level = SANDBOX_LEVEL_REDUCED};
    struct sandbox_report report;
    int slot;

    snprintf(settings.venv, sizeof settings.venv, "%s", argc > 2 && strcmp(argv[2], "-") != 0 ? argv[2] : "");
    sandbox_probe(&settings, &report);
    settings.level = report.level;
    if (rounds == 0 || rounds > ROUNDS_MAX || report.level == SANDBOX_LEVEL_NONE)
        return 1;
    slot = start_slot(&settings);
    for (size_t round = 0; round < rounds + 1; round++)
        for (size_t i = 0; i < ARRAY_LENGTH(ways); i++)
            if (is_wanted(&ways[i], &settings, argc > 3 ? argv[3] : NULL))
                times_us[i][round ? round - 1 : 0] = run(slot, &ways[i]);
    close(slot);
    wait(NULL);
    for (size_t i = 0; i < ARRAY_LENGTH(ways); i++)
        print(i, rounds);
    puts("}");
    return 0;
}
