/* needs_python.c: what makes a plugin that only loads where Python is: a reference to one of its
 * functions. R102's variant has it. */
#include "tests/plugins/sample.h"

void *PyErr_Occurred(void);
extern void *(*const sample_needs)(void);

void *(*const sample_needs)(void) = PyErr_Occurred;
