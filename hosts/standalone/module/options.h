/* options.h: converts a dictionary of options to the arguments of a tracer, with a row for each key. kpytrace's
 * own options.py makes the dictionary and has the messages for users. The GIL is held. */
#ifndef KPTI_HOSTS_STANDALONE_MODULE_OPTIONS_H
#define KPTI_HOSTS_STANDALONE_MODULE_OPTIONS_H

#include <Python.h>

#include "hosts/standalone/session/session.h"

/* Filters and texts borrow the bytes of the dictionary. */
typedef struct kpti_start_args {
    kpt_tracer_args tracer;
    kpti_session_options session;
    kpt_filter *filters;
    PyObject *
        callbacks; /* borrowed: the capsules that a session with another host's callbacks keeps alive; or NULL */
} kpti_start_args;

/* Reads all of DICT. A key without a row is an error. Returns 1, or 0 with an exception. The caller frees ARGS
 * in either case. */
int kpti_options_read(PyObject *dict, kpti_start_args *args);
void kpti_options_free(kpti_start_args *args);

#endif
