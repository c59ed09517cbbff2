/* handle.h: the table of live objects. It owns every handle of the process: which object it means,
 * who is inside it, and the text of its last error.
 *
 * Invariants:
 *   handle = generation << 16 | slot index + 1      generation > 0, so no handle is ever used twice
 *   a slot is live  <=>  its object is not NULL
 *   exclusive: at most one control call is inside an object; a second is answered KPT_E_BUSY
 *   pins: objects and calls that need this one to stay; it can't end before they are gone
 *
 * One lock guards it all. It is held for a few instructions, never while anybody's code runs, and
 * fork takes it, so that the child finds the table whole. */
#ifndef KPTI_PLUGIN_OBJECTS_HANDLE_H
#define KPTI_PLUGIN_OBJECTS_HANDLE_H

#include "abi/impl/kpti_impl.h"

/* What an object is. Compared by address. */
typedef struct kpti_kind {
    const char *noun;
    void (*forked)(void *object); /* in the child of a fork, with the table locked; may be NULL */
} kpti_kind;

/* A control call on its way through an object. */
typedef struct kpti_call {
    kpt_handle handle;
    void *object;
    kpti_error error;
} kpti_call;

/* Makes a handle for OBJECT, with TEXT as its first last_error. KPT_E_LIMIT when the table is full.
 */
kpt_status kpti_handle_new(const kpti_kind *kind, void *object, const char *text, kpt_handle *out);

/* Enters the object alone: KPT_OK, KPT_E_HANDLE or KPT_E_BUSY. After KPT_OK, leave or end. */
kpt_status kpti_call_begin(kpti_call *call, kpt_handle handle, const kpti_kind *kind);
/* Leaves it; if STATUS is not KPT_OK, the call's error becomes the object's. Returns STATUS. */
kpt_status kpti_call_leave(kpti_call *call, kpt_status status);
/* Leaves it for good: the handle is dead, and the caller owns the object. KPT_E_STATE while pinned.
 */
kpt_status kpti_call_end(kpti_call *call);

/* Keeps the object from ending, beside other callers; NULL if there is no such object. */
void *kpti_handle_pin(kpt_handle handle, const kpti_kind *kind);
void kpti_handle_unpin(kpt_handle handle);
/* The object, without a lock, for calls too frequent for one; the caller keeps it alive. */
void *kpti_handle_peek(kpt_handle handle, const kpti_kind *kind);

/* Sets the text of HANDLE's last error and returns STATUS; handle 0 is the process itself. */
kpt_status kpti_handle_fail(kpt_handle handle, kpt_status status, const kpti_error *error);
/* A kpt_last_error_fn. */
kpt_status kpti_handle_last_error(kpt_handle handle, char *buf, uint64_t size, uint64_t *needed);

/* The table's lock, for what must change together with it. */
void kpti_handles_lock(void);
void kpti_handles_unlock(void);
/* Makes fork safe; again is no change. */
void kpti_handles_watch_fork(void);

#endif
