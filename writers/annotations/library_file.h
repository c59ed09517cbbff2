/* library_file.h: which code is the user's own, so that a table names the user's line and not one of a library. */
#ifndef KPTI_WRITERS_ANNOTATIONS_LIBRARY_FILE_H
#define KPTI_WRITERS_ANNOTATIONS_LIBRARY_FILE_H

#include <string.h>

#include "abi/kpt_base.h"

/* Returns whether FILE is an installed package's or Python's own. */
static inline int kpti_is_library_file(kpt_str file)
{
    static const char *const parts[] = {"/site-packages/", "/dist-packages/", "/lib/python",
                                        "<frozen "};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (file.size && memmem(file.data, (size_t)file.size, parts[i], strlen(parts[i]))) return 1;
    return 0;
}

#endif
