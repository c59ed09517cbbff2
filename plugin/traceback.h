/* traceback.h: what the extension KPT_EXT_TRACEBACK gives to hosts. */
#ifndef KPTI_TRACEBACK_H
#define KPTI_TRACEBACK_H

#include "abi/kpt_traceback.h"

extern const kpt_traceback_maker kpti_traceback_table;

#endif
