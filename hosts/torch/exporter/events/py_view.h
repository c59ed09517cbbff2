/* py_view.h: the view that torch's Python has of a table's events, from the arguments of a method. */
#ifndef KPTI_TORCH_PY_VIEW_H
#define KPTI_TORCH_PY_VIEW_H

#include "hosts/torch/exporter/events/event_sums.h"
#include "hosts/torch/exporter/events/py_table.h"

/* Makes VIEW, and SUMS of it unless that is NULL, from OPTIONS: (keys of names, flags of names, start of the trace in ns,
 * whether the profile has a device, whether sum() is exact). Returns 1, or 0 with an exception. After either the caller
 * frees both. OPTIONS must live as long as VIEW. */
int kpti_py_view_make(kpti_py_table *table, PyObject *options, kpti_view *view, kpti_sums *sums);

/* Returns the names of STACK as torch's FunctionEvents have them, MAX at most (0: all), or NULL with an exception. */
PyObject *kpti_py_view_stack(const kpti_py_table *table, const kpti_view *view, uint32_t stack,
                             uint32_t max);

/* Sets DICT[KEY], and takes over the reference to VALUE. Returns 1, or 0 with an exception. */
int kpti_py_set(PyObject *dict, const char *key, PyObject *value);

/* Returns a new object of TYPE with the attributes DICT, or NULL with an exception. Takes over the reference to DICT. */
PyObject *kpti_py_object(PyObject *type, PyObject *dict);

#endif
