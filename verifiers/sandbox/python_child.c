/* The steps of python3 on a file and at its end: pymain_run_file(), Py_RunMain() and Py_FinalizeEx() of CPython. The
 * interpreter itself is not finalised. */
#include "verifiers/sandbox/python_private.h"

#include <dirent.h>
#include <errno.h>
#include <linux/limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verifiers/sandbox/python_api_private.h"

#define EXIT_NO_FILE 2
#define EXIT_INTERRUPTED 130
#define EXIT_NOT_FLUSHED 120 /* Python could not write what the program had printed */

static void release(PyObject *object)
{
    if (object)
        python.Py_DecRef(object);
}

static bool is_none(const PyObject *object)
{
    return object == python._Py_NoneStruct;
}

static bool has_flag(PyObject *object, unsigned long flag)
{
    PyObject *type = python.PyObject_Type(object);
    bool has = python.PyType_GetFlags(type) & flag;

    release(type);
    return has;
}

/* --- how it ended --- */

static void print_to_stderr(PyObject *value)
{
    PyObject *file = python.PySys_GetObject("stderr");

    python.PyErr_Clear();
    if (file && !is_none(file))
        python.PyFile_WriteObject(value, file, PYTHON_PRINT_RAW);
    python.PySys_WriteStderr("\n");
    python.PyErr_Clear();
}

/* Of a SystemExit: its number, 0 for none, or 1 for anything else, which is printed. */
static int exit_code_of(PyObject *exception)
{
    PyObject *code = exception ? python.PyObject_GetAttrString(exception, "code") : NULL;
    int result = 1;

    if (!code || is_none(code))
        result = 0;
    else if (has_flag(code, PYTHON_IS_INTEGER))
        result = (int)python.PyLong_AsLong(code);
    else
        print_to_stderr(code);
    python.PyErr_Clear();
    release(code);
    return result;
}

static int end_by_system_exit(void)
{
    PyObject *type;
    PyObject *value;
    PyObject *traceback;
    int result;

    python.PyErr_Fetch(&type, &value, &traceback);
    python.PyErr_NormalizeException(&type, &value, &traceback);
    result = exit_code_of(value);
    release(type);
    release(value);
    release(traceback);
    return result;
}

/* The exception that nobody caught: its exit code. */
static int end_by_exception(bool *ret_interrupted)
{
    *ret_interrupted = false;
    if (python.PyErr_ExceptionMatches(*python.PyExc_SystemExit))
        return end_by_system_exit();
    *ret_interrupted = python.PyErr_ExceptionMatches(*python.PyExc_KeyboardInterrupt);
    python.PyErr_Print();
    return EXIT_FAILURE;
}

/* --- its end --- */

/* module.name() */
static PyObject *call(const char *module_name, const char *name)
{
    PyObject *module = python.PyImport_ImportModule(module_name);
    PyObject *result = module ? python.PyObject_CallMethod(module, name, NULL) : NULL;

    if (!result)
        python.PyErr_WriteUnraisable(module);
    release(module);
    return result;
}

static bool is_closed(PyObject *file)
{
    PyObject *closed = python.PyObject_GetAttrString(file, "closed");
    bool result = closed && python.PyObject_IsTrue(closed) > 0;

    python.PyErr_Clear();
    release(closed);
    return result;
}

/* False: what was printed is lost. */
static bool flush(const char *name, bool say_so)
{
    PyObject *file = python.PySys_GetObject(name);
    PyObject *result;

    if (!file || is_none(file) || is_closed(file))
        return true;
    result = python.PyObject_CallMethod(file, "flush", NULL);
    if (!result && say_so)
        python.PyErr_WriteUnraisable(file);
    python.PyErr_Clear();
    release(result);
    return result;
}

static bool flush_both(void)
{
    bool out = flush("stdout", true);
    bool error = flush("stderr", false);

    return out && error;
}

static bool has_other_threads(void)
{
    PyObject *count = call("_thread", "_count");
    bool result = count && python.PyLong_AsLong(count) > 0;

    release(count);
    return result;
}

/* --- letting the objects of __main__ go: they may have a __del__, or be files with bytes to write --- */

static bool main_is_gone;

static void note_that_main_is_gone(PyObject *capsule)
{
    (void)capsule;
    main_is_gone = true;
}

/* A name of one underscore. */
static bool is_private(PyObject *key)
{
    return python.PyUnicode_GetLength(key) > 0 && python.PyUnicode_ReadChar(key, 0) == '_' &&
           (python.PyUnicode_GetLength(key) == 1 || python.PyUnicode_ReadChar(key, 1) != '_');
}

static bool is_builtins(PyObject *key)
{
    PyObject *bytes = python.PyUnicode_AsUTF8String(key);
    bool result = bytes && strcmp(python.PyBytes_AsString(bytes), "__builtins__") == 0;

    python.PyErr_Clear();
    release(bytes);
    return result;
}

static void forget_names(PyObject *names, bool private_ones)
{
    ssize_t position = 0;
    PyObject *key;
    PyObject *value;

    while (python.PyDict_Next(names, &position, &key, &value))
        if (!is_none(value) && has_flag(key, PYTHON_IS_TEXT) && (private_ones ? is_private(key) : !is_builtins(key)) &&
            python.PyDict_SetItem(names, key, python._Py_NoneStruct) < 0)
            python.PyErr_Clear();
}

