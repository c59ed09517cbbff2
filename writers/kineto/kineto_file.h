/* kineto_file.h: a trace that Kineto has written, as a place for more events: its list of events ends
 * with one that no other trace has, "Record Window End", and from there to the file's end all is
 * parsed. New events go in front of those with which Kineto closes the list. A head that is no JSON is mended
 * (kineto_header.h). A file that is anything else is refused; none is ever changed here. */
#ifndef KPTI_WRITERS_KINETO_KINETO_FILE_H
#define KPTI_WRITERS_KINETO_KINETO_FILE_H

#include "writers/io/output_file.h"
#include "writers/kineto/kineto_header.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kpti_kineto_file {
    int fd;
    kpti_file_id id;
    kpti_heap heap;
    uint64_t size;
    uint64_t events_begin; /* behind the bracket of the list */
    uint64_t events_end;   /* behind the last event in front of the closing ones */
    int64_t base_ns;       /* what its times are since */
    uint64_t next_index;   /* above every "Ev Idx" */
    int has_devices;       /* 0: its head says that there is no GPU */
    kpti_kineto_head head; /* in place of the bytes up to events_begin, where those are no JSON */
} kpti_kineto_file;

/* Opens PATH and finds these. 0, or an errno, EBADMSG where it is no such trace: *WHY then has a text.
 * FILE is to be closed after 0 only; before, its heap may be set. */
int kpti_kineto_open(kpti_kineto_file *file, const char *path, const char **why);

/* Reads the SIZE bytes at FROM. 0 or an errno. */
int kpti_kineto_read(const kpti_kineto_file *file, char *buffer, size_t size, uint64_t from);

/* Puts the head where it was mended, and returns how many bytes of the file that stands for; else 0. */
uint64_t kpti_kineto_put_head(const kpti_kineto_file *file, kpti_out_file *out);

/* Copies the bytes between two places. 0 or an errno of reading. */
int kpti_kineto_copy(const kpti_kineto_file *file, kpti_out_file *out, uint64_t from, uint64_t to);

void kpti_kineto_close(kpti_kineto_file *file);

#ifdef __cplusplus
}
#endif
#endif
