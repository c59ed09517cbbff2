/* tracer_api.h: tracers as hosts see them. */
#ifndef KPTI_PLUGIN_API_TRACER_API_H
#define KPTI_PLUGIN_API_TRACER_API_H

#include "plugin/objects/object_factory.h"

extern const kpti_object_class kpti_tracer_class;

#endif