static void forget_error(void)
{
    static const char *const names[] = {"last_type", "last_value", "last_traceback", "last_exc"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (python.PySys_GetObject(names[i]))
            python.PySys_SetObject(names[i], python._Py_NoneStruct);
}

/* As finalize_modules() does: the module is let go, so that cycles are collected while its names are still there; if
 * something holds the names even so, they are emptied one by one. A capsule among them tells. */
static void forget_main(PyObject *main)
{
    PyObject *names = python.PyModule_GetDict(main);
    PyObject *capsule = python.PyCapsule_New(&main_is_gone, NULL, note_that_main_is_gone);
    PyObject *modules = python.PySys_GetObject("modules");

    if (!capsule || !modules || python.PyDict_SetItemString(names, "__gone__", capsule) < 0)
        return;
    release(capsule);
    /* A collection before brings each object behind those that hold it: a file is written before it is closed. */
    python.PyGC_Collect();
    forget_error();
    python.PyDict_DelItemString(modules, "__main__");
    python.PyErr_Clear();
    release(main);
    python.PyGC_Enable();
    python.PyGC_Collect();
    if (main_is_gone)
        return;
    forget_names(names, true);
    forget_names(names, false);
}

/* The steps of Py_FinalizeEx() that others can see. */
static bool finalise(PyObject *main)
{
    bool flushed;

    release(call("threading", "_shutdown"));
    release(call("atexit", "_run_exitfuncs"));
    flushed = flush_both();
    /* Threads that nobody waits for must be stopped before anything is taken from under them. */
    if (has_other_threads())
        return python.Py_FinalizeEx() == 0 && flushed;
    forget_main(main);
    flush("stdout", false);
    flush("__stdout__", false);
    flush("stderr", false);
    return flushed;
}

static void end(PyObject *main, int code, bool interrupted) __attribute__((noreturn));
static void end(PyObject *main, int code, bool interrupted)
{
    if (!finalise(main))
        code = EXIT_NOT_FLUSHED;
    fflush(NULL);
    if (interrupted) {
        signal(SIGINT, SIG_DFL);
        kill(getpid(), SIGINT);
        code = EXIT_INTERRUPTED;
    }
    _exit(code);
}

/* --- its beginning --- */

static PyObject *list_of(const char *const *texts, size_t count)
{
    PyObject *list = python.PyList_New(0);

    for (size_t i = 0; list && i < count; i++) {
        PyObject *text = python.PyUnicode_DecodeFSDefault(texts[i]);

        if (text)
            python.PyList_Append(list, text);
        release(text);
    }
    return list;
}

/* The names of Python files in the box, except for the program's own. */
static void list_neighbours(const char *own, PyObject *list)
{
    DIR *box = opendir(".");
    struct dirent *entry;

    while (box && (entry = readdir(box))) {
        const char *ending = strrchr(entry->d_name, '.');
        PyObject *name;

        if (!ending || strcmp(ending, ".py") != 0 || strcmp(entry->d_name, own) == 0)
            continue;
        name = python.PyUnicode_DecodeFSDefault(entry->d_name);
        if (name)
            python.PyList_Append(list, name);
        release(name);
    }
    if (box)
        closedir(box);
}

static int is_pipe(int fd)
{
    struct stat status;

    return fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode);
}

/* A __main__ of its own. NULL with an exception. */
static PyObject *begin(const char *box, const char *path, const struct python_program *program)
{
    PyObject *arguments = list_of(program->arguments, program->argument_count);
    PyObject *neighbours = list_of(NULL, 0);
    PyObject *main;

    if (!arguments || !neighbours)
        return NULL;
    list_neighbours(program->file, neighbours);
    main = python.PyObject_CallFunction(python.begin, "sO(iii)iO", path, arguments, is_pipe(0), is_pipe(1), is_pipe(2),
                                        strcmp(python.home, box) == 0, neighbours);
    release(arguments);
    release(neighbours);
    return main;
}

static FILE *open_file(const char *path)
{
    FILE *file = fopen(path, "rbe");

    if (file)
        return file;
    fprintf(stderr, "%s: can't open file '%s': [Errno %d] %s\n", python.executable, path, errno, strerror(errno));
    _exit(EXIT_NO_FILE);
}

/* Of the harnesses the zygote has the code. */
static PyObject *run(const char *path, PyObject *names)
{
    PyObject *code = python.PyObject_CallFunction(python.kept, "s", path);
    PyObject *result = NULL;

    if (code && is_none(code))
        result = python.PyRun_FileExFlags(open_file(path), path, PYTHON_FILE_INPUT, names, names, 1, NULL);
    else if (code)
        result = python.PyEval_EvalCode(code, names, names);
    release(code);
    return result;
}

void python_child(const struct python_program *program)
{
    char box[PATH_MAX];
    char path[PATH_MAX + sizeof "/" + NAME_MAX];
    bool interrupted = false;
    int code = 0;
    PyObject *main;
    PyObject *names;
    PyObject *result;

    if (!getcwd(box, sizeof box))
        box[0] = '\0';
    snprintf(path, sizeof path, "%s/%s", box, program->file);
    python.PyOS_AfterFork_Child();
    main = begin(box, path, program);
    if (!main) {
        python.PyErr_Print();
        _exit(EXIT_FAILURE);
    }
    names = python.PyModule_GetDict(main);
    result = run(path, names);
    if (!result)
        code = end_by_exception(&interrupted);
    release(result);
    end(main, code, interrupted);
}
