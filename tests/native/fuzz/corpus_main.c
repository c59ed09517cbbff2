/* corpus_main.c: runs a fuzz target on every file of the folders that are named, without a fuzzer.
 * usage: kpt_corpus_<name> FOLDER [FOLDER …] */
#include <dirent.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_BYTES = 1 << 20 };

/* 1 if it could be read. */
static int run_file(const char *path)
{
    static uint8_t data[MAX_BYTES];
    FILE *file = fopen(path, "rb");
    size_t size;
    uint8_t *exact; /* so that a read behind it is seen */
    if (!file) return 0;
    size = fread(data, 1, sizeof data, file);
    (void)fclose(file);
    exact = malloc(size ? size : 1);
    if (!exact) abort();
    for (size_t i = 0; i < size; i++)
        exact[i] = data[i];
    (void)LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    return 1;
}

static int run_folder(const char *folder)
{
    DIR *open = opendir(folder);
    struct dirent *entry;
    int count = 0;
    if (!open) return -1;
    while ((entry = readdir(open))) {
        char path[PATH_MAX];
        if (entry->d_name[0] == '.') continue;
        (void)snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        count += run_file(path);
    }
    (void)closedir(open);
    return count;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const int count = run_folder(argv[i]);
        if (count <= 0) {
            (void)fprintf(stderr, "%s: nothing to read in %s\n", argv[0], argv[i]);
            return EXIT_FAILURE;
        }
        printf("%s: %d inputs\n", argv[i], count);
    }
    return argc > 1 ? EXIT_SUCCESS : EXIT_FAILURE;
}
