/* traceback_api.h: the function table of the extension KPT_EXT_TRACEBACK. */
#ifndef KPTI_PLUGIN_API_TRACEBACK_API_H
#define KPTI_PLUGIN_API_TRACEBACK_API_H

#include "abi/kpt_traceback.h"
#include "plugin/objects/object_factory.h"

extern const kpt_traceback_maker kpti_traceback_table;

/* The product of the table's make function. */
extern const kpti_object_class kpti_tracebacks_class;

#endif
