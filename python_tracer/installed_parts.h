/* installed_parts.h: the parts that this backend installs in an interpreter, for installation.h. */
#ifndef KPTI_PYTHON_TRACER_INSTALLED_PARTS_H
#define KPTI_PYTHON_TRACER_INSTALLED_PARTS_H

#include "python_tracer/interpreter/installation.h"

extern const kpti_installed_parts kpti_python_parts;

#endif
