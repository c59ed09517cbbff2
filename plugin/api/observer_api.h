/* observer_api.h: observers as hosts see them. */
#ifndef KPTI_PLUGIN_API_OBSERVER_API_H
#define KPTI_PLUGIN_API_OBSERVER_API_H

#include "plugin/objects/object_factory.h"

extern const kpti_object_class kpti_observer_class;

#endif
