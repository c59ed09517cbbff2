/* needs_python.c: a reference to a function of Python, so that the plugin only loads in a process that has
 * Python. The variant for R102 links it. */
#include "tests/plugins/sample.h"

void *PyErr_Occurred(void);
extern void *(*const sample_needs)(void);

void *(*const sample_needs)(void) = PyErr_Occurred;
