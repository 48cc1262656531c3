/* Feeds every file of the folders that are named to a target: what was found once is tested in every build. */
#include "tests/fuzz/fuzz.h"

#include "server/base/buffer.h"

#include <dirent.h>

static void replay_file(const char *path)
{
    _cleanup_buffer_ struct buffer input;
    FILE *file = fopen(path, "re");
    char bytes[65536];

    FUZZ_CHECK(file);
    buffer_init(&input, 64 << 20);
    for (size_t got; (got = fread(bytes, 1, sizeof(bytes), file)) > 0;)
        buffer_append(&input, bytes, got);
    fclose(file);
    fprintf(stderr, "%s\n", path);
    /* Exactly its bytes, so that a sanitizer sees who reads behind them. */
    size_t size_bytes = input.length_bytes;
    uint8_t *exact = xrealloc(NULL, size_bytes ? size_bytes : 1);
    if (size_bytes)
        memcpy(exact, input.data, size_bytes);
    LLVMFuzzerTestOneInput(exact, size_bytes);
    free(exact);
}

static size_t replay_folder(const char *folder)
{
    DIR *directory = opendir(folder);
    size_t count = 0;

    FUZZ_CHECK(directory);
    for (struct dirent *entry; (entry = readdir(directory));) {
        if (entry->d_name[0] == '.')
            continue;
        _cleanup_free_ char *path = xasprintf("%s/%s", folder, entry->d_name);
        replay_file(path);
        count++;
    }
    closedir(directory);
    return count;
}

int main(int argc, char **argv)
{
    size_t count = 0;

    LLVMFuzzerTestOneInput(NULL, 0);
    for (int i = 1; i < argc; i++)
        count += replay_folder(argv[i]);
    printf("%zu inputs\n", count);
    return count > 0 ? 0 : 1;
}
