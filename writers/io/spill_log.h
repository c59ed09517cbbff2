/* spill_log.h: bytes that are appended, and read back by their place. The first megabytes are in memory, what follows is
 * in a file without a name beside the output, or in /tmp if the output is no file.
 *
 * One thread at a time; no GIL. */
#ifndef KPTI_WRITERS_IO_SPILL_LOG_H
#define KPTI_WRITERS_IO_SPILL_LOG_H

#include "core/base/allocator.h"
#include "writers/io/output_path.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { KPTI_SPILL_MEMORY_BYTES = 4 << 20 };

/* Zeroed at first, except for the heap and the output's place, which must live until free. */
typedef struct kpti_spill_log {
    kpti_heap heap;
    const kpti_out_path *output;
    char *memory; /* the last bytes, from `written` on */
    uint64_t capacity;
    uint64_t used;
    uint64_t written; /* bytes in the file */
    int has_file;
    int fd;
    kpti_file_id id;
    char *read; /* bytes of the file that were read last */
    uint64_t read_at;
    uint64_t read_bytes;
} kpti_spill_log;

/* Appends SIZE bytes, at most KPTI_SPILL_MEMORY_BYTES. Sets *PLACE. Returns 0 or an errno. */
int kpti_spill_log_add(kpti_spill_log *log, const void *bytes, size_t size, uint64_t *place);

/* Copies SIZE bytes from PLACE on to OUT. Reading in the order of places is quick. Returns 0 or an errno. */
int kpti_spill_log_read(kpti_spill_log *log, uint64_t place, void *out, size_t size);

void kpti_spill_log_free(kpti_spill_log *log);

#ifdef __cplusplus
}
#endif
#endif
