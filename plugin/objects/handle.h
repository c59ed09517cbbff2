/* handle.h: the table of live objects. It owns every handle of the process: the object that the handle names,
 * the thread that is inside the object, and the text of the object's last error.
 *
 * Invariants:
 *   handle = generation << 16 | slot index + 1      generation > 0, so no handle is ever used twice
 *   a slot is live  <=>  its object is not NULL
 *   exclusive: at most one control call is inside an object; a second call returns KPT_E_BUSY
 *   pins: objects and calls that need this object; it cannot be ended while there are any
 *
 * One lock guards the table. It is held for a few instructions, never while code of a host or an implementation
 * runs. fork acquires it, so that the child's table is consistent. */
#ifndef KPTI_PLUGIN_OBJECTS_HANDLE_H
#define KPTI_PLUGIN_OBJECTS_HANDLE_H

#include "abi/impl/kpti_impl.h"

/* The kind of an object. Kinds are compared by address. */
typedef struct kpti_handle_kind {
    const char *noun;
    void (*forked)(void *object); /* called in a fork's child, with the table locked; may be NULL */
} kpti_handle_kind;

/* A control call that is inside an object. */
typedef struct kpti_call {
    kpt_handle handle;
    void *object;
    kpti_error error;
} kpti_call;

/* Makes a handle for OBJECT, with TEXT as its first last_error. Returns KPT_E_LIMIT if the table is full. */
kpt_status kpti_handle_new(const kpti_handle_kind *kind, void *object, const char *text,
                           kpt_handle *out);

/* Enters the object exclusively. Returns KPT_OK, KPT_E_HANDLE or KPT_E_BUSY. After KPT_OK the caller calls
 * kpti_call_leave or kpti_call_end. */
kpt_status kpti_call_begin(kpti_call *call, kpt_handle handle, const kpti_handle_kind *kind);
/* Leaves the object. If STATUS is not KPT_OK, the call's error becomes the object's last error. Returns STATUS. */
kpt_status kpti_call_leave(kpti_call *call, kpt_status status);
/* Leaves the object and invalidates its handle. The caller then owns the object. Returns KPT_E_STATE if the
 * object is pinned. */
kpt_status kpti_call_end(kpti_call *call);

/* Keeps the object alive until kpti_handle_unpin. Other threads may be inside it. Returns NULL if there is no
 * such object. */
void *kpti_handle_pin(kpt_handle handle, const kpti_handle_kind *kind);
void kpti_handle_unpin(kpt_handle handle);
/* Returns the object without a lock, for calls that are too frequent for one. The caller keeps the object
 * alive. */
void *kpti_handle_peek(kpt_handle handle, const kpti_handle_kind *kind);

/* Sets the text of HANDLE's last error and returns STATUS. Handle 0 stands for the process. */
kpt_status kpti_handle_fail(kpt_handle handle, kpt_status status, const kpti_error *error);
/* Implements kpt_last_error_fn. */
kpt_status kpti_handle_last_error(kpt_handle handle, char *buf, uint64_t size, uint64_t *needed);

/* The table's lock, for state that must change together with the table. */
void kpti_handles_lock(void);
void kpti_handles_unlock(void);
/* Registers the fork handlers. Later calls do nothing. */
void kpti_handles_watch_fork(void);

#endif
