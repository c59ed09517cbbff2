/* memory_file.h: makes the other files of a memory recording from its .kpt file, in memory that grows with distinct stacks
 * and with live blocks only. Plain C without Python and without the plugin. */
#ifndef KPTI_HOSTS_STANDALONE_MEMORY_MEMORY_FILE_H
#define KPTI_HOSTS_STANDALONE_MEMORY_MEMORY_FILE_H

#include "hosts/standalone/error.h"
#include "writers/kpt/kpt_reader.h"
#include "writers/memory/memory_formats.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the writer for the suffix of PATH, .html among them, or NULL. */
kpti_memory_write_fn kpti_memory_file_writer(const char *path);

/* Writes PATH, in the format of its suffix, from the .kpt file SOURCE. WANTED: what is in tables. A damaged file is refused without RECOVER, and is
 * read up to the damage with it. *STATE receives how the file ends. A failed call leaves no file. */
kpt_status kpti_memory_file_convert(const char *source, int recover,
                                    const kpti_memory_wanted *wanted, const char *path,
                                    kpti_kpt_state *state, kpti_session_error *error);

#ifdef __cplusplus
}
#endif
#endif
