#include "python_tracer/capture/named_code.h"

#if KPTI_NAMED_CODES
#include <stdatomic.h>
#include <stdlib.h>

#include "python_tracer/threads/function_naming.h"

/* A block is made when it is needed, and stays: readers need no lock. Writers have the GIL. */
enum { BLOCK = 4096, BLOCKS = 4096 };
typedef _Atomic(const PyCodeObject *) entry;
static _Atomic(entry *) blocks[BLOCKS];
static atomic_flag is_asked = ATOMIC_FLAG_INIT;

static entry *entry_of(uint32_t function)
{
    entry *block = function / BLOCK < BLOCKS
                       ? atomic_load_explicit(&blocks[function / BLOCK], memory_order_acquire)
                       : NULL;
    return block ? &block[function % BLOCK] : NULL;
}

void kpti_named_add(uint32_t function, const PyCodeObject *code)
{
    entry *at = entry_of(function);
    if (!at && function / BLOCK < BLOCKS) {
        entry *block = calloc(BLOCK, sizeof *block);
        atomic_store_explicit(&blocks[function / BLOCK], block, memory_order_release);
        at = entry_of(function);
    }
    if (at) atomic_store_explicit(at, code, memory_order_release);
}

void kpti_named_remove(uint32_t function)
{
    entry *at = entry_of(function);
    if (at) atomic_store_explicit(at, NULL, memory_order_release);
}

void kpti_named_clear(void)
{
    for (uint32_t i = 0; i < BLOCKS; i++) {
        entry *block = atomic_load_explicit(&blocks[i], memory_order_relaxed);
        for (uint32_t j = 0; block && j < BLOCK; j++)
            atomic_store_explicit(&block[j], NULL, memory_order_release);
    }
}

int kpti_named_has(uint32_t function, const PyCodeObject *code)
{
    entry *at = entry_of(function);
    return at && atomic_load_explicit(at, memory_order_acquire) == code;
}

/* FRAME, whose thread waits for the GIL or has no use for it, and those below it. */
static void name_frames(kpti_raw_frame *frame)
{
    for (frame = kpti_raw_complete(frame); frame; frame = kpti_raw_below(frame)) {
        PyCodeObject *code = kpti_raw_frame_code(frame);
        const uint32_t function = kpti_name_code(code);
        if (kpti_name_is_kept(code)) kpti_named_add(function, code);
    }
}

static void name_all_threads(void)
{
    PyObject *frames = _PyThread_CurrentFrames();
    PyObject *thread;
    PyObject *frame;
    Py_ssize_t at = 0;
    while (frames && PyDict_Next(frames, &at, &thread, &frame))
        name_frames(((PyFrameObject *)frame)->f_frame);
    Py_XDECREF(frames);
    PyErr_Clear();
}

/* A pending call of Python's: on the main thread, with the GIL. Another interpreter's code objects have other slots,
 * and _PyThread_CurrentFrames does not report the interpreter of a frame. */
static int name_running(void *unused)
{
    (void)unused;
    atomic_flag_clear(&is_asked);
    if (!kpti_may_touch_python()) return 0;
    if (PyInterpreterState_Next(PyInterpreterState_Head()))
        name_frames(kpti_raw_top(kpti_attached()));
    else
        name_all_threads();
    return 0;
}

void kpti_named_ask(void)
{
    if (atomic_flag_test_and_set(&is_asked)) return;
    if (Py_AddPendingCall(name_running, NULL) != 0) atomic_flag_clear(&is_asked);
}
#endif
