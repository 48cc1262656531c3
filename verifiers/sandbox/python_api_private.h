/* python_api: the functions of libpython that rolloutd calls, found at run time. They are of Python's stable ABI, with
 * one exception: PyRun_FileExFlags, which every version has.
 *
 * One thread. */
#ifndef SANDBOX_PYTHON_API_PRIVATE_H
#define SANDBOX_PYTHON_API_PRIVATE_H

#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>
#include <wchar.h>

typedef struct PyObject PyObject; /* never looked into */

/* clang-format off */
/* FUNCTION(what it returns, its name, its parameters) */
#define PYTHON_FUNCTIONS(FUNCTION) \
    FUNCTION(void, Py_SetProgramName, (const wchar_t *name)) \
    FUNCTION(void, Py_InitializeEx, (int with_signals)) \
    FUNCTION(int, Py_FinalizeEx, (void)) \
    FUNCTION(void, PyOS_BeforeFork, (void)) \
    FUNCTION(void, PyOS_AfterFork_Child, (void)) \
    FUNCTION(PyObject *, Py_CompileString, (const char *text, const char *file_name, int start)) \
    FUNCTION(PyObject *, PyEval_EvalCode, (PyObject *code, PyObject *globals, PyObject *locals)) \
    FUNCTION(PyObject *, PyRun_FileExFlags, (FILE *file, const char *file_name, int start, PyObject *globals, PyObject *locals, int close_it, void *flags)) \
    FUNCTION(PyObject *, PyObject_CallFunction, (PyObject *callable, const char *format, ...)) \
    FUNCTION(PyObject *, PyObject_CallMethod, (PyObject *object, const char *name, const char *format, ...)) \
    FUNCTION(PyObject *, PyObject_GetAttrString, (PyObject *object, const char *name)) \
    FUNCTION(PyObject *, PyObject_Str, (PyObject *object)) \
    FUNCTION(PyObject *, PyObject_Type, (PyObject *object)) \
    FUNCTION(int, PyObject_IsTrue, (PyObject *object)) \
    FUNCTION(unsigned long, PyType_GetFlags, (PyObject *type)) \
    FUNCTION(PyObject *, PyImport_ImportModule, (const char *name)) \
    FUNCTION(PyObject *, PyModule_GetDict, (PyObject *module)) \
    FUNCTION(PyObject *, PySys_GetObject, (const char *name)) \
    FUNCTION(int, PySys_SetObject, (const char *name, PyObject *value)) \
    FUNCTION(void, PySys_WriteStderr, (const char *format, ...)) \
    FUNCTION(int, PyFile_WriteObject, (PyObject *object, PyObject *file, int flags)) \
    FUNCTION(PyObject *, PyDict_New, (void)) \
    FUNCTION(PyObject *, PyDict_GetItemString, (PyObject *dict, const char *key)) \
    FUNCTION(int, PyDict_SetItemString, (PyObject *dict, const char *key, PyObject *value)) \
    FUNCTION(int, PyDict_DelItemString, (PyObject *dict, const char *key)) \
    FUNCTION(int, PyDict_SetItem, (PyObject *dict, PyObject *key, PyObject *value)) \
    FUNCTION(int, PyDict_Next, (PyObject *dict, ssize_t *position, PyObject **ret_key, PyObject **ret_value)) \
    FUNCTION(PyObject *, PyList_New, (ssize_t length)) \
    FUNCTION(int, PyList_Append, (PyObject *list, PyObject *item)) \
    FUNCTION(PyObject *, PyUnicode_DecodeFSDefault, (const char *text)) \
    FUNCTION(PyObject *, PyUnicode_AsUTF8String, (PyObject *text)) \
    FUNCTION(ssize_t, PyUnicode_GetLength, (PyObject *text)) \
    FUNCTION(unsigned, PyUnicode_ReadChar, (PyObject *text, ssize_t index)) \
    FUNCTION(char *, PyBytes_AsString, (PyObject *bytes)) \
    FUNCTION(long, PyLong_AsLong, (PyObject *number)) \
    FUNCTION(PyObject *, PyCapsule_New, (void *pointer, const char *name, void (*destructor)(PyObject *))) \
    FUNCTION(PyObject *, PyErr_Occurred, (void)) \
    FUNCTION(int, PyErr_ExceptionMatches, (PyObject *exception)) \
    FUNCTION(void, PyErr_Fetch, (PyObject **ret_type, PyObject **ret_value, PyObject **ret_traceback)) \
    FUNCTION(void, PyErr_NormalizeException, (PyObject **type, PyObject **value, PyObject **traceback)) \
    FUNCTION(void, PyErr_Clear, (void)) \
    FUNCTION(void, PyErr_Print, (void)) \
    FUNCTION(void, PyErr_WriteUnraisable, (PyObject *where)) \
    FUNCTION(int, PyGC_Enable, (void)) \
    FUNCTION(ssize_t, PyGC_Collect, (void)) \
    FUNCTION(void, Py_DecRef, (PyObject *object))

#define PYTHON_VARIABLES(VARIABLE) \
    VARIABLE(int, Py_NoSiteFlag) \
    VARIABLE(int, Py_NoUserSiteDirectory) \
    VARIABLE(PyObject *, PyExc_SystemExit) \
    VARIABLE(PyObject *, PyExc_KeyboardInterrupt) \
    VARIABLE(PyObject, _Py_NoneStruct)
/* clang-format on */

#define PYTHON_FILE_INPUT 257
#define PYTHON_PRINT_RAW 1
#define PYTHON_IS_INTEGER (1ul << 24) /* of PyType_GetFlags(): Py_TPFLAGS_LONG_SUBCLASS */
#define PYTHON_IS_TEXT (1ul << 28)    /* Py_TPFLAGS_UNICODE_SUBCLASS */

/* Each by its own name: python.Py_InitializeEx(1). */
struct python_api {
#define FUNCTION(type, name, parameters) type(*name) parameters;
    PYTHON_FUNCTIONS(FUNCTION)
#undef FUNCTION
#define VARIABLE(type, name) type *name;
    PYTHON_VARIABLES(VARIABLE)
#undef VARIABLE
    char home[256];      /* HOME when it began: what os.environ has */
    PyObject *begin;     /* of python_boot.py */
    PyObject *kept;      /* likewise */
    char executable[64]; /* sys.executable */
    char version[8];     /* "3.11" */
};

extern struct python_api python; /* filled by python_load(), then python_zygote_init() */

/* Opens the library of the Python that `venv` is of, else that /usr/bin/python3 is, else the newest. 0, or -1 with
 * ret_message. */
int python_load(const char *venv, char *ret_message, size_t message_bytes);

#endif
