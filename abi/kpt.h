/* kpt.h: includes every header of the contract. */
#ifndef KPT_H
#define KPT_H

#include "kpt_activity.h"
#include "kpt_base.h"
#include "kpt_chunk.h"
#include "kpt_gpu.h"
#include "kpt_host.h"
#include "kpt_inputs.h"
#include "kpt_loader.h"
#include "kpt_memory.h"
#include "kpt_observer.h"
#include "kpt_plugin.h"
#include "kpt_registry.h"
#include "kpt_tape.h"
#include "kpt_text.h"
#include "kpt_traceback.h"
#include "kpt_tracer.h"

#endif
