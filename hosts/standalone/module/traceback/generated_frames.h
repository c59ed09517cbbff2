/* generated_frames.h: what a line of generated Python code was generated from. */
#ifndef KPTI_HOSTS_STANDALONE_MODULE_TRACEBACK_GENERATED_FRAMES_H
#define KPTI_HOSTS_STANDALONE_MODULE_TRACEBACK_GENERATED_FRAMES_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "abi/kpt_traceback.h"

/* Returns torch's function for lines of its generated code, if torch has generated any in this process: a new reference
 * or NULL, never an exception. */
PyObject *kpti_find_codecache(void);
/* A kpt_generated_fn: asks Python what a line stands for. */
void kpti_generated(void *ctx, kpt_str file, uint32_t line, kpt_add_frame_fn add, void *add_ctx);

#endif
