/* tracer_api.h: tracers as hosts see them. */
#ifndef KPTI_PLUGIN_API_TRACER_API_H
#define KPTI_PLUGIN_API_TRACER_API_H

#include "plugin/objects/object_factory.h"

extern const kpti_product kpti_tracer_product;

#endif
