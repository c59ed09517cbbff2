/* memory_api.h: memory tracers as hosts see them. */
#ifndef KPTI_PLUGIN_API_MEMORY_API_H
#define KPTI_PLUGIN_API_MEMORY_API_H

#include "plugin/objects/object_factory.h"

extern const kpti_object_class kpti_memory_class;

#endif
