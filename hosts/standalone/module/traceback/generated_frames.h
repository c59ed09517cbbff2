/* generated_frames.h: finds the source of a line of generated Python code. */
#ifndef KPTI_HOSTS_STANDALONE_MODULE_TRACEBACK_GENERATED_FRAMES_H
#define KPTI_HOSTS_STANDALONE_MODULE_TRACEBACK_GENERATED_FRAMES_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "abi/kpt_traceback.h"

/* Returns torch's function for lines of its generated code, if torch has generated any in this process: a new
 * reference, or NULL without an exception. */
PyObject *kpti_find_codecache(void);
/* Implements kpt_generated_fn: calls Python for the frames that a line stands for. */
void kpti_generated(void *ctx, kpt_str file, uint32_t line, kpt_add_frame_fn add, void *add_ctx);

#endif
