/* options.h: a dictionary of options as the arguments of a tracer. A row for each key; kpytrace's
 * own options.py makes the dictionary, and has the words for people. The GIL is held. */
#ifndef KPTI_HOSTS_STANDALONE_MODULE_OPTIONS_H
#define KPTI_HOSTS_STANDALONE_MODULE_OPTIONS_H

#include <Python.h>

#include "hosts/standalone/session/session.h"

/* Filters and texts borrow the bytes of the dictionary that they come from. */
typedef struct kpti_start_args {
    kpt_tracer_args tracer;
    kpti_session_options session;
    kpt_filter *filters;
} kpti_start_args;

/* Reads all of DICT; a key that no row has is an error. 1, or 0 with an exception; to be freed in
 * either case. */
int kpti_options_read(PyObject *dict, kpti_start_args *args);
void kpti_options_free(kpti_start_args *args);

#endif
