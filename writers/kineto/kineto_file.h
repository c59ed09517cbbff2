/* kineto_file.h: finds where events can be inserted into a trace that Kineto has written. Its list of events
 * ends with "Record Window End", an event that no other trace has. From there to the end of the file everything
 * is parsed. New events are inserted before the closing events of Kineto's list. A head that is not valid JSON
 * is repaired (kineto_header.h). Any other file is rejected. No file is changed here. */
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
    uint64_t events_begin; /* after the bracket of the list */
    uint64_t events_end;   /* after the last event before the closing events */
    int64_t base_ns;       /* base of the file's times */
    uint64_t next_index;   /* larger than every "Ev Idx" */
    int has_devices;       /* 0: the head has an empty list of devices */
    kpti_kineto_head head; /* replaces the bytes before events_begin if they are not valid JSON */
} kpti_kineto_file;

/* Opens PATH and finds these positions. FILE's heap may be set before. Returns 0 or an errno; EBADMSG if it is
 * not a trace of Kineto, and *WHY then has a text. Only after 0 the caller must call kpti_kineto_close. */
int kpti_kineto_open(kpti_kineto_file *file, const char *path, const char **why);

/* Reads the SIZE bytes at FROM. Returns 0 or an errno. */
int kpti_kineto_read(const kpti_kineto_file *file, char *buffer, size_t size, uint64_t from);

/* Writes the repaired head, if there is one, and returns how many bytes of the file it replaces; else returns
 * 0. */
uint64_t kpti_kineto_put_head(const kpti_kineto_file *file, kpti_out_file *out);

/* Copies the bytes between two positions. Returns 0 or the errno of a read. */
int kpti_kineto_copy(const kpti_kineto_file *file, kpti_out_file *out, uint64_t from, uint64_t to);

void kpti_kineto_close(kpti_kineto_file *file);

#ifdef __cplusplus
}
#endif
#endif
