#include "verifiers/sandbox/python_api_private.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The newest first. */
static const char *const versions[] = {"3.14", "3.13", "3.12", "3.11"};
#define VERSION_COUNT (sizeof versions / sizeof *versions)

struct python_api python;

static const struct {
    const char *name;
    size_t offset;
} symbols[] = {
#define FUNCTION(type, name, parameters) {#name, offsetof(struct python_api, name)},
    PYTHON_FUNCTIONS(FUNCTION)
#undef FUNCTION
#define VARIABLE(type, name) {#name, offsetof(struct python_api, name)},
        PYTHON_VARIABLES(VARIABLE)
#undef VARIABLE
};

/* Every symbol, or none. */
static bool find_symbols(void *library)
{
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *address = dlsym(library, symbols[i].name);

        if (!address)
            return false;
        memcpy((char *)&python + symbols[i].offset, &address, sizeof address);
    }
    return true;
}

static void *open_version(const char *version)
{
    char name[64];

    snprintf(name, sizeof name, "libpython%s.so.1.0", version);
    /* Global, because Python's own extension modules look for its symbols in the program; now, because what is resolved
     * in the zygote is not resolved again in each program. */
    return dlopen(name, RTLD_NOW | RTLD_GLOBAL);
}

/* The version that the link `path` names: /usr/bin/python3 is "python3.11". NULL: none of ours. */
static const char *version_of_link(const char *path)
{
    char target[PATH_MAX];
    ssize_t length = readlink(path, target, sizeof target - 1);

    target[length < 0 ? 0 : length] = '\0';
    for (size_t i = 0; i < VERSION_COUNT; i++) {
        const char *found = strstr(target, versions[i]);

        if (found && found[strlen(versions[i])] == '\0')
            return versions[i];
    }
    return NULL;
}

static const char *version_of_venv(const char *venv)
{
    char path[PATH_MAX];

    for (size_t i = 0; i < VERSION_COUNT; i++) {
        snprintf(path, sizeof path, "%s/lib/python%s/site-packages", venv, versions[i]);
        if (access(path, F_OK) == 0)
            return versions[i];
    }
    return NULL;
}

/* The library of one of `wanted` (NULL: none), then of any version. */
static void *open_any(const char *const wanted[2], const char **ret_version)
{
    for (size_t i = 0; i < 2 + VERSION_COUNT; i++) {
        const char *version = i < 2 ? wanted[i] : versions[i - 2];
        void *library = version ? open_version(version) : NULL;

        if (library) {
            *ret_version = version;
            return library;
        }
    }
    return NULL;
}

static void *open_library(const char *venv, const char **ret_version, char *ret_message, size_t message_bytes)
{
    void *library = NULL;

    if (venv && *venv) {
        *ret_version = version_of_venv(venv);
        if (!*ret_version)
            snprintf(ret_message, message_bytes,
                     "%s has no lib/python3.11 … 3.14 with site-packages: it is no virtual environment", venv);
        else if (!(library = open_version(*ret_version)))
            snprintf(ret_message, message_bytes, "%s needs libpython%s.so.1.0, which is not there: install libpython%s",
                     venv, *ret_version, *ret_version);
        return library;
    }
    library =
        open_any((const char *const[]){version_of_link("/usr/local/bin/python3"), version_of_link("/usr/bin/python3")},
                 ret_version);
    if (!library)
        snprintf(ret_message, message_bytes,
                 "there is no libpython3.N.so.1.0 of Python 3.11 to 3.14: install libpython3.11 (Debian 12)");
    return library;
}

/* Cuts the last part of a path off. False: there is none. */
static bool cut_part(char *path)
{
    char *slash = strrchr(path, '/');

    if (!slash)
        return false;
    *slash = '\0';
    return true;
}

/* The interpreter that belongs to the library: in the bin/ of a folder above it. And its folder's standard library. */
static int find_executable(void *library, char *ret_message, size_t message_bytes)
{
    char origin[PATH_MAX];
    char folder[PATH_MAX];
    char path[PATH_MAX + 64];
    const char *linked;

    if (dlinfo(library, RTLD_DI_ORIGIN, origin) < 0 || !realpath(origin, folder))
        folder[0] = '\0';
    while (cut_part(folder)) {
        snprintf(path, sizeof path, "%s/lib/python%s/os.py", folder, python.version);
        if (access(path, R_OK) < 0)
            continue;
        snprintf(path, sizeof path, "%s/bin/python3", folder);
        linked = version_of_link(path);
        if (!linked || strcmp(linked, python.version) != 0)
            snprintf(path, sizeof path, "%s/bin/python%s", folder, python.version);
        if (strlen(path) < sizeof python.executable) {
            memcpy(python.executable, path, strlen(path) + 1);
            return 0;
        }
    }
    snprintf(ret_message, message_bytes, "libpython%s is here without its standard library: install libpython%s-stdlib",
             python.version, python.version);
    return -1;
}

int python_load(const char *venv, char *ret_message, size_t message_bytes)
{
    const char *version;
    void *library = open_library(venv, &version, ret_message, message_bytes);

    if (!library)
        return -1;
    snprintf(python.version, sizeof python.version, "%s", version);
    if (find_symbols(library))
        return find_executable(library, ret_message, message_bytes);
    snprintf(ret_message, message_bytes, "libpython%s.so.1.0 lacks a function of Python's C interface: %s", version,
             dlerror());
    return -1;
}
