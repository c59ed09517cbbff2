/* kpt.h: the whole contract in one include. */
#ifndef KPT_H
#define KPT_H

#include "kpt_activity.h"
#include "kpt_base.h"
#include "kpt_chunk.h"
#include "kpt_host.h"
#include "kpt_memory.h"
#include "kpt_observer.h"
#include "kpt_plugin.h"
#include "kpt_registry.h"
#include "kpt_text.h"
#include "kpt_tracer.h"

#endif
