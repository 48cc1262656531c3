/* Keys of engines that are named at run time: a request gives a name, never a path, so that it cannot make the service
 * send some file's content somewhere. */
#include "server/engines/engines.h"

#include "server/settings/table.h"

#include <stdio.h>
#include <unistd.h>

bool engine_token_name_is_sane(struct text name)
{
    if (name.length_bytes < 1 || name.length_bytes > ENGINE_TOKEN_NAME_MAX || name.data[0] == '.')
        return false;
    for (size_t i = 0; i < name.length_bytes; i++) {
        char byte = name.data[i];
        bool sane = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
                    byte == '_' || byte == '-' || byte == '.';
        if (!sane)
            return false;
    }
    return true;
}

static int read_file(const char *path, const char *name, char **ret_token, char ret_message[256])
{
    char message[SETTINGS_MESSAGE_BYTES]; /* names the path: not for the client */
    if (settings_read_token("token", path, ret_token, message) == 0)
        return 0;
    snprintf(ret_message, 256,
             "the file \"%.64s\" in engine.token_dir cannot be used: expected one word in a regular file that not "
             "everybody may read",
             name);
    return -1;
}

int engine_token_read(const struct settings *settings, const char *name, char **ret_token, char ret_message[256])
{
    *ret_token = NULL;
    if (settings->engine_token_dir) {
        _cleanup_free_ char *path = xasprintf("%s/%s", settings->engine_token_dir, name);
        if (access(path, F_OK) == 0)
            return read_file(path, name, ret_token, ret_message);
    }
    _cleanup_free_ char *variable = xasprintf("ROLLOUTD_TOKEN_%s", name);
    const char *value = getenv(variable);
    if (value && *value &&
        strlen(value) == strspn(value, "!\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                       "[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~")) {
        *ret_token = xstrdup(value);
        return 0;
    }
    snprintf(ret_message, 256,
             "there is neither a file \"%.64s\" in engine.token_dir nor a variable ROLLOUTD_TOKEN_%.64s", name, name);
    return -1;
}
