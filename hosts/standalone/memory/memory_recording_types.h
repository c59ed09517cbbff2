/* memory_recording_types.h: a recording of memory, and where it is written. */
#ifndef KPTI_HOSTS_STANDALONE_MEMORY_MEMORY_RECORDING_TYPES_H
#define KPTI_HOSTS_STANDALONE_MEMORY_MEMORY_RECORDING_TYPES_H

typedef struct kpti_recording kpti_recording;

/* Where a recording is written while it runs. */
typedef enum kpti_recording_kind {
    KPTI_RECORDING_FILE =
        0, /* PATH is the user's file, which is complete when the recording is stopped */
    KPTI_RECORDING_SPOOL =
        1, /* PATH is a file from which others are made; it stays until kpti_recording_drop_spool */
    KPTI_RECORDING_UNNAMED =
        2, /* the same, but PATH is removed at once: it ends with the process */
    KPTI_RECORDING_AGGREGATE = 3, /* no file: it is added up in memory (memory_aggregate.h) */
    KPTI_RECORDING_JOINED = 4     /* the stream of a session: kpti_recording_join */
} kpti_recording_kind;

#endif
