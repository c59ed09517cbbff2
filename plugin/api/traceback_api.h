/* traceback_api.h: what the extension KPT_EXT_TRACEBACK gives to hosts. */
#ifndef KPTI_PLUGIN_API_TRACEBACK_API_H
#define KPTI_PLUGIN_API_TRACEBACK_API_H

#include "abi/kpt_traceback.h"

extern const kpt_traceback_maker kpti_traceback_table;

#endif
