/* perfetto_wire.h: the numbers of the messages and fields of Perfetto traces that are written here
 * (perfetto_trace.proto). Only the Perfetto writers use this. */
#ifndef KPTI_WRITERS_PERFETTO_PERFETTO_WIRE_H
#define KPTI_WRITERS_PERFETTO_PERFETTO_WIRE_H

enum { TRACE_PACKET = 1 };

enum {
    PACKET_CLOCK_SNAPSHOT = 6,
    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE = 10,
    PACKET_TRACK_EVENT = 11,
    PACKET_INTERNED = 12,
    PACKET_FLAGS = 13,
    PACKET_CLOCK = 58,
    PACKET_DEFAULTS = 59,
    PACKET_TRACK = 60,
    PACKET_FIRST = 87,
    PACKET_STATE_CLEARED = 1 /* a bit of the flags */
};

enum { DEFAULTS_CLOCK = 58, DEFAULTS_TRACK_EVENT = 11, DEFAULTS_TRACK = 11 };

enum {
    SNAPSHOT_CLOCK = 1,
    SNAPSHOT_PRIMARY = 2,
    CLOCK_ID = 1,
    CLOCK_TIME = 2,
    CLOCK_IS_INCREMENTAL = 3,
    UNIX_CLOCK = 1,  /* clock id of Unix time */
    DELTA_CLOCK = 64 /* the first clock id that is local to a sequence */
};

enum {
    TRACK_UUID = 1,
    TRACK_NAME = 2,
    TRACK_PROCESS = 3,
    TRACK_THREAD = 4,
    TRACK_PARENT = 5,
    TRACK_COUNTER = 8,
    PROCESS_PID = 1,
    PROCESS_NAME = 6,
    PROCESS_LABELS = 8,
    THREAD_PID = 1,
    THREAD_TID = 2,
    THREAD_NAME = 5,
    COUNTER_UNIT = 3,
    UNIT_BYTES = 3
};

enum {
    INTERNED_CATEGORY = 1,
    INTERNED_NAME = 2,
    INTERNED_ANNOTATION = 3,
    INTERNED_SOURCE = 4,
    INTERNED_STRING = 29, /* a value of annotations */
    INTERN_ID = 1,
    INTERN_TEXT = 2,
    SOURCE_FILE = 2,
    SOURCE_FUNCTION = 3,
    SOURCE_LINE = 4
};

enum {
    EVENT_CATEGORY_ID = 3,
    EVENT_ANNOTATION = 4,
    EVENT_TYPE = 9,
    EVENT_NAME_ID = 10,
    EVENT_TRACK = 11,
    EVENT_CATEGORY = 22,
    EVENT_NAME = 23,
    EVENT_COUNTER_VALUE = 30,
    EVENT_SOURCE_ID = 34,
    EVENT_DOUBLE = 44,
    EVENT_FLOW = 47,
    EVENT_BEGIN = 1, /* event types */
    EVENT_END = 2,
    EVENT_INSTANT = 3,
    EVENT_COUNTER = 4
};

enum {
    ANNOTATION_NAME_ID = 1,
    ANNOTATION_BOOL = 2,
    ANNOTATION_UINT = 3,
    ANNOTATION_INT = 4,
    ANNOTATION_DOUBLE = 5,
    ANNOTATION_TEXT = 6,
    ANNOTATION_JSON = 9,
    ANNOTATION_NAME = 10,
    ANNOTATION_STRING_ID = 17
};

#endif
