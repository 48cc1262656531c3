#include "verifiers/sandbox/python_private.h"

#include <linux/limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "schema/embedded.h"
#include "server/base/cleanup.h"
#include "verifiers/sandbox/python_api_private.h"

extern const struct embedded_file python_files[];
extern const struct embedded_file harness_files[]; /* verifiers/code/harness.c */

/* --- pages that others can write, too --- */

struct range {
    uintptr_t start;
    uintptr_t end;
};

/* "7f0000000000-7f0000001000 rw-s …" of /proc/self/maps: shared, and it can be written. A mapping that was opened
 * for reading alone stays read-only. */
static bool is_shared(const char *line, struct range *ret_range)
{
    char *rest;

    ret_range->start = strtoul(line, &rest, 16);
    ret_range->end = *rest == '-' ? strtoul(rest + 1, &rest, 16) : 0;
    return strncmp(rest, " rw", 3) == 0 && rest[4] == 's';
}

static bool next_shared(FILE *maps, struct range *ret_range)
{
    char line[PATH_MAX + 128];

    while (fgets(line, sizeof line, maps))
        if (is_shared(line, ret_range))
            return true;
    return false;
}

static int unmap_shared(char *ret_message, size_t message_bytes)
{
    struct range range;
    FILE *maps;

    do {
        maps = fopen("/proc/self/maps", "re");
        if (!maps) {
            snprintf(ret_message, message_bytes, "/proc/self/maps cannot be read: is /proc there?");
            return -1;
        }
        if (!next_shared(maps, &range))
            range.end = 0;
        fclose(maps);
    } while (range.end > 0 && munmap((void *)range.start, range.end - range.start) == 0);
    return 0;
}

/* --- the interpreter --- */

/* Python's signals are those of its programs: begin() sets them there. */
static void initialise(void)
{
    const char *home = getenv("HOME");
    static const int taken[] = {SIGINT, SIGPIPE, SIGXFSZ};
    static wchar_t name[sizeof python.executable];
    struct sigaction before[sizeof taken / sizeof *taken];

    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        sigaction(taken[i], NULL, &before[i]);
    snprintf(python.home, sizeof python.home, "%s", home ? home : "");
    mbstowcs(name, python.executable, sizeof python.executable - 1);
    *python.Py_NoSiteFlag = 1;
    *python.Py_NoUserSiteDirectory = 1;
    python.Py_SetProgramName(name);
    python.Py_InitializeEx(1);
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        sigaction(taken[i], &before[i], NULL);
}

/* The message of an exception, in one line. */
static void take_error(char *ret_message, size_t message_bytes)
{
    PyObject *type;
    PyObject *value;
    PyObject *traceback;
    PyObject *text;
    PyObject *bytes;

    python.PyErr_Fetch(&type, &value, &traceback);
    python.PyErr_NormalizeException(&type, &value, &traceback);
    text = value ? python.PyObject_Str(value) : NULL;
    bytes = text ? python.PyUnicode_AsUTF8String(text) : NULL;
    snprintf(ret_message, message_bytes, "Python %s does not start: %s", python.version,
             bytes ? python.PyBytes_AsString(bytes) : "no memory");
}

/* Runs python_boot.py: its names. NULL with an exception. */
static PyObject *run_boot(void)
{
    PyObject *code = python.Py_CompileString(python_files[0].data, "<zygote>", PYTHON_FILE_INPUT);
    PyObject *names = code ? python.PyDict_New() : NULL;

    return names && python.PyEval_EvalCode(code, names, names) ? names : NULL;
}

static int boot(const char *venv)
{
    PyObject *names = run_boot();

    if (!names)
        return -1;
    python.begin = python.PyDict_GetItemString(names, "begin");
    python.kept = python.PyDict_GetItemString(names, "kept");
    for (const struct embedded_file *file = harness_files; file->name; file++)
        if (!python.PyObject_CallFunction(python.PyDict_GetItemString(names, "keep"), "s", file->data))
            return -1;
    return python.PyObject_CallFunction(python.PyDict_GetItemString(names, "start"), "s", venv ? venv : "") ? 0 : -1;
}

int python_zygote_init(const char *venv, char *ret_message, size_t message_bytes)
{
    if (unmap_shared(ret_message, message_bytes) < 0 || python_load(venv, ret_message, message_bytes) < 0)
        return -1;
    initialise();
    if (boot(venv) < 0) {
        take_error(ret_message, message_bytes);
        return -1;
    }
    /* Once, for all forks: the zygote runs no Python any more, so there is never an AfterFork_Parent. */
    python.PyOS_BeforeFork();
    return 0;
}
