/* loaded_tracer.h: a recording made of chunks that a sink has kept: a tracer that has stopped. Knows no Python.
 * The chunks may be anything at all, as files get damaged: what makes no recording is refused, and of the
 * events nothing is believed, as replay says. */
#ifndef KPTI_CORE_RECORDING_SERIALIZED_LOADED_TRACER_H
#define KPTI_CORE_RECORDING_SERIALIZED_LOADED_TRACER_H

#include "abi/impl/kpti_impl.h"

extern const kpti_tracer_impl kpti_loaded_tracer; /* but for make */

/* Makes one: *SELF is then for the functions above. */
kpt_status kpti_loaded_make(const kpti_env *env, const kpt_load_args *args, void **self,
                            kpti_error *error);

#endif
